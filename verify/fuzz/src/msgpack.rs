//! MessagePack of others, decoded as types of all shapes.

use std::collections::BTreeMap;

use outlive::MsgPack;
use serde::Deserialize;

/// Something of everything.
#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Many<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    text: Option<&'a str>,
    #[serde(borrow, default, with = "serde_bytes")]
    bytes: Option<&'a [u8]>,
    #[serde(default)]
    map: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    kind: Option<Kind>,
    #[serde(default)]
    wide: Option<(u8, i64, u128, f32, char, bool)>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
enum Kind {
    Unit,
    One(u64),
    Two(u8, String),
    Named { x: f64, next: Option<Box<Kind>> },
}

/// Whatever it is, it is decoded or refused.
pub fn run(data: &[u8]) {
    let _ = MsgPack::<serde_json::Value>::new(data).decode();
    let _ = MsgPack::<Vec<Vec<String>>>::new(data).decode();
    let _ = MsgPack::<BTreeMap<u64, Kind>>::new(data).decode();
    let _ = MsgPack::<Many<'_>>::new(data).decode();
    let _ = MsgPack::<()>::new(data).decode_as::<serde_bytes::ByteBuf>();
    let _ = MsgPack::<[u8; 32]>::new(data).decode();
}
