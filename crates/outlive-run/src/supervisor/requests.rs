//! What people ask for, and what a changed file asks for.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use outlive::now_ns;

use super::instance::{After, Instance, Life};
use super::{Outcome, Stamp, Supervisor};
use crate::config::Config;
use crate::control::{Answer, Request};
use crate::logs::{Log, default_dir};
use crate::spawn::form;

/// A changed file is read when nobody has written to it for so long.
const STILL: Duration = Duration::from_millis(200);
/// One that could not be followed is read again after so long more.
const AGAIN: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Answers what has been asked since the last turn.
    pub(super) fn asked(&mut self) {
        // Taken out while it serves, because answering needs all of us.
        let Some(mut control) = self.control.take() else { return };
        control.serve(|request| self.act(request));
        self.control = Some(control);
    }

    fn act(&mut self, request: Request) -> Answer {
        self.dirty |= request != Request::Ps;
        let done = match request {
            Request::Ps => Ok(()),
            Request::Reload => {
                self.reload();
                Ok(())
            }
            Request::Stop(None) => {
                self.stop_robot(Outcome::Stopped, "'outlive stop' asked for it");
                Ok(())
            }
            Request::Stop(Some(name)) => self.stop_one(&name),
            Request::Restart(name) => self.restart_one(&name),
        };
        match done {
            Ok(()) => Answer::Done(self.state()),
            Err(why) => Answer::Refused(why),
        }
    }

    fn find(&self, name: &str) -> Result<usize, String> {
        let found = self.instances.iter().position(|i| i.spec.name == name);
        let names: Vec<_> = self.instances.iter().map(|i| i.spec.name.as_str()).collect();
        found.ok_or_else(|| format!("no process '{name}': there are {}", names.join(", ")))
    }

    fn stop_one(&mut self, name: &str) -> Result<(), String> {
        let at = self.find(name)?;
        let instance = &mut self.instances[at];
        match (&instance.process, instance.is_core()) {
            (Some(_), true) => Err(format!(
                "'{name}' is a core: without it the robot stops. 'outlive stop' stops all in order"
            )),
            (Some(_), false) => {
                instance.ask_to_end(After::Stop, now_ns());
                self.say(&format!("{name} is asked to end"));
                Ok(())
            }
            (None, _) => {
                instance.life = Life::Stopped;
                self.say(&format!("{name} does not run, and will not be started"));
                Ok(())
            }
        }
    }

    fn restart_one(&mut self, name: &str) -> Result<(), String> {
        let at = self.find(name)?;
        if self.ending.is_some() {
            return Err("the robot is being stopped".into());
        }
        let instance = &mut self.instances[at];
        match (&instance.process, instance.is_core()) {
            (Some(_), true) => Err(format!(
                "'{name}' is a running core: end the robot with 'outlive stop', then start it again"
            )),
            (Some(_), false) => {
                instance.restarts.forgive();
                instance.ask_to_end(After::Restart, now_ns());
                self.say(&format!("{name} is asked to end, to be started again"));
                Ok(())
            }
            (None, _) => {
                instance.restarts.forgive();
                instance.life = Life::Waiting;
                self.say(&format!("{name} is started by hand"));
                Ok(())
            }
        }
    }

    /// Where the file asks for it: reads it again once it is another one and stands still. An
    /// editor may write it in parts, and a part can be a right file with fewer processes.
    pub(super) fn reload_if_changed(&mut self) {
        if !self.config.watch {
            return;
        }
        let Some(now) = Stamp::of(&self.config).filter(|now| Some(*now) != self.stamp) else {
            self.newer = None;
            return;
        };
        match self.newer {
            Some((seen, since)) if seen == now => {
                if since.elapsed() >= STILL {
                    self.reload();
                }
            }
            _ => self.newer = Some((now, Instant::now())),
        }
    }

    /// Reads the file again. Services that are new, gone or changed are started, stopped and
    /// restarted; a core that runs stays as it is.
    pub(super) fn reload(&mut self) {
        (self.stamp, self.newer) = (Stamp::of(&self.config), None);
        if self.ending.is_some() {
            return;
        }
        let new = match Config::load(&self.config.file) {
            Ok(new) => new,
            Err(e) => {
                self.say("the changed file is wrong, nothing is changed:");
                e.to_string().lines().for_each(|line| self.say(line));
                return;
            }
        };
        // First of all: without one its process would be left out, and those after it go ahead.
        let mut logs = match self.open_logs_of_new(&new) {
            Ok(logs) => logs,
            Err(why) => {
                self.say(&format!("nothing is changed: {why}"));
                // A watched file is tried again.
                self.stamp = None;
                self.newer = Stamp::of(&self.config).map(|now| (now, Instant::now() + AGAIN));
                return;
            }
        };
        self.say("the file is read again");
        let mut old = std::mem::take(&mut self.instances);
        for spec in new.processes.clone() {
            if let Some(at) = old.iter().position(|i| i.spec.name == spec.name) {
                let mut instance = old.remove(at);
                self.change(&mut instance, spec);
                self.instances.push(instance);
                continue;
            }
            if let Some(log) = logs.pop_front() {
                self.say(&format!("{} is new", spec.name));
                let number = self.instances.len() + old.len();
                self.add(spec, log, number);
            }
        }
        for mut instance in old {
            let name = instance.spec.name.clone();
            if instance.process.is_none() {
                self.say(&format!("{name} is no longer in the file"));
                continue;
            }
            if instance.is_core() {
                self.say(&format!("core {name} is no longer in the file and runs on"));
            } else {
                instance.ask_to_end(After::Remove, now_ns());
            }
            self.instances.push(instance);
        }
        if new.logs.clone().unwrap_or_else(|| default_dir(&new.name)) != self.logs {
            self.say("another directory of logs is used from the next start on");
        }
        if new.domain != self.config.domain && new.domain.as_deref() != Some(self.domain.name()) {
            self.say("another domain is used from the next start on");
        }
        self.config = new;
        self.dirty = true;
        if let Err(e) = self.keep_logs() {
            self.say(&format!("cannot start the log keeper: {e}"));
        }
    }

    /// In the order of the file.
    fn open_logs_of_new(&self, file: &Config) -> Result<VecDeque<Log>, String> {
        let known = |name: &str| self.instances.iter().any(|i| i.spec.name == name);
        let names = file.processes.iter().map(|spec| &spec.name);
        let open = |name: &String| {
            let log = Log::open(&self.logs, self.dir.path(), name);
            log.map_err(|e| format!("cannot open the log of {name}: {e}"))
        };
        names.filter(|name| !known(name)).map(open).collect()
    }

    fn change(&mut self, instance: &mut Instance, spec: crate::config::ProcessSpec) {
        let name = spec.name.clone();
        // Somebody has stopped it: it stays down.
        let stopping = matches!(instance.life, Life::Ending { after: After::Stop, .. });
        if instance.process.is_some() && !stopping && form(&instance.spec) != form(&spec) {
            if instance.is_core() {
                self.say(&format!(
                    "core {name} runs on; its new section holds from its next start"
                ));
            } else {
                self.say(&format!("{name} is changed: restarting it"));
                instance.ask_to_end(After::Restart, now_ns());
            }
        }
        if let Life::Ending { after, .. } = &mut instance.life
            && *after == After::Remove
        {
            *after = After::Restart;
            self.say(&format!("{name} is in the file again: starting it once it has ended"));
        }
        // Given up as the old section was: with the new one it may do better.
        let revived = instance.life == Life::Failed && !instance.is_core() && instance.spec != spec;
        if revived {
            self.say(&format!("{name} is changed: starting it"));
            instance.restarts.forgive();
            instance.life = Life::Waiting;
        }
        // What was seen by the old rule says nothing of the new one.
        if instance.spec.heartbeat != spec.heartbeat
            && let Some(process) = &mut instance.process
        {
            process.pulse = None;
        }
        instance.spec = spec;
    }
}
