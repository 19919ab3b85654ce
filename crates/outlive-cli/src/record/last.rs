//! `outlive record --last`: requests for a file, and their answers.

use std::time::Duration;

use outlive::msgpack;
use outlive::service::Request;
use outlive::{MsgPack, Node, Server};
use outlive_record::{Error, Recorder, Saved};
use serde::Serialize;

use crate::clock::duration;
use crate::exit::{Failure, note};
use crate::os;
use crate::output::bytes;

/// Between two looks at the end whether the file is written.
const LOOK_EVERY: Duration = Duration::from_millis(5);

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
        // What is in memory may still fit elsewhere, or later.
        if let Some(Err(e)) = self.report(recorder) {
            note(e);
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

    /// Waits for the file that is being written, and begins no other.
    pub(super) fn finish(&mut self, recorder: &mut Recorder) -> Result<(), Error> {
        while recorder.is_saving() {
            std::thread::sleep(LOOK_EVERY);
            self.report(recorder).transpose()?;
        }
        Ok(())
    }

    /// Tells who asked what became of the file, once it is known.
    fn report(&mut self, recorder: &mut Recorder) -> Option<Result<(), Error>> {
        let saved = recorder.take_saved()?;
        let answer = saved.and_then(|saved| {
            tell(&saved);
            Ok(msgpack::encode(&answer(&saved))?)
        });
        if let Some(request) = self.current.take() {
            let _ = match &answer {
                Ok(answer) => self.server.respond(request, MsgPack::new(answer)),
                Err(e) => self.server.refuse(request, &e.to_string()),
            };
        }
        Some(answer.map(drop))
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
