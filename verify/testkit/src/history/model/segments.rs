//! Segments: what is in which file, what lies where in it, and who may remove it.

use std::collections::BTreeMap;

use super::state::locks::{MUTEX, RWLOCK};
use super::state::segments::{File, Placed};
use super::{Kind, Life, Model, Object, Verdict, ok};
use crate::history::member::{LINES, PLACED, WORDS, lines};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step, Verb};

/// Numbers from here on are of objects in segments.
const NUMBERS: u64 = 1000;

impl Model {
    pub(super) fn segment_opens(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let (name, large) = (step.arg("segment"), step.arg("large"));
        let at = self.segments.entry(name).or_default();
        if at.files.get(&at.newest).is_some_and(|f| f.large != large) {
            return match reply.outcome.as_str() {
                "TypeMismatch" => Ok(()),
                "ok" => Err("a segment is opened with another size".into()),
                _ => ok(reply),
            };
        }
        ok(reply)?;
        let (file, words) = (at.newest, [step.arg("value"); WORDS]);
        let new = || File { large, words, placed: BTreeMap::new() };
        at.files.entry(file).or_insert_with(new);
        self.add(step, Kind::Segment { name, file }, None);
        Ok(())
    }

    fn segment(&mut self, handle: Handle) -> Option<&mut File> {
        let Kind::Segment { name, file } = self.objects.get(&handle)?.kind else { return None };
        self.segments.get_mut(&name)?.files.get_mut(&file)
    }

    /// A word was stored, or all were read.
    pub(super) fn segment_used(&mut self, step: &Step, reply: &Reply) -> Verdict {
        ok(reply)?;
        let Some(file) = self.segment(step.arg("on")) else { return Ok(()) };
        if step.verb == Verb::Poke {
            file.words[step.arg("at") as usize % WORDS] = step.arg("value");
        } else if reply.data != file.words {
            return Err(format!("a segment has {:?}, it must be {:?}", reply.data, file.words));
        }
        Ok(())
    }

    pub(super) fn put_in_segment(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let (line, what) = (step.arg("line"), PLACED[step.arg("what") as usize]);
        let count = match what {
            Verb::Semaphore | Verb::Set => step.arg("count"),
            _ => 0,
        };
        let next = NUMBERS + self.placed;
        let Some(file) = self.segment(on) else { return Ok(()) };
        let end = line + lines(what, count);
        let fits = end <= LINES[file.large as usize];
        let mut others = file.placed.iter().filter(|(at, _)| **at != line);
        let over = others.any(|(at, it)| *at < end && line < at + lines(it.what, it.count));
        let there = file.placed.get(&line).copied();
        let other = there.filter(|it| (it.what, it.count) != (what, count));
        match (reply.outcome.as_str(), fits && !over, other) {
            ("InvalidArgument", false, _) | ("TypeMismatch", _, Some(_)) => return Ok(()),
            ("ok", false, _) => return Err(format!("an object is placed over others: {step}")),
            ("ok", _, Some(_)) => return Err("another object is placed over one".into()),
            _ => ok(reply)?,
        }
        let number = there.map_or(next, |it| it.number);
        file.placed.insert(line, Placed { what, count, number });
        self.placed += u64::from(there.is_none());
        let kind = match what {
            Verb::Mutex => Kind::Lock { name: (MUTEX, number), file: 0 },
            Verb::RwLock => Kind::Lock { name: (RWLOCK, number), file: 0 },
            Verb::Condvar => Kind::Condvar { name: number, file: 0 },
            Verb::Semaphore => Kind::Semaphore { name: number, file: 0 },
            _ => Kind::Set { name: number, file: 0 },
        };
        self.begins(&kind, count);
        let Object { node, type_, .. } = self.objects[&on];
        let (member, life, new) = (step.member, Life::Held, step.arg("new"));
        let object = Object { member, thread: None, node, kind, life, type_, busy: false };
        self.objects.insert(new, object);
        Ok(())
    }

    /// Files of segments that somebody has open, or something in them.
    fn segments_open(&self) -> Vec<(u64, u64)> {
        let numbers = |kind: &Kind| match *kind {
            Kind::Lock { name: (MUTEX | RWLOCK, number), .. } => Some(number),
            Kind::Condvar { name, .. } | Kind::Semaphore { name, .. } => Some(name),
            Kind::Set { name, .. } => Some(name),
            _ => None,
        };
        let in_use: Vec<u64> = self.living().filter_map(|(_, o)| numbers(&o.kind)).collect();
        let opened = self.living().filter_map(|(_, o)| match o.kind {
            Kind::Segment { name, file } => Some((name, file)),
            _ => None,
        });
        let files = self.segments.iter().flat_map(|(name, segment)| {
            segment.files.iter().map(move |(number, file)| ((*name, *number), file))
        });
        let holding = files
            .filter(|(_, file)| file.placed.values().any(|placed| in_use.contains(&placed.number)));
        opened.chain(holding.map(|(file, _)| file)).collect()
    }

    pub(super) fn segment_removed(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let open = self.segments_open();
        let name = step.arg("segment");
        let at = self.segments.entry(name).or_default();
        let is_there = at.files.contains_key(&at.newest);
        if is_there && open.contains(&(name, at.newest)) {
            return match reply.outcome.as_str() {
                "WouldBlock" => Ok(()),
                _ => ok(reply).and(Err("a segment that is open is removed".into())),
            };
        }
        ok(reply)?;
        if (reply.value == 1) != is_there {
            return Err(format!("a segment is removed: {}, it must be {is_there}", reply.value));
        }
        at.newest += u64::from(is_there);
        Ok(())
    }

    /// What nobody has open is gone.
    pub(super) fn segments_cleaned(&mut self) {
        let open = self.segments_open();
        for (name, segment) in &mut self.segments {
            if !open.contains(&(*name, segment.newest)) {
                segment.newest += 1;
            }
        }
    }
}
