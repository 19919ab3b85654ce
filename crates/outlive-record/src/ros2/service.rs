//! Requests and responses of services, as MessagePack here and as CDR there.

use outlive::PayloadType;
use outlive::{MsgPack, msgpack};

use super::cdr;
use super::definition::{Definitions, NO_FIELDS, Schema};
use super::value::Value;

/// A service of ROS: its request and its response.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Named like `std_srvs/srv/Trigger_Request`.
    pub request: ServicePart,
    /// Named like `std_srvs/srv/Trigger_Response`.
    pub response: ServicePart,
}

/// A request or a response. Here it is MessagePack whose keys are its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct ServicePart {
    schema: Schema,
    of: PayloadType,
}

impl Service {
    /// The service `name`, like `std_srvs/srv/Trigger`; `None` if the program does not know it.
    ///
    /// # Examples
    /// ```
    /// use outlive_record::ros2::Service;
    ///
    /// let service = Service::of("std_srvs/srv/SetBool").expect("known");
    /// let asked = outlive::msgpack::encode(&std::collections::BTreeMap::from([("data", true)]))?;
    /// let cdr = service.request.message(&asked)?;
    /// assert_eq!(cdr, [0, 1, 0, 0, 1]);
    /// assert_eq!(service.request.payload(&cdr)?, asked);
    /// assert!(service.request.payload(&cdr[..4]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(name: &str) -> Option<Self> {
        Self::among(name, &Definitions::default()).ok()?
    }

    /// As [`Service::of`], also for a service among `definitions`.
    ///
    /// # Errors
    /// What is wrong in the definition.
    pub fn among(name: &str, definitions: &Definitions) -> Result<Option<Self>, String> {
        let part = |part: &str| -> Result<_, String> {
            let name = format!("{name}{part}");
            let of = PayloadType::msgpack(&name).map_err(|e| e.to_string())?;
            Ok(definitions.schema(&name)?.map(|schema| ServicePart { schema, of }))
        };
        let (request, response) = (part("_Request")?, part("_Response")?);
        Ok(request.zip(response).map(|(request, response)| Self { request, response }))
    }
}

impl ServicePart {
    /// Its type in outlive.
    pub fn payload_type(&self) -> &PayloadType {
        &self.of
    }

    /// A payload as CDR. Missing fields are zero, empty or false.
    ///
    /// # Errors
    /// The name of the field that does not fit the definition; bytes that are not MessagePack.
    pub fn message(&self, payload: &[u8]) -> Result<Vec<u8>, String> {
        let value: Value<'_> =
            MsgPack::<()>::new(payload).decode_as().map_err(|e| e.to_string())?;
        cdr::encode(&self.schema, &value)
    }

    /// CDR as a payload; a map without keys if the definition has no fields.
    ///
    /// # Errors
    /// What is wrong with its bytes, which may come from anywhere.
    pub fn payload(&self, data: &[u8]) -> Result<Vec<u8>, String> {
        let value = match cdr::decode(&self.schema, data)? {
            Value::Fields(all) if all.iter().all(|(name, _)| name == NO_FIELDS) => {
                Value::Fields(Vec::new())
            }
            value => value,
        };
        msgpack::encode(&value).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ros2::embedded_services;
    use crate::ros2::value::fields;

    #[test]
    fn requests_and_responses_become_cdr_and_come_back() {
        for name in embedded_services() {
            let service = Service::of(name).expect("known");
            for part in [service.request, service.response] {
                // All zero.
                let data = part.message(&[0x80]).expect("an empty map");
                let payload = part.payload(&data).expect("a payload");
                assert_eq!(part.message(&payload).expect("it again"), data, "{name}");
                for len in 0..data.len().saturating_sub(4) {
                    assert!(part.payload(&data[..len]).is_err(), "{name}: {len}");
                }
            }
        }
        let add = Service::of("example_interfaces/srv/AddTwoInts").expect("known");
        let asked = fields([("a", Value::Signed(-3)), ("b", Value::Unsigned(5))]);
        let asked = msgpack::encode(&asked).expect("a payload");
        let data = add.request.message(&asked).expect("a message");
        assert_eq!(data[4..], [(-3i64).to_le_bytes(), 5i64.to_le_bytes()].concat());
        assert_eq!(add.request.payload(&data).expect("it again"), asked);
    }

    #[test]
    fn a_part_without_fields_is_a_byte_there_and_an_empty_map_here() {
        let empty = Service::of("std_srvs/srv/Empty").expect("known").request;
        for payload in [&[0x80][..], &[0xc0]] {
            assert_eq!(empty.message(payload), Ok(vec![0, 1, 0, 0, 0]));
        }
        assert_eq!(empty.payload(&[0, 1, 0, 0, 0]), Ok(vec![0x80]));
        assert!(empty.message(b"").is_err() && empty.message(&[0x81, 0xa1, b'x', 1]).is_err());
        assert!(Service::of("std_srvs/srv/Own").is_none() && Service::of("Trigger").is_none());
        assert!(Service::of("std_msgs/msg/String").is_none());
    }
}
