//! The front's side of an exchange: takes the head and the body of the response as they arrive, and reports that the
//! client has left.

use super::state::{wait, Exchange, Head, State, HIGH_WATER_BYTES};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::task::{Context, Poll};

/// The task resumes below this many buffered bytes.
const LOW_WATER_BYTES: usize = 64 * 1024;
/// The maximum number of bytes that the front takes at once. Servers limit their buffers by messages, so the size of a
/// message must be limited too.
pub(super) const MAX_TAKE_BYTES: usize = 32 * 1024;

/// Bytes that a front with threads has taken.
#[derive(Debug, Default)]
pub struct Taken {
    pub chunks: Vec<Bytes>,
    /// No more bytes will follow.
    pub ended: bool,
    /// The response is truncated. The front must reset the connection, so that it does not look complete.
    pub aborted: bool,
}

/// The next part of a response body, for a front that polls.
#[derive(Debug)]
pub enum Piece {
    Bytes(Bytes),
    /// The body is complete.
    End,
    /// The response is truncated. The front must reset the connection, so that it does not look complete.
    Abort,
}

impl Exchange {
    /// Takes the response head, once. `None` means that it is not ready and the front will be woken.
    pub fn take_head(&self) -> Option<Head> {
        let mut state = self.state.lock();
        let head = state.take_head();
        state.front_waits = head.is_none();
        head
    }

    /// Takes the available bytes, up to 32 KiB. `None` means that there are none yet and the front will be woken.
    pub fn take(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        if state.chunks.is_empty() && !state.ended {
            state.front_waits = true;
            return None;
        }
        let was_full = state.buffered_bytes > LOW_WATER_BYTES;
        if state.aborted {
            return Some(Taken { aborted: true, ended: true, chunks: Vec::new() });
        }
        let mut taken = Taken::default();
        let mut free_bytes = MAX_TAKE_BYTES;
        while let Some(mut chunk) = state.chunks.pop_front() {
            if chunk.len() > free_bytes {
                taken.chunks.push(chunk.split_to(free_bytes));
                state.chunks.push_front(chunk);
                break;
            }
            free_bytes -= chunk.len();
            taken.chunks.push(chunk);
        }
        state.buffered_bytes = state.chunks.iter().map(Bytes::len).sum();
        taken.ended = state.ended && state.chunks.is_empty();
        wake_task(&mut state, was_full);
        Some(taken)
    }

    /// Whether the front may pass more of a body that goes to disk. `false` means that it must wait and will be woken.
    pub fn has_capacity(&self) -> bool {
        let mut state = self.state.lock();
        let has_capacity = state.given_bytes <= HIGH_WATER_BYTES || state.ended || state.cancelled;
        state.front_waits |= !has_capacity;
        has_capacity
    }

    /// Counts bytes that the front has passed.
    pub fn give(&self, bytes: usize) {
        self.state.lock().given_bytes += bytes;
    }

    /// Returns the response head to a front that is a task. `None` means that the response was aborted before its head.
    pub fn poll_head(&self, cx: &Context<'_>) -> Poll<Option<Head>> {
        let mut state = self.state.lock();
        if state.head.is_some() || state.aborted {
            return Poll::Ready(state.take_head());
        }
        wait(&mut state.front, cx);
        Poll::Pending
    }

    /// Returns the next part of the response body to a front that is a task: everything available up to 32 KiB, with
    /// small chunks joined.
    pub fn poll_piece(&self, cx: &Context<'_>) -> Poll<Piece> {
        let mut state = self.state.lock();
        if state.aborted {
            return Poll::Ready(Piece::Abort);
        }
        let Some(first) = state.chunks.pop_front() else {
            if state.ended {
                return Poll::Ready(Piece::End);
            }
            wait(&mut state.front, cx);
            return Poll::Pending;
        };
        let was_full = state.buffered_bytes > LOW_WATER_BYTES;
        let piece = gather(first, &mut state.chunks);
        state.buffered_bytes -= piece.len();
        wake_task(&mut state, was_full);
        Poll::Ready(Piece::Bytes(piece))
    }

    /// The number of buffered bytes, and whether the response has ended.
    pub fn buffered(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.buffered_bytes, state.ended)
    }

    /// Takes the body of a response that was set at once. `None` means that it must be taken in parts.
    pub fn take_complete(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        if !state.is_complete {
            return None;
        }
        state.buffered_bytes = 0;
        Some(state.chunks.pop_front().unwrap_or_default())
    }

    /// Ready when the front may pass more of a body that goes to disk.
    pub fn poll_body_capacity(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.given_bytes <= HIGH_WATER_BYTES || state.ended || state.cancelled {
            return Poll::Ready(());
        }
        wait(&mut state.front, cx);
        Poll::Pending
    }

    /// Discards the waker of a front that is about to check without being woken.
    pub fn forget_waker(&self) {
        self.state.lock().front = None;
    }

    /// Reports that the client has left, so that the task stops and settles.
    pub fn cancel(&self) {
        let mut state = self.state.lock();
        state.cancelled = true;
        state.chunks.clear();
        let capture = state.capture.take();
        if let Some(task) = state.task.take() {
            task.wake();
        }
        drop((state, capture));
    }
}

/// Wakes the task after data that it waited for was taken.
fn wake_task(state: &mut State, was_full: bool) {
    if was_full && state.buffered_bytes <= LOW_WATER_BYTES {
        if let Some(task) = state.task.take() {
            task.wake();
        }
    }
}

/// Joins the first chunk with as many following ones as fit into a message, because each message has a cost for framing
/// and writing.
fn gather(first: Bytes, rest: &mut VecDeque<Bytes>) -> Bytes {
    let mut bytes = first.len();
    let count = rest
        .iter()
        .take_while(|chunk| {
            bytes += chunk.len();
            bytes <= MAX_TAKE_BYTES
        })
        .count();
    if count == 0 {
        return first;
    }
    let mut piece = BytesMut::with_capacity(bytes.min(MAX_TAKE_BYTES));
    piece.extend_from_slice(&first);
    for chunk in rest.drain(..count) {
        piece.extend_from_slice(&chunk);
    }
    piece.freeze()
}
