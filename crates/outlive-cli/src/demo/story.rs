//! What happens in the demo.

use std::time::Duration;

use clap::ValueEnum;
use outlive::{Domain, Node};

use super::camera::MEMORY_BYTES_MAX;
use super::cast::{Actor, DOMAIN, interrupted};
use super::claim::must;
use super::frame;
use super::protocol::{End, Order, Report};
use super::role::DEPTH;
use super::tally::{Entry, Tally};
use super::teller::Teller;
use crate::exit::Failure;
use crate::os;
use crate::output::bytes;
use crate::stage::Stage;

/// How long the slow viewer keeps each frame.
const KEEP_MS: u64 = 150;
/// Start-ups to be killed half-way, and tries to hit them there.
const STARTS: usize = 8;
const TRIES: usize = 80;

/// For the test that the demo can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Lie {
    /// The camera leaves a wrong word in a frame.
    Torn,
    /// One frame more is said to be published than was.
    Count,
    /// A file stays behind.
    Litter,
}

/// Everybody and everything, from the first frame to the last file.
struct Story {
    // Dropped in this order: nobody uses the stage when it goes.
    camera: Actor,
    viewer: Actor,
    slow: Actor,
    recorder: Actor,
    stage: Stage,
    domain: Domain,
    teller: Teller,
    tally: Tally,
    killed: usize,
    lie: Option<Lie>,
}

/// Plays it; `beat` is the time between two blows.
pub(super) fn play(beat: Duration, lie: Option<Lie>) -> Result<(), Failure> {
    let mut story = Story::begin(lie)?;
    story.wait(beat)?;
    story.kill_viewer()?;
    story.wait(beat)?;
    story.kill_starters()?;
    story.wait(beat)?;
    story.kill_camera()?;
    story.wait(beat)?;
    story.end()
}

impl Story {
    fn begin(lie: Option<Lie>) -> Result<Self, Failure> {
        let teller = Teller::new();
        // The killed camera and its successor, and something for the rest.
        let stage = Stage::set("demo", 2 * MEMORY_BYTES_MAX + (8 << 20))?;
        let options = Node::builder().root(stage.dir()).domain(DOMAIN);
        let domain = Domain::of(&options)?;
        teller.line(format_args!(
            "A camera (1920x1080, {} Hz, {} frames), a fast viewer, a slow viewer ({KEEP_MS} ms a \
             frame), a recorder;\neach its own process, in {}, {DEPTH} frames deep.\n",
            frame::HZ,
            bytes(frame::BYTES),
            stage.dir().display()
        ));
        let mut recorder = Actor::start(&stage, "recorder", "receiver", &[])?;
        let keep = ["--keep-ms".into(), KEEP_MS.to_string()];
        let mut slow = Actor::start(&stage, "slow viewer", "receiver", &keep)?;
        let mut viewer = Actor::start(&stage, "fast viewer", "receiver", &[])?;
        // They are there first: every frame is theirs to receive or to count as lost.
        for actor in [&mut recorder, &mut slow, &mut viewer] {
            actor.ready()?;
        }
        let tear: &[String] =
            if lie == Some(Lie::Torn) { &["--tear".into(), "5".into()] } else { &[] };
        let mut camera = Actor::start(&stage, "camera", "camera", tear)?;
        camera.ready()?;
        for actor in [&mut recorder, &mut slow, &mut viewer] {
            first_frame(actor, camera.node)?;
        }
        let (tally, killed) = (Tally::default(), 0);
        Ok(Self { camera, viewer, slow, recorder, stage, domain, teller, tally, killed, lie })
    }

    fn wait(&self, time: Duration) -> Result<(), Failure> {
        let until = outlive::now_ns() + time.as_nanos() as u64;
        while outlive::now_ns() < until {
            if os::stop_asked() {
                return Err(interrupted());
            }
            std::thread::sleep(Duration::from_millis(20).min(time));
        }
        Ok(())
    }

    fn kill_viewer(&mut self) -> Result<(), Failure> {
        let Self { camera, viewer, slow, recorder, .. } = self;
        let witnesses = &mut [camera, recorder, slow];
        let (seq, known) = kill(viewer, witnesses, &Order::Hold, "hold a frame", |r| match r {
            Report::Holding { seq, .. } => Some(*seq),
            _ => None,
        })?;
        self.killed += 1;
        self.teller.killed(format_args!("the fast viewer, while it held frame {seq}"));
        self.teller.more(known);
        let start_ns = outlive::now_ns();
        self.viewer = Actor::start(&self.stage, "fast viewer", "receiver", &[])?;
        self.viewer.ready()?;
        let first_ns = first_frame(&mut self.viewer, self.camera.node)?;
        self.teller.more(format_args!("restarted: frames again after {}", ms(start_ns, first_ns)));
        self.audit()
    }

    fn kill_starters(&mut self) -> Result<(), Failure> {
        let length_ns = self.start_up()?;
        let mut random = outlive::now_ns() | 1;
        let mut hit = 0;
        for _ in 0..TRIES {
            if hit == STARTS {
                break;
            }
            let mut starter = Actor::start(&self.stage, "starter", "starter", &[])?;
            starting(&mut starter)?;
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let at_ns = outlive::now_ns() + random % length_ns.max(1);
            while outlive::now_ns() < at_ns {
                std::hint::spin_loop();
            }
            let (_, said) = starter.kill()?;
            // One that was up before the blow does not count.
            hit += usize::from(!said.iter().any(|r| matches!(r, Report::Ready { .. })));
        }
        must(hit > 0, || "a process was killed in the middle of its start-up".into())?;
        self.killed += hit;
        self.teller.killed(format_args!("{hit} processes in the middle of their start-up"));
        let length_ns = self.start_up()?;
        self.teller.more(format_args!("the next one was up in {}", ms(0, length_ns)));
        self.audit()
    }

    /// A start-up that nobody interrupts; how long it took, ns.
    fn start_up(&mut self) -> Result<u64, Failure> {
        let mut starter = Actor::start(&self.stage, "starter", "starter", &[])?;
        let start_ns = starting(&mut starter)?;
        let ready_ns = starter.ready()?;
        starter.quit()?;
        Ok(ready_ns.saturating_sub(start_ns))
    }

    fn kill_camera(&mut self) -> Result<(), Failure> {
        let Self { camera, viewer, slow, recorder, .. } = self;
        let witnesses = &mut [recorder, viewer, slow];
        let (seq, known) = kill(camera, witnesses, &Order::Stall, "begin a frame", |r| match r {
            Report::MidFrame { seq } => Some(*seq),
            _ => None,
        })?;
        self.killed += 1;
        // The frame it was writing never was: it had published those before, and no other.
        self.settle(seq, End::Died)?;
        self.teller.killed(format_args!("the camera, half-way through frame {seq}"));
        self.teller.more(known);
        self.teller.more(format_args!("all have {seq} frames of it, received or counted as lost"));
        let start_ns = outlive::now_ns();
        self.camera = Actor::start(&self.stage, "camera", "camera", &[])?;
        self.camera.ready()?;
        let mut last_ns = 0;
        for actor in [&mut self.recorder, &mut self.viewer, &mut self.slow] {
            last_ns = last_ns.max(first_frame(actor, self.camera.node)?);
        }
        self.teller.more(format_args!("restarted: frames again after {}", ms(start_ns, last_ns)));
        self.audit()
    }

    /// Compares everybody's account of the camera with what it published.
    fn settle(&mut self, published: u64, end: End) -> Result<(), Failure> {
        let camera = self.camera.node;
        let published = published + u64::from(self.lie == Some(Lie::Count));
        for actor in [&mut self.recorder, &mut self.viewer, &mut self.slow] {
            let account = actor.expect("account for the camera", |r| match r {
                Report::Account(a) if a.camera == camera => Some(a.clone()),
                _ => None,
            })?;
            let late = actor.name == "fast viewer";
            must(late || account.first == 0, || {
                format!("the {} was there from the first frame on", actor.name)
            })?;
            self.tally.add(Entry { receiver: actor.name, account, published }, end)?;
        }
        Ok(())
    }

    /// The files of the domain are sound, while all go on.
    fn audit(&self) -> Result<(), Failure> {
        let faults = self.domain.audit()?.faults;
        must(faults.is_empty(), || format!("files are sound: {}", faults.join("; ")))
    }

    fn end(mut self) -> Result<(), Failure> {
        self.camera.order(&Order::Quit)?;
        let frames = self.camera.expect("say what it published", |r| match r {
            Report::Published { frames, .. } => Some(*frames),
            _ => None,
        })?;
        self.settle(frames, End::Left)?;
        self.camera.leave()?;
        for actor in [&mut self.viewer, &mut self.slow, &mut self.recorder] {
            actor.quit()?;
        }
        self.audit()?;
        self.teller.line("");
        self.teller.line(self.tally.text());
        if self.lie == Some(Lie::Litter) {
            let _ = std::fs::write(self.stage.dir().join("litter"), "");
        }
        let nodes = self.domain.nodes()?.len();
        must(nodes == 0, || format!("a node that joins sweeps up the dead: {nodes} are left"))?;
        self.domain.clean()?;
        let left = self.stage.listing();
        must(left.is_empty(), || format!("nothing is left: {left:?}"))?;
        self.teller.good(&format!(
            "{} processes killed: nobody hung, nothing was torn, every lost frame was counted.",
            self.killed
        ));
        self.teller.good("nothing left: 0 files");
        Ok(())
    }
}

/// Has `victim` do what `order` says, kills it in the middle of that, and asks the witnesses when
/// they knew.
fn kill<T>(
    victim: &mut Actor,
    witnesses: &mut [&mut Actor],
    order: &Order,
    what: &str,
    caught: impl Fn(&Report) -> Option<T>,
) -> Result<(T, String), Failure> {
    let dead = victim.node;
    for witness in witnesses.iter_mut() {
        witness.order(&Order::Watch(dead))?;
        witness.expect("watch", |r| {
            matches!(r, Report::Watching { node } if *node == dead).then_some(())
        })?;
    }
    victim.order(order)?;
    let caught = victim.expect(what, caught)?;
    let (killed_ns, _) = victim.kill()?;
    let mut known = Vec::new();
    for witness in witnesses.iter_mut() {
        let gone_ns = witness.expect("notice a death", |r| match r {
            Report::Gone { node, at_ns } if *node == dead => Some(*at_ns),
            _ => None,
        })?;
        must(gone_ns >= killed_ns, || format!("the {} waited for the death", witness.name))?;
        known.push(format!("{} ({})", ms(killed_ns, gone_ns), witness.name));
    }
    Ok((caught, format!("known to the others after {}", known.join(", "))))
}

/// When the first frame of `camera` came to a receiver.
fn first_frame(actor: &mut Actor, camera: u64) -> Result<u64, Failure> {
    actor.expect("receive a frame", |r| match r {
        Report::First { camera: of, at_ns } if *of == camera => Some(*at_ns),
        _ => None,
    })
}

/// When a process began to join, ns.
fn starting(actor: &mut Actor) -> Result<u64, Failure> {
    actor.expect("start", |r| match r {
        Report::Starting { at_ns } => Some(*at_ns),
        _ => None,
    })
}

fn ms(from_ns: u64, to_ns: u64) -> String {
    let ms = to_ns.saturating_sub(from_ns) as f64 / 1e6;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}
