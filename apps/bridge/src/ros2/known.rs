//! The types that the bridge knows: those of ROS that are part of it, and the user's own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use outlive_record::Error;
use outlive_record::ros2::{self, Definitions};

use super::names::{self, Topic};

/// Messages and services with their hashes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Known {
    own: Definitions,
    /// Of each of these; why not, if it cannot be carried.
    hashes: BTreeMap<String, Result<String, String>>,
}

impl Known {
    /// Adds what the interface files of `paths` define, and those in directories among them.
    pub(crate) fn add(&mut self, paths: &[PathBuf]) -> Result<(), Error> {
        self.own.add(paths)?;
        let all = self.own.names().map(|name| {
            let description = self.own.type_description(name);
            let none = || "it is not defined".to_owned();
            let hash = description.and_then(|text| Ok(names::hash(&text.ok_or_else(none)?)));
            (name.to_owned(), hash)
        });
        self.hashes = all.collect();
        Ok(())
    }

    pub(crate) fn definitions(&self) -> &Definitions {
        &self.own
    }

    /// The hash of the message or service `name`; none if it is not known or cannot be carried.
    pub(crate) fn hash(&self, name: &str) -> Option<String> {
        match self.hashes.get(name) {
            Some(hash) => hash.clone().ok(),
            None => Some(names::hash(&ros2::type_description(name)?)),
        }
    }

    /// The topic or service `name` there, of the type `of`.
    pub(crate) fn topic(&self, name: &str, of: &str) -> Option<Topic> {
        Some(Topic { name: name.into(), of: of.into(), hash: self.hash(of)? })
    }

    /// Own types that cannot be carried, and why; a line each.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        let faults =
            self.hashes.iter().filter_map(|(name, hash)| Some((name, hash.as_ref().err()?)));
        faults.map(|(name, why)| format!("{name} cannot be carried: {why}"))
    }

    /// All that can be carried, with their hashes; a line each.
    pub(crate) fn lines(&self) -> String {
        let of_ros = ros2::embedded().into_iter().chain(ros2::embedded_services());
        let own = self.own.names();
        let of_ros = of_ros.filter(|name| !self.hashes.contains_key(*name));
        let lines =
            of_ros.chain(own).filter_map(|name| Some(format!("{name} {}\n", self.hash(name)?)));
        lines.collect()
    }
}
