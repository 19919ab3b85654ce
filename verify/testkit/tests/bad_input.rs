//! What bad input gets: strange things where files should be, and garbage in every field of them.
//! Always a typed error that names the object and what to do, and nobody else is harmed.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlive::topic::Event;
use outlive::{Domain, Error, ErrorKind, Node, NodeBuilder, NodeId, Publisher, Subscriber};
use testkit::actor::{listen, say};
use testkit::spawn::Role;
use testkit::{Actor, Rng, TempDomain, Watchdog, role};

const DEPTH: u64 = 4;
const TOPIC: &str = "/bad/input";
/// A payload that travels in a chunk.
const LARGE: usize = 1000;
/// Messages that the idle publisher has sent: small, large, small, large.
const SENT: usize = 4;

fn settings(dir: &Path, name: &str) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name(name)
}

fn publisher(node: &Node) -> outlive::Result<Publisher<[u64]>> {
    node.topic::<[u64]>(TOPIC)?.depth(DEPTH).attribute("unit", "m").publisher()
}

/// What the topic's other publishers have sent since counts as history, too.
const ALL: u64 = 1000;

fn subscriber(node: &Node) -> outlive::Result<Subscriber<[u64]>> {
    node.topic::<[u64]>(TOPIC)?.depth(DEPTH).history(ALL).subscriber()
}

fn send(publisher: &Publisher<[u64]>, value: u64) -> outlive::Result<()> {
    let words = if value % 2 == 0 { 2 } else { LARGE };
    publisher.publish(&vec![value; words]).map(drop)
}

/// Says which case it was when the test fails in it.
struct Case(String);

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the case: {}", self.0);
        }
    }
}

/// A publisher that only exists, in a process of its own; then a member that goes on.
fn idle(role: &Role) {
    let node = settings(Path::new(&role.args[0]), "idle").open().unwrap();
    let publisher = publisher(&node).unwrap();
    let mut subscriber = subscriber(&node).unwrap();
    for value in 0..SENT as u64 {
        send(&publisher, value).unwrap();
    }
    let held = subscriber.receive().unwrap();
    say(&format!("node {}", node.id()));
    listen();
    drop((held, subscriber, publisher, node));
}

/// The idle publisher, whose files are spoilt, and a healthy member.
struct World {
    dir: TempDomain,
    actor: Actor,
    idle: NodeId,
    healthy: Node,
    publisher: Publisher<[u64]>,
}

impl World {
    fn new(test: &str) -> Self {
        let dir = TempDomain::new("bad").unwrap();
        let mut actor = Actor::start(test, "idle", &[dir.path().to_str().unwrap()]);
        let idle = NodeId::from_raw(actor.expect_number("node"));
        let healthy = settings(dir.path(), "healthy").open().unwrap();
        let publisher = publisher(&healthy).unwrap();
        Self { dir, actor, idle, healthy, publisher }
    }

    fn domain_dir(&self) -> PathBuf {
        self.dir.path().join("root/default")
    }

    fn domain(&self) -> Domain {
        Domain::of(&settings(self.dir.path(), "tool")).unwrap()
    }

    fn topic_dir(&self) -> PathBuf {
        let mut dirs = fs::read_dir(self.domain_dir().join("topics")).unwrap();
        dirs.next().unwrap().unwrap().path()
    }

    /// The file of the topic whose name begins so.
    fn file(&self, begin: &str) -> PathBuf {
        let entries = fs::read_dir(self.topic_dir()).unwrap().map(|e| e.unwrap().path());
        let is = |p: &PathBuf| p.file_name().unwrap().to_str().unwrap().starts_with(begin);
        entries.into_iter().find(is).unwrap_or_else(|| panic!("no {begin}"))
    }

    fn ring(&self) -> PathBuf {
        self.file(&format!("pub.{}.", self.idle))
    }

    fn data(&self) -> PathBuf {
        self.file(&format!("data.{}.", self.idle))
    }

    fn node_file(&self) -> PathBuf {
        self.domain_dir().join(format!("nodes/{}", self.idle))
    }

    /// Everything a newcomer and a tool may do; each call succeeds or says what is wrong.
    fn everything(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        let mut note = |e: Error| errors.push(e);
        match settings(self.dir.path(), "newcomer").open() {
            Ok(node) => {
                let _ = publisher(&node)
                    .map(|p| send(&p, 1))
                    .map_err(&mut note)
                    .map(|r| r.map_err(&mut note));
                match subscriber(&node) {
                    Ok(mut sub) => {
                        read(&mut sub, &mut note);
                        drop(sub);
                    }
                    Err(e) => note(e),
                }
                match node.watch(self.idle) {
                    Ok(watch) => drop((watch.is_alive(), watch.wait(Duration::from_micros(100)))),
                    Err(e) => note(e),
                }
                let any = node.topic::<[u8]>(TOPIC).unwrap().history(ALL).subscriber_of_any_type();
                match any {
                    Ok(mut sub) => drop(sub.receive().map_err(&mut note)),
                    Err(e) => note(e),
                }
            }
            Err(e) => note(e),
        }
        let domain = self.domain();
        let _ = domain.nodes().map_err(&mut note);
        let _ = domain.topics().map_err(&mut note);
        let _ = domain.audit().map_err(&mut note);
        let _ = domain.clean().map_err(&mut note);
        for e in &errors {
            assert!(!e.object().is_empty() && !e.remedy().is_empty(), "{e}");
            assert!(!matches!(e.kind(), ErrorKind::Io | ErrorKind::Timeout), "{e}");
        }
        errors
    }

    /// A member that was there before goes on: what the healthy publisher sends arrives.
    fn healthy_go_on(&self, member: &mut Subscriber<[u64]>) -> Vec<Event> {
        let from = self.publisher.published();
        for value in 0..3 {
            send(&self.publisher, value).unwrap();
        }
        let mut next = from;
        let mut events = Vec::new();
        while next < from + 3 {
            let sample = member.receive_timeout(Duration::from_secs(60)).unwrap();
            events.extend(std::iter::from_fn(|| member.next_event()));
            let Some(sample) = sample else { continue };
            if sample.publisher() == self.publisher.id() && sample.seq() >= from {
                assert_eq!((sample.seq(), sample.lost_before()), (next, 0));
                assert!(sample.iter().all(|word| *word == next - from));
                next += 1;
            }
        }
        events
    }

    /// With everything as it was, the idle publisher can be read whole.
    fn idle_can_be_read(&self) {
        let mut sub = subscriber(&self.healthy).unwrap();
        let mut got = Vec::new();
        while let Some(sample) = sub.receive().unwrap() {
            if sample.publisher().node == self.idle {
                assert!(sample.iter().all(|word| *word == sample[0]));
                got.push(sample[0]);
            }
        }
        assert_eq!(got, [0, 1, 2, 3]);
        assert!(self.healthy.watch(self.idle).unwrap().is_alive());
    }

    fn end(mut self) {
        let Self { dir, publisher, healthy, .. } = {
            self.actor.wait();
            self
        };
        drop((publisher, healthy));
        let domain = Domain::of(&settings(dir.path(), "")).unwrap();
        assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
        domain.clean().unwrap();
        assert_eq!(dir.listing(), Vec::<String>::new());
    }
}

/// Reads what there is; corrupt publishers are told of, not read for ever.
fn read(sub: &mut Subscriber<[u64]>, mut note: impl FnMut(Error)) {
    let mut errors = 0;
    for _ in 0..100 {
        match sub.receive() {
            // Every byte of it is there to be read.
            Ok(Some(sample)) => drop(std::hint::black_box(sample.to_vec())),
            Ok(None) if sub.next_event().is_none() => return,
            Ok(None) => {}
            Err(e) => {
                note(e);
                errors += 1;
                // What concerns all publishers is told again and again.
                if errors == 3 {
                    return;
                }
            }
        }
    }
    panic!("there is no end of it");
}

/// Overwrites a word of a file for as long as it lives.
struct Spoilt {
    file: File,
    offset: u64,
    old: [u8; 8],
}

impl Spoilt {
    fn new(path: &Path, offset: u64, value: u64) -> Self {
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut old = [0; 8];
        file.read_exact_at(&mut old, offset).unwrap();
        file.write_all_at(&value.to_le_bytes(), offset).unwrap();
        Self { file, offset, old }
    }
}

impl Drop for Spoilt {
    fn drop(&mut self) {
        self.file.write_all_at(&self.old, self.offset).unwrap();
    }
}

fn values(old: u64) -> Vec<u64> {
    let near = [0, 1, 2, old ^ 1, old.wrapping_add(64)];
    let far = [u64::from(u32::MAX), (1 << 62) - 1, 1 << 62, u64::MAX];
    // Packed fields of which only a length or an index is another, and far off.
    let packed = [old ^ 1 << 31, old ^ 1 << 40];
    near.into_iter().chain(far).chain(packed).filter(|v| *v != old).collect()
}

/// Puts every value into this word of `file`, and lets everybody look.
fn garbage_in(world: &World, file: &Path, word: u64) {
    let offset = word * 8;
    let mut old = [0; 8];
    File::open(file).unwrap().read_exact_at(&mut old, offset).unwrap();
    let closes = |v: &u64| offset == 64 && *v == 2 && file == world.ring();
    // A ring that says it is closed is taken at its word and removed.
    for value in values(u64::from_le_bytes(old)).into_iter().filter(|v| !closes(v)) {
        let name = file.strip_prefix(world.dir.path()).unwrap().display();
        let _case = Case(format!("{name}: {value:#x} at {offset}"));
        let mut member = subscriber(&world.healthy).unwrap();
        let spoilt = Spoilt::new(file, offset, value);
        world.everything();
        read(&mut member, |e| assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}"));
        world.healthy_go_on(&mut member);
        drop(spoilt);
        drop(member);
        world.idle_can_be_read();
    }
}

fn watchdog(test: &str) -> Watchdog {
    Watchdog::start(test, Duration::from_secs(240))
}

type Pick = fn(&World) -> PathBuf;

/// A world for each word: what all newcomers of a world have sent is read again and again.
fn garbage(test: &str, file: Pick, words: impl Iterator<Item = u64>) {
    for word in words {
        let world = World::new(test);
        garbage_in(&world, &file(&world), word);
        world.end();
    }
}

/// Tests that start this program again as the idle publisher.
macro_rules! tests {
    ($($test:ident: $body:expr;)*) => {$(
        #[test]
        fn $test() {
            const TEST: &str = stringify!($test);
            if let Some(role) = role() {
                return idle(&role);
            }
            let _dog = watchdog(TEST);
            let body: fn(&str) = $body;
            body(TEST);
        }
    )*};
}

fn sub_file(world: &World) -> PathBuf {
    world.file(&format!("sub.{}.", world.idle))
}

fn meta(world: &World) -> PathBuf {
    world.topic_dir().join("meta")
}

fn bell(world: &World) -> PathBuf {
    world.topic_dir().join("bell")
}

fn id(world: &World) -> PathBuf {
    world.domain_dir().join("id")
}

/// The last words of `meta`, in which the attributes lie.
fn attributes() -> std::ops::Range<u64> {
    let schema = <[u64] as outlive::Payload>::describe_payload().to_text().len() as u64;
    (384 + schema) / 8..(384 + schema + "unit=m\n".len() as u64).div_ceil(8)
}

tests! {
    garbage_in_a_ring_header_harms_its_publisher_alone: |t| garbage(t, World::ring, 0..24);
    garbage_in_the_acknowledgements_harms_its_publisher_alone:
        |t| garbage(t, World::ring, 512..520);
    garbage_in_entries_harms_its_publisher_alone: |t| garbage(t, World::ring, 2560..2566);
    garbage_in_the_entry_of_a_chunk_harms_its_publisher_alone:
        |t| garbage(t, World::ring, 2576..2580);
    garbage_in_a_data_header_harms_its_publisher_alone: |t| garbage(t, World::data, 0..12);
    garbage_in_a_node_header_harms_its_node_alone:
        |t| garbage(t, World::node_file, (0..8).chain(16..26));
    garbage_in_a_port_harms_its_node_alone: |t| garbage(t, World::node_file, ports());
    garbage_in_a_sub_file_harms_nobody: |t| garbage(t, sub_file, 0..8);
    garbage_in_meta_stops_newcomers_alone: |t| garbage(t, meta, (0..48).chain(attributes()));
    garbage_in_the_bell_harms_nobody: |t| garbage(t, bell, 0..16);
    garbage_in_the_id_stops_newcomers_alone: |t| garbage(t, id, 0..14);
}

/// Words of the first port block, wherever it begins.
fn ports() -> impl Iterator<Item = u64> {
    // Node 1: page 1 plus one line. Id and settings, flag, two hazards, the first source.
    let block = (4096 + 64) / 8;
    (0..4).chain(8..9).chain(16..18).chain(80..84).map(move |word| block + word)
}

/// What may lie where a file of ours should be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Strange {
    Nothing,
    Empty,
    Short,
    Random,
    Older,
    OtherEndian,
    AnotherKind,
    WritableByAll,
    AnotherUser,
    Symlink,
    Dangling,
    Fifo,
    Directory,
    FullDirectory,
    Device,
    Socket,
}

const STRANGE: [Strange; 16] = {
    use Strange::*;
    [
        Nothing,
        Empty,
        Short,
        Random,
        Older,
        OtherEndian,
        AnotherKind,
        WritableByAll,
        AnotherUser,
        Symlink,
        Dangling,
        Fifo,
        Directory,
        FullDirectory,
        Device,
        Socket,
    ]
};

impl Strange {
    /// Puts it at `path`; `was` is the file that was there. False: not possible here.
    fn put(self, path: &Path, was: &Path) -> bool {
        let is_dir = was.is_dir();
        let content = || fs::read(was).unwrap_or_default();
        let copy = |bytes: &[u8]| {
            fs::write(path, bytes).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
            true
        };
        let changed = |at: usize, byte: u8| {
            let mut bytes = content();
            bytes.resize(bytes.len().max(64), 0);
            bytes[at] = byte;
            copy(&bytes)
        };
        match self {
            Self::Nothing => true,
            Self::Empty => copy(&[]),
            Self::Short => !is_dir && copy(&content()[..content().len() / 2]),
            Self::Random => {
                let mut bytes = vec![0; content().len().max(8192)];
                Rng::new(1).fill(&mut bytes);
                copy(&bytes)
            }
            Self::Older => !is_dir && changed(8, 0),
            Self::OtherEndian => {
                !is_dir && {
                    let mut bytes = content();
                    bytes.resize(bytes.len().max(64), 0);
                    bytes[12..16].reverse();
                    copy(&bytes)
                }
            }
            Self::AnotherKind => !is_dir && changed(16, 99),
            Self::WritableByAll => {
                if is_dir {
                    fs::create_dir(path).unwrap();
                } else {
                    copy(&content());
                }
                fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
                true
            }
            Self::AnotherUser => {
                if is_dir {
                    fs::create_dir(path).unwrap();
                } else {
                    copy(&content());
                }
                let done = std::os::unix::fs::chown(path, Some(4242), None).is_ok();
                if !done {
                    println!("skipped: files of another user need root");
                    remove(path);
                }
                done
            }
            Self::Symlink => symlink(was, path).is_ok(),
            Self::Dangling => symlink("nowhere", path).is_ok(),
            Self::Fifo => make_node(path, libc::S_IFIFO | 0o600, 0),
            Self::Directory => !is_dir && fs::create_dir(path).is_ok(),
            Self::FullDirectory => {
                fs::create_dir(path).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
                fs::create_dir(path.join("7")).unwrap();
                symlink("nowhere", path.join("pub.7.7")).is_ok()
            }
            Self::Device => make_node(path, libc::S_IFCHR | 0o600, libc::makedev(1, 3)),
            Self::Socket => std::os::unix::net::UnixListener::bind(path).is_ok(),
        }
    }
}

fn make_node(path: &Path, mode: libc::mode_t, device: libc::dev_t) -> bool {
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a C string that lives through the call.
    let done = unsafe { libc::mknod(path.as_ptr(), mode, device) == 0 };
    if !done {
        println!("skipped: devices need root");
    }
    done
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(m) if m.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Replaces a file or directory by each strange thing in turn; `look` is called meanwhile.
fn strange_at(world: &World, path: &Path, all: &[Strange], mut look: impl FnMut(Strange)) {
    let aside = world.dir.path().join("aside");
    for &strange in all {
        let name = path.strip_prefix(world.dir.path()).unwrap().display();
        let _case = Case(format!("{strange:?} at {name}"));
        fs::rename(path, &aside).unwrap();
        if strange.put(path, &aside) {
            look(strange);
        }
        // What somebody made in its place goes with it.
        remove(path);
        // A cleaner may have taken the empty root.
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::rename(&aside, path).unwrap();
    }
}

/// The kinds of error that say that something lies where it should not.
fn says_so(e: &Error) -> bool {
    use ErrorKind::{Corrupt, NotFound, NotOwned, VersionMismatch};
    matches!(e.kind(), Corrupt | NotFound | NotOwned | VersionMismatch)
}

/// In place of a file of one member: the others go on. `readable`: that member as well afterwards.
/// (A ring or a node's file that is not there is a member that is not there: what belongs to it
/// goes.)
fn strange_member(test: &str, file: Pick, readable: bool) {
    let world = World::new(test);
    strange_at(&world, &file(&world), &STRANGE, |_| {
        let mut member = match subscriber(&world.healthy) {
            Ok(member) => member,
            Err(e) => return assert!(says_so(&e), "{e}"),
        };
        for e in world.everything() {
            assert!(says_so(&e), "{e}");
        }
        read(&mut member, |e| panic!("{e}"));
        world.healthy_go_on(&mut member);
    });
    if readable {
        world.idle_can_be_read();
    }
    world.end();
}

/// In place of a file that all share: who is there goes on, newcomers are told.
fn strange_shared(test: &str, file: Pick) {
    let world = World::new(test);
    let mut member = subscriber(&world.healthy).unwrap();
    let file = file(&world);
    strange_at(&world, &file, &STRANGE, |strange| {
        let errors = world.everything();
        assert!(errors.iter().all(says_so), "{errors:?}");
        let named = errors.iter().any(|e| Path::new(e.object()) == file);
        // A lock that is not there, or not as it was, is a lock.
        let regular = (strange as u8) < Strange::WritableByAll as u8;
        assert!(named || (file.ends_with("lock") && regular), "{errors:?}");
        for opened in [publisher(&world.healthy).err(), subscriber(&world.healthy).err()] {
            assert!(opened.is_none_or(|e| says_so(&e)));
        }
        world.healthy_go_on(&mut member);
    });
    drop(member);
    world.idle_can_be_read();
    world.end();
}

/// In place of a directory. Whoever takes it away takes the members' files away: they go on or are
/// told so.
fn strange_directory(test: &str, file: Pick) {
    for strange in STRANGE {
        let world = World::new(test);
        let mut member = subscriber(&world.healthy).unwrap();
        strange_at(&world, &file(&world), &[strange], |_| {
            for e in world.everything() {
                assert!(says_so(&e), "{e}");
            }
            for value in 0..10 {
                if let Err(e) = send(&world.publisher, value) {
                    assert!(says_so(&e), "{e}");
                }
                read(&mut member, |e| assert!(says_so(&e), "{e}"));
            }
            for opened in [publisher(&world.healthy).err(), subscriber(&world.healthy).err()] {
                assert!(opened.is_none_or(|e| says_so(&e)));
            }
        });
        drop(member);
        world.end();
    }
}

tests! {
    something_else_in_place_of_a_ring_harms_its_publisher_alone:
        |t| strange_member(t, World::ring, false);
    something_else_in_place_of_a_data_segment_harms_its_publisher_alone:
        |t| strange_member(t, World::data, true);
    something_else_in_place_of_a_node_file_harms_its_node_alone:
        |t| strange_member(t, World::node_file, false);
    something_else_in_place_of_a_sub_file_harms_nobody: |t| strange_member(t, sub_file, true);
    something_else_in_place_of_meta_stops_newcomers_alone: |t| strange_shared(t, meta);
    something_else_in_place_of_the_bell_stops_newcomers_alone: |t| strange_shared(t, bell);
    something_else_in_place_of_the_id_stops_newcomers_alone: |t| strange_shared(t, id);
    something_else_in_place_of_the_lock_stops_newcomers_alone:
        |t| strange_shared(t, |w| w.domain_dir().join("lock"));
    something_else_in_place_of_nodes_is_told:
        |t| strange_directory(t, |w| w.domain_dir().join("nodes"));
    something_else_in_place_of_topics_is_told:
        |t| strange_directory(t, |w| w.domain_dir().join("topics"));
    something_else_in_place_of_a_topic_is_told: |t| strange_directory(t, World::topic_dir);
    something_else_in_place_of_the_domain_is_told: |t| strange_directory(t, World::domain_dir);
    something_else_in_place_of_the_root_is_told:
        |t| strange_directory(t, |w| w.dir.path().join("root"));
}

#[test]
fn names_that_cannot_be_are_refused_before_anything_is_made() {
    let dir = TempDomain::new("names").unwrap();
    let node = settings(dir.path(), "names").open().unwrap();
    let before = dir.listing();
    let long = format!("/{}", "x".repeat(200));
    let wide = format!("/{}", "é".repeat(90));
    for name in [
        "",
        "/",
        "//",
        "/a//b",
        "/a/",
        "//a",
        "/.",
        "/..",
        "/a/../b",
        "../x",
        "/a\0b",
        "/a b",
        "/a\n",
        "/a%2Fb",
        "/a*",
        "/~",
        long.as_str(),
        wide.as_str(),
    ] {
        let e = node.topic::<u64>(name).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidName, "{name:?}");
        assert!(!e.remedy().is_empty() && e.object().len() < 1000, "{e}");
    }
    for name in ["", "a/b", "..", "a\0", long.as_str()] {
        for made in [settings(dir.path(), name), settings(dir.path(), "ok").domain(name)] {
            assert_eq!(made.open().unwrap_err().kind(), ErrorKind::InvalidName, "{name:?}");
        }
    }
    assert_eq!(dir.listing(), before);
    for name in ["/a/b", "a/b", "/.a", "/ä/Ω-1_2.3", &long[..200]] {
        drop(node.topic::<u64>(name).unwrap().publisher().unwrap());
    }
    drop(node);
    Domain::of(&settings(dir.path(), "")).unwrap().clean().unwrap();
    assert_eq!(dir.listing(), Vec::<String>::new());
}

#[test]
fn a_place_that_is_not_there_is_told() {
    let _dog = watchdog("a_place_that_is_not_there_is_told");
    let dir = TempDomain::new("nowhere").unwrap();
    let e = Node::builder().root(dir.path().join("no/such/place")).open().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
    let node = settings(dir.path(), "orphan").open().unwrap();
    fs::remove_dir_all(dir.path().join("root")).unwrap();
    let e = node.topic::<u64>("/t").unwrap().publisher().unwrap_err();
    // Not `Timeout`, after as long as a slow path may wait for others.
    assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
    assert!(e.object().ends_with("default/topics"), "{e}");
}
