//! What is read of a struct and of an enum.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DataEnum, DeriveInput, Error, Expr, ExprLit, Field, Fields, Ident, Lit,
    Member, Meta, Path, Result, Token, ext::IdentExt, spanned::Spanned,
};

use crate::fields;
use crate::parts::Parts;

/// The widths that an enum may have, by the names of Rust.
const WIDTHS: [&str; 8] = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"];
/// Longest name of a field or a variant, bytes; a bound of descriptions.
const NAME_BYTES_MAX: usize = 128;
/// Most variants of an enum; a bound of descriptions.
const VARIANTS_MAX: usize = 1024;
/// Most bytes of padding that a message counts; more come from `align` only.
const PADDING_COUNTED: usize = 15;

/// A struct: its layout is fixed, every field is a message, and nothing is padding.
pub(crate) fn structure(input: &mut DeriveInput, outlive: &Path) -> Result<Parts> {
    let Data::Struct(data) = &input.data else { return Err(Error::new(input.span(), "a struct")) };
    if data.fields.is_empty() {
        let why = "a message has at least one field: there is nothing to send";
        return Err(Error::new(input.ident.span(), why));
    }
    data.fields.iter().try_for_each(|field| refuse_cfg(&field.attrs))?;
    data.fields.iter().filter_map(|field| field.ident.as_ref()).try_for_each(refuse_long)?;
    let mut wrong = data.fields.iter().filter_map(|field| fields::refuse(&field.ty));
    if let Some(mut first) = wrong.next() {
        wrong.for_each(|more| first.combine(more));
        return Err(first);
    }
    let members: Vec<_> = data.fields.iter().enumerate().map(member).collect();
    refuse_padding(&input.ident, &words_of_repr(&input.attrs)?, &members)?;
    let described = members.iter().map(|Of { member, text, field }| {
        let ty = &field.ty;
        quote! {
            .field(
                #text,
                ::core::mem::offset_of!(Self, #member),
                <#ty as #outlive::Message>::describe(),
            )
        }
    });
    let description = quote!(#outlive::TypeDescription::of_struct::<Self>() #(#described)*);
    let types: Vec<_> = data.fields.iter().map(|f| f.ty.clone()).collect();
    let any = types.iter().map(|ty| quote!(<#ty as #outlive::Message>::VALIDITY.is_any()));
    let any_bytes = Some(quote!(#(#any)&&*));
    // Of a generic type neither can be said here.
    let concrete = input.generics.params.is_empty();
    let checks = if concrete { no_padding(&input.ident, &members) } else { TokenStream::new() };
    let asked = types.iter().filter(|ty| concrete && !fields::is_message(ty));
    let asked: Vec<_> = asked.map(|ty| (ty, outlive_at(outlive, ty.span()))).collect();
    let first = asked.iter().map(|(ty, outlive)| {
        quote_spanned! {ty.span()=>
            const _: () = {
                // No type: the field's may have any name.
                #[allow(dead_code)]
                fn asked() where #ty: #outlive::Message {}
            };
        }
    });
    let first = first.collect();
    let bounds = asked.iter().map(|(ty, outlive)| quote!(for<'any> #ty: #outlive::Message));
    let bounds = bounds.collect();
    if !has_layout(&words_of_repr(&input.attrs)?) {
        input.attrs.push(syn::parse_quote!(#[repr(C)]));
    }
    Ok(Parts { any_bytes, description, first, bounds, checks })
}

/// Programs built with and without it would have two types of one name.
fn refuse_cfg(attributes: &[Attribute]) -> Result<()> {
    let Some(cfg) = attributes.iter().find(|a| a.path().is_ident("cfg")) else { return Ok(()) };
    let why = "a message is the same in every program: put #[cfg] above the whole type, and give \
               the other one another name";
    Err(Error::new(cfg.span(), why))
}

/// No description has room for it.
fn refuse_long(ident: &Ident) -> Result<()> {
    if ident.unraw().to_string().len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let why = format!("a name in a message has at most {NAME_BYTES_MAX} bytes: shorten it");
    Err(Error::new(ident.span(), why))
}

/// The path of this crate with the place of a field, for errors about it.
fn outlive_at(outlive: &Path, span: Span) -> TokenStream {
    let tokens = outlive.to_token_stream().into_iter();
    tokens
        .map(|mut token| {
            token.set_span(span);
            token
        })
        .collect()
}

/// A field with its names.
struct Of<'a> {
    member: Member,
    text: String,
    field: &'a Field,
}

fn member((i, field): (usize, &Field)) -> Of<'_> {
    match &field.ident {
        Some(ident) => {
            Of { member: Member::Named(ident.clone()), text: ident.unraw().to_string(), field }
        }
        None => Of { member: Member::Unnamed(i.into()), text: i.to_string(), field },
    }
}

/// Whether the layout is the same in every program: without `repr` the compiler orders fields as
/// it likes.
fn has_layout(words: &[Meta]) -> bool {
    words.iter().any(|w| w.path().is_ident("C") || w.path().is_ident("transparent"))
}

fn words_of_repr(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let mut words = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("repr")) {
        let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
        words.extend(attribute.parse_args_with(parse)?);
    }
    Ok(words)
}

fn padding(ident: &Ident, bytes: Option<usize>, before: Option<&str>) -> String {
    let count =
        bytes.map_or("bytes".into(), |n| format!("{n} byte{}", if n == 1 { "" } else { "s" }));
    let place = before.map_or("at its end".into(), |field| format!("before field `{field}`"));
    let reserved = bytes.map_or("N".into(), |n| n.to_string());
    format!(
        "`{ident}` has {count} of padding {place}: order the fields from large to small, or add a \
         field `reserved: [u8; {reserved}]` there and set it to zero"
    )
}

/// Refuses padding between fields whose size is seen here, so that this error is the only one.
fn refuse_padding(ident: &Ident, words: &[Meta], members: &[Of<'_>]) -> Result<()> {
    if words.iter().any(|word| !word.path().is_ident("C")) {
        return Ok(());
    }
    let (mut end, mut most) = (0usize, 1usize);
    for of in members {
        let Some((size, align)) = fields::layout(&of.field.ty) else { return Ok(()) };
        let gap = end.next_multiple_of(align) - end;
        if gap > 0 {
            let why = padding(ident, Some(gap), Some(&of.text));
            return Err(Error::new(of.field.span(), why));
        }
        end += size;
        most = most.max(align);
    }
    match end.next_multiple_of(most) - end {
        0 => Ok(()),
        gap => Err(Error::new(ident.span(), padding(ident, Some(gap), None))),
    }
}

/// Refuses it where only the compiler knows sizes, beside what zerocopy says of it: with the field
/// that it is before, and a remedy.
fn no_padding(ident: &Ident, members: &[Of<'_>]) -> TokenStream {
    let ends = members.iter().map(|of| {
        let (member, ty) = (&of.member, &of.field.ty);
        quote!(::core::mem::offset_of!(#ident, #member) + ::core::mem::size_of::<#ty>())
    });
    let begins = members.iter().skip(1).map(|of| {
        let member = &of.member;
        (quote!(::core::mem::offset_of!(#ident, #member)), of.field.span(), Some(&*of.text))
    });
    let end = (quote!(::core::mem::size_of::<#ident>()), ident.span(), None);
    let checks = ends.zip(begins.chain([end])).map(|(from, (to, span, before))| {
        let said = (1..=PADDING_COUNTED).map(|n| {
            let text = padding(ident, Some(n), before);
            quote!(#n => #text,)
        });
        let more = padding(ident, None, before);
        quote_spanned! {span=>
            match #to - (#from) {
                0 => (),
                n => ::core::panic!("{}", match n { #(#said)* _ => #more }),
            }
        }
    });
    quote!(const _: () = { #(#checks)* };)
}

/// An enum without data: a number of a given width; one value is 0.
pub(crate) fn enumeration(input: &DeriveInput, data: &DataEnum, outlive: &Path) -> Result<Parts> {
    if let Some(variant) = data.variants.iter().find(|v| !matches!(v.fields, Fields::Unit)) {
        let why = "an enum with data in it has no fixed layout: use a field-less enum beside a \
                   struct with all the data, or send it as outlive::MsgPack<T>";
        return Err(Error::new(variant.fields.span(), why));
    }
    data.variants.iter().try_for_each(|variant| refuse_cfg(&variant.attrs))?;
    data.variants.iter().try_for_each(|variant| refuse_long(&variant.ident))?;
    if data.variants.len() > VARIANTS_MAX {
        let why = format!(
            "an enum in a message has at most {VARIANTS_MAX} variants: use an integer, and \
             constants"
        );
        return Err(Error::new(input.ident.span(), why));
    }
    let words = words_of_repr(&input.attrs)?;
    let width = WIDTHS.iter().find(|w| words.iter().any(|word| word.path().is_ident(w)));
    let Some(width) = width else {
        let why = "an enum has the same width in every program: add #[repr(u8)], or another \
                   integer from u8 to u64 or i8 to i64";
        return Err(Error::new(input.ident.span(), why));
    };
    if !may_be_zero(data) {
        let why = "one value of the enum is 0, as shared memory is zero at first: give a variant \
                   the number 0, such as `Unknown = 0`";
        return Err(Error::new(input.ident.span(), why));
    }
    let width = format_ident!("{}", width.to_uppercase());
    let values = data.variants.iter().map(|variant| {
        let (ident, text) = (&variant.ident, variant.ident.unraw().to_string());
        quote!((#text, Self::#ident as i128))
    });
    let description = quote! {
        #outlive::TypeDescription::enumeration(
            #outlive::describe::Scalar::#width,
            [#(#values),*],
        )
    };
    let (first, bounds, checks) = Default::default();
    Ok(Parts { any_bytes: None, description, first, bounds, checks })
}

/// Whether a variant has the number 0; true where only the compiler knows.
fn may_be_zero(data: &DataEnum) -> bool {
    let mut next = Some(0i128);
    for variant in &data.variants {
        if let Some((_, number)) = &variant.discriminant {
            next = match number {
                Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
                Expr::Unary(_) => Some(-1 << 64),
                _ => return true,
            };
        }
        match next {
            None | Some(0) => return true,
            // Below zero it may count up to it; whoever writes that knows.
            Some(number) if number < 0 => return true,
            Some(number) => next = Some(number + 1),
        }
    }
    data.variants.is_empty()
}
