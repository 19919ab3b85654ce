//! What travels: payloads of fixed and of any size, their names and descriptions.
//!
//! May use `os` and `domain`; topics, queues, services and locks use it. Begin with `payload`.
//!
//! | module | what |
//! |---|---|
//! | `payload`, `encoding` | what may lie in shared memory, and in which form |
//! | `payload_type` | how members agree on it |
//! | `headed`, `msgpack` | a header with elements behind it; values of serde |
//! | `encoded`, `schema` | values in third-party encodings, and their schemas |
//! | `describe`, `msg` | fields of a type, for tools and other languages; ready-made types |

pub mod describe;
pub(crate) mod encoding;
pub(crate) mod headed;
pub mod msg;
pub(crate) mod payload;
pub(crate) mod payload_type;
pub(crate) mod schema;
pub(crate) mod value;

pub use describe::TypeDescription;
pub use encoding::Encoding;
pub use headed::Headed;
pub use payload::{Message, Payload, Validity};
pub use payload_type::PayloadType;
pub use value::encoded::{Codec, Encoded};
pub use value::{DecodeValue, EncodeValue};
