//! The heads of requests and replies: words before the payload, aligned for it.
//!
//! | request | word | reply | word |
//! |---|---|---|---|
//! | 1 request, 2 cancel | kind | 1 more follow, 2 the last, 3 refused: text | kind |
//! | number of the client's, from 1 | id | that of the request | id |
//! | server's term, see `Owner` | term | - | - |
//! | ns of CLOCK_MONOTONIC, all ones for none | deadline | - | - |
//! | names the client's reply queue | port | - | - |
#![allow(unsafe_code)]

use crate::domain::header::round_up;

/// What a request's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) struct RequestHead {
    pub(in crate::service) kind: u64,
    pub(in crate::service) id: u64,
    pub(in crate::service) term: u64,
    pub(in crate::service) deadline_ns: u64,
    pub(in crate::service) reply_port: u64,
}

/// What a reply's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) struct ReplyHead {
    pub(in crate::service) kind: u64,
    pub(in crate::service) id: u64,
}

pub(in crate::service) const REQUEST: u64 = 1;
pub(in crate::service) const CANCEL: u64 = 2;
pub(in crate::service) const PART: u64 = 1;
pub(in crate::service) const LAST: u64 = 2;
pub(in crate::service) const REFUSED: u64 = 3;

const REQUEST_WORDS: usize = 5;
const REPLY_WORDS: usize = 2;

/// Bytes before the payload of a request, whose type is aligned to `align`.
pub(in crate::service) const fn request_bytes(align: usize) -> usize {
    round_up(REQUEST_WORDS * 8, align)
}

/// Bytes before the payload of a reply.
pub(in crate::service) const fn reply_bytes(align: usize) -> usize {
    round_up(REPLY_WORDS * 8, align)
}

impl RequestHead {
    /// Writes the head.
    ///
    /// # Safety
    /// `to` is aligned to 8 and valid for writes of `request_bytes(1)` bytes that nobody else
    /// touches.
    #[inline]
    pub(in crate::service) unsafe fn write(self, to: *mut u8) {
        let words = [self.kind, self.id, self.term, self.deadline_ns, self.reply_port];
        // SAFETY: by the caller.
        unsafe { to.cast::<[u64; REQUEST_WORDS]>().write(words) };
    }

    /// The head at the front of a message of `bytes` bytes; `None` if there is none.
    ///
    /// # Safety
    /// `from` is aligned to 8 and valid for reads of `bytes` bytes.
    #[inline]
    pub(in crate::service) unsafe fn read(
        from: *const u8,
        bytes: usize,
        align: usize,
    ) -> Option<Self> {
        if bytes < request_bytes(align) {
            return None;
        }
        // SAFETY: long enough, the rest by the caller.
        let [kind, id, term, deadline_ns, reply_port] =
            unsafe { from.cast::<[u64; REQUEST_WORDS]>().read() };
        Some(Self { kind, id, term, deadline_ns, reply_port })
    }
}

impl ReplyHead {
    /// Writes the head.
    ///
    /// # Safety
    /// As [`RequestHead::write`], for `reply_bytes(1)` bytes.
    #[inline]
    pub(in crate::service) unsafe fn write(self, to: *mut u8) {
        // SAFETY: by the caller.
        unsafe { to.cast::<[u64; REPLY_WORDS]>().write([self.kind, self.id]) };
    }

    /// The head at the front of a message of `bytes` bytes; `None` if there is none.
    ///
    /// # Safety
    /// As [`RequestHead::read`].
    #[inline]
    pub(in crate::service) unsafe fn read(
        from: *const u8,
        bytes: usize,
        align: usize,
    ) -> Option<Self> {
        if bytes < reply_bytes(align) {
            return None;
        }
        // SAFETY: long enough, the rest by the caller.
        let [kind, id] = unsafe { from.cast::<[u64; REPLY_WORDS]>().read() };
        Some(Self { kind, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip_and_short_messages_have_none() {
        let mut words = [0u64; 8];
        let at = words.as_mut_ptr().cast::<u8>();
        let request = RequestHead { kind: 1, id: 2, term: 3, deadline_ns: 4, reply_port: 5 };
        let reply = ReplyHead { kind: 3, id: u64::MAX };
        // SAFETY: 64 bytes of our own, aligned to 8.
        unsafe {
            request.write(at);
            assert_eq!(RequestHead::read(at, 40, 8), Some(request));
            assert_eq!(RequestHead::read(at, 39, 8), None);
            assert_eq!(RequestHead::read(at, 47, 16), None, "the payload begins at 48");
            reply.write(at);
            assert_eq!(ReplyHead::read(at, 16, 8), Some(reply));
            assert_eq!(ReplyHead::read(at, 15, 1), None);
        }
    }
}
