//! What ROS 2 hashes to tell whether two programs mean the same by a message's name (REP 2016).

use std::fmt::Write as _;

use super::definition::{Definitions, Field, Kind, Schema};

/// The description of the message `name`, as JSON in the one form whose SHA-256 is the type's hash
/// (`RIHS01_` and 64 digits); also that of a service. `None` if the program does not know it.
///
/// # Examples
/// ```
/// let json = outlive_record::ros2::type_description("std_msgs/msg/String").expect("known");
/// assert!(json.starts_with(r#"{"type_description": {"type_name": "std_msgs/msg/String", "#));
/// assert!(outlive_record::ros2::type_description("mine/msg/Own").is_none());
/// ```
pub fn type_description(name: &str) -> Option<String> {
    Some(describe(&Schema::embedded(name)?))
}

impl Definitions {
    /// The description of the message or service `name`, from here or as the program knows it;
    /// `None` if nobody defines it.
    ///
    /// # Errors
    /// What is wrong in its definition.
    pub fn type_description(&self, name: &str) -> Result<Option<String>, String> {
        Ok(self.schema(name)?.as_ref().map(describe))
    }
}

pub(super) fn describe(schema: &Schema) -> String {
    let one = |index: usize| type_of(schema, &schema.names[index], &schema.types[index]);
    let (root, others) = (schema.types.len() - 1, 0..schema.types.len() - 1);
    let mut others: Vec<usize> = others.collect();
    others.sort_by_key(|index| &schema.names[*index]);
    let others: Vec<String> = others.into_iter().map(one).collect();
    format!(
        r#"{{"type_description": {}, "referenced_type_descriptions": [{}]}}"#,
        one(root),
        others.join(", ")
    )
}

fn type_of(schema: &Schema, name: &str, fields: &[Field]) -> String {
    let mut out = format!(r#"{{"type_name": "{name}", "fields": ["#);
    for (i, field) in fields.iter().enumerate() {
        let nested = match field.kind {
            Kind::Message(index) => schema.names[index].as_str(),
            _ => "",
        };
        let of = field.declared;
        let _ = write!(
            out,
            r#"{}{{"name": "{}", "type": {{"type_id": {}, "capacity": {}, "#,
            if i > 0 { ", " } else { "" },
            field.name,
            of.type_id,
            of.capacity
        );
        let _ = write!(
            out,
            r#""string_capacity": {}, "nested_type_name": "{nested}"}}}}"#,
            of.string_capacity
        );
    }
    out + "]}"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_all_types_in_the_order_that_is_hashed() {
        let json = type_description("std_msgs/msg/Header").expect("known");
        assert_eq!(
            json,
            r#"{"type_description": {"type_name": "std_msgs/msg/Header", "fields": ["#.to_owned()
                + r#"{"name": "stamp", "type": {"type_id": 1, "capacity": 0, "#
                + r#""string_capacity": 0, "nested_type_name": "builtin_interfaces/msg/Time"}}, "#
                + r#"{"name": "frame_id", "type": {"type_id": 17, "capacity": 0, "#
                + r#""string_capacity": 0, "nested_type_name": ""}}]}, "#
                + r#""referenced_type_descriptions": ["#
                + r#"{"type_name": "builtin_interfaces/msg/Time", "fields": ["#
                + r#"{"name": "sec", "type": {"type_id": 6, "capacity": 0, "string_capacity": 0, "#
                + r#""nested_type_name": ""}}, "#
                + r#"{"name": "nanosec", "type": {"type_id": 7, "capacity": 0, "#
                + r#""string_capacity": 0, "nested_type_name": ""}}]}]}"#
        );
        let covariance = r#""orientation_covariance", "type": {"type_id": 59, "capacity": 9, "#;
        assert!(type_description("sensor_msgs/Imu").expect("known").contains(covariance));
    }

    #[test]
    fn bounds_and_arrays_have_numbers_of_their_own() {
        let text = "string<=5 a\nstring<=5[<=3] b\nbyte[] c\nchar[2] d";
        let schema = Schema::parse("a/msg/A", text).expect("a definition");
        let declared = schema.root().iter().map(|f| f.declared);
        let told: Vec<_> = declared.map(|d| (d.type_id, d.capacity, d.string_capacity)).collect();
        assert_eq!(told, [(21, 0, 5), (117, 3, 5), (160, 0, 0), (51, 2, 0)]);
    }
}
