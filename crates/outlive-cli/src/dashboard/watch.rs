//! Subscribers for what a browser looks at: pictures of images, what is in messages, and how old
//! they are on arrival.
//!
//! Each request renews a lease; a subscriber whose lease runs out leaves, and with the last one
//! the node. For pictures nobody sleeps on the topic, so that no publisher has to wake us; for
//! latencies we do, at most 50 times a second however many messages there are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use outlive::msg::Image;
use outlive::{Deadline, Node, Sample, Subscriber};
use serde_json::{Value, json};

use super::picture::{Picture, picture};
use crate::exit::Failure;
use crate::look::is_image;
use crate::options::DomainOptions;
use crate::topic::decode::Decoder;

/// Topics that are subscribed to at once.
pub(super) const WATCHED_MAX: usize = 24;
/// How long a request keeps a subscriber.
const LEASE: Duration = Duration::from_secs(5);
/// Between two pictures of a topic, at least.
const PICTURE_EVERY: Duration = Duration::from_millis(250);
/// Between two messages of a topic that are taken apart, at least.
const MESSAGE_EVERY: Duration = Duration::from_millis(250);
/// Larger ones are not; rows of one, and characters of a row.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const ROWS_MAX: usize = 200;
const ROW_CHARS_MAX: usize = 400;
/// Between two messages that we let ourselves be woken for.
const WAKE_EVERY: Duration = Duration::from_millis(20);
/// Between two looks for a picture; the longest sleep for a message.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Until a topic that could not be read is subscribed to again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Latencies that are remembered.
const AGES_MAX: usize = 1000;

pub(super) struct Watch {
    options: DomainOptions,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    topics: BTreeMap<String, Topic>,
    /// One for all subscribers, and gone with the last of them.
    node: Weak<Node>,
    leaving: bool,
    /// Of those that have left their lists.
    ended: Vec<JoinHandle<()>>,
}

/// What is known of a watched topic.
#[derive(Default)]
struct Topic {
    see_until_ns: u64,
    time_until_ns: u64,
    thread: Option<JoinHandle<()>>,
    error: Option<String>,
    ages_ns: VecDeque<u64>,
    unstamped: bool,
    message: Option<Value>,
    picture: Option<Arc<Picture>>,
    picture_error: Option<&'static str>,
    pictures: u64,
}

impl Topic {
    fn is_wanted(&self, now_ns: u64) -> bool {
        self.see_until_ns.max(self.time_until_ns) > now_ns
    }

    /// It cannot be read: what it had is no longer what it has.
    fn fail(&mut self, why: &Failure) {
        self.error = Some(why.to_string());
        (self.picture, self.picture_error, self.message) = (None, None, None);
        self.ages_ns.clear();
    }
}

/// What a subscriber is to do next.
struct Wanted {
    picture: bool,
    /// Of the topic that is open on the page.
    age_and_message: bool,
}

impl Watch {
    pub(super) fn new(options: DomainOptions) -> Self {
        Self { options, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the leases of these topics, or begins them.
    pub(super) fn look_at(self: &Arc<Self>, names: &[&str], time: bool) {
        let mut inner = self.inner();
        let now_ns = outlive::now_ns();
        // One without a thread is not followed; the others leave by themselves.
        inner.topics.retain(|_, of| of.thread.is_some() || of.is_wanted(now_ns));
        for name in names {
            let new = !inner.topics.contains_key(*name);
            if inner.leaving || (new && inner.topics.len() >= WATCHED_MAX) {
                continue;
            }
            let topic = inner.topics.entry((*name).to_owned()).or_default();
            let until_ns = Deadline::after(LEASE).as_ns();
            *(if time { &mut topic.time_until_ns } else { &mut topic.see_until_ns }) = until_ns;
            // Also where none could be started before.
            if topic.thread.is_none() {
                let (watch, name) = (Arc::clone(self), (*name).to_owned());
                let started = thread::Builder::new().spawn(move || watch.follow(&name));
                match started {
                    Ok(thread) => (topic.thread, topic.error) = (Some(thread), None),
                    Err(e) => topic.error = Some(e.to_string()),
                }
            }
        }
    }

    pub(super) fn picture(&self, name: &str) -> Option<Arc<Picture>> {
        self.inner().topics.get(name)?.picture.clone()
    }

    /// The node that has joined for the subscribers, if any.
    pub(super) fn own(&self) -> Option<u64> {
        Some(self.inner().node.upgrade()?.id().get())
    }

    /// By topic: its picture's number and form, a late message, its latencies.
    pub(super) fn json(&self) -> Value {
        let inner = self.inner();
        let one = |topic: &Topic| {
            let picture = topic.picture.as_ref().map(|picture| {
                let Picture { width, height, format, .. } = **picture;
                json!({"number": topic.pictures, "width": width, "height": height,
                       "format": format})
            });
            json!({
                "error": topic.error,
                "picture": picture,
                "picture_error": topic.picture_error,
                "message": topic.message,
                "unstamped": topic.unstamped,
                "latency": latency(&topic.ages_ns),
            })
        };
        inner.topics.iter().map(|(name, topic)| (name.clone(), one(topic))).collect()
    }

    /// Lets all subscribers leave, and waits for them.
    pub(super) fn leave(&self) {
        let threads: Vec<_> = {
            let mut inner = self.inner();
            inner.leaving = true;
            let Inner { topics, ended, .. } = &mut *inner;
            topics.values_mut().filter_map(|t| t.thread.take()).chain(ended.drain(..)).collect()
        };
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// What to do for this topic; `None` when nobody looks any more, and then it is off the list.
    fn wanted(&self, name: &str) -> Option<Wanted> {
        let mut inner = self.inner();
        let now_ns = outlive::now_ns();
        let leaving = inner.leaving;
        let topic = inner.topics.get(name)?;
        let wanted = Wanted {
            picture: topic.see_until_ns > now_ns,
            age_and_message: topic.time_until_ns > now_ns,
        };
        if !leaving && (wanted.picture || wanted.age_and_message) {
            return Some(wanted);
        }
        // Under one lock with the look at the lease: a request comes before it or begins anew.
        let gone = inner.topics.remove(name);
        inner.ended.retain(|thread| !thread.is_finished());
        inner.ended.extend(gone.and_then(|topic| topic.thread));
        None
    }

    fn follow(&self, name: &str) {
        while let Err(failure) = self.subscribe(name) {
            if let Some(topic) = self.inner().topics.get_mut(name) {
                topic.fail(&failure);
            }
            let again = Deadline::after(AGAIN_AFTER);
            while !again.has_passed() {
                if self.wanted(name).is_none() {
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        }
    }

    fn node(&self) -> Result<Arc<Node>, Failure> {
        let mut inner = self.inner();
        if let Some(node) = inner.node.upgrade() {
            return Ok(node);
        }
        let node = Arc::new(self.options.node("dashboard")?);
        inner.node = Arc::downgrade(&node);
        Ok(node)
    }

    fn subscribe(&self, name: &str) -> Result<(), Failure> {
        let node = self.node()?;
        let builder = node.topic::<[u8]>(name)?.history(1).borrows(2);
        let mut subscriber: Subscriber<[u8]> = builder.subscriber_of_any_type()?;
        if let Some(topic) = self.inner().topics.get_mut(name) {
            topic.error = None;
        }
        let of = subscriber.payload_type();
        let (is_image, decoder) = (is_image(&of), Decoder::of_type(&of, false));
        let (mut next_picture, mut next_message) = (Deadline::AT_ONCE, Deadline::AT_ONCE);
        while let Some(wanted) = self.wanted(name) {
            let mut show = |sample: &Sample<[u8]>| {
                if is_image && wanted.picture && next_picture.has_passed() {
                    next_picture = Deadline::after(PICTURE_EVERY);
                    self.show(name, sample);
                }
                if wanted.age_and_message && next_message.has_passed() {
                    next_message = Deadline::after(MESSAGE_EVERY);
                    let shown = message(&decoder, sample);
                    if let Some(topic) = self.inner().topics.get_mut(name) {
                        topic.message = Some(shown);
                    }
                }
            };
            // What came while we did not look is too old for a latency.
            if let Some(sample) = subscriber.latest()? {
                show(&sample);
            }
            if wanted.age_and_message {
                if let Some(sample) = subscriber.receive_until(Deadline::after(LOOK_EVERY))? {
                    let now_ns = outlive::now_ns();
                    self.time(name, now_ns, sample.timestamp_ns());
                    show(&sample);
                }
                thread::sleep(WAKE_EVERY);
            } else {
                thread::sleep(LOOK_EVERY);
            }
            while subscriber.next_event().is_some() {}
        }
        Ok(())
    }

    fn time(&self, name: &str, now_ns: u64, stamp_ns: u64) {
        let mut inner = self.inner();
        let Some(topic) = inner.topics.get_mut(name) else { return };
        topic.unstamped = stamp_ns == 0;
        if stamp_ns > 0 {
            topic.ages_ns.push_back(now_ns.saturating_sub(stamp_ns));
            if topic.ages_ns.len() > AGES_MAX {
                topic.ages_ns.pop_front();
            }
        }
    }

    fn show(&self, name: &str, sample: &Sample<[u8]>) {
        let made = match Image::parse(sample.as_bytes()) {
            Some(image) => picture(image),
            None => Err("no image: too short"),
        };
        let mut inner = self.inner();
        let Some(topic) = inner.topics.get_mut(name) else { return };
        topic.pictures += 1;
        topic.picture_error = made.as_ref().err().copied();
        if let Ok(picture) = made {
            topic.picture = Some(Arc::new(picture));
        }
    }
}

/// A message part by part, as `echo` shows it; of one with many parts or long ones the beginning.
fn message(decoder: &Decoder, sample: &Sample<[u8]>) -> Value {
    let large = || (String::new(), "more than 1 MiB: outlive topic echo shows it".to_owned());
    let (mut rows, more) = match sample.len() {
        ..=MESSAGE_BYTES_MAX => decoder.rows(sample, ROWS_MAX),
        _ => (vec![large()], 0),
    };
    if more > 0 {
        rows.push((String::new(), format!(".. {more} more")));
    }
    for text in rows.iter_mut().flat_map(|(path, value)| [path, value]) {
        if let Some((at, _)) = text.char_indices().nth(ROW_CHARS_MAX) {
            text.truncate(at);
            text.push_str(" ..");
        }
    }
    let meta = sample.meta();
    json!({"node": meta.publisher.node.get(), "port": meta.publisher.port, "seq": meta.seq,
           "bytes": sample.len(), "rows": rows})
}

/// Counts by 1, 2, 5, 10 ... microseconds.
fn latency(ages_ns: &VecDeque<u64>) -> Option<Value> {
    let mut sorted: Vec<u64> = ages_ns.iter().copied().collect();
    sorted.sort_unstable();
    let max_ns = *sorted.last()?;
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let mut buckets = Vec::new();
    let (mut from, mut upper) = (0, 1000);
    for step in [2.0, 2.5, 2.0].into_iter().cycle().take(24) {
        let to = sorted.partition_point(|age| *age <= upper);
        buckets.push((upper, to - from));
        if to == sorted.len() {
            break;
        }
        (from, upper) = (to, (upper as f64 * step) as u64);
    }
    Some(json!({
        "samples": sorted.len(), "min_ns": sorted[0], "p50_ns": at(0.5), "p99_ns": at(0.99),
        "max_ns": max_ns, "buckets": buckets,
    }))
}

#[cfg(test)]
mod tests {
    use outlive::msg::{Header, ImageHeader, PixelFormat};

    use super::*;

    /// It kept its error and its place for good.
    #[test]
    fn a_topic_whose_thread_could_not_start_is_tried_again_and_goes_with_its_lease() {
        let temp = testkit::TempDomain::new("watch").unwrap();
        let options = DomainOptions { domain: None, root: Some(temp.path().join("root")) };
        let watch = Arc::new(Watch::new(options));
        let failed = |see_until_ns| Topic {
            see_until_ns,
            error: Some("no thread".into()),
            ..Topic::default()
        };
        watch.inner().topics.extend([
            ("/old".to_owned(), failed(outlive::now_ns())),
            ("/asked".to_owned(), failed(u64::MAX)),
            ("/other".to_owned(), failed(u64::MAX)),
        ]);
        watch.look_at(&["/asked"], true);
        let started = |name: &str| Some(watch.inner().topics.get(name)?.thread.is_some());
        assert_eq!(["/old", "/asked", "/other"].map(started), [None, Some(true), Some(false)]);
        watch.leave();
    }

    /// One error froze the last picture for good, and it looked live.
    #[test]
    fn a_topic_that_could_not_be_read_loses_its_picture_and_is_read_again() {
        let temp = testkit::TempDomain::new("watch-again").unwrap();
        let root = temp.path().join("root");
        let options = DomainOptions { domain: None, root: Some(root.clone()) };
        let watch = Arc::new(Watch::new(options));
        let of = |name: &str, what: &str| watch.json()[name][what].clone();
        let until = |done: &dyn Fn() -> bool| {
            while !done() {
                watch.look_at(&["/camera"], false);
                thread::sleep(LOOK_EVERY);
            }
        };
        let (kind, bytes) = ("image/png", Vec::new());
        let old = Picture { kind, bytes, width: 1, height: 1, format: "rgb8" };
        let see_until_ns = Deadline::after(LEASE).as_ns();
        let picture = Some(Arc::new(old));
        let topic = Topic { see_until_ns, picture, ..Topic::default() };
        watch.inner().topics.insert("/camera".into(), topic);
        // There is no such topic yet.
        until(&|| of("/camera", "error").is_string());
        assert_eq!(of("/camera", "picture"), Value::Null);
        let node = Node::builder().root(&root).open().unwrap();
        let camera = node.topic::<Image>("/camera").unwrap().publisher().unwrap();
        let head = ImageHeader {
            header: Header::now("camera"),
            width: 2,
            height: 1,
            row_bytes: 2,
            format: PixelFormat::MONO8,
            reserved: [0; 2],
        };
        camera.publish_headed(head, &[0, 255]).unwrap();
        until(&|| of("/camera", "picture").is_object());
        assert_eq!(of("/camera", "error"), Value::Null);
        watch.leave();
    }

    #[test]
    fn latencies_are_counted_by_powers() {
        assert_eq!(latency(&VecDeque::new()), None);
        let found = latency(&[900, 1500, 1600, 4000, 12_000].into()).unwrap();
        assert_eq!((&found["samples"], &found["p50_ns"]), (&json!(5), &json!(1600)));
        let wanted = json!([[1000, 1], [2000, 2], [5000, 1], [10_000, 0], [20_000, 1]]);
        assert_eq!(found["buckets"], wanted);
    }
}
