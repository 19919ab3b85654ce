//! What tests of recordings in several files share.

use std::path::Path;
use std::time::Duration;

use outlive::{Deadline, Node};
use outlive_record::{RecordOptions, Recorder, Selection};

/// Records so many messages under the name `path`, each in a file of its own.
pub(crate) fn record_each(node: &Node, path: &Path, first: u8, count: u8, options: RecordOptions) {
    let publisher = node.topic::<[u8]>("/bytes").unwrap().publisher().unwrap();
    let options = RecordOptions { split_after: Some(Duration::ZERO), ..options };
    let mut recorder = Recorder::start(node, Selection::all(), path, options).unwrap();
    for i in 0..count {
        publisher.publish(&[first + i; 10]).unwrap();
        while recorder.progress().messages <= u64::from(i) {
            recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
    }
    assert_eq!(recorder.finish().unwrap().files, u64::from(count));
}
