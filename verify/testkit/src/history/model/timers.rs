//! Timers and interrupts: when one is due, how often it was, and whom it must wake.

use super::state::timers::Timer;
use super::{Kind, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step, Verb};

impl Model {
    pub(super) fn timer(&self, handle: Handle) -> Option<Timer> {
        match self.objects.get(&handle)?.kind {
            Kind::Timer(timer) => Some(timer),
            _ => None,
        }
    }

    pub(super) fn timer_begins(&mut self, step: &Step, reply: &Reply) -> Verdict {
        ok(reply)?;
        let [after, period] = ["after_us", "period_us"].map(|us| step.arg(us) * 1000);
        let (began, ended) = reply.at;
        let next = reply.value;
        if !(began + after..=ended + after).contains(&next) {
            return Err(format!("a timer that begins at {began} to {ended} is due at {next}"));
        }
        self.add(step, Kind::Timer(Timer { next, period }), None);
        Ok(())
    }

    /// It was asked how often it was due, or stopped.
    pub(super) fn timer_asked(&mut self, step: &Step, reply: &Reply) -> Verdict {
        ok(reply)?;
        let on = step.arg("on");
        let Some(timer) = self.timer(on) else { return Ok(()) };
        let never = Timer { next: u64::MAX, period: 0 };
        let (began, ended) = reply.at;
        let due = timer.due(began)..=timer.due(ended);
        let after = match (step.verb, reply.value) {
            (Verb::StopTimer, _) => never,
            (_, times) if !due.contains(&times) => {
                return Err(format!("a timer was due {times} times, it must be {due:?}"));
            }
            (_, 0) => timer,
            (_, _) if timer.period == 0 => never,
            (_, times) => Timer { next: timer.next + times * timer.period, ..timer },
        };
        if reply.data != [after.next] {
            return Err(format!("a timer is due at {:?}, it must be {}", reply.data, after.next));
        }
        if let Some(Kind::Timer(timer)) = self.objects.get_mut(&on).map(|o| &mut o.kind) {
            *timer = after;
        }
        Ok(())
    }

    /// Whether a wait set must wake for it by now.
    pub(super) fn is_due(&self, handle: Handle) -> bool {
        self.timer(handle).is_some_and(|timer| timer.due(outlive::now_ns()) > 0)
    }

    /// A wait set named it, or did not.
    pub(super) fn timer_waited(&self, handle: Handle, step: &Step, reply: &Reply) -> Verdict {
        let Some(timer) = self.timer(handle) else { return Ok(()) };
        let (began, ended) = reply.at;
        // Who names nothing has looked after its time was over.
        let waited = if reply.data.is_empty() { step.arg("ms") * 1_000_000 } else { 0 };
        match reply.data.contains(&handle) {
            true if timer.due(ended) == 0 => {
                Err(format!("a wait set names timer {handle} at {ended}: {timer:?}"))
            }
            false if timer.due(began + waited) > 0 => {
                Err(format!("a wait set does not name timer {handle} at {began}: {timer:?}"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_raised(&self, handle: Handle) -> Option<bool> {
        match self.objects.get(&handle)?.kind {
            Kind::Interrupt { raised } => Some(raised),
            _ => None,
        }
    }

    pub(super) fn interrupt_asked(&mut self, step: &Step, reply: &Reply) -> Verdict {
        ok(reply)?;
        let on = step.arg("on");
        let Some(Kind::Interrupt { raised }) = self.objects.get_mut(&on).map(|o| &mut o.kind)
        else {
            return Ok(());
        };
        match step.verb {
            Verb::Raise => *raised = true,
            Verb::Clear => *raised = false,
            _ if (reply.value == 1) != *raised => {
                return Err(format!("an interrupt says {}, it must be {raised}", reply.value));
            }
            _ => {}
        }
        Ok(())
    }
}
