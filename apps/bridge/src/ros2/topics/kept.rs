//! Messages that are kept for subscriptions that come later there (`TRANSIENT_LOCAL`), as Zenoh's
//! advanced publishers keep them: told apart by time stamps of Zenoh.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::{Query, Queryable};
use zenoh::time::{NTP64, Timestamp};
use zenoh::{Session, Wait};

use crate::report::Failed;
use crate::ros2::names::{self, Attachment};

/// Bytes kept of a topic at most, unless it is a single message.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// The last messages of a publisher of ours.
pub(super) struct Kept {
    all: Arc<Mutex<All>>,
    session: Session,
    last: NTP64,
    _queryable: Queryable<()>,
    /// By it subscriptions that are there already find the publisher.
    _token: LivelinessToken,
}

#[derive(Default)]
struct All {
    messages: VecDeque<Message>,
    bytes: usize,
    depth: usize,
}

#[derive(Clone, Debug)]
struct Message {
    payload: ZBytes,
    attachment: Attachment,
    at: Timestamp,
}

impl Kept {
    /// Keeps the last `depth` messages of the topic with the key `key`.
    pub(super) fn new(session: &Session, key: &str, depth: u64) -> Result<Self, Failed> {
        let all = Arc::new(Mutex::new(All { depth: depth as usize, ..All::default() }));
        let asked = all.clone();
        let at = names::kept_key(key, &session.zid().to_string());
        let key = KeyExpr::try_from(key.to_owned())?;
        let queryable = session
            .declare_queryable(&at)
            .callback(move |query| answer(&asked, &key, &query))
            .wait()?;
        let token = session.liveliness().declare_token(at).wait()?;
        let (session, last) = (session.clone(), NTP64(0));
        Ok(Self { all, session, last, _queryable: queryable, _token: token })
    }

    /// Keeps a message, and says with which stamp it is to be sent.
    pub(super) fn keep(&mut self, payload: &ZBytes, attachment: Attachment) -> Timestamp {
        let now = self.session.new_timestamp();
        // Clocks may be set back, and who has a later message takes no earlier one.
        self.last = NTP64((self.last.0 + 1).max(now.get_time().0));
        let at = Timestamp::new(self.last, *now.get_id());
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Message { payload: payload.clone(), attachment, at });
        at
    }
}

impl All {
    fn push(&mut self, message: Message) {
        self.bytes += message.payload.len();
        self.messages.push_back(message);
        let many = |all: &Self| all.messages.len() > all.depth.max(1);
        let large = |all: &Self| all.bytes > KEPT_BYTES_MAX && all.messages.len() > 1;
        while many(self) || large(self) {
            let oldest = self.messages.pop_front();
            self.bytes -= oldest.map_or(0, |message| message.payload.len());
        }
    }

    /// The last `most`, oldest first.
    fn last(&self, most: usize) -> Vec<Message> {
        let skip = self.messages.len().saturating_sub(most);
        self.messages.iter().skip(skip).cloned().collect()
    }
}

fn answer(all: &Mutex<All>, key: &KeyExpr<'static>, query: &Query) {
    let parameters = query.parameters();
    // Numbers of Zenoh: of publishers that count, which ours does not.
    if parameters.get("_sn").is_some_and(|range| range != "..") {
        return;
    }
    let most = parameters.get("_max").and_then(|max| max.parse().ok()).unwrap_or(usize::MAX);
    let kept = all.lock().unwrap_or_else(PoisonError::into_inner).last(most);
    for Message { payload, attachment, at } in kept {
        let reply = query.reply(key, payload).attachment(attachment.to_bytes()).timestamp(at);
        // Who asked has gone.
        if reply.wait().is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_are_kept_and_never_too_many_bytes() {
        let id = zenoh::time::TimestampId::try_from([1]).expect("an id");
        let message = |n: u64, bytes: usize| Message {
            payload: vec![0; bytes].into(),
            attachment: Attachment { seq: n as i64, wall_ns: 0, gid: [0; 16] },
            at: Timestamp::new(NTP64(n), id),
        };
        let kept = |all: &All, most| -> Vec<i64> {
            all.last(most).iter().map(|message| message.attachment.seq).collect()
        };
        let mut all = All { depth: 3, ..All::default() };
        assert!(kept(&all, 9).is_empty());
        for n in 1..=5 {
            all.push(message(n, 10));
        }
        assert_eq!((kept(&all, 9), kept(&all, 2), all.bytes), (vec![3, 4, 5], vec![4, 5], 30));
        all.push(message(6, KEPT_BYTES_MAX));
        assert_eq!((kept(&all, 9), all.bytes), (vec![6], KEPT_BYTES_MAX));
        all.push(message(7, KEPT_BYTES_MAX + 1));
        all.push(message(8, 1));
        assert_eq!((kept(&all, 9), all.bytes), (vec![8], 1));
    }
}
