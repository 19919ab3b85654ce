//! How calls and answers are written on the way.

use std::borrow::Cow;

use zenoh::bytes::ZBytes;

const PART: u8 = 0;
const LAST: u8 = 1;

/// How calls and answers are written on the way.
pub(crate) trait Form {
    /// Whether who calls from elsewhere learns by itself of the server's end.
    const SEES_END: bool;

    /// What a call from elsewhere asks, and how long it may take, ms, if it says so.
    fn called<'a>(&self, payload: &'a [u8], attached: &[u8]) -> Result<Called<'a>, String>;

    /// An answer to the call that had `attached`, with what is attached to it; none if there is
    /// no word for it there.
    fn answer(&self, attached: &[u8], body: &[u8], last: bool) -> Result<Option<Parts>, String>;

    /// A call to a service elsewhere, with what is attached.
    fn call(&self, request: &[u8], left_ms: u64) -> Result<Parts, String>;

    /// What is answered there, and whether that was the last part.
    fn answered<'a>(
        &self,
        payload: &'a [u8],
        attached: &[u8],
    ) -> Result<(Cow<'a, [u8]>, bool), String>;
}

pub(crate) type Called<'a> = (Cow<'a, [u8]>, Option<u64>);
/// A payload, and what is attached to it.
pub(crate) type Parts = (ZBytes, Vec<u8>);

/// That of bridges among each other.
pub(super) struct Plain;

impl Form for Plain {
    const SEES_END: bool = true;

    fn called<'a>(&self, payload: &'a [u8], attached: &[u8]) -> Result<Called<'a>, String> {
        Ok((payload.into(), attached.try_into().ok().map(u64::from_le_bytes)))
    }

    fn answer(&self, _: &[u8], body: &[u8], last: bool) -> Result<Option<Parts>, String> {
        Ok(Some((body.into(), vec![if last { LAST } else { PART }])))
    }

    fn call(&self, request: &[u8], left_ms: u64) -> Result<Parts, String> {
        Ok((request.into(), left_ms.to_le_bytes().into()))
    }

    fn answered<'a>(
        &self,
        payload: &'a [u8],
        attached: &[u8],
    ) -> Result<(Cow<'a, [u8]>, bool), String> {
        Ok((payload.into(), attached.first() != Some(&PART)))
    }
}
