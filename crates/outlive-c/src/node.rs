//! Nodes, and watching them.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use outlive::{Deadline, Node, NodeBuilder, NodeId, Watch};

use crate::options::{SizedOptions, read_options, reserved};
use crate::status::{Fail, need, outlive_status, run, text};

/// Do not wait.
pub const OUTLIVE_NO_WAIT: u64 = 0;
/// Wait for ever; a peer's death still ends the wait.
pub const OUTLIVE_FOREVER: u64 = u64::MAX;

/// A process's membership in a domain. Any thread may use it. Ports keep it alive by themselves.
///
/// After `fork` the child is not the node: every call on an inherited handle returns
/// `OUTLIVE_FORKED_CHILD`. Open another node there.
#[derive(Debug)]
pub struct outlive_node {
    pub(crate) node: Node,
    name: CString,
}

/// Settings of a node. Zero and NULL are the defaults; begin with
/// `= {.size = sizeof(outlive_node_options)}`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_node_options {
    /// `sizeof` of this struct, as the caller was compiled: it tells versions apart.
    pub size: usize,
    /// Shown in listings; the program's name unless given. Need not be unique.
    pub name: *const c_char,
    /// The domain, instead of `$OUTLIVE_DOMAIN` or `default`. Domains do not see each other.
    pub domain: *const c_char,
    /// Directory that holds the domains, instead of `$OUTLIVE_DIR` or `/dev/shm/outlive-<uid>`.
    pub root: *const c_char,
    /// Group whose members may join; 0 for only this user.
    pub group: u32,
    /// 0.
    pub reserved_word: u32,
}

// SAFETY: `repr(C)`, `size` first; zeros are numbers and NULL.
unsafe impl SizedOptions for outlive_node_options {
    const NAME: &'static str = "outlive_node_options";
    const FIRST_BYTES: usize = size_of::<Self>();
}

/// The core's builder of these settings.
pub(crate) fn builder(options: *const outlive_node_options) -> Result<NodeBuilder, Fail> {
    let mut builder = Node::builder();
    let Some(options) = read_options(options)? else { return Ok(builder) };
    reserved(options.reserved_word.into())?;
    if !options.name.is_null() {
        builder = builder.name(text(options.name, "a name")?);
    }
    if !options.domain.is_null() {
        builder = builder.domain(text(options.domain, "a domain")?);
    }
    if !options.root.is_null() {
        builder = builder.root(text(options.root, "a root")?);
    }
    if options.group != 0 {
        builder = builder.group(options.group);
    }
    Ok(builder)
}

/// Joins a domain, creating it if it does not exist. `options` may be NULL.
///
/// Returns `OUTLIVE_NOT_OWNED` when the directory is another user's or writable by all,
/// `OUTLIVE_NO_SPACE` on a full RAM disk, `OUTLIVE_TIMEOUT` after 10 s when a stopped process holds
/// the domain's lock.
///
/// Example:
///
///     outlive_node_options options = {.size = sizeof options, .name = "planner"};
///     outlive_node *node;
///     must(outlive_node_open(&options, &node));
///     printf("%s is node %" PRIu64 "\n", outlive_node_name(node), outlive_node_id(node));
///     outlive_node_close(node);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_node_open(
    options: *const outlive_node_options,
    out: Option<&mut MaybeUninit<*mut outlive_node>>,
) -> outlive_status {
    run(|| {
        let out = need(out, "out")?;
        let node = builder(options)?.open()?;
        let name = CString::new(node.name()).unwrap_or_default();
        out.write(Box::into_raw(Box::new(outlive_node { node, name })));
        Ok(())
    })
}

/// Its number in the domain, 1 or more, never reused. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_node_id(node: Option<&outlive_node>) -> u64 {
    node.map_or(0, |node| node.node.id().get())
}

/// Its name; stays as long as the handle. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_node_name(node: Option<&outlive_node>) -> *const c_char {
    node.map_or(std::ptr::null(), |node| node.name.as_ptr())
}

/// Frees the handle. The node leaves its domain when its ports are closed as well. NULL does
/// nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_node_close(node: Option<Box<outlive_node>>) {
    drop(node);
}

/// Reports a node's death as it happens. Any thread may use it.
#[derive(Debug)]
pub struct outlive_watch {
    pub(crate) watch: Watch,
}

/// Watches the node with number `id`. `OUTLIVE_NOT_FOUND`: it left, or died and was cleaned up.
/// One that was watched before gives a watch that says it is gone.
///
/// Example:
///
///     outlive_watch *camera;
///     must(outlive_watch_open(node, camera_id, &camera));
///     if (outlive_watch_wait(camera, outlive_now_ns() + 10000000) == OUTLIVE_OK) { // 10 ms
///         puts("the camera died or left");
///     }
///     outlive_watch_free(camera);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_watch_open(
    node: Option<&outlive_node>,
    id: u64,
    out: Option<&mut MaybeUninit<*mut outlive_watch>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let watch = node.node.watch(NodeId::from_raw(id))?;
        out.write(Box::into_raw(Box::new(outlive_watch { watch })));
        Ok(())
    })
}

/// Whether the node is alive: one load while it is. A stopped process is alive. False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_watch_is_alive(watch: Option<&outlive_watch>) -> bool {
    watch.is_some_and(|watch| watch.watch.is_alive())
}

/// Waits until the node dies or leaves: `OUTLIVE_OK`. `OUTLIVE_TIMEOUT` when `deadline_ns` of
/// CLOCK_MONOTONIC passed first.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_watch_wait(
    watch: Option<&outlive_watch>,
    deadline_ns: u64,
) -> outlive_status {
    run(|| {
        let gone = need(watch, "a watch")?.watch.wait(Deadline::at_ns(deadline_ns).remaining());
        if gone { Ok(()) } else { Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)) }
    })
}

/// Whether the node's word says alive: a hint, for early reactions that do no harm if it lives. A
/// death shows within tens of microseconds, however large the process; `outlive_watch_is_alive`
/// shows it only once the kernel has freed its memory. False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_watch_seems_alive(watch: Option<&outlive_watch>) -> bool {
    watch.is_some_and(|watch| watch.watch.seems_alive())
}

/// As `outlive_watch_wait`, until `outlive_watch_seems_alive` returns false.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_watch_wait_hint(
    watch: Option<&outlive_watch>,
    deadline_ns: u64,
) -> outlive_status {
    run(|| {
        let gone =
            need(watch, "a watch")?.watch.wait_hint(Deadline::at_ns(deadline_ns).remaining());
        if gone { Ok(()) } else { Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)) }
    })
}

/// Makes the watch ready in a wait set as soon as `outlive_watch_seems_alive` returns false, not
/// only once the death is certain. Call it before other threads use the handle.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_watch_on_hint(watch: Option<&mut outlive_watch>) -> outlive_status {
    run(|| {
        let watch = need(watch, "a watch")?;
        watch.watch = watch.watch.clone().on_hint();
        Ok(())
    })
}

/// Ends watching. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_watch_free(watch: Option<Box<outlive_watch>>) {
    drop(watch);
}

/// From now on a fatal fault in any thread (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS,
/// SIGTRAP, so also `abort`) kills the process at once, as SIGKILL does, without a core: until a
/// core is written the process's locks stay held and nobody learns of its death, 17 s for 1 GB. A
/// handler installed later gets its signal again. `OUTLIVE_KILL_ON_FAULTS=1` in the environment
/// does the same when a node is opened.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_kill_on_faults() {
    outlive::kill_on_faults();
}
