//! A request body as a list of slices: what is spliced into a caller's body goes out beside it, and nothing is copied.

use bytes::Bytes;
use fairlead_dialect::Pieces;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// See the module's page.
#[derive(Debug, Clone, Default)]
pub struct Sliced {
    parts: Pieces,
    next: usize,
    left_bytes: u64,
}

impl Sliced {
    pub fn new(parts: Pieces) -> Self {
        let left_bytes = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts, next: 0, left_bytes }
    }
}

impl Body for Sliced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            let next = self.next;
            let Some(part) = self.parts.get_mut(next).map(std::mem::take) else { return Poll::Ready(None) };
            self.next += 1;
            if !part.is_empty() {
                self.left_bytes -= part.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(part))));
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
