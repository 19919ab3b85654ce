//! The CSV table of one topic.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use outlive::{Encoding, PayloadType};
use outlive_record::decode::Path as Part;
use outlive_record::{Message, Source};

use crate::csv::{cell, head, quoted};
use crate::exit::Failure;
use crate::topic::decode::{Decoder, Read};

/// Bytes that become hexadecimal digits at once.
const HEX_BYTES: usize = 64 << 10;

pub(super) struct Table {
    path: PathBuf,
    out: BufWriter<File>,
    decoder: Decoder,
    is_images: bool,
    /// Paths of the payload's parts, once there was a message.
    columns: Option<Vec<Part>>,
}

impl Table {
    pub(super) fn create(base: &Path, of: &PayloadType, is_images: bool) -> Result<Self, Failure> {
        let mut path = base.as_os_str().to_owned();
        path.push(".csv");
        let path = PathBuf::from(path);
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(|e| Failure::io_at("make", dir, &e))?;
        }
        let file = File::create(&path).map_err(|e| Failure::io_at("create", &path, &e))?;
        let decoder = Decoder::of_type(of, true);
        Ok(Self { path, out: BufWriter::new(file), decoder, is_images, columns: None })
    }

    /// Appends a message; of an image `file`, where it was written, and not its pixels. False if
    /// it is not of its type, and has no row.
    pub(super) fn row(
        &mut self,
        message: &Message<'_>,
        source: &Source,
        payload: &[u8],
        file: &str,
    ) -> Result<bool, Failure> {
        let Some(read) = self.decoder.read(payload) else { return Ok(false) };
        let mut text = String::new();
        let columns = match self.columns.take() {
            Some(columns) => columns,
            None => {
                let columns = self.first_columns(source, &read);
                text += "log_time_ns,publish_time_ns,publisher,seq,bytes";
                text += &head(&columns);
                text += if self.is_images { ",file\n" } else { "\n" };
                columns
            }
        };
        let Message { log_time, publish_time, sequence, .. } = message;
        let (publisher, bytes) = (&source.publisher, payload.len());
        text += &format!("{log_time},{publish_time},{},{sequence},{bytes}", quoted(publisher));
        for path in &columns {
            text.push(',');
            text += &read.part(path).map_or(String::new(), |v| cell(&v));
        }
        if columns.is_empty() {
            text.push(',');
            // In pieces: as text it is twice as long.
            for piece in payload.chunks(HEX_BYTES) {
                for byte in piece {
                    let _ = write!(text, "{byte:02x}");
                }
                self.out
                    .write_all(text.as_bytes())
                    .map_err(|e| Failure::io_at("write", &self.path, &e))?;
                text.clear();
            }
        }
        if self.is_images {
            text += &format!(",{}", quoted(file));
        }
        text.push('\n');
        self.columns = Some(columns);
        self.out.write_all(text.as_bytes()).map_err(|e| Failure::io_at("write", &self.path, &e))?;
        Ok(true)
    }

    fn first_columns(&self, source: &Source, first: &Read<'_>) -> Vec<Part> {
        let mut columns = self.decoder.columns(first);
        if self.is_images && source.payload_type.encoding() == Encoding::Headed {
            // The pixels.
            columns.pop();
        }
        columns
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|e| Failure::io_at("write", &self.path, &e))
    }
}
