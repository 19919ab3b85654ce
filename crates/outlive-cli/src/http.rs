//! A small HTTP/1.1 server for what this command shows: GET and HEAD, one answer to a connection.
//!
//! Everything that comes in is a stranger's: lengths, times and numbers of connections are bounded,
//! and what is not exactly a request is answered with 400.

mod clients;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::exit::{Code, note};
use crate::exit::{Failure, Outcome};
use crate::os;
use clients::Clients;

/// Longest request that is read, bytes.
const REQUEST_BYTES_MAX: usize = 8192;
/// Most headers of a request; browsers send about 15.
const HEADERS_MAX: usize = 128;
/// Within so long a request has come.
const RECEIVE_MAX: Duration = Duration::from_secs(2);
/// Within so long an answer is taken.
const SEND_MAX: Duration = Duration::from_secs(10);
/// Bytes handed over before it is looked at the time.
const PIECE_BYTES: usize = 64 << 10;

/// What a client asks for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query, as it came.
    pub(crate) path: String,
    /// Names and values, decoded.
    pub(crate) query: Vec<(String, String)>,
    /// Names in lower case.
    headers: Vec<(String, String)>,
}

impl Request {
    /// The first header of this name, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The values of `name` in the query.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether the name in `Host` is an address, `localhost`, or one of `allowed`. A page of
    /// another site can make its own name lead here, but cannot change the name that is sent.
    pub(crate) fn host_is(&self, allowed: &[String]) -> bool {
        let Some(host) = self.header("host").and_then(host_name) else { return false };
        let is = |name: &str| host.eq_ignore_ascii_case(name);
        host.parse::<IpAddr>().is_ok() || is("localhost") || allowed.iter().any(|name| is(name))
    }
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host_name(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = rest.strip_prefix(':');
    let digits = |port: &str| port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    (rest.is_empty() || port.is_some_and(digits)).then_some(name)
}

/// What a client gets.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
    /// More headers, a line each.
    pub(crate) headers: String,
}

impl Response {
    pub(crate) fn new(status: &'static str, kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, kind, body: body.into(), headers: String::new() }
    }

    /// A line of plain text.
    pub(crate) fn text(status: &'static str, line: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", format!("{line}\n"))
    }

    pub(crate) fn bad(why: &str) -> Self {
        Self::text("400 Bad Request", why)
    }
}

/// Takes the address, or says why not.
pub(crate) fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::AddrInUse => {
            let message = format!(
                "listen at {address}: the port is in use; name another, or port 0 for a free one"
            );
            Failure::new(Code::Failed, message)
        }
        _ => Failure::io(&format!("listen at {address}"), &e),
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Answers until a signal asks to stop.
pub(crate) fn serve(
    listener: &TcpListener,
    answer: impl Fn(&Request) -> Response + Sync,
) -> Outcome {
    let clients = Clients::default();
    std::thread::scope(|scope| {
        while !os::stop_asked() {
            let ready = os::wait_readable(listener).map_err(|e| Failure::io("wait", &e))?;
            // A client that is gone or too slow gets nothing, the next one does.
            let (client, from) = match ready.then(|| listener.accept()) {
                Some(Ok(accepted)) => accepted,
                Some(Err(e)) if e.kind() != io::ErrorKind::WouldBlock => {
                    // Out of descriptors, perhaps: it is ready again at once.
                    std::thread::sleep(Duration::from_nanos(os::SLICE_NS));
                    continue;
                }
                _ => continue,
            };
            let Some(number) = clients.admit(&client, from.ip()) else {
                let busy = Response::text("503 Service Unavailable", "too many connections");
                // What finds no room in the socket is not waited for.
                let _ = client.set_nonblocking(true).and_then(|()| send(&client, &busy, false));
                continue;
            };
            let (answer, clients) = (&answer, &clients);
            let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                let request = receive(&client);
                if let Ok(request) = request
                    && clients.came(number)
                {
                    let _ = serve_one(&client, &request, answer);
                }
                clients.left(number);
            });
            if let Err(e) = started {
                clients.left(number);
                note(format_args!("a client was refused: {e}"));
            }
        }
        Ok(Code::Done)
    })
}

fn serve_one(
    client: &TcpStream,
    request: &[u8],
    answer: impl Fn(&Request) -> Response,
) -> io::Result<()> {
    let (response, head_only) = match parse(request) {
        Err(response) => (response, false),
        Ok(request) => match request.method.as_str() {
            "GET" => (answer(&request), false),
            "HEAD" => (answer(&request), true),
            _ => {
                let mut wrong = Response::text("405 Method Not Allowed", "only GET");
                wrong.headers += "Allow: GET, HEAD\r\n";
                (wrong, false)
            }
        },
    };
    send(client, &response, head_only)
}

/// What is left until `until`, never zero: that would be for ever.
fn left(until: Instant) -> io::Result<Option<Duration>> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
}

/// The head of a request; at most so long, and not for longer than our patience.
fn receive(mut client: &TcpStream) -> io::Result<Vec<u8>> {
    client.set_nonblocking(false)?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    let until = Instant::now() + RECEIVE_MAX;
    while !request.windows(4).any(|w| w == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        client.set_read_timeout(left(until)?)?;
        match client.read(&mut piece)? {
            0 => break,
            n => request.extend_from_slice(&piece[..n]),
        }
    }
    Ok(request)
}

fn send(mut client: &TcpStream, response: &Response, head_only: bool) -> io::Result<()> {
    let Response { status, kind, body, headers } = response;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{headers}\
         Connection: close\r\n\r\n",
        body.len()
    );
    let until = Instant::now() + SEND_MAX;
    let body = if head_only { &[][..] } else { body };
    for mut piece in std::iter::once(head.as_bytes()).chain(body.chunks(PIECE_BYTES)) {
        while !piece.is_empty() {
            client.set_write_timeout(left(until)?)?;
            match client.write(piece)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => piece = &piece[n..],
            }
        }
    }
    client.flush()
}

/// Reads a request; the answer to what is none. Stricter than the grammar: no empty line first, no
/// lone line ends, methods in upper case, names of letters, digits, `-` and `_`.
fn parse(bytes: &[u8]) -> Result<Request, Response> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut read = httparse::Request::new(&mut fields);
    let too_large = || Response::text("431 Request Header Fields Too Large", "at most 8 KiB");
    let end = match read.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) if bytes.len() >= REQUEST_BYTES_MAX => {
            return Err(too_large());
        }
        Ok(httparse::Status::Partial) => {
            return Err(Response::bad("the request ends before its head does"));
        }
        Err(httparse::Error::TooManyHeaders) => return Err(too_large()),
        Err(wrong) => return Err(Response::bad(&format!("not an HTTP/1.1 request: {wrong}"))),
    };
    let mut lines = bytes[..end].split_inclusive(|b| *b == b'\n');
    if !lines.all(|line| line.ends_with(b"\r\n")) {
        return Err(Response::bad("a lone line end"));
    }
    let (Some(method), Some(target), Some(version)) = (read.method, read.path, read.version) else {
        return Err(Response::bad("the first line is METHOD /TARGET HTTP/1.1"));
    };
    let is_method =
        bytes.starts_with(method.as_bytes()) && method.bytes().all(|b| b.is_ascii_uppercase());
    if !is_method || !target.starts_with('/') {
        return Err(Response::bad("the first line is METHOD /TARGET HTTP/1.1"));
    }
    let mut headers = Vec::new();
    for httparse::Header { name, value } in &*read.headers {
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            return Err(Response::bad("a header with a wrong name"));
        }
        let Ok(value) = std::str::from_utf8(value) else {
            return Err(Response::bad("a header value is not valid UTF-8"));
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let hosts = headers.iter().filter(|(name, _)| name == "host").count();
    if hosts > 1 || (hosts == 0 && version == 1) {
        return Err(Response::bad("a request has one Host"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (decoded(name), decoded(value)) {
            (Some(name), Some(value)) => pairs.push((name, value)),
            _ => return Err(Response::bad("the query is not percent-encoded UTF-8")),
        }
    }
    let (method, path) = (method.to_owned(), path.to_owned());
    Ok(Request { method, path, query: pairs, headers })
}

/// Percent-encoded text.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                (high * 16 + low) as u8
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> &'static str {
        parse(request.as_bytes()).map_or_else(|wrong| wrong.status, |_| "good")
    }

    #[test]
    fn a_request_is_read() {
        let text = "GET /api/x?watch=%2Fa+b&watch=/c&d HTTP/1.1\r\nHost: h:1\r\nX-Y:  z \r\n\r\n";
        let request = parse(text.as_bytes()).unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/api/x"));
        assert_eq!(request.values("watch").collect::<Vec<_>>(), ["/a b", "/c"]);
        assert_eq!((request.header("x-y"), request.header("z")), (Some("z"), None));
    }

    #[test]
    fn what_is_no_request_is_bad() {
        for text in [
            "",
            "GET\r\n\r\n",
            "GET / HTTP/1.1",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "get / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nx: y\nz: w\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nx: \x01\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nx: \x7f\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nx!: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\nx: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\rx: b\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\nHost: a\n\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\t HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /?a=%zz HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /?a=%ff HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /?a=%f HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert_eq!(status(text), "400 Bad Request", "{text:?}");
        }
        assert_eq!(status("GET / HTTP/1.0\r\n\r\n"), "good");
        let long = "x".repeat(REQUEST_BYTES_MAX);
        assert_eq!(status(&long), "431 Request Header Fields Too Large");
        let many = |n| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "x: y\r\n".repeat(n));
        assert_eq!(status(&many(HEADERS_MAX - 1)), "good");
        assert_eq!(status(&many(HEADERS_MAX)), "431 Request Header Fields Too Large");
        assert_eq!(
            parse(b"GET / HTTP/1.0\r\nx: \xff\r\n\r\n").unwrap_err().status,
            "400 Bad Request"
        );
    }

    #[test]
    fn a_request_that_trickles_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        std::thread::scope(|scope| {
            // Each byte comes long before its own time is up, and there is no end to them.
            scope.spawn(move || {
                while client.write_all(b"G").is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let kind = receive(&server).unwrap_err().kind();
            assert!(matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{kind}");
            drop(server);
        });
    }

    #[test]
    fn foreign_hosts_are_told_from_ours() {
        let is = |host: &str| {
            let headers = vec![("host".to_owned(), host.to_owned())];
            Request { headers, ..Request::default() }.host_is(&["Robot.lan".into()])
        };
        for own in
            ["127.0.0.1:8420", "localhost", "LOCALHOST:1", "[::1]:9", "10.0.0.7", "robot.lan"]
        {
            assert!(is(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:8420",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "",
            ":",
        ] {
            assert!(!is(foreign), "{foreign}");
        }
        for wrong in ["127.0.0.1:x", "[::1", "localhost:123456", "127.0.0.1@evil", "[::1]x"] {
            assert!(!is(wrong), "{wrong}");
        }
        assert!(!Request::default().host_is(&[]));
    }
}
