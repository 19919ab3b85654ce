//! Notes: what bridges say of what they carry, to who asks.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use zenoh::Wait;
use zenoh::qos::Priority;

use super::Link;
use crate::report::Failed;
use crate::work::Stop;

/// What a bridge says of a topic: a schema of up to 64 KiB as a list of numbers, and attributes.
const NOTE_BYTES_MAX: usize = 1 << 20;
/// For an answer of another bridge: a link may be slow, and full. When it breaks that is known.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How soon a stop is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What others may ask about something that is carried, as long as it is.
pub(crate) struct Note(Arc<Link>, String);

impl Note {
    /// Of the topic, service or queue `name`, as `kind` says.
    pub(crate) fn show(
        link: &Arc<Link>,
        kind: &str,
        name: &str,
        note: &impl Serialize,
    ) -> serde_json::Result<Self> {
        let key = link.own_key(&format!("note/{kind}"), name);
        let note = serde_json::to_string(note)?;
        link.notes().insert(key.clone(), note);
        Ok(Self(link.clone(), key))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.0.notes().remove(&self.1);
    }
}

/// Asks `bridge` for a note; none if it is to end before that is there.
pub(crate) fn ask(
    link: &Link,
    bridge: &str,
    kind: &str,
    name: &str,
    stop: &Stop,
) -> Result<Option<String>, Failed> {
    let get = link.session.get(link.keys.of(bridge, kind, name)).timeout(ANSWER_MAX);
    // Before the messages that fill the link.
    let replies = get.priority(Priority::InteractiveHigh).wait()?;
    while !stop.is_asked() {
        match replies.recv_timeout(LOOK_EVERY) {
            Ok(None) => {}
            Ok(Some(reply)) => {
                let Ok(sample) = reply.result() else { continue };
                if sample.payload().len() > NOTE_BYTES_MAX {
                    return Err("its bridge answers too much".into());
                }
                return Ok(Some(sample.payload().try_to_string()?.into_owned()));
            }
            Err(_) => return Err("its bridge does not answer".into()),
        }
    }
    Ok(None)
}
