//! Names that a language takes for itself, and names as each language writes them.

use clap::ValueEnum;

/// A language that source code is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    Rust,
    Cpp,
    C,
    Python,
}

const RUST: &str = "\
    as async await break const continue crate dyn else enum extern false fn for gen if impl \
    in let loop match mod move mut pub ref return self Self static struct super trait true \
    type unsafe use where while abstract become box do final macro override priv try typeof \
    unsized virtual yield";
/// No raw identifier may be one of these.
const RUST_NEVER: [&str; 4] = ["self", "Self", "super", "crate"];
const C: &str = "\
    auto break case char const continue default do double else enum extern float for goto if \
    inline int long register restrict return short signed sizeof static struct switch \
    typedef union unsigned void volatile while alignas alignof bool constexpr false nullptr \
    static_assert thread_local true typeof typeof_unqual asm errno NULL EOF";
const CPP: &str = "\
    and and_eq bitand bitor catch char16_t char32_t char8_t class co_await co_return \
    co_yield compl concept const_cast consteval constinit decltype delete dynamic_cast \
    explicit export friend mutable namespace new noexcept not not_eq operator or or_eq \
    private protected public reinterpret_cast requires static_cast template this throw try \
    typeid typename using virtual wchar_t xor xor_eq INFINITY NAN";
/// Functions, types and variables of the C library, which no namespace can have as its name.
const C_LIBRARY: &str = "\
    abort abs accept access alarm basename bind bsearch calloc canonicalize ceil chdir chown \
    chroot clock clone close connect cos crypt ctime daemon daylight difftime div dup dysize \
    environ erf exit exp fabs fclose fdim fflush finite floor fmod fopen fork fread free frexp \
    fsync fwrite gamma getenv getline getopt gets gettext hypot index insque ioctl iovec \
    itimerval kill lconv ldexp lfind linger link listen localtime log logb lsearch lseek malloc \
    mktime mmap modf mount mprotect munmap nan nice ntohl obstack open optarg optind passwd \
    pathconf pause perror pipe poll popen pow pread printf psignal putchar putenv puts pwrite \
    qsort raise rand random read readlink readv realloc realpath recv remainder remove remque \
    rename revoke rewind rindex rint rmdir round rusage sbrk scalb scanf select send setenv \
    setjmp shutdown sigaction signal signgam significand sigstack sin sincos sleep sockaddr \
    socket splice sqrt stat statfs stderr stdin stdout stime strdup strlen swab symlink sync \
    syscall sysinfo system tan tee tempnam tgamma time times timespec timeval timezone tm \
    tmpfile toascii tolower toupper trunc truncate ttyname tzname ualarm umask uname ungetc \
    unlink unshare usleep utime utimes utsname vfork vmsplice wait waitpid winsize write";
const PYTHON: &str = "\
    False None True and as assert async await break class continue def del elif else except \
    finally for from global if import in is lambda nonlocal not or pass raise return try \
    while with yield";
/// What generated Python uses by these names.
const PYTHON_USED: &str = "\
    bool bytes dtype field float int list msg new np str type_name defaults dataclass \
    ClassVar";

impl Language {
    pub(super) const ALL: [Self; 4] = [Self::Rust, Self::Cpp, Self::C, Self::Python];

    /// As people call it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Cpp => "C++",
            Self::C => "C",
            Self::Python => "Python",
        }
    }

    /// As `--language` takes it.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Cpp => "cpp",
            Self::C => "c",
            Self::Python => "python",
        }
    }

    /// Whether nothing in its source code can have this name.
    pub(super) fn refuses(self, name: &str) -> bool {
        let has = |words: &str| words.split_whitespace().any(|word| word == name);
        match self {
            Self::Rust => RUST_NEVER.contains(&name) || name == "TYPE_NAME",
            Self::C => has(C),
            Self::Cpp => has(C) || has(CPP),
            Self::Python => has(PYTHON) || has(PYTHON_USED),
        }
    }

    /// Whether nothing in a language's source code can be a package of this name.
    pub(super) fn refuses_package(self, name: &str) -> bool {
        let taken = || C_LIBRARY.split_whitespace().any(|word| word == name);
        match self {
            // Its file is that which has all the packages.
            Self::Rust if name == "mod" => true,
            Self::Cpp if taken() => true,
            _ => self.refuses(name),
        }
    }
}

/// A name in Rust.
pub(super) fn rust(name: &str) -> String {
    match RUST.split_whitespace().any(|word| word == name) {
        true => format!("r#{name}"),
        false => name.into(),
    }
}

/// `PointCloud2` as `POINT_CLOUD2`.
pub(super) fn upper(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && !before.is_ascii_uppercase() && before != '_' {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
        before = c;
    }
    out
}

/// Text in double quotes, as all four languages read it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            '\r' => out += "\\r",
            // They may be in comments and values of others, and no source code needs them.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out + "\""
}

/// A float with a point or an exponent, as all four languages read it.
pub(super) fn float(value: f64) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_each_language() {
        assert_eq!((rust("type"), rust("x")), ("r#type".into(), "x".into()));
        assert_eq!(
            (upper("PointCloud2"), upper("TFMessage")),
            ("POINT_CLOUD2".into(), "TFMESSAGE".into())
        );
        assert!(Language::C.refuses("default") && !Language::Rust.refuses("default"));
        assert!(Language::Python.refuses("from") && Language::Cpp.refuses("operator"));
        assert_eq!(quoted("a\"\\\n\u{1}"), r#""a\"\\\n ""#);
        assert_eq!((float(1.0), float(1e300)), ("1.0".into(), "1e300".into()));
    }
}
