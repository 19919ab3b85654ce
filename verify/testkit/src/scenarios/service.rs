//! Services, killed at every system call and every change of shared bytes: whoever lives on gets an
//! answer, or is told that there will be none.

use std::path::Path;
use std::thread::JoinHandle;

use outlive::{Client, Deadline, ErrorKind, Node, Server};

use super::queue::LONG;
use super::{audit, node, nothing_left, text};
use crate::process::{sleeps, thread_id, wait_until};
use crate::sweep::{Gate, Outcome, Point, Scenario};

const SERVICE: &str = "/sweep/service";

/// What the victim does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// As a client, asks.
    Ask,
    /// As a client, takes the answer.
    TakeAnswer,
    /// As the server, receives a request and answers a client that sleeps for it.
    Serve,
    /// As the server, answers in parts.
    ServeInParts,
    /// As `Serve`; the client resumes, and another server comes after the victim.
    ServeOneWhoResumes,
    /// As a client, gives a request up.
    Cancel,
    /// As a client that resumes, sends two requests again: the server was replaced.
    SendAgain,
    /// Makes a service by serving it.
    OpenServer,
    /// Makes a service as its first client.
    OpenClient,
    /// Stops serving while a client sleeps for its answer.
    CloseServer,
    /// Leaves as a client with a request under way.
    CloseClient,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Ask,
        Self::TakeAnswer,
        Self::Serve,
        Self::ServeInParts,
        Self::ServeOneWhoResumes,
        Self::Cancel,
        Self::SendAgain,
        Self::OpenServer,
        Self::OpenClient,
        Self::CloseServer,
        Self::CloseClient,
    ];

    fn victim_serves(self) -> bool {
        self.is_awaited() || self == Self::OpenServer
    }

    /// A client sleeps for the victim's answer.
    fn is_awaited(self) -> bool {
        matches!(
            self,
            Self::Serve | Self::ServeInParts | Self::ServeOneWhoResumes | Self::CloseServer
        )
    }
}

fn server(node: &Node) -> Result<Server<u64, u64>, String> {
    node.service::<u64, u64>(SERVICE).map_err(text)?.server().map_err(text)
}

fn client(node: &Node) -> Result<Client<u64, u64>, String> {
    open_client(node, false)
}

fn open_client(node: &Node, resume: bool) -> Result<Client<u64, u64>, String> {
    node.service::<u64, u64>(SERVICE).map_err(text)?.resume(resume).client().map_err(text)
}

/// Answers the requests that are there with ten times their number; how many.
fn serve(server: &mut Server<u64, u64>) -> Result<u64, String> {
    let mut answered = 0;
    while let Some(request) = server.receive().map_err(text)? {
        let answer = *request * 10;
        match server.respond(request, &answer).map_err(|e| e.kind()) {
            Ok(()) => answered += 1,
            Err(ErrorKind::ClientDied) => {}
            Err(other) => return Err(format!("an answer says {other}")),
        }
    }
    Ok(answered)
}

/// A round trip within one process.
fn round_trip(server: &mut Server<u64, u64>, client: &mut Client<u64, u64>) -> Result<(), String> {
    let ticket = client.send(&7).map_err(text)?;
    let answered = serve(server)?;
    let reply = client.receive_for(ticket, Deadline::AT_ONCE).map_err(text)?;
    match reply.body() {
        Ok(70) if answered == 1 => Ok(()),
        other => Err(format!("{answered} answered, and the answer is {other:?}")),
    }
}

/// A survivor asleep in a call.
type Asking = JoinHandle<Result<Outcome, String>>;

/// Those who live on.
#[derive(Debug)]
pub struct Members {
    node: Node,
    server: Option<Server<u64, u64>>,
    asking: Option<Asking>,
}

impl Scenario for Step {
    type World = Members;

    fn name(&self) -> String {
        format!("service: {self:?}")
    }

    fn must_see(&self) -> &[Outcome] {
        match self {
            Self::Serve => &["answered", "server died"],
            Self::ServeOneWhoResumes => &["answered"],
            Self::ServeInParts => &["answered", "a part, then server died", "server died"],
            Self::CloseServer => &["server died"],
            _ => &[],
        }
    }

    fn setup(&self, dir: &Path) -> Result<Members, String> {
        // A lost wake would otherwise end with the slice.
        outlive::internals::set_slice_ns_max(3600 * 1_000_000_000);
        let node = node(dir, "survivor")?;
        let serves = !self.victim_serves() && *self != Self::OpenClient;
        let server = if serves { Some(server(&node)?) } else { None };
        Ok(Members { node, server, asking: None })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let done = match self {
            Self::Ask | Self::TakeAnswer | Self::CloseClient | Self::Cancel | Self::SendAgain => {
                let mut client = open_client(&node, *self == Self::SendAgain)?;
                let ticket = client.send(&1).map_err(text)?;
                if *self == Self::SendAgain {
                    client.send(&2).map_err(text)?;
                }
                gate.enter();
                let done = match self {
                    Self::Cancel => client.cancel(ticket),
                    Self::Ask => client.send(&2).map(drop),
                    Self::TakeAnswer | Self::SendAgain => client.receive().map(drop),
                    _ => {
                        drop(client);
                        gate.leave();
                        std::mem::forget(node);
                        return Ok(());
                    }
                };
                gate.leave();
                std::mem::forget(client);
                done.map_err(text)
            }
            Self::OpenClient => {
                gate.enter();
                let client = client(&node);
                gate.leave();
                client.map(std::mem::forget)
            }
            Self::OpenServer => {
                gate.enter();
                let server = server(&node);
                gate.leave();
                server.map(std::mem::forget)
            }
            Self::CloseServer => {
                let server = server(&node)?;
                gate.enter();
                drop(server);
                gate.leave();
                Ok(())
            }
            Self::Serve | Self::ServeInParts | Self::ServeOneWhoResumes => {
                let mut server = server(&node)?;
                // Opens the way back to the client of the warm-up.
                round_trip(&mut server, &mut client(&node)?)?;
                gate.enter();
                let done = answer(&mut server, *self);
                gate.leave();
                std::mem::forget(server);
                done
            }
        };
        std::mem::forget(node);
        done
    }

    fn at_gate(&self, _dir: &Path, world: &mut Members) -> Result<(), String> {
        if *self == Self::SendAgain {
            drop(world.server.take());
            world.server = Some(server(&world.node)?);
            return Ok(());
        }
        if let Some(server) = &mut world.server {
            if *self == Self::TakeAnswer && serve(server)? != 1 {
                return Err("the victim's request did not come".into());
            }
            return Ok(());
        }
        if !self.is_awaited() {
            return Ok(());
        }
        let mut client = open_client(&world.node, *self == Self::ServeOneWhoResumes)?;
        let (ready, is_ready) = std::sync::mpsc::channel();
        let ticket = client.send(&3).map_err(text)?;
        world.asking = Some(std::thread::spawn(move || {
            ready.send(thread_id()).map_err(|e| e.to_string())?;
            let mut outcome = "server died";
            loop {
                let reply = client.receive_for(ticket, Deadline::NEVER).map_err(text)?;
                match (reply.body().map_err(|e| e.kind()), reply.is_last()) {
                    (Ok(30), true) => return Ok("answered"),
                    (Ok(30), false) => outcome = "a part, then server died",
                    (Err(ErrorKind::ServerDied), true) => return Ok(outcome),
                    other => return Err(format!("the answer is {other:?}")),
                }
            }
        }));
        let thread = is_ready.recv().map_err(|e| e.to_string())?;
        if wait_until(LONG, || sleeps(thread)) {
            Ok(())
        } else {
            Err("the client does not fall asleep".into())
        }
    }

    fn survivor(&self, dir: &Path, world: &mut Members, _at: &Point) -> Result<Outcome, String> {
        if *self == Self::ServeOneWhoResumes {
            let mut next = server(&world.node)?;
            // It may have been answered by the victim, or be asked again only now.
            let asking = world.asking.as_ref().ok_or("nobody asks")?;
            while !asking.is_finished() {
                serve(&mut next)?;
            }
            world.server = Some(next);
        }
        // A lost wake hangs here, and the watchdog says so.
        let outcome = match world.asking.take() {
            Some(asking) => asking.join().map_err(|_| "the client panicked")??,
            None => "goes on",
        };
        audit(dir)?;
        let server = match &mut world.server {
            Some(server) => server,
            None => world.server.insert(server(&world.node)?),
        };
        if *self != Self::TakeAnswer && serve(server)? != 0 {
            return Err("a dead client's request was answered".into());
        }
        let mut client = client(&world.node)?;
        for _ in 0..3 {
            round_trip(server, &mut client)?;
        }
        audit(dir)?;
        Ok(outcome)
    }

    fn teardown(&self, dir: &Path, world: Members) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}

/// Receives the one request and answers it.
fn answer(server: &mut Server<u64, u64>, step: Step) -> Result<(), String> {
    let request = server.receive().map_err(text)?.ok_or("no request")?;
    let answer = *request * 10;
    if step == Step::ServeInParts {
        server.respond_part(&request, &answer).map_err(text)?;
    }
    server.respond(request, &answer).map_err(text)
}
