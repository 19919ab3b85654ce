//! The macro `outlive::message`; use it through the crate `outlive`, which documents it.

mod fields;
mod item;
mod message;
mod parts;

use proc_macro::TokenStream;

/// Makes a struct or an enum an `outlive::Message`; see there.
#[proc_macro_attribute]
pub fn message(arguments: TokenStream, item: TokenStream) -> TokenStream {
    message::expand(arguments.into(), item.into()).into()
}
