//! What reads bytes of others, given bytes that nobody meant: no panic, no hang, no read out of
//! bounds; an error, an event, or what was meant all the same.
//!
//! | target | input is | read by |
//! |---|---|---|
//! | `files` | changes to the files of a dead domain | whoever looks, joins, reads, locks, cleans |
//! | `live` | changes to the files of live members | their peers, attached before and after |
//! | `types` | a type description, a payload, a path | descriptions, comparison, values |
//! | `names` | a name; a file's name | names of everything, listings |
//! | `msgpack` | MessagePack | types of all shapes |
//! | `config` | `robot.toml` | the supervisor |
//! | `interfaces` | `.msg`, `.srv`, `.action` | `outlive types`; definitions in recordings |
//! | `cli` | payloads, descriptions, JSON | the command; not for libFuzzer: a process each |

pub mod cli;
pub mod config;
pub mod files;
pub mod input;
pub mod interfaces;
pub mod live;
pub mod msgpack;
pub mod names;
pub mod scribble;
pub mod types;
pub mod world;

/// A target: its name, what it does with an input, and how long its inputs are, bytes.
pub type Target = (&'static str, fn(&[u8]), usize);

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("files", files::run, 96),
    ("live", live::run, 96),
    ("types", types::run, 400),
    ("names", names::run, 64),
    ("msgpack", msgpack::run, 200),
    ("config", config::run, 600),
    ("interfaces", interfaces::run, 300),
    ("cli", cli::run, 300),
];
