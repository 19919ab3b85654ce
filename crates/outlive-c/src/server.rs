//! The answering end of a service.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use outlive::service::Request;
use outlive::{Deadline, Server};

use crate::node::{OUTLIVE_NO_WAIT, outlive_node};
use crate::publisher::outlive_port_id;
use crate::service::{outlive_service_options, service};
use crate::status::{Fail, bytes, lossy, need, outlive_status, run};
use crate::types::outlive_type;

/// The one server of a service. One thread at a time.
#[derive(Debug)]
pub struct outlive_server {
    pub(crate) server: Server<[u8], [u8]>,
}

/// A request, the caller's own copy. Answer it, refuse it, or free it; then its client waits until
/// its deadline, or until the server dies.
#[derive(Debug)]
pub struct outlive_request {
    request: Request<[u8]>,
}

/// Joins service `name` as its server, creating the service if it does not exist.
/// `OUTLIVE_CONSUMER_EXISTS` while another one lives. Types and `options` as in
/// `outlive_client_open`.
///
/// Example:
///
///     outlive_server *reach;
///     outlive_request *request;
///     struct pose goal;
///     must(outlive_server_open(node, "/arm/reach", type, type, NULL, &reach));
///     must(outlive_server_receive(reach, OUTLIVE_FOREVER, &request));
///     memcpy(&goal, outlive_request_data(request, NULL), sizeof goal);
///     outlive_port_id client = outlive_request_client(request);
///     if (outlive_server_respond(reach, request, &goal, sizeof goal) == OUTLIVE_CLIENT_DIED) {
///         printf("node %" PRIu64 " does not wait for it any more\n", client.node);
///     }
///     outlive_server_close(reach);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_server_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    request: Option<&outlive_type>,
    response: Option<&outlive_type>,
    options: *const outlive_service_options,
    out: Option<&mut MaybeUninit<*mut outlive_server>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let server = service(node, name, request, response, options)?.server()?;
        out.write(Box::into_raw(Box::new(outlive_server { server })));
        Ok(())
    })
}

/// The next request, waiting until `deadline_ns`. It skips late ones, those of dead clients, and
/// those whose cancellation was read; one that is cancelled may still come:
/// `outlive_server_is_cancelled` tells. `OUTLIVE_WOULD_BLOCK`, `OUTLIVE_TIMEOUT`: there was none.
///
/// A client's requests wait while the lane of its replies cannot be opened: a full RAM disk, no
/// descriptors, no rights. That is not an error here; it is tried again after 2 to 250 ms.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_server_receive(
    server: Option<&mut outlive_server>,
    deadline_ns: u64,
    out: Option<&mut MaybeUninit<*mut outlive_request>>,
) -> outlive_status {
    run(|| {
        let (port, out) = (need(server, "a server")?, need(out, "out")?);
        match port.server.receive_until(Deadline::at_ns(deadline_ns))? {
            Some(request) => out.write(Box::into_raw(Box::new(outlive_request { request }))),
            None if deadline_ns == OUTLIVE_NO_WAIT => {
                return Err(Fail::Quiet(outlive_status::OUTLIVE_WOULD_BLOCK));
            }
            None => return Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)),
        };
        Ok(())
    })
}

/// The payload, until the request is answered or freed. `size` may be NULL. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_request_data(
    request: Option<&outlive_request>,
    size: Option<&mut MaybeUninit<usize>>,
) -> *const c_void {
    let body = request.map(|request| &*request.request);
    if let Some(size) = size {
        size.write(body.map_or(0, <[u8]>::len));
    }
    body.map_or(std::ptr::null(), |body| body.as_ptr().cast())
}

/// Who asks.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_request_client(request: Option<&outlive_request>) -> outlive_port_id {
    request.map_or_else(outlive_port_id::default, |request| {
        let id = request.request.client();
        outlive_port_id { node: id.node.get(), port: id.port }
    })
}

/// When its client stops waiting, ns of CLOCK_MONOTONIC; `OUTLIVE_FOREVER` for never.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_request_deadline_ns(request: Option<&outlive_request>) -> u64 {
    request.map_or(Deadline::NEVER, |request| request.request.deadline()).as_ns()
}

/// Whether the client has given the request up or is dead.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_server_is_cancelled(
    server: Option<&mut outlive_server>,
    request: Option<&outlive_request>,
) -> bool {
    let mut cancelled = false;
    run(|| {
        let (port, request) = (need(server, "a server")?, need(request, "a request")?);
        cancelled = port.server.is_cancelled(&request.request)?;
        Ok(())
    });
    cancelled
}

/// Answers a request, which is freed, even when it fails. `OUTLIVE_CLIENT_DIED`: nobody waits for
/// the answer; continue with the next request. `OUTLIVE_INVALID_ARGUMENT`: `data` is not a valid
/// response, and the client gets `OUTLIVE_REFUSED` with that reason; or the request is another
/// server's.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_server_respond(
    server: Option<&mut outlive_server>,
    request: Option<Box<outlive_request>>,
    data: *const c_void,
    size: usize,
) -> outlive_status {
    run(|| {
        let (request, port) = (need(request, "a request")?, need(server, "a server")?);
        match bytes(data, size) {
            Ok(response) => Ok(port.server.respond(request.request, response)?),
            Err(wrong) => {
                // The request is the server's, and its client waits: it must not go with the error.
                let _ = port.server.refuse(request.request, &wrong.to_string());
                Err(wrong)
            }
        }
    })
}

/// Sends one part of the answer; more parts follow, and `outlive_server_respond` sends the last.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_server_respond_part(
    server: Option<&mut outlive_server>,
    request: Option<&outlive_request>,
    data: *const c_void,
    size: usize,
) -> outlive_status {
    run(|| {
        let (port, request) = (need(server, "a server")?, need(request, "a request")?);
        Ok(port.server.respond_part(&request.request, bytes(data, size)?)?)
    })
}

/// Refuses a request and says why; the client gets `OUTLIVE_REFUSED`. Frees the request. What is
/// not UTF-8 in `why` is replaced by U+FFFD; NULL is an empty reason.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_server_refuse(
    server: Option<&mut outlive_server>,
    request: Option<Box<outlive_request>>,
    why: *const c_char,
) -> outlive_status {
    run(|| {
        let (request, port) = (need(request, "a request")?, need(server, "a server")?);
        Ok(port.server.refuse(request.request, &lossy(why))?)
    })
}

/// Frees a request without an answer. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_request_free(request: Option<Box<outlive_request>>) {
    drop(request);
}

/// Stops serving; clients know at once. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_server_close(server: Option<Box<outlive_server>>) {
    run(|| {
        drop(server);
        Ok(())
    });
}
