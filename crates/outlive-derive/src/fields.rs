//! Types that can be told from their names: those that are messages, and those that never are.

use quote::ToTokens;
use syn::{
    Error, Expr, ExprLit, GenericArgument, Lit, Path, PathArguments, Type, spanned::Spanned,
};

const NUMBERS: [&str; 14] = [
    "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128", "f32", "f64", "bool",
    "char",
];

/// Whether it is a number, a truth value, a character, or an array of these.
pub(crate) fn is_message(ty: &Type) -> bool {
    match ty {
        Type::Array(array) => is_message(&array.elem),
        Type::Path(path) => NUMBERS.iter().any(|name| path.path.is_ident(name)),
        _ => false,
    }
}

/// Size and alignment, bytes, of a number, an array of them, or text: what is known here.
pub(crate) fn layout(ty: &Type) -> Option<(usize, usize)> {
    match ty {
        Type::Array(array) => {
            let Expr::Lit(ExprLit { lit: Lit::Int(len), .. }) = &array.len else { return None };
            let (size, align) = layout(&array.elem)?;
            Some((size.checked_mul(len.base10_parse().ok()?)?, align))
        }
        Type::Path(path) => {
            let name = NUMBERS.iter().find(|name| path.path.is_ident(name))?;
            let bytes = match *name {
                "bool" => 1,
                "char" => 4,
                name => name[1..].parse::<usize>().ok()? / 8,
            };
            Some((bytes, bytes))
        }
        _ => None,
    }
}

/// The error at a field whose type has no fixed layout, with the ways out.
pub(crate) fn refuse(ty: &Type) -> Option<Error> {
    let why = match ty {
        Type::Array(array) => return refuse(&array.elem),
        Type::Paren(inner) => return refuse(&inner.elem),
        Type::Group(inner) => return refuse(&inner.elem),
        Type::Reference(_) | Type::Ptr(_) | Type::BareFn(_) => {
            "a pointer means nothing in another process: put the value itself into the message; \
             text: outlive::msg::Text<N>"
                .into()
        }
        Type::Slice(_) | Type::TraitObject(_) => {
            "a field has a fixed size: use an array [T; N], or make [T] the type of the topic"
                .into()
        }
        Type::Tuple(_) => {
            "a tuple has no fixed layout: use a struct with #[outlive::message], or an array".into()
        }
        Type::Path(path) if may_be_std(&path.path) => {
            let last = path.path.segments.last()?;
            refuse_named(&last.ident.to_string(), &last.arguments)?
        }
        _ => return None,
    };
    Some(Error::new(ty.span(), why))
}

/// Whether a name may be that of std's type: a longer path says whose it is.
fn may_be_std(path: &Path) -> bool {
    match path.segments.first() {
        Some(first) if path.segments.len() > 1 => {
            ["std", "core", "alloc"].iter().any(|name| first.ident == *name)
        }
        _ => true,
    }
}

/// Names of types that std has with a parameter only: without one it is another type.
const GENERIC: [&str; 14] = [
    "Vec", "VecDeque", "Option", "Box", "Rc", "Arc", "Cow", "Cell", "RefCell", "Mutex", "HashMap",
    "BTreeMap", "HashSet", "BTreeSet",
];

fn refuse_named(name: &str, arguments: &PathArguments) -> Option<String> {
    if arguments.is_empty() && GENERIC.contains(&name) {
        return None;
    }
    let element = match arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(ty)) => ty.to_token_stream().to_string(),
            _ => "T".into(),
        },
        _ => "T".into(),
    };
    Some(match name {
        "String" | "str" | "OsString" | "PathBuf" => format!(
            "a {name} keeps its text elsewhere in this process: use outlive::msg::Text<N>, text of \
             at most N bytes; text of any length: [u8] as the type of the topic, or \
             outlive::MsgPack<T>"
        ),
        "Vec" | "VecDeque" => format!(
            "a {name} keeps its elements elsewhere in this process: use an array [{element}; N]; a \
             list of any length: [{element}] as the type of the topic, outlive::Headed<H, \
             {element}> with a header, or outlive::MsgPack<T>"
        ),
        "Option" => format!(
            "Option has no layout that other programs know: use outlive::msg::Optional<{element}>"
        ),
        "Box" | "Rc" | "Arc" | "Cow" | "Cell" | "RefCell" | "Mutex" => format!(
            "a {name} means nothing in another process: put the value itself into the message"
        ),
        "HashMap" | "BTreeMap" | "HashSet" | "BTreeSet" => format!(
            "a {name} keeps its elements elsewhere in this process: send it as outlive::MsgPack<T>"
        ),
        "usize" | "isize" => format!(
            "{name} has another width on another machine: use {}64",
            if name == "usize" { "u" } else { "i" }
        ),
        "Duration" | "Instant" | "SystemTime" => format!(
            "{name} has no layout that other programs know: use nanoseconds, as u64 or i64; if it \
             is your own type: self::{name}"
        ),
        _ => return None,
    })
}
