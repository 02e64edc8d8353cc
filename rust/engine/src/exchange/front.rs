//! The front's side of an exchange: takes the head and the body of the answer as they come, and says that the client is gone.

use super::state::{wait, Exchange, Head, State, HIGH_WATER_BYTES};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::task::{Context, Poll};

/// Below this many it goes on.
const LOW_WATER_BYTES: usize = 64 * 1024;
/// The most bytes that the front gets at once: servers bound what they hold by messages, so a message must be bounded too.
pub(super) const MAX_TAKE_BYTES: usize = 32 * 1024;

/// Bytes that a front with threads took at once.
#[derive(Debug, Default)]
pub struct Taken {
    pub chunks: Vec<Bytes>,
    /// Nothing comes after these chunks.
    pub ended: bool,
    /// The answer stops short: the front must break the connection, so that nobody takes it for whole.
    pub aborted: bool,
}

/// The next part of an answer's body, for a front that polls.
#[derive(Debug)]
pub enum Piece {
    Bytes(Bytes),
    /// Nothing comes any more.
    End,
    /// The answer stops short: the front must break the connection, so that nobody takes it for whole.
    Abort,
}

impl Exchange {
    /// The answer's head, once. `None`: not yet; the front will be woken.
    pub fn take_head(&self) -> Option<Head> {
        let mut state = self.state.lock();
        let head = state.take_head();
        state.front_waits = head.is_none();
        head
    }

    /// Takes the bytes that are ready, up to 32 KiB. `None`: nothing yet; the front will be woken.
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
        let mut room = MAX_TAKE_BYTES;
        while let Some(mut chunk) = state.chunks.pop_front() {
            if chunk.len() > room {
                taken.chunks.push(chunk.split_to(room));
                state.chunks.push_front(chunk);
                break;
            }
            room -= chunk.len();
            taken.chunks.push(chunk);
        }
        state.buffered_bytes = state.chunks.iter().map(Bytes::len).sum();
        taken.ended = state.ended && state.chunks.is_empty();
        wake_task(&mut state, was_full);
        Some(taken)
    }

    /// Whether the front may give more of a body that goes to disk. `false`: not yet; the front will be woken.
    pub fn has_room(&self) -> bool {
        let mut state = self.state.lock();
        let has_room = state.given_bytes <= HIGH_WATER_BYTES || state.ended || state.cancelled;
        state.front_waits |= !has_room;
        has_room
    }

    /// The front gave so much.
    pub fn give(&self, bytes: usize) {
        self.state.lock().given_bytes += bytes;
    }

    /// The answer's head for a front that is a task. `None`: there is no head, because the answer stops short before it.
    pub fn poll_head(&self, cx: &Context<'_>) -> Poll<Option<Head>> {
        let mut state = self.state.lock();
        if state.head.is_some() || state.aborted {
            return Poll::Ready(state.take_head());
        }
        wait(&mut state.front, cx);
        Poll::Pending
    }

    /// The next piece of the answer's body for a front that is a task: everything that is there, up to 32 KiB, small chunks
    /// as one.
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

    /// Bytes that the front may take now, and whether the answer is at its end.
    pub fn buffered(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.buffered_bytes, state.ended)
    }

    /// The body of an answer that was given whole. `None`: it is to be taken piece by piece.
    pub fn take_whole(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        if !state.is_whole {
            return None;
        }
        state.buffered_bytes = 0;
        Some(state.chunks.pop_front().unwrap_or_default())
    }

    /// Ready when the front may give more of a body that goes to disk.
    pub fn poll_room_to_give(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.given_bytes <= HIGH_WATER_BYTES || state.ended || state.cancelled {
            return Poll::Ready(());
        }
        wait(&mut state.front, cx);
        Poll::Pending
    }

    /// A front that is about to look by itself need not be told.
    pub fn forget_waker(&self) {
        self.state.lock().front = None;
    }

    /// The client is gone: the task stops and settles.
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

/// Wakes the task once what it waited for has been taken.
fn wake_task(state: &mut State, was_full: bool) {
    if was_full && state.buffered_bytes <= LOW_WATER_BYTES {
        if let Some(task) = state.task.take() {
            task.wake();
        }
    }
}

/// The first chunk, and as many behind it as fit into one message: each message costs its framing and a place in a write.
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
