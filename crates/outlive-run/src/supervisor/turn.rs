//! What each turn looks after: ends, starts, readiness, heartbeats, graces.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use outlive::now_ns;

use super::instance::{After, End, Instance, Life, Process};
use super::{Outcome, Supervisor};
use crate::cgroup::Cgroup;
use crate::config::{Restart, Then};
use crate::health::{self, Pulse};
use crate::os::{self, has_ended};
use crate::proc::end_marked;
use crate::spawn::spawn;

/// How often it is said that nothing can be seen.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// A terminal that goes away so long after SIGHUP has nothing to do with it.
const HANG_UP: Duration = Duration::from_secs(5);

impl Supervisor {
    /// One turn; the outcome once nothing runs and nothing will.
    pub(super) fn turn(&mut self) -> Option<Outcome> {
        self.signalled();
        // Answers know of every end so far.
        self.reap();
        self.asked();
        for at in 0..self.instances.len() {
            self.look_after(at);
        }
        self.instances.retain(|i| i.life != Life::Gone);
        if self.ending.is_some() {
            self.end_in_order();
            let done = self.instances.iter().all(|i| i.process.is_none());
            return self.ending.filter(|_| done);
        }
        self.tell_readiness();
        let over = |i: &Instance| matches!(i.life, Life::Done | Life::Failed);
        if self.instances.iter().all(over) {
            let failed = self.instances.iter().any(|i| i.life == Life::Failed);
            self.stop_robot(if failed { Outcome::Failed } else { Outcome::Stopped }, "all ended");
        }
        None
    }

    /// From now on everything ends, dependents first.
    pub(super) fn stop_robot(&mut self, outcome: Outcome, why: &str) {
        if self.ending.is_none() {
            self.say(&format!("stopping the robot: {why}"));
            self.notify.send("STOPPING=1");
            self.notify.status(&format!("stopping: {why}"));
            self.ending = Some(outcome);
            self.dirty = true;
        }
    }

    fn signalled(&mut self) {
        if self.signals.stop() {
            if self.ending.is_some() {
                self.say("asked twice: killing what is left");
                let running = self.instances.iter_mut().filter(|i| i.process.is_some());
                running.for_each(|i| i.kill(After::Stop));
            }
            self.stop_robot(Outcome::Stopped, "a signal asked for it");
        }
        let hang_up = self.signals.reload();
        if hang_up {
            self.hung_up = Some(Instant::now());
        }
        // A shell that ends sends it before the terminal is gone.
        let hangs_up = self.hung_up.is_some_and(|at| at.elapsed() < HANG_UP);
        if hangs_up && self.printer.has_lost_terminal() {
            self.stop_robot(Outcome::Stopped, "its terminal went away");
        } else if hang_up {
            self.reload();
        }
        self.reload_if_changed();
    }

    fn reap(&mut self) {
        for at in 0..self.instances.len() {
            if self.instances[at].process.as_ref().is_some_and(|p| has_ended(&p.fd))
                && let Some((end, ran)) = self.instances[at].reap()
            {
                // What has left its session, and its cgroup if it had one, still bears the marks.
                let name = &self.instances[at].spec.name;
                end_marked(&self.spawn_env.dir, Some(name));
                self.ended(at, end, ran);
            }
        }
        for line in self.keeping.look_after() {
            self.say(&line);
        }
        // Orphans of our processes that came to us.
        while let Some(pid) = os::ended_child() {
            let of_ours = |i: &Instance| i.process.as_ref().is_some_and(|p| p.identity.pid == pid);
            let known = self.keeping.is(pid) || self.instances.iter().any(of_ours);
            if known || !os::reap(pid) {
                break;
            }
        }
    }

    /// The process of instance `at` has ended: what now?
    fn ended(&mut self, at: usize, end: End, ran: Duration) {
        self.dirty = true;
        let instance = &mut self.instances[at];
        let name = instance.spec.name.clone();
        let life = std::mem::replace(&mut instance.life, Life::Stopped);
        let (text, success) = match &life {
            // How well it ended once it was asked to does not matter.
            Life::Ending { after: After::Failure(why), .. } => {
                (format!("{}, {why}", end.text), false)
            }
            _ => (end.text.clone(), end.success),
        };
        instance.last_end = Some(text.clone());
        match life {
            _ if self.ending.is_some() => self.say(&format!("{name} {}", end.text)),
            Life::Ending { after: After::Restart, .. } => {
                self.say(&format!("{name} {text}; starting it again"));
                let instance = &mut self.instances[at];
                instance.restarts.total += 1;
                instance.life = Life::Waiting;
            }
            Life::Ending { after: After::Stop, .. } => self.say(&format!("{name} {text}; stopped")),
            Life::Ending { after: After::Remove, .. } => {
                self.say(&format!("{name} {text}; it is no longer in the file"));
                self.instances[at].life = Life::Gone;
            }
            _ => self.failed(at, &text, success, ran),
        }
    }

    /// It ended, could not be started, or was killed because it hung.
    fn failed(&mut self, at: usize, text: &str, success: bool, ran: Duration) {
        self.dirty = true;
        let instance = &self.instances[at];
        let (name, rule) = (instance.spec.name.clone(), instance.spec.backoff);
        let (on_end, restart) = (instance.spec.on_end, instance.spec.restart);
        if instance.is_core() {
            self.instances[at].life = if success { Life::Done } else { Life::Failed };
            match on_end {
                Then::StopRobot => {
                    let outcome = if success { Outcome::Stopped } else { Outcome::Failed };
                    self.stop_robot(outcome, &format!("core {name} {text}"));
                }
                Then::Stay => self.say(&format!("core {name} {text}; the others go on")),
            }
            return;
        }
        let again = match restart {
            Restart::Always => true,
            Restart::OnFailure => !success,
            Restart::Never => false,
        };
        if !again {
            self.say(&format!("{name} {text}"));
            self.instances[at].life = if success { Life::Done } else { Life::Failed };
            return;
        }
        let (now_ns, chance) = (now_ns(), self.chance.draw());
        let instance = &mut self.instances[at];
        match instance.restarts.next(&rule, now_ns, ran, chance) {
            Some(wait) => {
                instance.life = Life::Backoff { until_ns: now_ns + wait.as_nanos() as u64 };
                let (nth, limit) = (instance.restarts.counted(), rule.limit);
                let ms = wait.as_millis();
                self.say(&format!("{name} {text}; restart {nth} of {limit} in {ms} ms"));
            }
            None => {
                instance.life = Life::Failed;
                let (limit, s) = (rule.limit, rule.within.as_secs_f64());
                self.say(&format!(
                    "{name} {text}; given up: {limit} restarts within {s} s. \
                     See 'outlive logs {name}', then 'outlive restart {name}'"
                ));
                if on_end == Then::StopRobot {
                    self.stop_robot(Outcome::Failed, &format!("{name} reached its limit"));
                }
            }
        }
    }

    fn look_after(&mut self, at: usize) {
        let now_ns = now_ns();
        let stopping = self.ending.is_some();
        let instance = &mut self.instances[at];
        match instance.life {
            Life::Backoff { until_ns } if now_ns >= until_ns => instance.life = Life::Waiting,
            Life::Ending { kill_ns, ref after } if now_ns >= kill_ns => {
                let (name, after) = (instance.spec.name.clone(), after.clone());
                let ms = instance.spec.grace.as_millis();
                instance.kill(after);
                self.say(&format!("{name} did not end within {ms} ms: killed"));
            }
            _ => {}
        }
        match self.instances[at].life {
            _ if stopping => {}
            Life::Waiting if self.may_start(at) => self.start_process(at),
            Life::Starting => self.look_whether_ready(at, now_ns),
            Life::Ready => self.feel_pulse(at, now_ns),
            _ => {}
        }
    }

    /// Whether all that it comes after are ready, or done.
    fn may_start(&self, at: usize) -> bool {
        let is_there = |i: &Instance| matches!(i.life, Life::Ready | Life::Done);
        let after = &self.instances[at].spec.after;
        after
            .iter()
            .all(|name| self.instances.iter().find(|i| i.spec.name == *name).is_none_or(is_there))
    }

    fn start_process(&mut self, at: usize) {
        // A successor takes it for what the file names only if no process of it is written down.
        if let Err(e) = self.save()
            && matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        {
            // No room: then nothing at all is written down, or what fits into the room of that.
            self.dir.forget();
            let _ = self.save();
        }
        let instance = &mut self.instances[at];
        instance.left_down = false;
        let name = instance.spec.name.clone();
        let cgroup = Cgroup::create(&self.spawn_env.dir, &name);
        let log = instance.log.pipe();
        match spawn(&instance.spec, log, cgroup.as_ref(), &self.spawn_env) {
            Ok((identity, fd)) => {
                let (since_ns, child, sought_ns, pulse) = (now_ns(), true, None, None);
                instance.life = Life::Starting;
                instance.process =
                    Some(Process { identity, fd, since_ns, child, sought_ns, pulse, cgroup });
                // At once: a successor is to know it.
                self.dirty = true;
                let _ = self.save();
                self.say(&format!("{name} started (pid {})", identity.pid));
            }
            Err(e) => {
                if let Some(cgroup) = cgroup {
                    cgroup.end();
                }
                instance.last_end = Some(e.to_string());
                self.failed(at, &format!("does not start: {e}"), false, Duration::ZERO);
            }
        }
    }

    fn look_whether_ready(&mut self, at: usize, now_ns: u64) {
        let instance = &mut self.instances[at];
        let Some(process) = &mut instance.process else { return };
        let ready = &instance.spec.ready;
        let sought_ns = *process.sought_ns.get_or_insert(now_ns);
        let missing = health::missing(&self.domain, ready, process.identity, process.since_ns);
        let missing = match missing {
            Ok(missing) => missing,
            Err(e) => return self.tell_blind(at, &e),
        };
        let Some(missing) = missing else {
            instance.life = Life::Ready;
            self.dirty = true;
            if !instance.spec.ready.is_at_once() {
                let ms = now_ns.saturating_sub(process.since_ns) / 1_000_000;
                let line = format!("{} ready after {ms} ms", instance.spec.name);
                self.say(&line);
            }
            return;
        };
        let waited_ns = now_ns.saturating_sub(sought_ns);
        if waited_ns > ready.timeout.as_nanos() as u64 {
            let why = format!("not ready after {} ms: no {missing}", ready.timeout.as_millis());
            let line = format!("{} is {why}", instance.spec.name);
            instance.ask_to_end(After::Failure(why), now_ns);
            self.dirty = true;
            self.say(&line);
        }
    }

    fn feel_pulse(&mut self, at: usize, now_ns: u64) {
        let instance = &mut self.instances[at];
        let (Some(rule), Some(process)) = (&instance.spec.heartbeat, &mut instance.process) else {
            return;
        };
        let whose = (process.identity, process.since_ns);
        let pulse = process.pulse.get_or_insert_with(|| Pulse::new(rule, now_ns));
        let why = match pulse.look(rule, &self.domain, whose, now_ns) {
            Ok(None) => return,
            Ok(Some(why)) => why,
            Err(e) => return self.tell_blind(at, &e),
        };
        let line = format!("{} hangs ({why}): killed", instance.spec.name);
        // It does not answer: there is nothing to ask for.
        instance.kill(After::Failure(why));
        self.dirty = true;
        self.say(&line);
    }

    /// It cannot be seen how an instance is, which is no fault of it: nothing is done, and one line
    /// a minute said.
    fn tell_blind(&mut self, at: usize, e: &outlive::Error) {
        if self.told_blind.is_none_or(|told| told.elapsed() > TELL_AGAIN) {
            self.told_blind = Some(Instant::now());
            let name = self.instances[at].spec.name.clone();
            self.say(&format!("cannot read {name}'s state; assuming it is unchanged: {e}"));
        }
    }

    /// Asks each process to end whose dependents have ended.
    fn end_in_order(&mut self) {
        let now_ns = now_ns();
        for at in (0..self.instances.len()).rev() {
            let name = &self.instances[at].spec.name;
            let mut others = self.instances.iter();
            let needed = others.any(|o| o.process.is_some() && o.spec.after.contains(name));
            let instance = &mut self.instances[at];
            if instance.process.is_none() {
                if !matches!(instance.life, Life::Done | Life::Failed) {
                    instance.life = Life::Stopped;
                }
            } else if !needed && !matches!(instance.life, Life::Ending { .. }) {
                instance.ask_to_end(After::Stop, now_ns);
                self.dirty = true;
            }
        }
    }
}
