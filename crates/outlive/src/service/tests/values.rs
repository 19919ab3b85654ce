//! Values of a codec as requests and responses.

use std::error::Error;
use std::thread;

use super::*;
use crate::{Codec, Encoded, Encoding};

/// Text as JSON has it; what begins with `!` cannot be encoded.
struct Text;

impl Codec for Text {
    type Value = String;
    const ENCODING: Encoding = Encoding::Json;

    fn type_name() -> String {
        "test/Text".into()
    }

    fn schema() -> Vec<u8> {
        br#"{"type": "string"}"#.into()
    }

    fn encode(value: &String, to: &mut [u8]) -> Result<usize, Box<dyn Error + Send + Sync>> {
        if value.starts_with('!') {
            return Err("it begins with !".into());
        }
        if let Some(to) = to.get_mut(..value.len()) {
            to.copy_from_slice(value.as_bytes());
        }
        Ok(value.len())
    }

    fn decode(bytes: &[u8]) -> Result<String, Box<dyn Error + Send + Sync>> {
        Ok(std::str::from_utf8(bytes)?.into())
    }
}

type Json = Encoded<Text>;

#[test]
fn values_of_a_codec_are_asked_and_answered_and_what_is_none_is_an_error() {
    let dir = TempDir::new("service-values");
    let n = node(&dir);
    let mut server: Server<Json, Json> = n.service("/s").unwrap().server().unwrap();
    let mut client: Client<Json, Json> = n.service("/s").unwrap().client().unwrap();
    let texts = [0, 1, 511, 512, 513, 100_000].map(|length| "x".repeat(length));
    let sent = texts.clone();
    let asking = thread::spawn(move || {
        let all = sent.iter().map(|text| client.call_value(text, LONG).unwrap()).collect();
        let refused = client.call_value(&"refuse".into(), LONG).unwrap_err();
        let corrupt = client.call_value(&"garbage".into(), LONG).unwrap_err();
        let unsent = client.call_value(&"!".into(), LONG).unwrap_err();
        (all, [refused, corrupt, unsent])
    });
    for text in &texts {
        let request = server.receive_timeout(LONG).unwrap().unwrap();
        assert_eq!(request.decode().unwrap(), *text);
        server.respond_value(request, text).unwrap();
    }
    let request = server.receive_timeout(LONG).unwrap().unwrap();
    let unsent = server.respond_value(request, &"!".into()).unwrap_err();
    assert_eq!(unsent.kind(), ErrorKind::InvalidArgument);
    assert!(unsent.to_string().contains("as json: it begins with !"), "{unsent}");
    let request = server.receive_timeout(LONG).unwrap().unwrap();
    server.respond(request, Encoded::new(b"\xff")).unwrap();
    let (all, errors): (Vec<_>, [crate::Error; 3]) = asking.join().unwrap();
    assert_eq!(all, texts);
    let kinds = [ErrorKind::Refused, ErrorKind::Corrupt, ErrorKind::InvalidArgument];
    assert_eq!(errors.each_ref().map(crate::Error::kind), kinds);
    assert!(errors[0].to_string().contains("it begins with !"), "{}", errors[0]);
    assert!(server.receive().unwrap().is_none(), "what cannot be encoded was not sent");
}
