//! The account at the end: what was committed against what came.

use std::path::Path;
use std::sync::atomic::Ordering::Acquire;

use outlive::{Domain, Node, Result};

use super::board::{Board, Fault};
use super::cast::{CAST, Ledger};
use super::locks::{LOCKERS_MAX, Locks, lost_changes};

/// Goes through the ledger; `lives` says how many each member has had.
pub(super) fn settle(board: &Board, root: &Path, lives: &[usize]) {
    let last = match last_changes(root) {
        Ok(last) => last,
        Err(e) => {
            board.fault(Fault::Other, 1, format!("the locks at the end: {e}"));
            return;
        }
    };
    for (slot, role) in CAST.iter().enumerate() {
        match role.ledger() {
            Ledger::Stream => settle_stream(board, slot, lives[slot]),
            Ledger::Requests => settle_requests(board, slot, lives[slot]),
            Ledger::Locker(me) => {
                for (rw, last) in [false, true].into_iter().zip(&last) {
                    settle_locker(board, slot, lives[slot], last[me], rw);
                }
            }
            Ledger::None => {}
        }
    }
}

fn settle_stream(board: &Board, slot: usize, lives: usize) {
    for (life, account) in board.slot(slot).lives(lives).enumerate() {
        let (sent, tried) = (account.sent.load(Acquire), account.tried.load(Acquire));
        let got = account.got.load(Acquire);
        let who = format!("{:?} {slot}, life {life}", CAST[slot]);
        if got < sent {
            board.fault(Fault::Lost, sent - got, format!("{who}: sent {sent}, {got} came"));
        } else if got > tried {
            board.fault(Fault::Torn, got - tried, format!("{who}: tried {tried}, {got} came"));
        }
    }
}

fn settle_requests(board: &Board, slot: usize, lives: usize) {
    for (life, account) in board.slot(slot).lives(lives).enumerate() {
        let (answered, got) = (account.sent.load(Acquire), account.got.load(Acquire));
        if answered > got {
            let what = format!("client {slot}, life {life}: {answered} answers to {got} requests");
            board.fault(Fault::Torn, answered - got, what);
        }
    }
}

fn settle_locker(board: &Board, slot: usize, lives: usize, last: u64, rw: bool) {
    let lost = lost_changes(board.slot(slot), lives, last, rw);
    let what = if rw { "reader/writer lock" } else { "mutex" };
    if lost > 0 {
        let what = format!("locker {slot}: {lost} changes under the {what} after {last:x}");
        board.fault(Fault::Lost, lost, what);
    }
    let account = board.slot(slot).life((last >> 32) as usize);
    let tried = if rw { account.got.load(Acquire) } else { account.tried.load(Acquire) };
    if last & 0xffff_ffff > tried {
        let what = format!("locker {slot}: {last:x} under the {what}, it tried {tried}");
        board.fault(Fault::Torn, 1, what);
    }
}

fn last_changes(root: &Path) -> Result<[[u64; LOCKERS_MAX]; 2]> {
    let node = Node::builder().root(root).name("account").open()?;
    let last = Locks::open(&node)?.last_changes();
    drop(node);
    last
}

/// Removes what the dead left; how many faults its audit finds.
pub(super) fn clean(board: &Board, root: &Path, last: bool) {
    let done = Domain::of(&Node::builder().root(root)).and_then(|domain| {
        let audit = if last { None } else { Some(domain.audit()?) };
        domain.clean()?;
        Ok(audit)
    });
    match done {
        Ok(audit) => {
            for fault in audit.into_iter().flat_map(|a| a.faults) {
                board.fault(Fault::Other, 1, format!("audit: {fault}"));
            }
        }
        Err(e) => board.fault(Fault::Other, 1, format!("cleaning: {e}")),
    }
}

/// Files below `dir` by their size.
pub(super) fn files(dir: &Path) -> Vec<(String, u64)> {
    let names = crate::temp::listing(dir).into_iter();
    let sized = names.map(|name| {
        let meta = dir.join(&name).metadata();
        let bytes = meta.as_ref().map_or(0, |m| if m.is_file() { m.len() } else { 0 });
        (name, bytes)
    });
    sized.collect()
}
