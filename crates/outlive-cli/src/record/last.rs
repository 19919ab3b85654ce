//! `outlive record --last`: requests for a file, and their answers.

use outlive::msgpack;
use outlive::service::Request;
use outlive::{MsgPack, Node, Server};
use outlive_record::{Recorder, Saved};
use serde::Serialize;

use crate::clock::duration;
use crate::exit::{Failure, note};
use crate::os;
use crate::output::bytes;

/// Answer of the service.
#[derive(Serialize)]
struct Answer {
    file: String,
    messages: u64,
    seconds: f64,
    file_bytes: u64,
}

/// Those who ask: SIGUSR1, and a service.
pub(super) struct Asking {
    server: Server<[u8], MsgPack<Answer>>,
    /// For whom the file is that is being written.
    current: Option<Request<[u8]>>,
}

impl Asking {
    pub(super) fn new(node: &Node, service: &str) -> Result<Self, Failure> {
        os::catch_save_signal();
        let server = node.service::<[u8], MsgPack<Answer>>(service)?;
        let server = server.type_names("u8", "outlive/Saved").server()?;
        Ok(Self { server, current: None })
    }

    /// Begins files that were asked for, and reports those that are complete.
    pub(super) fn look(&mut self, recorder: &mut Recorder) -> Result<(), Failure> {
        if let Some(saved) = recorder.take_saved() {
            let asked = self.current.take();
            match saved {
                Ok(saved) => {
                    tell(&saved);
                    if let Some(request) = asked {
                        let answer = msgpack::encode(&answer(&saved))?;
                        let _ = self.server.respond(request, MsgPack::new(&answer));
                    }
                }
                // What is in memory may still fit elsewhere, or later.
                Err(e) => {
                    note(&e);
                    if let Some(request) = asked {
                        let _ = self.server.refuse(request, &e.to_string());
                    }
                }
            }
        }
        if recorder.is_saving() {
            return Ok(());
        }
        if let Some(request) = self.server.receive()? {
            recorder.save(&String::from_utf8_lossy(&request))?;
            self.current = Some(request);
        } else if os::take_save_asked() {
            recorder.save("SIGUSR1")?;
        }
        Ok(())
    }
}

fn answer(saved: &Saved) -> Answer {
    Answer {
        file: saved.path.display().to_string(),
        messages: saved.messages,
        seconds: saved.duration.as_secs_f64(),
        file_bytes: saved.file_bytes,
    }
}

fn tell(saved: &Saved) {
    note(format_args!(
        "saved {} messages, {}, into {} ({})",
        saved.messages,
        duration(saved.duration),
        saved.path.display(),
        bytes(saved.file_bytes),
    ));
}
