//! Viewers and the recorder: receive, check every word, count.

use std::time::Duration;

use outlive::Sample;
use outlive::topic::Event;

use super::frame::{self, Frame};
use super::protocol::{Account, End, Order, Report};
use super::role::{OrderListener, RoleArgs, TOPIC, ready, report};
use crate::exit::{Code, Failure, Outcome};
use crate::options::DomainOptions;

pub(super) fn run(args: &RoleArgs, options: &DomainOptions) -> Outcome {
    let node = options.node(&args.name)?;
    let topic = node.topic::<Frame>(TOPIC)?.depth(super::role::DEPTH).borrows(2);
    let mut subscriber = topic.subscriber()?;
    let orders = OrderListener::listen(&node);
    ready(&node)?;
    let mut ledger = Ledger::default();
    let mut hold = false;
    loop {
        match orders.next() {
            Some(Order::Quit) => break,
            Some(Order::Hold) => hold = true,
            _ => {}
        }
        let sample = subscriber.receive_timeout(Duration::from_millis(20))?;
        if let Some(sample) = sample {
            let at = ledger.open(&sample)?;
            // Checked after keeping it: a frame in hand does not change.
            std::thread::sleep(Duration::from_millis(args.keep_ms));
            ledger.take(at, &sample);
            if hold {
                return keep(&sample);
            }
        }
        while let Some(event) = subscriber.next_event() {
            ledger.end(&event)?;
        }
    }
    for account in ledger.accounts {
        report(&Report::Account(account))?;
    }
    drop(subscriber);
    orders.close();
    Ok(Code::Done)
}

/// Keeps a borrowed frame and waits for the end.
fn keep(sample: &Sample<Frame>) -> Outcome {
    if !sample.is_borrowed() {
        return Err(Failure::new(Code::Failed, "the viewer holds a copy, not a frame"));
    }
    let camera = sample.publisher().node.get();
    report(&Report::Holding { camera, seq: sample.seq() })?;
    std::thread::sleep(Duration::from_secs(600));
    Err(Failure::new(Code::Failed, "the viewer held a frame and nobody killed it"))
}

/// Accounts of the cameras that are there.
#[derive(Debug, Default)]
struct Ledger {
    accounts: Vec<Account>,
}

impl Ledger {
    /// The place of the account of a frame's camera.
    fn open(&mut self, sample: &Sample<Frame>) -> Result<usize, Failure> {
        let camera = sample.publisher().node.get();
        if let Some(at) = self.accounts.iter().position(|a| a.camera == camera) {
            return Ok(at);
        }
        report(&Report::First { camera, at_ns: outlive::now_ns() })?;
        self.accounts.push(Account { camera, ..Account::default() });
        Ok(self.accounts.len() - 1)
    }

    fn take(&mut self, at: usize, sample: &Sample<Frame>) {
        let account = &mut self.accounts[at];
        let whole = frame::is_whole(&sample[..], account.camera, sample.seq());
        account.take(sample.seq(), sample.lost_before(), whole);
    }

    fn end(&mut self, event: &Event) -> Result<(), Failure> {
        let (publisher, end, lost) = match event {
            Event::PublisherJoined(_) => return Ok(()),
            Event::PublisherLeft(publisher) => (publisher, End::Left, 0),
            Event::PublisherDied { publisher, lost, .. } => (publisher, End::Died, *lost),
            other => {
                return Err(Failure::new(Code::Corrupt, format!("a camera is corrupt: {other:?}")));
            }
        };
        let camera = publisher.node.get();
        let at = self.accounts.iter().position(|a| a.camera == camera);
        let mut account = at.map(|at| self.accounts.swap_remove(at)).unwrap_or_default();
        account.lost += lost;
        report(&Report::Account(Account { camera, end, ..account }))
    }
}
