//! Records topics to [MCAP](https://mcap.dev) files and plays them again.
//!
//! A recorder is a subscriber like any other: it joins topics of any type, stores the descriptions
//! of their types beside the messages, and delays nobody unless it is asked to
//! ([`RecordOptions::reliable`]).
//!
//! | file | what |
//! |---|---|
//! | `selection` | which topics: names, globs, regular expressions |
//! | `channel`, `foreign` | what a file says of a topic and a publisher; third-party encodings |
//! | `options`, `recorder`, `file`, `sink` | from subscribers into files |
//! | `about`, `writing` | what a file says of itself; that its recorder lives |
//! | `dir_watch` | that topics appear, from the kernel |
//! | `ring` | the last seconds in memory |
//! | `scan`, `recording` | reads files, finished or not, around what is damaged |
//! | `parts` | files that are one recording |
//! | `recover` | writes what can be read of one into another |
//! | `player` | from a file into publishers, in the original time |
//! | `json` | MessagePack as JSON and back |
//! | `decode` | payloads with their fields, for tools |
//! | `ros2` | messages of ROS 2: definitions, CDR, what becomes what |
//!
//! # Examples
//! ```
//! # let dir = outlive::doc_dir();
//! # std::fs::create_dir_all(dir.path())?;
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! use outlive_record::{RecordOptions, Recorder, Recording, Selection};
//!
//! let publisher = node.topic::<f64>("/arm/angle")?.publisher()?;
//! let path = dir.path().join("arm.mcap");
//! let topics = Selection::new(&["/arm/*"], false)?;
//! let mut recorder = Recorder::start(&node, topics, &path, RecordOptions::default())?;
//! publisher.publish(&0.5)?;
//! recorder.step(outlive::Deadline::AT_ONCE)?;
//! assert_eq!(recorder.finish()?.messages, 1);
//!
//! let recording = Recording::open(&path)?;
//! let message = recording.messages()?.next().expect("one was recorded")?;
//! let payload = recording.sources[0].source.payload(&message.data)?;
//! assert_eq!(payload.as_ref(), 0.5f64.to_ne_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod about;
mod channel;
#[cfg(feature = "decode")]
pub mod decode;
mod dir_watch;
mod error;
mod file;
mod foreign;
mod json;
mod options;
mod pack;
mod parts;
mod player;
mod recorder;
mod recording;
mod recover;
mod ring;
pub mod ros2;
mod scan;
mod selection;
mod sink;
mod writing;

pub use channel::Source;
pub use error::Error;
pub use mcap::Message;
pub use options::{Compression, Profile, Progress, RecordOptions};
pub use player::{Due, PlayOptions, Played, Player, Turn};
pub use recorder::Recorder;
pub use recording::{Messages, RecordedSource, Recording};
pub use recover::{Recovered, recover, recover_watched};
pub use ring::Saved;
pub use scan::{Damage, Limits};
pub use selection::Selection;
