//! The task's side of an exchange: gives the answer's head, its bytes and its end, and waits for a client that reads slowly.

use super::state::{wait, Exchange, Head, State, HIGH_WATER_BYTES};
use bytes::Bytes;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// The answer of [`Exchange::poll_room`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Free,
    ClientGone,
}

impl Exchange {
    /// The task has dealt with so much of what the front gave.
    pub fn accept(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.given_bytes = state.given_bytes.saturating_sub(bytes);
        if state.given_bytes <= HIGH_WATER_BYTES {
            self.wake_front(state);
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled
    }

    pub fn is_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Whether a head went to the front: from here on a failure is told in the body.
    pub fn is_headed(&self) -> bool {
        self.state.lock().headed
    }

    /// A whole answer at once: one wake-up.
    pub fn answer(&self, head: Head, body: Bytes) {
        let mut state = self.state.lock();
        if state.headed || state.ended {
            return;
        }
        let mut capture = state.capture.take();
        if let Some(capture) = &mut capture {
            capture.head(head.status, &head.headers);
            capture.hear(&body);
        }
        state.headed = true;
        state.head = Some(head);
        if !body.is_empty() {
            state.buffered_bytes += body.len();
            state.chunks.push_back(body);
        }
        state.ended = true;
        state.is_whole = true;
        self.wake_front(state);
        if let Some(capture) = capture {
            capture.end();
        }
    }

    /// The head, and the first bytes with it.
    pub fn start(&self, head: Head, chunks: impl IntoIterator<Item = Bytes>) {
        let mut state = self.state.lock();
        if state.headed || state.ended {
            return;
        }
        if let Some(capture) = &mut state.capture {
            capture.head(head.status, &head.headers);
        }
        state.headed = true;
        state.head = Some(head);
        append(&mut state, chunks);
        self.wake_front(state);
    }

    /// More bytes. Nothing is told to a front that has not asked.
    pub fn push(&self, chunks: impl IntoIterator<Item = Bytes>) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        append(&mut state, chunks);
        if !state.chunks.is_empty() {
            self.wake_front(state);
        }
    }

    /// The end, and the last bytes before it.
    pub fn end(&self, chunks: impl IntoIterator<Item = Bytes>) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        append(&mut state, chunks);
        state.ended = true;
        let capture = state.capture.take();
        self.wake_front(state);
        if let Some(capture) = capture {
            capture.end();
        }
    }

    /// Stops short: what was sent is not whole and nothing more can be said. Without effect after the end.
    pub fn abort(&self) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        state.headed = true;
        state.ended = true;
        state.aborted = true;
        let capture = state.capture.take();
        self.wake_front(state);
        drop(capture);
    }

    /// Notes that the request did not end well, before its answer ends.
    pub fn mark_failed(&self) {
        self.state.lock().failed = true;
    }

    pub fn has_failed(&self) -> bool {
        self.state.lock().failed
    }

    /// Ready when the client is gone, or when there is room again. Registers the caller for both, so the caller may poll
    /// other things beside it.
    pub fn poll_room(&self, cx: &Context<'_>) -> Poll<Room> {
        let mut state = self.state.lock();
        if state.cancelled {
            return Poll::Ready(Room::ClientGone);
        }
        wait(&mut state.task, cx);
        if state.buffered_bytes > HIGH_WATER_BYTES {
            Poll::Pending
        } else {
            Poll::Ready(Room::Free)
        }
    }

    /// Ends when the client has left. Shares its place with [`Exchange::poll_room`], so both are for one task.
    pub async fn gone(&self) {
        poll_fn(|cx| match self.poll_room(cx) {
            Poll::Ready(Room::ClientGone) => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
    }
}

fn append(state: &mut State, chunks: impl IntoIterator<Item = Bytes>) {
    if state.cancelled {
        return;
    }
    for chunk in chunks {
        if !chunk.is_empty() {
            if let Some(capture) = &mut state.capture {
                capture.hear(&chunk);
            }
            state.buffered_bytes += chunk.len();
            state.chunks.push_back(chunk);
        }
    }
}
