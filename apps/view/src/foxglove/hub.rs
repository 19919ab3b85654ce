//! The server: who is connected, which channels there are, who gets what.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::{HeaderValue, StatusCode};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message as Frame, accept_hdr_with_config};

use super::client::{Client, Counts, Message};
use super::entrance::{CLIENTS_MAX, Entrance, Line, Place};
use super::wire::{self, Asked, Channel, Subscription, Told};
use crate::shared::Rarely;

/// What a client may say at once; it has little to say.
const ASKED_BYTES_MAX: usize = 4 << 20;
/// In the kernel for a client: what lies there cannot be replaced by what is newer.
const SOCKET_BYTES: usize = 256 << 10;
/// For what is sent to the clients at the end.
const END: Duration = Duration::from_millis(300);
/// For the answer to a client that says goodbye, and may read nothing any more.
const GOODBYE: Duration = Duration::from_secs(1);

/// Known to all threads.
#[derive(Debug)]
pub(crate) struct Hub {
    name: String,
    session: String,
    origins: Vec<String>,
    state: Mutex<State>,
    changed: Condvar,
    next_client: AtomicU64,
    entrance: Arc<Entrance>,
    /// Anybody may cause what it says.
    trouble: Mutex<Rarely>,
}

#[derive(Debug, Default)]
struct State {
    clients: Vec<Arc<Client>>,
    channels: BTreeMap<u32, Channel>,
    next_channel: u32,
    /// Since the last [`Hub::wait`], which lets them in: whoever reads topics then knows for sure
    /// who has had which message.
    newcomers: Vec<(Subscription, Arc<Client>)>,
    /// Subscriptions have come or gone since then.
    asked: bool,
    /// Of the clients that have left.
    past: Counts,
}

impl Hub {
    pub(crate) fn new(name: String, session: String, origins: Vec<String>) -> Arc<Self> {
        Arc::new(Self {
            name,
            session,
            origins,
            state: Mutex::default(),
            changed: Condvar::new(),
            next_client: AtomicU64::new(1),
            entrance: Arc::default(),
            trouble: Mutex::default(),
        })
    }

    fn trouble(&self, line: impl std::fmt::Display) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).say(line);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes clients from here on, each with two threads.
    pub(crate) fn listen(self: &Arc<Self>, listener: TcpListener) {
        let hub = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = match stream {
                    Ok(stream) => Arc::new(stream),
                    Err(e) => {
                        // Out of descriptors, most likely; some will be back.
                        hub.trouble(format_args!("a client waits: {e}"));
                        thread::sleep(Duration::from_millis(100));
                        continue;
                    }
                };
                // Before there is a thread: they cost more than a descriptor.
                let Some(place) = hub.entrance.begin(&stream) else { continue };
                let hub = hub.clone();
                let serving = hub.clone();
                let spawned = thread::Builder::new().spawn(move || {
                    // A client that fails is no trouble of ours.
                    let _ = serving.serve(stream, place);
                });
                if let Err(e) = spawned {
                    hub.trouble(format_args!("a client is turned away: no thread for it: {e}"));
                }
            }
        });
    }

    /// Tells all clients of a channel; its number is not used again.
    pub(crate) fn advertise(&self, mut channel: Channel) -> u32 {
        let mut state = self.state();
        state.next_channel += 1;
        channel.id = state.next_channel;
        let frame = Told::Advertise { channels: std::slice::from_ref(&channel) }.frame();
        state.clients.iter().for_each(|client| client.control(frame.clone()));
        let id = channel.id;
        state.channels.insert(id, channel);
        id
    }

    pub(crate) fn unadvertise(&self, channel: u32) {
        let mut state = self.state();
        if state.channels.remove(&channel).is_none() {
            return;
        }
        let frame = Told::Unadvertise { channel_ids: &[channel] }.frame();
        for client in &state.clients {
            client.forget(channel);
            client.control(frame.clone());
        }
    }

    /// Whether anybody has subscribed to it.
    pub(crate) fn wanted(&self, channel: u32) -> bool {
        self.state().clients.iter().any(|client| client.has(channel))
    }

    /// To everybody who has subscribed, or to one of them.
    pub(crate) fn message(&self, channel: u32, to: Option<u64>, message: &Message) {
        let state = self.state();
        let whom = state.clients.iter().filter(|client| to.is_none_or(|id| client.id == id));
        whom.for_each(|client| client.message(channel, message));
    }

    /// Waits until somebody subscribes, unsubscribes or leaves, at most so long; who has subscribed
    /// to what since the last call.
    pub(crate) fn wait(&self, until: Instant) -> Vec<(u32, u64)> {
        let mut state = self.state();
        while !state.asked {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.asked = false;
        let newcomers = std::mem::take(&mut state.newcomers);
        let there =
            newcomers.into_iter().filter(|(s, _)| state.channels.contains_key(&s.channel_id));
        let let_in = |(one, client): (Subscription, Arc<Client>)| {
            if client.subscribe(one.id, one.channel_id) {
                return Some((one.channel_id, client.id));
            }
            let id = one.id;
            refuse(&client, &format!("subscription {id} exists, or there are too many"));
            None
        };
        there.filter_map(let_in).collect()
    }

    /// Warns the clients that lose messages, each of its own losses.
    pub(crate) fn tell_losses(&self) {
        let state = self.state();
        for client in &state.clients {
            for (id, dropped) in client.news_of_losses() {
                let Some(channel) = state.channels.get(&id) else { continue };
                let topic = &channel.topic;
                let message = format!(
                    "{topic}: {dropped} messages were left out because this viewer, or the link to \
                     it, is too slow; outlive view --rate {topic}=HZ sends fewer"
                );
                let id = format!("slow {topic}");
                let told = Told::Status { level: wire::WARNING, message: &message, id: Some(&id) };
                client.control(told.frame());
            }
        }
    }

    /// Warns everybody.
    pub(crate) fn warn(&self, id: &str, message: &str) {
        let frame = Told::Status { level: wire::WARNING, message, id: Some(id) }.frame();
        self.state().clients.iter().for_each(|client| client.control(frame.clone()));
    }

    /// Who is connected, and what became of messages; the first is everybody who has left.
    pub(crate) fn counts(&self) -> (Counts, Vec<(SocketAddr, Counts)>) {
        let state = self.state();
        (state.past, state.clients.iter().map(|c| (c.peer, c.counts())).collect())
    }

    /// Says goodbye.
    pub(crate) fn end(&self) {
        let clients = self.state().clients.clone();
        let until = Instant::now() + END;
        for client in &clients {
            // Close, because the server goes away.
            client.control(vec![0x88, 2, 0x03, 0xe9]);
            client.end();
        }
        clients.iter().for_each(|client| client.await_end(until));
    }

    fn serve(self: &Arc<Self>, stream: Arc<TcpStream>, mut place: Place) -> io::Result<()> {
        let peer = stream.peer_addr()?;
        stream.set_nodelay(true)?;
        let socket = socket2::SockRef::from(&*stream);
        socket.set_send_buffer_size(SOCKET_BYTES)?;
        // Finds out that the other machine is gone.
        socket.set_keepalive(true)?;
        let config = WebSocketConfig::default()
            .read_buffer_size(16 << 10)
            .max_message_size(Some(ASKED_BYTES_MAX))
            .max_frame_size(Some(ASKED_BYTES_MAX));
        #[allow(clippy::result_large_err, reason = "the library's")]
        let check =
            |request: &Request, response: Response| self.check(request, response, &mut place);
        let line = Line::new(stream.clone());
        let Ok(mut socket) = accept_hdr_with_config(line, check, Some(config)) else {
            return Ok(());
        };
        let id = self.next_client.fetch_add(1, Relaxed);
        let client = Client::new(id, peer, Some(stream.clone()));
        socket.get_mut().lead_to(client.clone())?;
        let writer = client.clone();
        thread::Builder::new().spawn(move || writer.write(&stream))?;
        self.join(&client);
        loop {
            match socket.read() {
                Ok(Frame::Text(text)) => self.asked(&client, text.as_str()),
                Ok(Frame::Binary(_)) => refuse(&client, "it only shows: nothing can be sent to it"),
                Ok(Frame::Close(_)) | Err(_) => break,
                Ok(_) => {}
            }
        }
        // The answer to a close.
        let _ = socket.flush();
        client.end();
        self.leave(&client);
        client.await_end(Instant::now() + GOODBYE);
        // The thread that sends ends, too, before the place is free.
        client.cut_off();
        Ok(())
    }

    #[allow(clippy::result_large_err, reason = "the library's")]
    fn check(
        &self,
        request: &Request,
        mut response: Response,
        place: &mut Place,
    ) -> Result<Response, ErrorResponse> {
        let refused = |status, why: String| {
            let mut refused = ErrorResponse::new(Some(why));
            *refused.status_mut() = status;
            refused
        };
        let header = |name: &str| {
            let all = request.headers().get_all(name).into_iter();
            all.filter_map(|value| value.to_str().ok()).collect::<Vec<_>>()
        };
        if let Some(origin) = header("origin").first()
            && !wire::may_look(Some(origin), &self.origins)
        {
            let remedy = format!("--origin {origin} lets it in");
            self.trouble(format_args!("a page of {origin} is turned away; {remedy}"));
            let why = format!("pages of {origin} may not look: outlive view --origin {origin}");
            return Err(refused(StatusCode::FORBIDDEN, why));
        }
        let offered = header("sec-websocket-protocol");
        let offered: Vec<_> = offered.iter().flat_map(|o| o.split(',')).map(str::trim).collect();
        let Some(protocol) = wire::PROTOCOLS.iter().find(|p| offered.contains(p)) else {
            let why = format!("speak one of {}", wire::PROTOCOLS.join(", "));
            return Err(refused(StatusCode::BAD_REQUEST, why));
        };
        if !place.finish() {
            let why = format!("there are {CLIENTS_MAX} viewers: close one");
            self.trouble(format_args!("a viewer is turned away: {why}"));
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        response.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static(protocol));
        Ok(response)
    }

    /// Tells a new client what there is, and lets it hear what comes.
    fn join(&self, client: &Arc<Client>) {
        let mut state = self.state();
        let metadata = [("outlive-view", env!("CARGO_PKG_VERSION"))].into();
        let (name, session_id) = (self.name.as_str(), self.session.as_str());
        client.control(Told::ServerInfo { name, capabilities: [], metadata, session_id }.frame());
        let channels: Vec<_> = state.channels.values().cloned().collect();
        if !channels.is_empty() {
            client.control(Told::Advertise { channels: &channels }.frame());
        }
        state.clients.push(client.clone());
    }

    fn leave(&self, client: &Client) {
        let mut state = self.state();
        state.clients.retain(|other| other.id != client.id);
        state.newcomers.retain(|(_, other)| other.id != client.id);
        let Counts { sent, sent_bytes, dropped } = client.counts();
        state.past.sent += sent;
        state.past.sent_bytes += sent_bytes;
        state.past.dropped += dropped;
        state.asked = true;
        self.changed.notify_all();
    }

    fn asked(&self, client: &Arc<Client>, text: &str) {
        let asked = match serde_json::from_str(text) {
            Ok(asked) => asked,
            Err(e) => return refuse(client, &format!("this is not understood: {e}")),
        };
        let mut state = self.state();
        match asked {
            Asked::Subscribe { subscriptions } => {
                for one in subscriptions {
                    let channel = one.channel_id;
                    // It may have gone while the client asked for it.
                    if state.channels.contains_key(&channel) {
                        state.newcomers.push((one, client.clone()));
                    } else {
                        refuse(client, &format!("there is no channel {channel}"));
                    }
                }
            }
            Asked::Unsubscribe { subscription_ids } => {
                for id in subscription_ids {
                    let before = state.newcomers.len();
                    state.newcomers.retain(|(new, of)| new.id != id || of.id != client.id);
                    if state.newcomers.len() == before && !client.unsubscribe(id) {
                        refuse(client, &format!("there is no subscription {id}"));
                    }
                }
            }
            Asked::Other => refuse(client, "it only shows: this cannot be asked of it"),
        }
        state.asked = true;
        self.changed.notify_all();
    }
}

fn refuse(client: &Client, why: &str) {
    let message = format!("outlive view: {why}");
    client.control(Told::Status { level: wire::ERROR, message: &message, id: None }.frame());
}
