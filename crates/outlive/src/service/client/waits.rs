//! What a client sleeps on, alone and in a wait set: replies, and the end of its server.

use super::Client;
use crate::Result;
use crate::os::time::deadline::Deadline;
use crate::types::Payload;
use crate::wait::member::{Look, Member, Overslept, Plan, Seat};

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Client<Q, R> {
    /// Sleeps until there may be a reply, at most until `deadline`. For waits that must take
    /// nothing before they have looked elsewhere.
    #[doc(hidden)]
    pub fn sleep_until(&mut self, deadline: Deadline) -> Result<()> {
        let mut set = self.set.take().unwrap_or_default();
        // Replies that wait for another call are no reason to stay awake.
        let until = deadline.min(self.next_due());
        let slept = set.sleep(&mut [&mut Ends { client: self }], until);
        self.set = Some(set);
        slept
    }

    fn plan_ends<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        let for_next = self.puts_off_ends();
        let watched = self.waiting.is_empty() || self.writer.plan(plan, self.term, for_next);
        watched && self.reader.plan(plan)
    }

    /// Whether something waits for a server that does not live. A token that the kernel could not
    /// mark says alive for ever, so its lock is asked.
    pub(super) fn is_unserved(&mut self) -> bool {
        !self.waiting.is_empty() && self.writer.confirm_consumer().is_err()
    }

    fn overslept_ends(&mut self, how: Overslept) -> bool {
        let gone = self.is_unserved();
        self.reader.overslept(how) || gone
    }
}

/// A client that waits for a reply or for the end of its server.
struct Ends<'c, Q: Payload + ?Sized, R: Payload + ?Sized> {
    client: &'c mut Client<Q, R>,
}

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Member for Ends<'_, Q, R> {
    fn is_ready(&mut self, look: &mut Look) -> bool {
        self.client.reader.is_ready(look)
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        self.client.plan_ends(plan)
    }

    fn seat(&self) -> Option<Seat<'_>> {
        self.client.reader.seat()
    }

    fn awake(&mut self) {
        self.client.reader.awake();
    }

    fn overslept(&mut self, how: Overslept) -> bool {
        self.client.overslept_ends(how)
    }
}

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Member for Client<Q, R> {
    fn is_ready(&mut self, look: &mut Look) -> bool {
        if self.ready.is_empty() {
            match self.look() {
                Ok(Some(reply)) => self.ready.push_back(reply),
                Ok(None) => {}
                // What is wrong, the next call says.
                Err(_) => return true,
            }
        }
        look.due(self.next_due());
        !self.ready.is_empty()
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        self.ready.is_empty() && self.plan_ends(plan)
    }

    fn seat(&self) -> Option<Seat<'_>> {
        self.reader.seat()
    }

    fn awake(&mut self) {
        self.reader.awake();
    }

    fn overslept(&mut self, how: Overslept) -> bool {
        self.overslept_ends(how)
    }
}
