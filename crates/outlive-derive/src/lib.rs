//! The derive macro of `outlive::Message`; use it through the crate `outlive`, which documents it.

mod message;

use proc_macro::TokenStream;

/// Implements `outlive::Message`; see there.
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    message::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
