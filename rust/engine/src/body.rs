//! A request body as a list of chunks: what is spliced into a caller's body goes out beside it, and nothing is copied. A
//! chunk may also be a stretch of a file, which is read as it is sent.

use bytes::Bytes;
use fairlead_dialect::Pieces;
use http_body::{Body, Frame, SizeHint};
use std::fs::File;
use std::future::Future as _;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::JoinHandle;

/// What is read of a file at once.
const READ_BYTES: u64 = 256 * 1024;

/// A stretch of a body.
#[derive(Debug, Clone)]
pub enum Chunk {
    Bytes(Bytes),
    File { file: Arc<File>, start: u64, end: u64 },
}

impl Default for Chunk {
    fn default() -> Self {
        Self::Bytes(Bytes::new())
    }
}

impl Chunk {
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { start, end, .. } => end.saturating_sub(*start),
        }
    }
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Sliced {
    // On the heap: a connection has room for many requests in the making, each with its body.
    parts: Vec<Chunk>,
    next: usize,
    left_bytes: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Sliced {
    pub fn new(parts: Pieces) -> Self {
        Self::mixed(parts.into_iter().map(Chunk::Bytes))
    }

    pub fn mixed(parts: impl IntoIterator<Item = Chunk>) -> Self {
        let parts: Vec<Chunk> = parts.into_iter().collect();
        let left_bytes = parts.iter().map(Chunk::size).sum();
        Self { parts, next: 0, left_bytes, reading: None }
    }
}

impl Body for Sliced {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let Poll::Ready(read) = Pin::new(reading).poll(cx) else { return Poll::Pending };
                self.reading = None;
                let bytes = match read.unwrap_or_else(|_| Err(io::Error::other("the read did not end"))) {
                    Ok(bytes) => bytes,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                };
                self.left_bytes -= bytes.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let next = self.next;
            match self.parts.get_mut(next) {
                None => return Poll::Ready(None),
                Some(Chunk::File { file, start, end }) if *start < *end => {
                    let (file, from, until) = (Arc::clone(file), *start, (*start + READ_BYTES).min(*end));
                    *start = until;
                    self.reading = Some(tokio::task::spawn_blocking(move || {
                        let mut bytes = vec![0; (until - from) as usize];
                        file.read_exact_at(&mut bytes, from).map(|()| Bytes::from(bytes))
                    }));
                }
                Some(part) => {
                    let part = std::mem::take(part);
                    self.next += 1;
                    if let Chunk::Bytes(bytes) = part {
                        if !bytes.is_empty() {
                            self.left_bytes -= bytes.len() as u64;
                            return Poll::Ready(Some(Ok(Frame::data(bytes))));
                        }
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes)
    }
}
