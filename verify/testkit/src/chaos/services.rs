//! Clients and servers of one service.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use outlive::service::Ticket;
use outlive::{Client, Deadline, ErrorKind, Result};

use super::board::{Call, Fault, RECEIVERS_END};
use super::message::{Head, check, fill};
use super::part::{HANG, Part};

pub(super) type Words = [u64; 8];

pub(super) const SERVICE: &str = "/chaos/service";

/// A request's time; a server that lives answers long before.
const ASK_MS: u64 = 2000;
const SERVE_MS: u64 = 100;
const AT_ONCE: u64 = 4;

/// Asks, until the end: one at a time, or several at once and whichever answer comes first.
pub(super) fn ask(part: &mut Part, resume: bool) -> Result<()> {
    let node = part.node("client")?;
    let mut client = part.join(|| {
        node.service::<Words, Words>(SERVICE)?.bound_bytes(1 << 20).resume(resume).client()
    })?;
    let (mut n, mut answered) = (0, 0);
    while part.runs() && !part.has_enough(10_000) {
        let at_once = if part.rng.one_in(3) { 1 + part.rng.below(AT_ONCE) } else { 1 };
        let (began, until) = (part.clear_ns(), Deadline::after(Duration::from_millis(ASK_MS)));
        let mut sent: HashMap<Ticket, u64> = HashMap::new();
        for _ in 0..at_once {
            part.account().tried.store(n + 1, Release);
            let mut words = Words::default();
            part.fill(&mut words, n);
            // A number is used once, also by a request that was not sent for certain.
            n += 1;
            match part.call(Call::Ask, ASK_MS, || client.send_until(&words, until)) {
                Ok(ticket) => drop(sent.insert(ticket, n - 1)),
                Err(e) if is_no_server(e.kind()) => {}
                Err(e) => return Err(e),
            }
        }
        if part.rng.one_in(20)
            && let Some((&ticket, _)) = sent.iter().next()
        {
            sent.remove(&ticket);
            allow(part.call(Call::Ask, ASK_MS, || client.cancel(ticket)))?;
        }
        answered += answers(part, &mut client, sent, began, until, resume)?;
        part.account().sent.store(answered, Release);
        if !client.has_server() {
            let wait = Duration::from_millis(50);
            allow(part.call(Call::WaitForPeer, 50, || client.wait_for_server(wait)).map(drop))?;
        }
        if part.rng.one_in(8) {
            part.pause_us(2000);
        }
    }
    part.leave(client);
    part.leave(node);
    Ok(())
}

fn is_no_server(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ServerDied | ErrorKind::Timeout | ErrorKind::WouldBlock)
}

fn allow(result: Result<()>) -> Result<()> {
    match result {
        Err(e) if !is_no_server(e.kind()) => Err(e),
        _ => Ok(()),
    }
}

/// Waits for the answers to `sent`; how many were given.
fn answers(
    part: &Part,
    client: &mut Client<Words, Words>,
    mut sent: HashMap<Ticket, u64>,
    began: u64,
    until: Deadline,
    resume: bool,
) -> Result<u64> {
    let mut answered = 0;
    while !sent.is_empty() {
        let reply = part.call(Call::Ask, ASK_MS, || client.receive_until(until))?;
        let Some(reply) = reply else { break };
        let Some(n) = sent.get(&reply.ticket()).copied() else { continue };
        if reply.is_last() {
            sent.remove(&reply.ticket());
        }
        match reply.body() {
            Ok(words) => {
                let head = check(words);
                let whole = head
                    .as_ref()
                    .is_ok_and(|h| (h.slot, h.life, h.seq) == (part.slot, part.life, n));
                if !whole {
                    part.fault(Fault::Torn, 1, format!("asked {n}, was answered {head:?}"));
                }
                answered += u64::from(reply.is_last());
            }
            Err(e) if e.kind() == ErrorKind::Timeout && !resume => {
                // Of a server that dies the client hears; of a stopped one it does not.
                let quiet =
                    part.clear_ns().saturating_sub(began.max(part.board.window_ns.load(Acquire)));
                if quiet > HANG.as_nanos() as u64 {
                    part.fault(Fault::Hang, 1, format!("request {n} was not answered: {e}"));
                }
            }
            Err(e) if is_no_server(e.kind()) || e.kind() == ErrorKind::Refused => {}
            Err(e) => return Err(e),
        }
    }
    Ok(answered)
}

/// Answers until the clients have ended.
pub(super) fn serve(part: &mut Part) -> Result<()> {
    let node = part.node("server")?;
    let mut server = loop {
        if part.board.phase() >= RECEIVERS_END {
            return Ok(());
        }
        let open = || node.service::<Words, Words>(SERVICE)?.bound_bytes(1 << 20).server();
        match part.join(open) {
            Ok(server) => break server,
            Err(e) if e.kind() == ErrorKind::ConsumerExists => part.pause_us(2000),
            Err(e) => return Err(e),
        }
    };
    let wait = Duration::from_millis(SERVE_MS);
    while part.board.phase() < RECEIVERS_END && !(part.runs() && part.has_enough(20_000)) {
        let request = part.call(Call::Serve, SERVE_MS, || server.receive_timeout(wait))?;
        let Some(request) = request else { continue };
        let Some(head) = part.check(&request[..], SERVICE) else { continue };
        take(part, head);
        let mut answer = Words::default();
        fill(&mut answer, Head { stamp: part.clear_ns(), ..head });
        let done = part.call(Call::Serve, 0, || {
            if part.life % 2 == 1 {
                server.respond_part(&request, &answer)?;
            }
            if head.seq % 64 == 63 {
                return server.refuse(request, "every 64th");
            }
            server.respond(request, &answer)
        });
        match done {
            Err(e) if !matches!(e.kind(), ErrorKind::ClientDied | ErrorKind::WouldBlock) => {
                return Err(e);
            }
            _ => {}
        }
    }
    part.leave(server);
    part.leave(node);
    Ok(())
}

/// Each request comes once, and to another server at most once more.
fn take(part: &Part, head: Head) {
    let Some(account) = part.board.life(head.slot, head.life) else { return };
    let (got, done) = (account.got.load(Acquire), account.done.load(Acquire));
    let me = part.life as u64 + 1;
    if head.seq >= account.tried.load(Acquire) {
        part.fault(Fault::Torn, 1, format!("{head:?} was never asked"));
    }
    if head.seq < got && done == me {
        part.fault(Fault::Duplicated, 1, format!("{head:?} came again to the same server"));
    }
    if head.seq + AT_ONCE < got {
        part.fault(Fault::Duplicated, 1, format!("{head:?} came again, long after {got}"));
    }
    account.got.store(got.max(head.seq + 1), Release);
    account.done.store(me, Release);
}
