//! What an earlier supervisor left: adopted or ended, as configured.

use std::time::Duration;

use outlive::now_ns;

use super::instance::{After, Instance, Life, Process};
use super::{Supervisor, identities};
use crate::backoff::Restarts;
use crate::cgroup::Cgroup;
use crate::config::{Kind, Orphan};
use crate::leftover::{self, Asked, Leftover};
use crate::proc::{Identity, marked};
use crate::spawn::form;
use crate::state::{Phase, Status};

impl Supervisor {
    pub(super) fn take_over(&mut self) {
        let old = match self.dir.read() {
            Ok(old) => old,
            Err(e) => {
                self.say(&format!("the state of an earlier supervisor cannot be read: {e}"));
                None
            }
        };
        let old = old.map(|state| (state.ending, state.processes)).unwrap_or_default();
        let (was_ending, old) = old;
        let mut leftovers = Vec::new();
        for status in &old {
            let Some(identity) = status.process else { continue };
            if !identity.is_alive() || !self.adopt(status, identity, was_ending) {
                leftovers.extend(Leftover::of(status));
            }
        }
        self.take_over_marked(&old, &mut leftovers);
        self.leave_down(&old, was_ending);
        for left in &leftovers {
            let pid = left.identity.pid;
            self.say(&format!("ending what an earlier supervisor left: {} (pid {pid})", left.name));
        }
        leftover::end(&leftovers, || self.notify.alive(true));
    }

    /// What was down for good stays so beside what runs on: one that is done was done for that. For
    /// a core that is started anew it is done again.
    fn leave_down(&mut self, old: &[Status], was_ending: bool) {
        if self.instances.iter().all(|i| i.process.is_none()) {
            return;
        }
        let ran = |i: &Instance| {
            old.iter().any(|status| status.name == i.spec.name && status.process.is_some())
        };
        let mut cores = self.instances.iter().filter(|i| i.is_core());
        let a_core_is_new = cores.any(|core| core.process.is_none() && ran(core));
        for status in old.iter().filter(|status| status.process.is_none()) {
            let life = match status.phase {
                Phase::Done if a_core_is_new => continue,
                Phase::Done if !was_ending || status.kind != Kind::Core => Life::Done,
                // As the robot stopped it does not say which of them somebody wanted to be down.
                Phase::Stopped if !was_ending => Life::Stopped,
                Phase::Failed if !was_ending => Life::Failed,
                _ => continue,
            };
            let is_it = |i: &&mut Instance| i.spec.name == status.name && i.process.is_none();
            let Some(instance) = self.instances.iter_mut().find(is_it) else { continue };
            if form(&instance.spec) != status.form {
                continue;
            }
            (instance.life, instance.left_down) = (life, true);
            instance.restarts = Restarts::of(status.restarts);
            instance.last_end.clone_from(&status.last_end);
            self.say(&format!("{} stays {}", status.name, status.phase.name()));
        }
    }

    /// Those whose start the earlier supervisor did not live to write down, and what has left
    /// the session of a process that is gone. The two look alike: a helper may lead a session, too.
    /// But before each start it is written down that there is no process of that name. After a full
    /// RAM disk nothing may be: then the command line of a service tells them apart. A program can
    /// change its own, for which no core is ended.
    fn take_over_marked(&mut self, old: &[Status], leftovers: &mut Vec<Leftover>) {
        let mut all = marked(&self.spawn_env.dir);
        // A process comes before its helpers.
        all.sort_by_key(|found| found.identity.start);
        for found in all {
            let known = identities(&self.instances).contains(&found.identity)
                || leftovers.iter().any(|l| l.identity == found.identity);
            if known {
                continue;
            }
            let instance = self.instances.iter().find(|i| i.spec.name == found.name);
            let (signal, grace) = instance.map_or((libc::SIGTERM, Duration::from_secs(1)), |i| {
                (i.spec.stop_signal, i.spec.grace)
            });
            let unclaimed = instance.is_some_and(|i| i.process.is_none());
            if !unclaimed && instance.is_some() {
                continue; // a helper of one that is adopted
            }
            let of_name = old.iter().find(|status| status.name == found.name);
            let unwritten = |i: &Instance| match of_name {
                Some(status) => status.process.is_none(),
                None => i.is_core() || found.identity.runs(&i.spec.command),
            };
            let mut asked = Asked::Nobody;
            if found.leads
                && unclaimed
                && let Some(instance) = instance.filter(|i| unwritten(i))
            {
                let status = Status {
                    process: Some(found.identity),
                    since_ns: now_ns(),
                    form: found.form.unwrap_or_else(|| form(&instance.spec)),
                    ..instance.status(now_ns())
                };
                if form(&instance.spec) == status.form {
                    asked = Asked::by_its_death(found.identity, status.on_supervisor_death);
                }
                if self.adopt(&status, found.identity, false) {
                    continue;
                }
            }
            let (name, identity) = (found.name, found.identity);
            leftovers.push(Leftover { name, identity, signal, grace, asked });
        }
    }

    /// `was_ending`: all of the robot was asked to end.
    fn adopt(&mut self, status: &Status, identity: Identity, was_ending: bool) -> bool {
        let wanted = !self.options.fresh && status.on_supervisor_death == Orphan::Adopt;
        let name = &status.name;
        let Some(instance) = self.instances.iter_mut().find(|i| i.spec.name == *name) else {
            return false;
        };
        let same = form(&instance.spec) == status.form;
        let is_core = instance.is_core() && status.kind == Kind::Core;
        if !wanted || instance.process.is_some() || !(same || is_core) {
            return false;
        }
        let Some(fd) = identity.open() else { return false };
        let (since_ns, cgroup) = (status.since_ns, Cgroup::of(identity.pid));
        let (child, sought_ns, pulse) = (false, None, None);
        instance.process =
            Some(Process { identity, fd, since_ns, child, sought_ns, pulse, cgroup });
        instance.life = match status.phase {
            // It was asked, and a second signal kills a program that is about to end in order.
            Phase::Ending => {
                let kill_ns = now_ns() + instance.spec.grace.as_nanos() as u64;
                let after = match status.stays_down {
                    _ if was_ending => After::Restart,
                    true => After::Stop,
                    // For that alone a core is asked, when it was not ready in time.
                    false if is_core => After::Failure("an earlier supervisor asked it to".into()),
                    false => After::Restart,
                };
                Life::Ending { kill_ns, after }
            }
            // Whatever has become of its topics since: that is for its heartbeat.
            Phase::Ready => Life::Ready,
            _ => Life::Starting,
        };
        instance.restarts = Restarts::of(status.restarts);
        instance.last_end.clone_from(&status.last_end);
        let ends = if status.phase == Phase::Ending { ", which is about to end" } else { "" };
        let differs = if same { "" } else { "; its changed section holds from its next start" };
        self.say(&format!("adopted {name} (pid {}){ends}{differs}", identity.pid));
        true
    }
}
