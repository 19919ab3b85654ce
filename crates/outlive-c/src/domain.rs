//! A domain seen from outside: who is there, and cleaning up.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;

use outlive::{Domain, NodeBuilder};

use crate::node::{builder, outlive_node_options};
use crate::status::{Fail, need, outlive_status, run};

/// A node of a domain.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_node_info {
    /// Its number in the domain.
    pub id: u64,
    /// When it joined, ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// Name given at opening; valid during the call.
    pub name: *const c_char,
    /// Process id in the node's own PID namespace; for people only.
    pub pid: u32,
    /// Whether it lives.
    pub alive: bool,
    /// Reserved; 0 today.
    pub reserved: [u64; 4],
}

/// A topic of a domain.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_topic_info {
    /// Its name; valid during the call.
    pub name: *const c_char,
    /// Name of its type; valid during the call.
    pub type_name: *const c_char,
    /// What payloads look like, as `outlive_type_fixed` takes it; empty if nobody described them.
    /// Valid during the call.
    pub description: *const c_char,
    /// Messages per publisher.
    pub depth: u64,
    /// Publishers that live and have not left.
    pub publishers: usize,
    /// Subscribers.
    pub subscribers: usize,
    /// Messages published, over all publishers that can still be read.
    pub messages: u64,
    /// Shared memory it takes, bytes.
    pub memory_bytes: u64,
    /// Reserved; 0 today.
    pub reserved: [u64; 4],
}

/// What `outlive_domain_clean` removed and what it left.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_clean_report {
    /// Files of dead nodes, and of topics, queues, services and real-time channels.
    pub files: usize,
    /// Whole topics, queues and services; unread messages go with them.
    pub objects: usize,
    /// Locks, sets and segments that nobody has open.
    pub locks: usize,
    /// Nodes that live and were left alone.
    pub live_nodes: usize,
    /// Whether the domain itself was removed, because nobody is left.
    pub domain_removed: bool,
    /// Reserved; 0 today.
    pub reserved: [u64; 3],
}

fn domain(options: *const outlive_node_options) -> Result<Domain, Fail> {
    let builder: NodeBuilder = builder(options)?;
    Ok(Domain::of(&builder)?)
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Calls `found` with every node of the domain that nodes of these options join, in order of
/// joining, including dead ones that nobody has cleaned up. Joins nothing, creates nothing.
/// `options` may be NULL. `found` must return: no exception and no `longjmp` may cross the frames
/// of this library.
///
/// Example:
///
///     static void show_node(const outlive_node_info *info, void *user) {
///         printf("%s is %s\n", info->name, info->alive ? "alive" : "dead");
///         ++*(int *)user;
///     }
///
///     int count = 0;
///     must(outlive_domain_nodes(NULL, show_node, &count));
#[unsafe(no_mangle)]
pub extern "C" fn outlive_domain_nodes(
    options: *const outlive_node_options,
    found: Option<extern "C" fn(info: *const outlive_node_info, user: *mut c_void)>,
    user: *mut c_void,
) -> outlive_status {
    run(|| {
        let found = need(found, "a function")?;
        for node in domain(options)?.nodes()? {
            let name = c_string(&node.name);
            let info = outlive_node_info {
                id: node.id.get(),
                started_ns: node.started_ns,
                name: name.as_ptr(),
                pid: node.pid,
                alive: node.alive,
                reserved: [0; 4],
            };
            found(&info, user);
        }
        Ok(())
    })
}

/// Calls `found` with every topic of the domain, in order of names; as `outlive_domain_nodes`.
///
/// Example:
///
///     static void show_topic(const outlive_topic_info *info, void *user) {
///         fprintf(user, "%s has %zu publishers\n", info->name, info->publishers);
///     }
///
///     must(outlive_domain_topics(NULL, show_topic, stdout));
#[unsafe(no_mangle)]
pub extern "C" fn outlive_domain_topics(
    options: *const outlive_node_options,
    found: Option<extern "C" fn(info: *const outlive_topic_info, user: *mut c_void)>,
    user: *mut c_void,
) -> outlive_status {
    run(|| {
        let found = need(found, "a function")?;
        for topic in domain(options)?.topics()? {
            let (name, type_name) = (c_string(&topic.name), c_string(&topic.type_name));
            let text = topic.description().map(|d| d.to_text()).unwrap_or_default();
            let description = c_string(&text);
            let live = topic.publishers.iter().filter(|p| p.alive && !p.closed).count();
            let info = outlive_topic_info {
                name: name.as_ptr(),
                type_name: type_name.as_ptr(),
                description: description.as_ptr(),
                depth: topic.depth,
                publishers: live,
                subscribers: topic.subscribers.len(),
                messages: topic.publishers.iter().map(|p| p.messages).sum(),
                memory_bytes: topic.publishers.iter().map(|p| p.memory_bytes).sum(),
                reserved: [0; 4],
            };
            found(&info, user);
        }
        Ok(())
    })
}

/// Removes what dead nodes left and nobody uses; leaves the living alone. `options` and `report`
/// may be NULL.
///
/// Example:
///
///     outlive_clean_report report;
///     must(outlive_domain_clean(NULL, &report));
///     printf("removed %zu files of the dead\n", report.files);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_domain_clean(
    options: *const outlive_node_options,
    report: Option<&mut MaybeUninit<outlive_clean_report>>,
) -> outlive_status {
    run(|| {
        let done = domain(options)?.clean()?;
        if let Some(report) = report {
            let in_objects = done.topic_files + done.queue_files + done.service_files;
            report.write(outlive_clean_report {
                files: done.node_files + in_objects + done.realtime_files,
                objects: done.topics + done.queues + done.services,
                locks: done.locks,
                live_nodes: done.live_nodes,
                domain_removed: done.domain_removed,
                reserved: [0; 3],
            });
        }
        Ok(())
    })
}
