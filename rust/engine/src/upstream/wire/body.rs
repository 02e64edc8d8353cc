//! A request body as a list of chunks. Additions to a caller's body are separate chunks, so nothing is copied. A chunk
//! may also be a range of a file, which is read while it is sent.

use crate::blocking::{self, Blocking};
use bytes::{Buf as _, Bytes};
use fairlead_dialect::Pieces;
use smallvec::SmallVec;
use std::fs::File;
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

/// The number of bytes per read of a file.
const READ_BYTES: u64 = 256 * 1024;

/// A part of a body.
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

/// The body of a request to a provider, in slices that are written in order.
#[derive(Debug, Default)]
pub struct BodySlices {
    parts: SmallVec<[Chunk; 4]>,
    /// The index of the first chunk with unsent bytes.
    next: usize,
    left_bytes: u64,
    /// Bytes that were read from the current file.
    loaded: Bytes,
    reading: Option<Blocking<io::Result<Bytes>>>,
}

impl BodySlices {
    pub fn new(parts: Pieces) -> Self {
        Self::mixed(parts.into_iter().map(Chunk::Bytes))
    }

    pub fn mixed(parts: impl IntoIterator<Item = Chunk>) -> Self {
        let parts: SmallVec<[Chunk; 4]> = parts.into_iter().filter(|part| part.size() > 0).collect();
        let left_bytes = parts.iter().map(Chunk::size).sum();
        Self { parts, left_bytes, ..Self::default() }
    }

    /// The number of unsent bytes.
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Ensures that [`BodySlices::slices`] returns data, unless everything is sent.
    pub fn poll_load(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let (true, Some(Chunk::File { file, start, end })) = (self.loaded.is_empty(), self.parts.get_mut(self.next))
        {
            let reading = self.reading.get_or_insert_with(|| {
                let (file, from, until) = (Arc::clone(file), *start, (*start + READ_BYTES).min(*end));
                blocking::disk(move || {
                    let mut bytes = vec![0; (until - from) as usize];
                    file.read_exact_at(&mut bytes, from).map(|()| Bytes::from(bytes))
                })
            });
            let read = ready!(Pin::new(reading).poll(cx));
            self.reading = None;
            self.loaded = read.and_then(|read| read)?;
            *start += self.loaded.len() as u64;
        }
        Poll::Ready(Ok(()))
    }

    /// The slices that can be written now, in order.
    pub fn slices<'a>(&'a self, into: &mut SmallVec<[IoSlice<'a>; 8]>) {
        if !self.loaded.is_empty() {
            return into.push(IoSlice::new(&self.loaded));
        }
        for part in &self.parts[self.next..] {
            match part {
                Chunk::Bytes(bytes) if into.len() < into.inline_size() => into.push(IoSlice::new(bytes)),
                _ => return,
            }
        }
    }

    /// Marks this many bytes as written.
    pub fn advance(&mut self, mut bytes: usize) {
        self.left_bytes -= bytes as u64;
        if !self.loaded.is_empty() {
            self.loaded.advance(bytes);
            if self.loaded.is_empty() {
                // An empty buffer still owns its memory.
                self.loaded = Bytes::new();
            }
            bytes = 0;
        }
        while let Some(part) = self.parts.get_mut(self.next) {
            if let Chunk::Bytes(part) = part {
                let amount = bytes.min(part.len());
                part.advance(amount);
                bytes -= amount;
            }
            if part.size() > 0 || !self.loaded.is_empty() {
                return;
            }
            // Frees the memory of sent data.
            *part = Chunk::default();
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn first(body: &BodySlices) -> Vec<u8> {
        let mut slices = SmallVec::new();
        body.slices(&mut slices);
        slices.iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn what_was_written_is_gone_from_the_front() {
        let mut body = BodySlices::new(Pieces::from_iter([&b"ab"[..], b"", b"cd", b"e"].map(Bytes::from_static)));
        assert_eq!((first(&body), body.left_bytes()), (b"abcde".to_vec(), 5));
        body.advance(3);
        assert_eq!((first(&body), body.left_bytes()), (b"de".to_vec(), 2));
        body.advance(2);
        assert_eq!((first(&body), body.left_bytes()), (Vec::new(), 0));
    }

    #[tokio::test]
    async fn a_file_is_read_as_it_is_sent() {
        let mut file = std::env::temp_dir();
        file.push(format!("fairlead-body-{}", std::process::id()));
        let text: Vec<u8> = (0..READ_BYTES as usize + 10).map(|at| at as u8).collect();
        File::create(&file).and_then(|mut file| file.write_all(&text)).expect("a file");
        let opened = Arc::new(File::open(&file).expect("the file"));
        std::fs::remove_file(&file).expect("removed");
        let stretch = Chunk::File { file: opened, start: 5, end: text.len() as u64 };
        let mut body = BodySlices::mixed([
            Chunk::Bytes(Bytes::from_static(b"<")),
            stretch,
            Chunk::Bytes(Bytes::from_static(b">")),
        ]);
        let mut sent = Vec::new();
        while body.left_bytes() > 0 {
            std::future::poll_fn(|cx| body.poll_load(cx)).await.expect("read");
            let now = first(&body);
            let size = now.len().min(100_000);
            sent.extend_from_slice(&now[..size]);
            body.advance(size);
        }
        assert_eq!(sent, [b"<", &text[5..], b">"].concat());
    }

    #[tokio::test]
    async fn a_file_that_became_shorter_is_a_fault() {
        let opened = Arc::new(File::open("/dev/null").expect("a file"));
        let mut body = BodySlices::mixed([Chunk::File { file: opened, start: 0, end: 10 }]);
        assert!(std::future::poll_fn(|cx| body.poll_load(cx)).await.is_err());
    }
}
