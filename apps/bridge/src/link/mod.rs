//! The link to other bridges, over Zenoh. Begin with [`Link`]; then `wire`.
//!
//! | file | what |
//! |---|---|
//! | `session` | the Zenoh session, opened as the file says |
//! | `wire` | keys, headers, notes: what bridges say to each other |
//! | `listen` | whose tokens come and go; who asks for notes |
//! | `notes` | a note that is shown; a note that is asked for |
//! | `place` | what they say of a message of a queue |

pub(crate) mod listen;
pub(crate) mod notes;
pub(crate) mod place;
pub(crate) mod session;
pub(crate) mod wire;

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zenoh::query::Query;
use zenoh::{Session, Wait};

use wire::Keys;

/// This bridge among the others.
pub(crate) struct Link {
    pub(crate) session: Session,
    /// The session's id, ours in every key.
    pub(crate) own: String,
    pub(crate) keys: Keys,
    /// Answers to those who ask for a note, by key.
    notes: Mutex<HashMap<String, String>>,
}

impl Link {
    pub(crate) fn new(session: Session, namespace: &str) -> Self {
        let (own, keys) = (session.zid().to_string(), Keys::new(namespace));
        Self { session, own, keys, notes: Mutex::default() }
    }

    /// A key of this bridge.
    pub(crate) fn own_key(&self, kind: &str, name: &str) -> String {
        self.keys.of(&self.own, kind, name)
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, key: &str) -> Option<String> {
        self.notes().get(key).cloned()
    }

    /// Tells the others at once that this bridge leaves.
    pub(crate) fn close(&self) {
        let _ = self.session.close().wait();
    }
}

/// Hands a query from Zenoh's thread to ours; Zenoh's never waits.
pub(crate) fn hand_over(to: &SyncSender<Query>, query: Query) {
    if let Err(e) = to.try_send(query) {
        let (TrySendError::Full(query) | TrySendError::Disconnected(query)) = e;
        let _ = query.reply_err("too many calls at once: try again later").wait();
    }
}
