//! What this bridge listens to as long as it runs: tokens of others, and questions for its notes.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::Queryable;
use zenoh::sample::SampleKind;

use super::Link;
use crate::report::Failed;

/// A token that came or went.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) key: String,
    pub(crate) there: bool,
}

/// What is listened to for as long as the bridge runs.
pub(crate) struct Listening {
    _tokens: Subscriber<()>,
    _notes: Queryable<()>,
    _here: LivelinessToken,
}

/// Passes tokens of others on, and answers those who ask for notes.
pub(crate) fn listen(link: &Arc<Link>, to: Sender<Token>) -> Result<Listening, Failed> {
    let session = &link.session;
    let tokens = session
        .liveliness()
        .declare_subscriber(link.keys.all_tokens())
        .history(true)
        .callback(move |sample| {
            let there = sample.kind() == SampleKind::Put;
            let _ = to.send(Token { key: sample.key_expr().as_str().to_owned(), there });
        })
        .wait()?;
    let asked = link.clone();
    let notes = session
        .declare_queryable(link.own_key("note", "**"))
        .callback(move |query| {
            let note = asked.note(query.key_expr().as_str());
            let _ = match note {
                Some(note) => query.reply(query.key_expr().clone(), note).wait(),
                None => query.reply_err("not carried any more").wait(),
            };
        })
        .wait()?;
    let here = link.own_key("live/bridge", "here");
    let here = session.liveliness().declare_token(here).wait()?;
    Ok(Listening { _tokens: tokens, _notes: notes, _here: here })
}
