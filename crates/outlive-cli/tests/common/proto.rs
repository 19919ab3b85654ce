//! Descriptor sets of Protocol Buffers, as `protoc` writes them.

use prost_reflect::prost::Message;
use prost_reflect::prost_types::field_descriptor_proto::Label;
pub(crate) use prost_reflect::prost_types::field_descriptor_proto::Type;
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

/// A message with these fields, numbered from 1: name, type, and of which message.
pub(crate) fn message(name: &str, fields: &[(&str, Type, &str)]) -> DescriptorProto {
    let field = |(i, (name, of, named)): (usize, &(&str, Type, &str))| FieldDescriptorProto {
        name: Some((*name).into()),
        number: Some(i as i32 + 1),
        label: Some(Label::Optional.into()),
        r#type: Some((*of).into()),
        type_name: (!named.is_empty()).then(|| (*named).into()),
        ..FieldDescriptorProto::default()
    };
    let field = fields.iter().enumerate().map(field).collect();
    DescriptorProto { name: Some(name.into()), field, ..DescriptorProto::default() }
}

/// A set of these messages, in the package `robot`.
pub(crate) fn set(messages: Vec<DescriptorProto>) -> Vec<u8> {
    let file = FileDescriptorProto {
        name: Some("robot.proto".into()),
        package: Some("robot".into()),
        message_type: messages,
        syntax: Some("proto3".into()),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}
