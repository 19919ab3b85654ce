//! From a struct or enum as it is written to a message: the same with its layout fixed, the traits
//! of zerocopy derived, and `impl Message`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{Data, DeriveInput, Error, LitStr, Path, Result, Token, WherePredicate};

use crate::item;
use crate::parts::Parts;

/// Longest name of a type, bytes; the bound of the shared layout.
const NAME_BYTES_MAX: usize = 256;

/// What is in the parentheses of `#[outlive::message(...)]`.
struct Arguments {
    name: Option<LitStr>,
    outlive: Path,
}

/// A mistake leaves the item as it was written, so that the compiler speaks of nothing else.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let written = item.clone();
    let expanded = syn::parse2(item)
        .map_err(|e| Error::new(e.span(), "#[outlive::message] belongs above a struct or an enum"))
        .and_then(|input| message(Parser::parse2(parse_arguments, arguments)?, input));
    expanded.unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#error #written)
    })
}

fn message(Arguments { name, outlive }: Arguments, mut input: DeriveInput) -> Result<TokenStream> {
    let name = name.unwrap_or_else(|| {
        use syn::ext::IdentExt;
        LitStr::new(&input.ident.unraw().to_string(), input.ident.span())
    });
    if name.value().is_empty() || name.value().len() > NAME_BYTES_MAX {
        return Err(Error::new(name.span(), "a type name has 1 to 256 bytes"));
    }
    let Parts { any_bytes, description, first, bounds, checks } = match &input.data {
        Data::Struct(_) => item::structure(&mut input, &outlive)?,
        Data::Enum(data) => item::enumeration(&input, data, &outlive)?,
        Data::Union(_) => {
            let why = "a union cannot be a message: nobody can tell which field is meant; use a \
                       struct, or [u8; N]";
            return Err(Error::new(input.ident.span(), why));
        }
    };
    let validity = any_bytes.map(|any| {
        quote! {
            // SAFETY: fixed layout and no padding (IntoBytes): it has no bytes but those of its
            // fields, and the claim is that of all of them.
            const VALIDITY: #outlive::Validity<Self> =
                unsafe { #outlive::Validity::of_fields(#any) };
        }
    });
    let ident = &input.ident;
    let mut generics = input.generics.clone();
    if !bounds.is_empty() {
        let clause = generics.make_where_clause();
        clause
            .predicates
            .extend(bounds.iter().map(|bound| -> WherePredicate { syn::parse_quote!(#bound) }));
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let zerocopy = quote!(#outlive::zerocopy);
    let crate_path = LitStr::new(&zerocopy.to_string(), proc_macro2::Span::call_site());
    Ok(quote! {
        #first

        #[derive(#zerocopy::FromZeros, #zerocopy::IntoBytes)]
        #[derive(#zerocopy::Immutable, #zerocopy::KnownLayout)]
        #[zerocopy(crate = #crate_path)]
        #input

        #[automatically_derived]
        impl #impl_generics #outlive::Message for #ident #type_generics #where_clause {
            const TYPE_NAME: &'static str = #name;
            #validity

            fn describe() -> #outlive::TypeDescription {
                #description
            }
        }

        #checks
    })
}

fn parse_arguments(input: ParseStream<'_>) -> Result<Arguments> {
    let mut arguments = Arguments { name: None, outlive: syn::parse_quote!(::outlive) };
    if input.peek(LitStr) {
        arguments.name = Some(input.parse()?);
        input.parse::<Option<Token![,]>>()?;
    }
    if input.peek(Token![crate]) {
        input.parse::<Token![crate]>()?;
        input.parse::<Token![=]>()?;
        arguments.outlive = input.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?;
        input.parse::<Option<Token![,]>>()?;
    }
    if input.is_empty() {
        return Ok(arguments);
    }
    let why = "write #[outlive::message(\"package/Type\")], or without a name \
               #[outlive::message]; behind it may come crate = \"path\"";
    Err(Error::new(input.span(), why))
}

#[cfg(test)]
mod tests;
