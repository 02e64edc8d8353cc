//! A form in transfer. It is parsed as it arrives, and a large form is stored on disk.
//!
//! The front passes pieces and never waits for the disk. A task of the engine parses the form, so that an invalid form
//! is refused early. It keeps a small body in memory and writes a larger one to an unlinked file, so that nothing
//! remains after a crash. A front that is faster than the disk is asked to wait.
//!
//! ```text
//! front: push* -> end         task: parse, write, accept*  -> Stored, or the error
//! ```

use crate::blocking;
use crate::exchange::Exchange;
use crate::gate::inbound;
use crate::shared::{Gauge, GaugePermit, Shared};
use crate::upstream::failure::unreadable;
use crate::upstream::wire::Chunk;
use bytes::{Bytes, BytesMut};
use fairlead_core::multipart::{Form, Part, Reader};
use fairlead_core::{hex, random_bytes, Error, ErrorKind, Outcome};
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Bodies up to this size stay in memory.
const MEMORY_BYTES: usize = 64 * 1024;
/// The total size of forms on disk.
const MAX_SPOOLED_BYTES: usize = 16 * 1024 * 1024 * 1024;
/// Disk space that uploads leave free, because records, keys and the snapshot must still be written.
const FREE_BYTES_KEPT: u64 = 256 * 1024 * 1024;
/// The number of bytes per write.
const WRITE_BYTES: usize = 256 * 1024;

/// A complete form.
#[derive(Debug)]
pub struct Stored {
    pub form: Form,
    pub bytes: u64,
    pub boundary: String,
    content: Content,
    _spooled: Option<GaugePermit>,
}

#[derive(Debug)]
enum Content {
    Memory(Bytes),
    File(Arc<File>),
}

/// The front's handle of an upload.
#[derive(Debug)]
pub struct Upload {
    exchange: Arc<Exchange>,
    pieces: mpsc::UnboundedSender<Bytes>,
    fault: Arc<Mutex<Option<(Outcome, Error)>>>,
    receipt: Receipt,
}

/// The result of the writing task.
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<Result<Stored, (Outcome, Error)>>);

impl Receipt {
    /// Returns the receipt of a form that is already stored.
    pub fn of(stored: Stored) -> Self {
        let (done, receipt) = oneshot::channel();
        // The receiver exists until the next line, so sending cannot fail.
        let _sent = done.send(Ok(stored));
        Self(receipt)
    }

    /// Waits until everything is stored.
    pub async fn stored(self) -> Result<Stored, (Outcome, Error)> {
        self.0.await.unwrap_or_else(|_| Err(refused(Error::gateway(ErrorKind::Internal, "The upload is incomplete."))))
    }
}

impl Stored {
    /// Returns a range of the body.
    pub fn chunk(&self, start: u64, end: u64) -> Chunk {
        match &self.content {
            Content::Memory(bytes) => Chunk::Bytes(bytes.slice(start as usize..end as usize)),
            Content::File(file) => Chunk::File { file: Arc::clone(file), start, end },
        }
    }

    pub fn part(&self, part: &Part) -> Chunk {
        self.chunk(part.start, part.end)
    }

    /// Returns a digest of the form's parts in order: their names and contents, without what separates them.
    pub async fn digest(&self) -> Result<[u8; 32], Error> {
        let mut context = Context::new(&SHA256);
        for part in &self.form.parts {
            for name in [Some(part.name.as_str()), part.file_name.as_deref(), part.content_type.as_deref()] {
                add(&mut context, name.unwrap_or_default().as_bytes());
            }
            context.update(&(part.end - part.start).to_le_bytes());
            context = match self.part(part) {
                Chunk::Bytes(bytes) => {
                    context.update(&bytes);
                    context
                }
                Chunk::File { file, start, end } => {
                    let work = move || read_into(context, &file, start, end);
                    blocking::disk(work).await.and_then(|read| read).map_err(|_| unreadable())?
                }
            };
        }
        context.finish().as_ref().try_into().map_err(|_| unreadable())
    }
}

impl Upload {
    /// Starts an upload. Every piece must be passed, and then the end. Dropping the upload discards it.
    pub fn begin(shared: &Arc<Shared>, exchange: &Arc<Exchange>, content_type: Option<&[u8]>) -> Result<Self, Error> {
        let boundary = inbound::boundary(content_type)?;
        let Some(runtime) = shared.runtime() else {
            return Err(Error::gateway(ErrorKind::Internal, "The engine does not run."));
        };
        let (pieces, given) = mpsc::unbounded_channel();
        let (done, receipt) = oneshot::channel();
        let fault = Arc::new(Mutex::new(None));
        let (failure, own, shared) = (Arc::clone(&fault), Arc::clone(exchange), Arc::clone(shared));
        let boundary = boundary.to_owned();
        let mut task = Task {
            shared,
            reader: Reader::new(&boundary),
            boundary,
            memory: BytesMut::new(),
            file: None,
            spooled: None,
            bytes: 0,
        };
        // The task ends when the front drops its handle. The holder of the receipt gets the result.
        drop(runtime.spawn(async move {
            let outcome = task.run(given, &own).await;
            if let Err(fault) = &outcome {
                *failure.lock() = Some(fault.clone());
                own.accept(usize::MAX);
            }
            let stored = outcome.and_then(|()| task.store());
            // Nobody waits for the form of a caller that left.
            let _sent = done.send(stored);
        }));
        Ok(Self { exchange: Arc::clone(exchange), pieces, fault, receipt: Receipt(receipt) })
    }

    pub fn push(&mut self, piece: &[u8]) -> Result<(), (Outcome, Error)> {
        if let Some(fault) = self.fault.lock().take() {
            return Err(fault);
        }
        if !piece.is_empty() {
            self.exchange.give(piece.len());
            // A task that has ended left an error, which the next piece or the receipt returns.
            let _given = self.pieces.send(Bytes::copy_from_slice(piece));
        }
        Ok(())
    }

    pub fn end(self) -> Receipt {
        self.receipt
    }
}

struct Task {
    shared: Arc<Shared>,
    reader: Reader,
    boundary: String,
    memory: BytesMut,
    file: Option<Arc<File>>,
    spooled: Option<GaugePermit>,
    bytes: u64,
}

impl Task {
    async fn run(
        &mut self,
        mut given: mpsc::UnboundedReceiver<Bytes>,
        exchange: &Exchange,
    ) -> Result<(), (Outcome, Error)> {
        while let Some(piece) = given.recv().await {
            self.reader.push(&piece).map_err(|fault| refused(broken(&fault.to_string())))?;
            self.bytes += piece.len() as u64;
            self.memory.extend_from_slice(&piece);
            let free_bytes = if self.file.is_some() { WRITE_BYTES } else { MEMORY_BYTES };
            if self.memory.len() > free_bytes {
                self.write().await?;
            }
            exchange.accept(piece.len());
        }
        if self.file.is_some() && !self.memory.is_empty() {
            self.write().await?;
        }
        Ok(())
    }

    async fn write(&mut self) -> Result<(), (Outcome, Error)> {
        let piece = self.memory.split().freeze();
        let is_counted = if let Some(permit) = &mut self.spooled {
            permit.grow(piece.len(), MAX_SPOOLED_BYTES)
        } else {
            self.spooled = GaugePermit::take(&self.shared, Gauge::SpooledBytes, piece.len(), MAX_SPOOLED_BYTES);
            self.spooled.is_some()
        };
        if !is_counted {
            let message = "Too many concurrent uploads; try again shortly.";
            return Err((Outcome::Shed, Error::gateway(ErrorKind::Overloaded, message).after_s(5)));
        }
        let file = self.file.clone();
        let dir = self.shared.config.data_dir.join("uploads");
        let work = move || {
            let file = match file {
                Some(file) => file,
                None => Arc::new(nameless(&dir)?),
            };
            if !has_disk_space(&file, piece.len(), FREE_BYTES_KEPT)? {
                return Err(io::ErrorKind::StorageFull.into());
            }
            (&*file).write_all(&piece).map(|()| file)
        };
        let written = blocking::disk(work).await;
        let file = written.and_then(|written| written).map_err(|error| {
            tracing::error!(%error, "an upload cannot be written");
            let message = if error.kind() == io::ErrorKind::StorageFull {
                format!(
                    "The gateway's disk is too full for the upload: {} MiB must stay free.",
                    FREE_BYTES_KEPT / (1024 * 1024)
                )
            } else {
                "The upload cannot be written to disk.".to_owned()
            };
            refused(Error::gateway(ErrorKind::StorageUnavailable, message).after_s(30))
        })?;
        self.file = Some(file);
        Ok(())
    }

    fn store(self) -> Result<Stored, (Outcome, Error)> {
        let form = self.reader.finish().map_err(|fault| refused(broken(&fault.to_string())))?;
        let content = match self.file {
            Some(file) => Content::File(file),
            None => Content::Memory(self.memory.freeze()),
        };
        Ok(Stored { form, bytes: self.bytes, boundary: self.boundary, content, _spooled: self.spooled })
    }
}

/// Includes the length, so that different lists of texts never give the same bytes.
fn add(context: &mut Context, text: &[u8]) {
    context.update(&(text.len() as u64).to_le_bytes());
    context.update(text);
}

fn read_into(mut context: Context, file: &File, start: u64, end: u64) -> io::Result<Context> {
    let mut buffer = vec![0; WRITE_BYTES];
    let mut at = start;
    while at < end {
        let free_bytes = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        file.read_exact_at(&mut buffer[..free_bytes], at)?;
        context.update(&buffer[..free_bytes]);
        at += free_bytes as u64;
    }
    Ok(context)
}

/// Whether the disk of the file has enough space left after this many more bytes.
fn has_disk_space(file: &File, more: usize, reserve: u64) -> io::Result<bool> {
    let disk = rustix::fs::fstatvfs(file)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize) >= reserve.saturating_add(more as u64))
}

fn refused(error: Error) -> (Outcome, Error) {
    (Outcome::Refused, error)
}

fn broken(fault: &str) -> Error {
    Error::client(ErrorKind::InvalidRequest, format!("The body cannot be read. {fault}"))
}

/// Creates a file that disappears when it is closed.
fn nameless(dir: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let name = random_bytes::<16>().map(|bytes| hex(&bytes)).map_err(io::Error::other)?;
    let path = dir.join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_keeps_room_for_records() {
        let dir = std::env::temp_dir().join(format!("fairlead-upload-{}", std::process::id()));
        let file = nameless(&dir).expect("a file");
        assert!(has_disk_space(&file, 1, 0).expect("a disk"));
        assert!(!has_disk_space(&file, 1, u64::MAX - 1).expect("a disk"), "no disk has so much");
        std::fs::remove_dir(&dir).expect("nothing is left in it");
    }
}
