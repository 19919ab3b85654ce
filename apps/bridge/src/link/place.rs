//! What bridges say to each other of a message of a queue: its place, which names it, and what
//! became of it there; and the places of those that were taken.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Lanes elsewhere whose last message is known, at most.
const TAKEN_MAX: usize = 4096;

/// What an answer begins with.
pub(crate) const TAKEN: u8 = 0;
/// It can never be taken: longer than a lane, or no payload of the type.
pub(crate) const REFUSED: u8 = 1;
/// No room: ask for it before the message is sent again.
pub(crate) const FULL: u8 = 2;
/// To who asked: there is room, for who comes first.
pub(crate) const ROOM: u8 = 3;

/// Where a message lies in its lane.
pub(crate) type Place = (u64, u64);

/// A lane in which a message lay: the domain, and the node and port of the producer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    pub(crate) domain: [u8; 16],
    pub(crate) node: u64,
    pub(crate) port: u64,
}

/// What goes with a message. Its place names it, whoever sends it and however often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) lane: Lane,
    pub(crate) place: Place,
    /// Of who only asks for room: how many bytes it has.
    pub(crate) asks: Option<u64>,
}

impl Head {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let Self { lane: Lane { domain, node, port }, place: (record, done), asks } = self;
        let words = [Some(node), Some(port), Some(record), Some(done), asks];
        let words = words.into_iter().flatten().flat_map(u64::to_le_bytes);
        domain.into_iter().chain(words).collect()
    }

    /// None for what no bridge writes.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (domain, rest) = bytes.split_first_chunk()?;
        let (words, []) = rest.as_chunks() else { return None };
        let (words, asks) = match words {
            [words @ .., asks] if words.len() == 4 => (words, Some(u64::from_le_bytes(*asks))),
            words => (words, None),
        };
        let words: [[u8; 8]; 4] = words.try_into().ok()?;
        let [node, port, record, done] = words.map(u64::from_le_bytes);
        let lane = Lane { domain: *domain, node, port };
        Some(Self { lane, place: (record, done), asks })
    }
}

/// The places of the last messages that were taken, by queue and lane: as long as this bridge
/// lives, whatever becomes of consumers, tokens and links.
#[derive(Debug, Default)]
pub(crate) struct Taken(Mutex<HashMap<(String, Lane), (Instant, Place)>>);

impl Taken {
    pub(crate) fn last(&self, queue: &str, lane: &Lane) -> Option<Place> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&(queue.to_owned(), *lane)).map(|(_, place)| *place)
    }

    pub(crate) fn set(&self, queue: &str, lane: Lane, place: Place) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (queue.to_owned(), lane);
        if all.len() >= TAKEN_MAX && !all.contains_key(&key) {
            let oldest = all.iter().min_by_key(|(_, (at, _))| *at).map(|(key, _)| key.clone());
            oldest.map(|key| all.remove(&key));
        }
        all.insert(key, (Instant::now(), place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_survives_the_wire_and_garbage_is_none() {
        for asks in [None, Some(1 << 20)] {
            let lane = Lane { domain: [7; 16], node: 3, port: u64::MAX };
            let head = Head { lane, place: (1 << 40, 5), asks };
            let bytes = head.to_bytes();
            assert_eq!(Head::parse(&bytes), Some(head));
            assert_eq!(Head::parse(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Head::parse(&[&bytes[..], &[0]].concat()), None);
            assert_eq!(Head::parse(&[&bytes[..], &[0; 16]].concat()), None);
        }
    }

    #[test]
    fn the_lanes_that_spoke_last_are_remembered() {
        let taken = Taken::default();
        let lane = |port| Lane { domain: [1; 16], node: 1, port };
        for port in 0..TAKEN_MAX as u64 + 10 {
            taken.set("/q", lane(0), (port, 0));
            taken.set("/q", lane(port), (port, 0));
        }
        assert_eq!(taken.0.lock().expect("sound").len(), TAKEN_MAX);
        assert_eq!(taken.last("/q", &lane(1)), None);
        assert!(taken.last("/q", &lane(0)).is_some() && taken.last("/r", &lane(0)).is_none());
    }
}
