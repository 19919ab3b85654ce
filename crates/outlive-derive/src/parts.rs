//! What is made of an item before it is put together.

use proc_macro2::TokenStream;

/// What is written for one kind of item.
pub(crate) struct Parts {
    /// Whether all fields are valid for any bytes; none of an enum.
    pub any_bytes: Option<TokenStream>,
    /// An expression of the type's description.
    pub description: TokenStream,
    /// Asks that each field is a message before the derives ask for each of zerocopy's traits: the
    /// first error is the one that says what to do.
    pub first: TokenStream,
    /// The same as bounds of `impl Message`, which then says nothing of it again. `for<'any>` lets
    /// the compiler accept a bound that does not hold.
    pub bounds: Vec<TokenStream>,
    /// Says where padding is.
    pub checks: TokenStream,
}
