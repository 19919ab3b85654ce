//! Users of every kind of lock, over data with two records and a checksum in each.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicU64, compiler_fence};
use std::time::Duration;

use outlive::lock::{
    LockError, LocklessSet, RobustCondvar, RobustMutex, RobustRwLock, RobustSemaphore,
};
use outlive::{Node, Result};

use super::board::{Call, Fault};
use super::part::Part;
use super::{Sabotage, part::HANG};

/// Lockers at most.
pub(super) const LOCKERS_MAX: usize = 8;
const PERMITS: usize = 2;
const LOCK_MS: u64 = 300;
const CONDVAR_MS: u64 = 2000;

/// Words of [`super::board::Board::inside`]: one for each of these, permits last.
const IN_MUTEX: usize = 0;
const IN_RWLOCK: usize = 1;
const IN_CONDVAR: usize = 2;
const IN_PERMITS: usize = 3;

/// A record: the last change of each locker (life and number), clear time, version, checksum.
const STAMP: usize = LOCKERS_MAX;
const VERSION: usize = LOCKERS_MAX + 1;
const SUM: usize = LOCKERS_MAX + 2;
const WORDS: usize = LOCKERS_MAX + 3;

/// What a lock protects: a writer overwrites the older of two records, so that whoever inherits
/// finds one that is whole.
pub(super) type Data = [[u64; WORDS]; 2];

fn sum(record: &[u64; WORDS]) -> u64 {
    let add =
        |sum: u64, word: &u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    record[..SUM].iter().fold(0, add)
}

fn is_whole(record: &[u64; WORDS]) -> bool {
    record[SUM] == sum(record)
}

/// Which record counts; `None` when neither is whole.
fn newest(data: &Data) -> Option<usize> {
    match (is_whole(&data[0]), is_whole(&data[1])) {
        (true, true) => Some(usize::from(data[1][VERSION] > data[0][VERSION])),
        (true, false) => Some(0),
        (false, true) => Some(1),
        (false, false) => None,
    }
}

fn is_consistent(data: &Data) -> bool {
    let begins = data[0][VERSION] == 0 && data[1][VERSION] == 0;
    let apart = data[0][VERSION].abs_diff(data[1][VERSION]);
    is_whole(&data[0]) && is_whole(&data[1]) && (begins || apart == 1)
}

/// The writer may be killed between any two words.
fn store(record: &mut [u64; WORDS], words: &[u64; WORDS]) {
    for (to, word) in record.iter_mut().zip(words) {
        // SAFETY: a plain word of the record, written in this order.
        unsafe { std::ptr::write_volatile(to, *word) };
        compiler_fence(Release);
    }
}

/// What an owner left is made whole: the older record becomes the newer one's predecessor.
fn repair(part: &Part, data: &mut Data) {
    let Some(at) = newest(data) else {
        part.fault(Fault::Torn, 1, "a dead owner left no whole record");
        return;
    };
    let mut before = data[at];
    before[VERSION] = before[VERSION].saturating_sub(1);
    before[SUM] = sum(&before);
    store(&mut data[1 - at], &before);
}

pub(super) struct Locks {
    mutex: RobustMutex<Data>,
    rwlock: RobustRwLock<Data>,
    goal: RobustMutex<Data>,
    changed: RobustCondvar,
    permits: RobustSemaphore,
    set: LocklessSet,
}

impl Locks {
    pub(super) fn open(node: &Node) -> Result<Self> {
        // Records of zeroes have a checksum as well.
        let mut first = [0; WORDS];
        first[SUM] = sum(&first);
        let first = [first; 2];
        Ok(Self {
            mutex: node.mutex_with("/chaos/mutex", &first)?,
            rwlock: node.rwlock_with("/chaos/rwlock", &first)?,
            goal: node.mutex_with("/chaos/goal", &first)?,
            changed: node.condvar("/chaos/changed")?,
            permits: node.semaphore("/chaos/permits", PERMITS)?,
            set: node.lockless_set("/chaos/set", 4096)?,
        })
    }

    /// Takes each once, so that its thread has a token.
    pub(super) fn touch(&self) -> Result<()> {
        drop(self.permits.acquire()?);
        Ok(())
    }

    /// The records that count in the end: under the mutex, under the reader/writer lock.
    pub(super) fn last_changes(&self) -> Result<[[u64; LOCKERS_MAX]; 2]> {
        let of = |data: &Data| {
            let at = newest(data).unwrap_or(0);
            std::array::from_fn(|i| data[at][i])
        };
        // A dead owner's record counts, if it was whole.
        let under_mutex = match self.mutex.lock() {
            Ok(guard) => of(&guard),
            Err(LockError::OwnerDied(left)) => {
                let last = of(&left);
                drop(left.mark_consistent());
                last
            }
            Err(e) => return Err(e.into()),
        };
        let under_rwlock = match self.rwlock.write() {
            Ok(guard) => of(&guard),
            Err(LockError::OwnerDied(left)) => {
                let last = of(&left);
                drop(left.mark_consistent());
                last
            }
            Err(e) => return Err(e.into()),
        };
        Ok([under_mutex, under_rwlock])
    }
}

/// Counters of one locker's changes: tried and committed, in this life.
struct Counter {
    tried: &'static AtomicU64,
    sent: &'static AtomicU64,
    n: u64,
}

pub(super) fn use_locks(part: &mut Part, me: usize) -> Result<()> {
    let node = part.node("locker")?;
    let locks = part.join(|| Locks::open(&node))?;
    let account = part.account();
    let mut under_mutex = Counter { tried: &account.tried, sent: &account.sent, n: 0 };
    let mut under_rwlock = Counter { tried: &account.got, sent: &account.done, n: 0 };
    let id = (part.slot as u64 + 1) << 32 | part.life as u64;
    while part.runs() && !part.has_enough(20_000) {
        match part.rng.below(100) {
            0..35 => under_mutex = with_mutex(part, &locks, me, under_mutex)?,
            35..45 => under_rwlock = with_rwlock(part, &locks, me, under_rwlock)?,
            45..75 => read(part, &locks)?,
            75..85 => with_permit(part, &locks)?,
            85..92 => change(part, &locks)?,
            92..94 => wait_for_change(part, &locks)?,
            _ => with_set(part, &locks, id)?,
        }
        if part.rng.one_in(30) {
            part.pause_us(3000);
        }
        if part.rng.one_in(50) && part.sabotages(Sabotage::Hang) {
            part.call(Call::Lock, 0, || std::thread::sleep(3 * HANG));
            part.sabotage_done();
        }
    }
    part.call(Call::Leave, 0, || drop(locks));
    part.leave(node);
    Ok(())
}

/// Notes that this member is inside, where nobody else may be but a dead one.
fn enter(part: &Part, at: usize, owner_died: bool, what: &str) {
    let me = (part.slot as u64) << 32 | (part.life as u64 + 1);
    let other = part.board.inside[at].swap(me, AcqRel);
    let (slot, life) = ((other >> 32) as usize, other & 0xffff_ffff);
    if other == 0 {
        return;
    }
    if !owner_died {
        let who = format!("member {slot}, life {}", life - 1);
        part.fault(Fault::Torn, 1, format!("{what}: {who} is inside, too"));
    } else if part.board.slot(slot).killed.load(Acquire) < life {
        let who = format!("member {slot}, life {}", life - 1);
        part.fault(Fault::Torn, 1, format!("{what}: {who} lives, but counts as dead"));
    }
}

fn leave(part: &Part, at: usize) {
    part.board.inside[at].store(0, Release);
}

/// Checks the data and writes change `n` of locker `me` into it.
fn add(part: &Part, data: &mut Data, me: usize, counter: &mut Counter, rw: bool) {
    if !is_consistent(data) {
        part.fault(Fault::Torn, 1, format!("data under a lock: {data:x?}"));
        repair(part, data);
    }
    let at = newest(data).unwrap_or(0);
    let mut record = data[at];
    check_last(part, record[me], counter.n, rw);
    counter.n += 1;
    record[me] = (part.life as u64) << 32 | counter.n;
    record[STAMP] = part.clear_ns();
    record[VERSION] += 1;
    record[SUM] = sum(&record);
    counter.tried.store(counter.n, Release);
    // Dying here: in doubt. The record is whole, or the other one counts.
    store(&mut data[1 - at], &record);
    counter.sent.store(counter.n, Release);
}

/// What the record says of this member must be what the ledger says.
fn check_last(part: &Part, last: u64, n: u64, rw: bool) {
    let (life, number) = ((last >> 32) as usize, last & 0xffff_ffff);
    if n > 0 {
        if (life, number) != (part.life, n) {
            let what = format!("change {n} under a lock is gone, there is {number} of {life}");
            part.fault(Fault::Lost, 1, what);
        }
        return;
    }
    let lost = lost_changes(part.board.slot(part.slot), part.life, last, rw);
    if lost > 0 {
        part.fault(Fault::Lost, lost, format!("changes after {number} of life {life} are gone"));
    }
}

/// Changes that the lives before `begun` committed and the record does not have.
pub(super) fn lost_changes(slot: &super::board::Slot, begun: usize, last: u64, rw: bool) -> u64 {
    let (last_life, number) = ((last >> 32) as usize, last & 0xffff_ffff);
    let mut lost = 0;
    for (life, account) in slot.lives(begun).enumerate().skip(last_life) {
        let sent = if rw { account.done.load(Acquire) } else { account.sent.load(Acquire) };
        let there = if life == last_life { number } else { 0 };
        lost += sent.saturating_sub(there);
    }
    lost
}

fn with_mutex(part: &Part, locks: &Locks, me: usize, mut counter: Counter) -> Result<Counter> {
    let wait = Duration::from_millis(LOCK_MS);
    let (mut guard, died) = match part.call(Call::Lock, LOCK_MS, || locks.mutex.lock_timeout(wait))
    {
        Ok(guard) => (guard, false),
        Err(LockError::OwnerDied(mut left)) => {
            repair(part, &mut left);
            (left.mark_consistent(), true)
        }
        Err(LockError::Timeout) => return Ok(counter),
        Err(e) => return Err(e.into()),
    };
    enter(part, IN_MUTEX, died, "mutex");
    add(part, &mut guard, me, &mut counter, false);
    leave(part, IN_MUTEX);
    part.call(Call::Lock, 0, || drop(guard));
    Ok(counter)
}

fn with_rwlock(part: &Part, locks: &Locks, me: usize, mut counter: Counter) -> Result<Counter> {
    let wait = Duration::from_millis(LOCK_MS);
    let (mut guard, died) =
        match part.call(Call::Lock, LOCK_MS, || locks.rwlock.write_timeout(wait)) {
            Ok(guard) => (guard, false),
            Err(LockError::OwnerDied(mut left)) => {
                repair(part, &mut left);
                (left.mark_consistent(), true)
            }
            Err(LockError::Timeout) => return Ok(counter),
            Err(e) => return Err(e.into()),
        };
    enter(part, IN_RWLOCK, died, "reader/writer lock");
    add(part, &mut guard, me, &mut counter, true);
    leave(part, IN_RWLOCK);
    part.call(Call::Lock, 0, || drop(guard));
    Ok(counter)
}

fn read(part: &mut Part, locks: &Locks) -> Result<()> {
    let wait = Duration::from_millis(LOCK_MS);
    match part.call(Call::Lock, LOCK_MS, || locks.rwlock.read_timeout(wait)) {
        Ok(guard) => {
            let before = *guard;
            if part.rng.one_in(8) {
                part.pause_us(200);
            }
            if !is_consistent(&before) || *guard != before {
                part.fault(
                    Fault::Torn,
                    1,
                    format!("read under a lock: {before:x?}, {:x?}", *guard),
                );
            }
        }
        // A writer died: whoever writes next repairs it.
        Err(LockError::OwnerDied(_) | LockError::Timeout) => {}
        Err(e) => return Err(e.into()),
    }
    Ok(())
}

fn with_permit(part: &mut Part, locks: &Locks) -> Result<()> {
    let wait = Duration::from_millis(LOCK_MS);
    let permit = part.call(Call::Semaphore, LOCK_MS, || locks.permits.acquire_timeout(wait));
    match permit {
        Ok(permit) => {
            enter(part, IN_PERMITS + permit.index(), permit.owner_died(), "permit");
            part.pause_us(50);
            leave(part, IN_PERMITS + permit.index());
            Ok(())
        }
        Err(LockError::Timeout) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Changes the goal and tells the waiters.
fn change(part: &Part, locks: &Locks) -> Result<()> {
    let wait = Duration::from_millis(LOCK_MS);
    let (mut guard, died) = match part.call(Call::Lock, LOCK_MS, || locks.goal.lock_timeout(wait)) {
        Ok(guard) => (guard, false),
        Err(LockError::OwnerDied(mut left)) => {
            repair(part, &mut left);
            (left.mark_consistent(), true)
        }
        Err(LockError::Timeout) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    enter(part, IN_CONDVAR, died, "mutex of the condition");
    let at = newest(&guard).unwrap_or(0);
    let mut record = guard[at];
    record[STAMP] = part.clear_ns();
    record[VERSION] += 1;
    record[SUM] = sum(&record);
    store(&mut guard[1 - at], &record);
    leave(part, IN_CONDVAR);
    drop(guard);
    part.call(Call::Condvar, 0, || locks.changed.notify_all());
    Ok(())
}

fn wait_for_change(part: &Part, locks: &Locks) -> Result<()> {
    let wait = Duration::from_millis(LOCK_MS);
    let guard = match part.call(Call::Lock, LOCK_MS, || locks.goal.lock_timeout(wait)) {
        Ok(guard) => guard,
        Err(LockError::OwnerDied(mut left)) => {
            repair(part, &mut left);
            left.mark_consistent()
        }
        Err(LockError::Timeout) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    let began = part.clear_ns();
    let version = newest(&guard).map_or(0, |at| guard[at][VERSION]);
    let wait = Duration::from_millis(CONDVAR_MS);
    let waited = part.call(Call::Condvar, CONDVAR_MS, || locks.changed.wait_timeout(guard, wait));
    let guard = match waited {
        Ok((guard, _)) => guard,
        Err(LockError::OwnerDied(mut left)) => {
            repair(part, &mut left);
            left.mark_consistent()
        }
        Err(e) => return Err(e.into()),
    };
    let Some(at) = newest(&guard) else { return Ok(()) };
    // The first change after the wait began is the one that counts.
    if guard[at][VERSION] == version + 1 {
        part.woken(began, guard[at][STAMP], "condition");
    }
    Ok(())
}

/// An id is in the set from its insertion to its removal; a dead life's is removed by the next.
fn with_set(part: &Part, locks: &Locks, id: u64) -> Result<()> {
    let set = &locks.set;
    for other in set.ids() {
        if other >> 32 == id >> 32 && other != id {
            set.remove(other);
        }
    }
    if !set.insert(id)? || !set.contains(id) {
        part.fault(Fault::Lost, 1, format!("id {id:x} was not put into the set"));
    }
    if !set.remove(id) || set.contains(id) {
        part.fault(Fault::Duplicated, 1, format!("id {id:x} was not removed from the set"));
    }
    Ok(())
}
