//! What a member's messages hold, and what it sees: those of others, and news of who sends them.

use std::time::Duration;

use outlive::queue;
use outlive::topic::Event;
use outlive::{Consumer, Payload, Sample, Subscriber};

use super::fails::Fails;
use super::limits;
use crate::chaos::message::{self, Head, WORDS_MIN};
use crate::history::reply::{News, Reply, Seen};
use crate::history::step::{Handle, Step};

pub(super) fn content(from: Handle, n: u64, words: u64) -> Vec<u8> {
    let mut content = vec![0; (words as usize).max(WORDS_MIN)];
    message::fill(&mut content, Head { slot: from as usize, life: 0, seq: n, stamp: 0 });
    content.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

pub(super) fn look(bytes: &[u8]) -> Seen {
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_ne_bytes(chunk.try_into().expect("eight bytes")))
        .collect();
    match message::check(&words) {
        Ok(head) => Seen { from: head.slot as u64, n: head.seq, whole: true, ..Seen::default() },
        Err(_) => Seen::default(),
    }
}

pub(super) fn look_at<T: Payload + ?Sized>(sample: &Sample<T>) -> Seen {
    let id = sample.publisher();
    Seen {
        seq: sample.seq(),
        lost: sample.lost_before(),
        borrowed: sample.is_borrowed(),
        id: (id.node.get(), id.port),
        ..look(sample.as_bytes())
    }
}

pub(super) fn receive<T: Payload + ?Sized>(
    subscriber: &mut Subscriber<T>,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    let wait = Duration::from_millis(step.arg("ms"));
    let done = (|| {
        for i in 0..step.arg("max") {
            let wait = if i == 0 { wait } else { Duration::ZERO };
            match subscriber.receive_timeout(wait)? {
                Some(sample) => reply.seen.push(look_at(&sample)),
                None => {
                    reply.value = 1;
                    break;
                }
            }
        }
        Ok(())
    })();
    news_of(subscriber, reply);
    done
}

/// All events of a subscriber.
pub(super) fn news_of<T: Payload + ?Sized>(subscriber: &mut Subscriber<T>, reply: &mut Reply) {
    while let Some(event) = subscriber.next_event() {
        let (news, id) = match event {
            Event::PublisherJoined(id) => (News::Joined, id),
            Event::PublisherLeft(id) => (News::Left, id),
            Event::PublisherDied { publisher, unfinished, lost } => {
                (News::Died(unfinished, lost), publisher)
            }
            Event::PublisherCorrupt { publisher, why } => {
                reply.text = why;
                (News::Corrupt, publisher)
            }
            _ => continue,
        };
        reply.news.push((news, (id.node.get(), id.port)));
    }
}

/// What could not be opened for a while is tried again after so many calls.
pub(super) fn receive_at_last<T: Payload + ?Sized>(
    subscriber: &mut Subscriber<T>,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    for _ in 0..limits::AGAIN_CALLS {
        if reply.seen.len() as u64 >= step.arg("max") {
            break;
        }
        reply.value = 0;
        receive(subscriber, step, reply)?;
    }
    Ok(())
}

pub(super) fn get<T: Payload + ?Sized>(
    consumer: &mut Consumer<T>,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    let wait = Duration::from_millis(step.arg("ms"));
    let done = (|| {
        for i in 0..step.arg("max") {
            let wait = if i == 0 { wait } else { Duration::ZERO };
            match consumer.receive_timeout(wait)? {
                Some(received) => {
                    let id = received.producer();
                    let id = (id.node.get(), id.port);
                    reply.seen.push(Seen { id, ..look(received.as_bytes()) });
                }
                None => {
                    reply.value = 1;
                    break;
                }
            }
        }
        Ok(())
    })();
    news_of_queue(consumer, reply);
    done
}

/// All events of a consumer.
pub(super) fn news_of_queue<T: Payload + ?Sized>(consumer: &mut Consumer<T>, reply: &mut Reply) {
    while let Some(event) = consumer.next_event() {
        let (news, id) = match event {
            queue::Event::ProducerJoined(id) => (News::Joined, id),
            queue::Event::ProducerLeft(id) => (News::Left, id),
            queue::Event::ProducerDied(id) => (News::Died(false, 0), id),
            queue::Event::ProducerCorrupt { producer, why } => {
                reply.text = why;
                (News::Corrupt, producer)
            }
            #[allow(unreachable_patterns)]
            _ => continue,
        };
        reply.news.push((news, (id.node.get(), id.port)));
    }
}
