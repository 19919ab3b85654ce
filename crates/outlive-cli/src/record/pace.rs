//! When the next message of `outlive play` comes: time, keys, and the clock that nodes follow.

use std::time::Duration;

use outlive::{Deadline, Node, Publisher};
use outlive_record::{Due, Recording, Turn};

use super::control::{Asked, Control, State};
use crate::clock::duration_ns;
use crate::exit::{Failure, note};
use crate::options::{sleep_until, slice_of};
use crate::os::{self, Keys};
use crate::status::{Status, bar};

/// Shorter waits are slept, as those for keys count ms; ns.
const KEY_NS: u64 = 2_000_000;
/// Between two looks for a key while requests are waited for, ns.
const CONTROL_NS: u64 = 20_000_000;

/// Waits for messages to be due.
pub(super) struct Pace {
    keys: Option<Keys>,
    clock: Option<Clock>,
    control: Option<Control>,
    /// How many times as fast as recorded, and when the recording begins, ns since the epoch.
    rate: f64,
    start_ns: u64,
    /// How long the recording is, ns.
    of_ns: u64,
    /// When it was paused.
    paused_ns: Option<u64>,
    status: Option<Status>,
    played: u64,
}

/// The time of the recording, published.
struct Clock {
    publisher: Publisher<u64>,
    every_ns: u64,
    next_ns: u64,
}

/// What a wait is ended by.
enum News {
    Key(u8),
    Turn(Turn),
    None,
}

impl Pace {
    pub(super) fn new(paused: bool, rate: f64, recording: &Recording) -> Self {
        let keys = Keys::of_terminal();
        if keys.is_some() {
            note("space pauses and resumes, n or the right arrow plays one message");
        }
        let paused_ns = paused.then(outlive::now_ns);
        let (start_ns, of_ns) = (recording.start_ns, recording.duration_ns());
        let status = Some(Status::new());
        Self {
            keys,
            clock: None,
            control: None,
            rate,
            start_ns,
            of_ns,
            paused_ns,
            status,
            played: 0,
        }
    }

    /// Whether somebody can tell it to go on.
    pub(super) fn can_go_on(&self) -> bool {
        self.keys.is_some() || self.control.is_some()
    }

    /// Others may tell it to pause, and where to go on.
    pub(super) fn set_control(&mut self, control: Control) {
        self.control = Some(control);
    }

    /// Publishes the time of the recording on `topic`, so many times a second.
    pub(super) fn set_clock(
        &mut self,
        node: &Node,
        topic: &str,
        hertz: f64,
    ) -> Result<(), Failure> {
        let publisher = node.topic::<u64>(topic)?.publisher()?;
        let every_ns = (1e9 / hertz) as u64;
        self.clock = Some(Clock { publisher, every_ns, next_ns: 0 });
        Ok(())
    }

    /// The first message comes now.
    pub(super) fn begin(&mut self) {
        self.paused_ns = self.paused_ns.map(|_| outlive::now_ns());
    }

    /// Waits until a message is due, or something else is to be done.
    pub(super) fn wait(&mut self, due: Due) -> Result<Turn, Failure> {
        let mut at_ns = due.at_ns;
        loop {
            if os::stop_asked() {
                return Ok(Turn::End);
            }
            self.show(due);
            let now = outlive::now_ns();
            let mut left = os::SLICE_NS;
            if self.paused_ns.is_none() {
                left = left.min(at_ns.saturating_sub(now));
                if let Some(clock) = &mut self.clock {
                    left = left.min(clock.tick(due, at_ns, now, self.rate)?);
                }
            }
            match (self.news(left, due, &mut at_ns)?, self.paused_ns) {
                (News::Turn(Turn::Play(now)), _) => {
                    at_ns = now;
                    break;
                }
                (News::Turn(turn), _) => return Ok(turn),
                (News::Key(b' '), _) => self.toggle(&mut at_ns),
                (News::Key(b'n' | b'C'), Some(_)) => {
                    at_ns = self.step();
                    break;
                }
                (_, None) if outlive::now_ns() >= at_ns => break,
                _ => {}
            }
        }
        if let Some(clock) = &self.clock {
            clock.publisher.publish(&due.time_ns)?;
        }
        self.played += 1;
        Ok(Turn::Play(at_ns))
    }

    fn show(&mut self, due: Due) {
        let Some(status) = &mut self.status else { return };
        let at_ns = due.time_ns.saturating_sub(self.start_ns);
        status.show([self.played, 0], |[rate, _]| {
            let [at, of] = [at_ns, self.of_ns].map(duration_ns);
            let paused = if self.paused_ns.is_some() { ", paused" } else { "" };
            let bar = bar(at_ns, self.of_ns);
            format!("{bar}  {at} of {of}, {} messages ({rate}/s){paused}", self.played)
        });
    }

    /// The line that says how far it is goes.
    pub(super) fn hide_status(&mut self) {
        self.status = None;
    }

    fn toggle(&mut self, at_ns: &mut u64) {
        match self.paused_ns.take() {
            None => {
                note("paused");
                self.paused_ns = Some(outlive::now_ns());
            }
            Some(since) => {
                note("resumed");
                *at_ns += outlive::now_ns().saturating_sub(since);
            }
        }
    }

    /// One message comes now, amid a pause.
    fn step(&mut self) -> u64 {
        let now = outlive::now_ns();
        self.paused_ns = Some(now);
        now
    }

    /// A key or a request that comes within `left_ns`.
    fn news(&mut self, left_ns: u64, due: Due, at_ns: &mut u64) -> Result<News, Failure> {
        if self.control.is_none() {
            return Ok(self.key(left_ns).map_or(News::None, News::Key));
        }
        let until = Deadline::after(Duration::from_nanos(left_ns));
        loop {
            // With keys as well, each gets its short turn.
            if let Some(key) = self.keys.is_some().then(|| self.key(0)).flatten() {
                return Ok(News::Key(key));
            }
            let turn_ns = if self.keys.is_some() { CONTROL_NS } else { u64::MAX };
            let end = until.min(Deadline::after(Duration::from_nanos(turn_ns)));
            let Some(control) = &mut self.control else { return Ok(News::None) };
            if let Some((asked, request)) = control.next(end)? {
                let turn = self.obey(asked, due, at_ns);
                let state = self.state(due, *at_ns, turn);
                if let Some(control) = &mut self.control {
                    control.answer(request, state)?;
                }
                return Ok(turn.map_or(News::None, News::Turn));
            }
            if until.has_passed() || os::stop_asked() {
                return Ok(News::None);
            }
        }
    }

    fn obey(&mut self, asked: Asked, due: Due, at_ns: &mut u64) -> Option<Turn> {
        match asked {
            Asked::Pause if self.paused_ns.is_none() => self.toggle(at_ns),
            Asked::Resume if self.paused_ns.is_some() => self.toggle(at_ns),
            Asked::Toggle => self.toggle(at_ns),
            Asked::Next if self.paused_ns.is_some() => return Some(Turn::Play(self.step())),
            Asked::Seek(to) => {
                note(format_args!("continues at {:.3} s", to.as_secs_f64()));
                self.begin();
                return Some(Turn::Seek(to));
            }
            Asked::Rate(factor) => {
                note(format_args!("{factor} times as fast as recorded"));
                self.rate = factor;
                let now_ns = self.paused_ns.unwrap_or_else(outlive::now_ns);
                return Some(Turn::Rate { factor, now_ns, at_ns: (*at_ns).max(due.at_ns) });
            }
            Asked::Stop => return Some(Turn::End),
            Asked::Pause | Asked::Resume | Asked::Next | Asked::State => {}
        }
        None
    }

    /// What is so after `turn`.
    fn state(&self, due: Due, at_ns: u64, turn: Option<Turn>) -> State {
        let now = self.paused_ns.unwrap_or_else(outlive::now_ns);
        let at = due.time_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        let at = match turn {
            Some(Turn::Seek(to)) => to.as_secs_f64(),
            Some(_) => at,
            None => at - at_ns.saturating_sub(now) as f64 * self.rate / 1e9,
        };
        let of = self.control.as_ref().map_or(0.0, |control| control.of().as_secs_f64());
        State { paused: self.paused_ns.is_some(), rate: self.rate, at: at.max(0.0), of }
    }

    /// Sleeps while nothing is played; `false` when it is to end.
    pub(super) fn rest(&mut self, until: Deadline) -> Result<bool, Failure> {
        let Some(control) = &mut self.control else {
            sleep_until(until);
            return Ok(!os::stop_asked());
        };
        loop {
            let end = slice_of(until);
            if let Some((asked, request)) = control.next(end)? {
                let of = control.of().as_secs_f64();
                let paused = self.paused_ns.is_some();
                let state = State { paused, rate: self.rate, at: of, of };
                match asked {
                    Asked::State => control.answer(request, state)?,
                    Asked::Stop => {
                        control.answer(request, state)?;
                        return Ok(false);
                    }
                    _ => control.refuse(request, "nothing is played now"),
                }
            }
            if os::stop_asked() || until.has_passed() {
                return Ok(!os::stop_asked());
            }
        }
    }

    /// A key that comes within `left_ns`.
    fn key(&mut self, left_ns: u64) -> Option<u8> {
        let long = left_ns > KEY_NS;
        if let Some(keys) = &mut self.keys {
            let key = keys.next(if long { left_ns - KEY_NS / 2 } else { 0 });
            if key.is_some() || long {
                return key;
            }
        }
        if left_ns > 0 {
            std::thread::sleep(Duration::from_nanos(left_ns));
        }
        None
    }
}

impl Clock {
    /// Publishes the time if it is time to; how long until the next time, ns.
    fn tick(&mut self, due: Due, at_ns: u64, now_ns: u64, rate: f64) -> Result<u64, Failure> {
        if now_ns >= self.next_ns {
            let before = (at_ns.saturating_sub(now_ns) as f64 * rate) as u64;
            self.publisher.publish(&due.time_ns.saturating_sub(before))?;
            self.next_ns = now_ns + self.every_ns;
        }
        Ok(self.next_ns - now_ns)
    }
}
