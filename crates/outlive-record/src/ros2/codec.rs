//! Any message of ROS between CDR and MessagePack: topics whose payloads are CDR, for tools.

use outlive::{MsgPack, msgpack};

use super::cdr;
use super::definition::Schema;
use super::value::Value;

/// A message of ROS by its definition. As MessagePack it is a map whose keys are its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct RosMessage {
    schema: Schema,
}

impl RosMessage {
    /// The message `name`, defined by `text` as in a bag, or, if there is none, by this program.
    ///
    /// # Errors
    /// What the definition lacks.
    ///
    /// # Examples
    /// ```
    /// use outlive_record::ros2::RosMessage;
    ///
    /// let goal = RosMessage::of("robot_msgs/msg/Goal", "float64 x\nstring frame\n")?;
    /// let value = outlive::msgpack::encode(&std::collections::BTreeMap::from([("x", 1.5)]))
    ///     .map_err(|e| e.to_string())?;
    /// let cdr = goal.cdr(&value)?;
    /// assert_eq!(cdr[4..12], 1.5f64.to_le_bytes());
    /// assert!(goal.msgpack(&cdr[..11]).is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn of(name: &str, text: &str) -> Result<Self, String> {
        let schema = match text.trim() {
            "" => Schema::embedded(name).ok_or_else(|| format!("{name} is not defined"))?,
            _ => Schema::parse(name, text)?,
        };
        Ok(Self { schema })
    }

    /// The definition, with those that it uses and that this program has added to it.
    pub fn text(&self) -> &str {
        &self.schema.text
    }

    /// MessagePack as CDR. Missing fields are zero, empty or false; a float that is nil is NaN.
    ///
    /// # Errors
    /// The field that does not fit the definition, by name; bytes that are not MessagePack.
    pub fn cdr(&self, msgpack: &[u8]) -> Result<Vec<u8>, String> {
        let value: Value<'_> =
            MsgPack::<()>::new(msgpack).decode_as().map_err(|e| e.to_string())?;
        cdr::encode(&self.schema, &value)
    }

    /// CDR as MessagePack.
    ///
    /// # Errors
    /// What is wrong with its bytes, which may come from anywhere.
    pub fn msgpack(&self, cdr: &[u8]) -> Result<Vec<u8>, String> {
        msgpack::encode(&cdr::decode(&self.schema, cdr)?).map_err(|e| e.to_string())
    }
}
