//! From the struct as it is written to `impl Message`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Fields, LitStr, Meta, Path, Result, Token};
use syn::{ext::IdentExt, punctuated::Punctuated, spanned::Spanned};

/// Longest name of a type, bytes; the bound of the shared layout.
const NAME_BYTES_MAX: usize = 256;

/// What `#[message(...)]` on the struct says.
struct Attributes {
    name: LitStr,
    outlive: Path,
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input)?;
    require_fixed_layout(input)?;
    let Attributes { name, outlive } = attributes(input)?;
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let described = fields.iter().enumerate().map(|(i, field)| {
        let member = match &field.ident {
            Some(ident) => syn::Member::Named(ident.clone()),
            None => syn::Member::Unnamed(i.into()),
        };
        let text = match &field.ident {
            Some(ident) => ident.unraw().to_string(),
            None => i.to_string(),
        };
        let ty = &field.ty;
        quote! {
            .field(
                #text,
                ::core::mem::offset_of!(Self, #member),
                <#ty as #outlive::Message>::describe(),
            )
        }
    });
    Ok(quote! {
        impl #impl_generics #outlive::Message for #ident #type_generics #where_clause {
            const TYPE_NAME: &'static str = #name;

            fn describe() -> #outlive::TypeDescription {
                #outlive::TypeDescription::of_struct::<Self>() #(#described)*
            }
        }
    })
}

fn fields(input: &DeriveInput) -> Result<&Fields> {
    let say = |text| Err(Error::new(input.ident.span(), text));
    match &input.data {
        Data::Struct(data) if data.fields.is_empty() => {
            say("a message has at least one field: there is nothing to send")
        }
        Data::Struct(data) => {
            for field in &data.fields {
                if let Some(attribute) = field.attrs.iter().find(|a| a.path().is_ident("message")) {
                    return Err(Error::new(attribute.span(), "fields have no such attribute"));
                }
            }
            Ok(&data.fields)
        }
        Data::Enum(_) => say("an enum is no message: bytes of another process may be none of its \
             values; use an integer field with constants, or outlive::msgpack"),
        Data::Union(_) => {
            say("a union is no message: nobody can tell which field is meant; use a \
             struct, or [u8; N]")
        }
    }
}

/// Without it the compiler orders fields as it likes, differently in every program.
fn require_fixed_layout(input: &DeriveInput) -> Result<()> {
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        let words = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
        if words.iter().any(|w| w.path().is_ident("C") || w.path().is_ident("transparent")) {
            return Ok(());
        }
    }
    Err(Error::new(
        input.ident.span(),
        "a message has the same layout in every program: add #[repr(C)]",
    ))
}

fn attributes(input: &DeriveInput) -> Result<Attributes> {
    let (mut name, mut outlive) = (None::<LitStr>, None::<Path>);
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("message")) {
        parse(attribute, &mut name, &mut outlive)?;
    }
    let Some(name) = name else {
        return Err(Error::new(
            input.ident.span(),
            "a message has a name that all programs know it by: add \
             #[message(name = \"package/Type\")]",
        ));
    };
    let bytes = name.value().len();
    if bytes == 0 || bytes > NAME_BYTES_MAX {
        return Err(Error::new(name.span(), "a type name has 1 to 256 bytes"));
    }
    Ok(Attributes { name, outlive: outlive.unwrap_or_else(|| syn::parse_quote!(::outlive)) })
}

fn parse(
    attribute: &Attribute,
    name: &mut Option<LitStr>,
    outlive: &mut Option<Path>,
) -> Result<()> {
    attribute.parse_nested_meta(|meta| {
        if meta.path.is_ident("name") {
            *name = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("crate") {
            let path: LitStr = meta.value()?.parse()?;
            *outlive = Some(path.parse_with(Path::parse_mod_style)?);
        } else {
            return Err(meta.error("only name = \"...\" and crate = \"...\" are known here"));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> std::result::Result<String, String> {
        let input = syn::parse_str(text).unwrap();
        expand(&input).map(|tokens| tokens.to_string()).map_err(|e| e.to_string())
    }

    fn refusal(text: &str) -> String {
        expanded(text).unwrap_err()
    }

    #[test]
    fn every_field_is_described_by_name_offset_and_type() {
        let pose = r#"#[message(name = "robot/Pose")] #[repr(C)]
            struct Pose { x: f64, r#type: [u8; 8] }"#;
        let code = expanded(pose).unwrap();
        for part in [
            "impl :: outlive :: Message for Pose",
            r#""robot/Pose""#,
            r#"field ("x" , :: core :: mem :: offset_of ! (Self , x) , < f64 as"#,
            r#"field ("type" , :: core :: mem :: offset_of ! (Self , r#type) , < [u8 ; 8] as"#,
        ] {
            assert!(code.contains(part), "{part} is missing in {code}");
        }
        assert!(!code.contains("unsafe"), "claims nothing that zerocopy has to check");
    }

    #[test]
    fn tuple_structs_generics_and_renamed_crates_work() {
        let code = expanded(
            r#"#[message(name = "a/B", crate = "crate::other")] #[repr(C, align(8))]
               struct B<const N: usize>([u8; N], u16) where [u8; N]: Sized;"#,
        );
        let code = code.unwrap();
        assert!(code.contains("crate :: other :: Message for B < N > where"), "{code}");
        assert!(
            code.contains(r#"field ("1" , :: core :: mem :: offset_of ! (Self , 1)"#),
            "{code}"
        );
    }

    #[test]
    fn what_cannot_be_a_message_is_refused_with_a_reason_and_a_remedy() {
        let name = r#"#[message(name = "a/B")]"#;
        for (text, says) in [
            (format!("{name} #[repr(u8)] enum E {{ A }}"), "an integer field with constants"),
            (format!("{name} #[repr(C)] union U {{ a: u8 }}"), "use a struct"),
            (format!("{name} struct S {{ a: u8 }}"), "add #[repr(C)]"),
            (format!("{name} #[repr(align(8))] struct S {{ a: u8 }}"), "add #[repr(C)]"),
            (format!("{name} #[repr(C)] struct S;"), "at least one field"),
            ("#[repr(C)] struct S { a: u8 }".into(), "add #[message(name = \"package/Type\")]"),
            ("#[message(name = \"\")] #[repr(C)] struct S { a: u8 }".into(), "1 to 256 bytes"),
            ("#[message(nam = \"a\")] #[repr(C)] struct S { a: u8 }".into(), "only name ="),
            (
                format!("{name} #[repr(C)] struct S {{ #[message(skip)] a: u8 }}"),
                "fields have no such attribute",
            ),
        ] {
            let refused = refusal(&text);
            assert!(refused.contains(says), "{text}: {refused}");
        }
    }
}
