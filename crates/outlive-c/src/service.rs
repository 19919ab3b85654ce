//! Services: settings, and the asking end.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use outlive::service::{self, Reply, Ticket};
use outlive::{Client, Deadline, ErrorKind};

use crate::node::{OUTLIVE_NO_WAIT, outlive_node};
use crate::options::{SizedOptions, flag, read_options, reserved};
use crate::status::{Fail, bytes, invalid, need, outlive_status, run, text};
use crate::types::{outlive_type, payload_type};

/// Settings of a service's ends. Zero is the default everywhere; begin with
/// `= {.size = sizeof(outlive_service_options)}`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_service_options {
    /// `sizeof` of this struct, as the caller was compiled: it tells versions apart.
    pub size: usize,
    /// Most shared memory for messages in flight from this end to another, bytes; 64 MiB by
    /// default.
    pub bound_bytes: u64,
    /// Client: unanswered requests are sent again to the next server when one dies: 0 or 1.
    pub resume: u32,
    /// 0.
    pub reserved_word: u32,
}

// SAFETY: `repr(C)`, `size` first; zeros are numbers and NULL.
unsafe impl SizedOptions for outlive_service_options {
    const NAME: &'static str = "outlive_service_options";
    const FIRST_BYTES: usize = size_of::<Self>();
}

pub(crate) fn service(
    node: &outlive_node,
    name: *const c_char,
    request: Option<&outlive_type>,
    response: Option<&outlive_type>,
    options: *const outlive_service_options,
) -> Result<service::Builder<[u8], [u8]>, Fail> {
    let builder = node.node.service::<[u8], [u8]>(text(name, "a service name")?)?;
    let mut builder = builder.of_types(&payload_type(request), &payload_type(response));
    let Some(options) = read_options(options)? else { return Ok(builder) };
    reserved(options.reserved_word.into())?;
    if options.bound_bytes != 0 {
        builder = builder.bound_bytes(options.bound_bytes);
    }
    Ok(builder.resume(flag(options.resume, "resume")?))
}

/// The asking end of a service. One thread at a time.
#[derive(Debug)]
pub struct outlive_client {
    pub(crate) client: Client<[u8], [u8]>,
    tickets: Vec<Ticket>,
}

/// An answer, or the news that there will be none. It is the caller's own copy.
#[derive(Debug)]
pub struct outlive_reply {
    reply: Reply<[u8]>,
}

/// Joins service `name` as a client, creating the service if it does not exist. It may join before
/// the server. Types NULL: raw bytes; `options` may be NULL.
///
/// Example:
///
///     outlive_service_options options = {.size = sizeof options, .resume = 1};
///     outlive_client *planner;
///     outlive_reply *reply;
///     struct pose here = {1.0, 2.0, 0.5};
///     uint64_t deadline = outlive_now_ns() + 10000000000; // 10 s
///     must(outlive_client_open(node, "/planner/next", type, type, &options, &planner));
///     must(outlive_client_wait_for_server(planner, deadline));
///     must(outlive_client_call(planner, &here, sizeof here, deadline, &reply));
///     drive(outlive_reply_data(reply, NULL));
///     outlive_reply_free(reply);
///     outlive_client_close(planner);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_client_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    request: Option<&outlive_type>,
    response: Option<&outlive_type>,
    options: *const outlive_service_options,
    out: Option<&mut MaybeUninit<*mut outlive_client>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let client = service(node, name, request, response, options)?.client()?;
        out.write(Box::into_raw(Box::new(outlive_client { client, tickets: Vec::new() })));
        Ok(())
    })
}

/// Waits until a live server is there; `OUTLIVE_TIMEOUT` when the deadline passed first.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_client_wait_for_server(
    client: Option<&mut outlive_client>,
    deadline_ns: u64,
) -> outlive_status {
    run(|| {
        match need(client, "a client")?
            .client
            .wait_for_server(Deadline::at_ns(deadline_ns).remaining())?
        {
            true => Ok(()),
            false => Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)),
        }
    })
}

/// Sends a request; its number goes to `ticket`, the answer comes with `outlive_client_receive`.
/// Sending never waits: `deadline_ns` is until when an answer is of use. The server skips the
/// request if it gets to it only then, and its reply is `OUTLIVE_TIMEOUT`; with `OUTLIVE_NO_WAIT`
/// every request is late. An answer that is there when the client looks is received, even if it
/// came late.
///
/// `OUTLIVE_SERVER_DIED`: no live server, nothing was sent. `OUTLIVE_WOULD_BLOCK`: the server is so
/// far behind that the bound is reached.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_client_send(
    client: Option<&mut outlive_client>,
    data: *const c_void,
    size: usize,
    deadline_ns: u64,
    ticket: Option<&mut MaybeUninit<u64>>,
) -> outlive_status {
    run(|| {
        let (port, out) = (need(client, "a client")?, need(ticket, "a ticket")?);
        let ticket = port.client.send_until(bytes(data, size)?, Deadline::at_ns(deadline_ns))?;
        port.tickets.push(ticket);
        out.write(ticket.get());
        Ok(())
    })
}

fn give(out: &mut MaybeUninit<*mut outlive_reply>, port: &mut outlive_client, reply: Reply<[u8]>) {
    if reply.is_last() {
        port.tickets.retain(|ticket| *ticket != reply.ticket());
    }
    out.write(Box::into_raw(Box::new(outlive_reply { reply })));
}

/// The next reply to any request, waiting until `deadline_ns`. Free it with `outlive_reply_free`.
///
/// If the server dies, every wait ends at once, and each unanswered request gets a reply whose
/// status is `OUTLIVE_SERVER_DIED`. A stopped server is alive; use deadlines against that.
/// `OUTLIVE_WOULD_BLOCK`, `OUTLIVE_TIMEOUT`: there was none.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_client_receive(
    client: Option<&mut outlive_client>,
    deadline_ns: u64,
    out: Option<&mut MaybeUninit<*mut outlive_reply>>,
) -> outlive_status {
    run(|| {
        let (port, out) = (need(client, "a client")?, need(out, "out")?);
        match port.client.receive_until(Deadline::at_ns(deadline_ns))? {
            Some(reply) => give(out, port, reply),
            None if deadline_ns == OUTLIVE_NO_WAIT => {
                return Err(Fail::Quiet(outlive_status::OUTLIVE_WOULD_BLOCK));
            }
            None => return Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)),
        }
        Ok(())
    })
}

/// As `outlive_client_receive`, for the next reply to one request only; others are kept.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_client_receive_for(
    client: Option<&mut outlive_client>,
    ticket: u64,
    deadline_ns: u64,
    out: Option<&mut MaybeUninit<*mut outlive_reply>>,
) -> outlive_status {
    run(|| {
        let (port, out) = (need(client, "a client")?, need(out, "out")?);
        let known = port.tickets.iter().copied().find(|known| known.get() == ticket);
        let known = known.ok_or_else(|| invalid("ticket", "it is answered, or not this"))?;
        match port.client.receive_for(known, Deadline::at_ns(deadline_ns)) {
            Ok(reply) => give(out, port, reply),
            Err(e) if e.kind() == ErrorKind::Timeout => {
                return Err(Fail::Quiet(match deadline_ns {
                    OUTLIVE_NO_WAIT => outlive_status::OUTLIVE_WOULD_BLOCK,
                    _ => outlive_status::OUTLIVE_TIMEOUT,
                }));
            }
            Err(e) => return Err(e.into()),
        }
        Ok(())
    })
}

/// Sends a request and waits for the last answer until `deadline_ns`. The reply is NULL when it
/// fails.
///
/// `OUTLIVE_REFUSED`: the detail has the server's words. `OUTLIVE_SERVER_DIED` at once when the
/// server dies; `OUTLIVE_TIMEOUT`, and the request is cancelled.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_client_call(
    client: Option<&mut outlive_client>,
    data: *const c_void,
    size: usize,
    deadline_ns: u64,
    out: Option<&mut MaybeUninit<*mut outlive_reply>>,
) -> outlive_status {
    run(|| {
        let out = need(out, "out")?;
        out.write(std::ptr::null_mut());
        let port = need(client, "a client")?;
        let deadline = Deadline::at_ns(deadline_ns);
        let ticket = port.client.send_until(bytes(data, size)?, deadline)?;
        loop {
            match port.client.receive_for(ticket, deadline) {
                Ok(reply) if !reply.is_last() => {}
                Ok(reply) => {
                    reply.body()?;
                    give(out, port, reply);
                    return Ok(());
                }
                Err(e) => {
                    let _ = port.client.cancel(ticket);
                    return Err(e.into());
                }
            }
        }
    })
}

/// Gives a request up: no reply to it comes any more, and the server is notified.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_client_cancel(
    client: Option<&mut outlive_client>,
    ticket: u64,
) -> outlive_status {
    run(|| {
        let port = need(client, "a client")?;
        let known = port.tickets.iter().position(|known| known.get() == ticket);
        match known.map(|i| port.tickets.swap_remove(i)) {
            Some(ticket) => Ok(port.client.cancel(ticket)?),
            None => Ok(()),
        }
    })
}

/// Leaves the service. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_client_close(client: Option<Box<outlive_client>>) {
    run(|| {
        drop(client);
        Ok(())
    });
}

/// `OUTLIVE_OK` and the payload, or why there is none: `OUTLIVE_REFUSED`, whose detail has the
/// server's words, `OUTLIVE_SERVER_DIED`, `OUTLIVE_TIMEOUT` when its deadline had passed and no
/// answer was there when the client looked, or `OUTLIVE_CORRUPT` when what the server sent cannot
/// be read.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_reply_status(reply: Option<&outlive_reply>) -> outlive_status {
    run(|| Ok(need(reply, "a reply")?.reply.body().map(drop)?))
}

/// The payload, until the reply is freed; NULL if there is none. `size` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_reply_data(
    reply: Option<&outlive_reply>,
    size: Option<&mut MaybeUninit<usize>>,
) -> *const c_void {
    let body = reply.and_then(|reply| reply.reply.body().ok());
    if let Some(size) = size {
        size.write(body.map_or(0, <[u8]>::len));
    }
    body.map_or(std::ptr::null(), |body| body.as_ptr().cast())
}

/// The request that it answers.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_reply_ticket(reply: Option<&outlive_reply>) -> u64 {
    reply.map_or(0, |reply| reply.reply.ticket().get())
}

/// Whether it is the last for that request.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_reply_is_last(reply: Option<&outlive_reply>) -> bool {
    reply.is_some_and(|reply| reply.reply.is_last())
}

/// Frees a reply. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_reply_free(reply: Option<Box<outlive_reply>>) {
    drop(reply);
}
