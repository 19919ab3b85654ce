//! `outlive record`: topics that were asked for and are not there.

use outlive::{Domain, ErrorKind};
use outlive_record::{Progress, Recorder, Selection};

use crate::absent::nobody;
use crate::exit::{Failure, note};
use crate::topic;

/// What was asked for, apart from topics that are excluded.
#[derive(Debug)]
pub(super) struct Asked {
    /// Topics named in full: each is expected.
    names: Vec<String>,
    /// What may match nothing.
    patterns: Vec<String>,
    is_all: bool,
    /// It was said that nobody is in the domain.
    is_alone: bool,
}

impl Asked {
    /// Without `topics` all are asked for. Names those that are asked for and excluded at once.
    pub(super) fn of(topics: &[String], is_regex: bool, selection: &Selection) -> Self {
        let is_pattern = |text: &&String| is_regex || text.contains(['*', '?']);
        let (patterns, all): (Vec<_>, Vec<_>) = topics.iter().partition(is_pattern);
        let mut names: Vec<String> = Vec::new();
        for name in all {
            if !selection.matches(name) {
                note(format_args!("topic {name} is excluded"));
            } else if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let patterns = patterns.into_iter().cloned().collect();
        Self { names, patterns, is_all: topics.is_empty(), is_alone: false }
    }

    /// Refuses what no topic can be called: it would be waited for in vain.
    pub(super) fn must_be_names(&self, domain: &Domain) -> Result<(), Failure> {
        let mut errors = self.names.iter().filter_map(|name| domain.find_topic(name).err());
        match errors.find(|e| e.kind() == ErrorKind::InvalidName) {
            Some(e) => Err(e.into()),
            None => Ok(()),
        }
    }

    /// Says what is waited for, what may have been meant, and if nobody is here.
    pub(super) fn note_waiting(&mut self, recorder: &Recorder, domain: &Domain) {
        topic::note_waiting(domain, &self.absent(recorder));
        if let Some(nobody) = nobody(domain) {
            note(nobody);
            self.is_alone = true;
        }
    }

    /// Topics named in full that have not been there.
    pub(super) fn absent(&self, recorder: &Recorder) -> Vec<String> {
        self.names.iter().filter(|name| !recorder.has_met(name)).cloned().collect()
    }

    /// Says which topics never came, or that there was none at all.
    pub(super) fn note_end(&self, absent: &[String], done: &Progress) {
        let met = done.topics as u64 + done.topics_left_out + done.missed;
        match absent {
            [one] => note(format_args!("topic {one} never appeared")),
            [_, ..] => note(format_args!("topics {} never appeared", absent.join(", "))),
            [] if met > 0 || self.is_alone => {}
            [] if self.is_all => note("no topic to record appeared"),
            [] if self.patterns.is_empty() => {}
            [] => note(format_args!("no topic matched {}", self.patterns.join(", "))),
        }
    }
}
