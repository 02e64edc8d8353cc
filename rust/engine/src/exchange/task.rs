//! The task's side of an exchange: sends the head, the bytes and the end of the response, and waits for a slow client.

use super::state::{wait, Exchange, Head, State, HIGH_WATER_BYTES};
use bytes::Bytes;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// The result of [`Exchange::poll_capacity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    Free,
    ClientGone,
}

impl Exchange {
    /// Counts bytes from the front that the task has processed.
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

    /// Whether the head was sent. Afterwards a failure is reported in the body.
    pub fn is_headed(&self) -> bool {
        self.state.lock().headed
    }

    /// Sends a complete response at once, with a single wake-up.
    pub fn answer(&self, head: Head, body: Bytes) {
        let mut state = self.state.lock();
        if state.headed || state.ended {
            return;
        }
        let mut capture = state.capture.take();
        if let Some(capture) = &mut capture {
            capture.head(head.status, &head.headers);
            capture.record(&body);
        }
        state.headed = true;
        state.head = Some(head);
        if !body.is_empty() {
            state.buffered_bytes += body.len();
            state.chunks.push_back(body);
        }
        state.ended = true;
        state.is_complete = true;
        self.wake_front(state);
        if let Some(capture) = capture {
            capture.end();
        }
    }

    /// Sends the head together with the first bytes.
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

    /// Sends more bytes. A front that is not waiting is not notified.
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

    /// Sends the last bytes and ends the response.
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

    /// Aborts the response, which stays truncated. Has no effect after the end.
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

    /// Marks the request as failed before its response ends.
    pub fn mark_failed(&self) {
        self.state.lock().failed = true;
    }

    pub fn has_failed(&self) -> bool {
        self.state.lock().failed
    }

    /// Ready when the client has left or when there is capacity again. Registers the caller for both, so the caller may
    /// poll other things as well.
    pub fn poll_capacity(&self, cx: &Context<'_>) -> Poll<Capacity> {
        let mut state = self.state.lock();
        if state.cancelled {
            return Poll::Ready(Capacity::ClientGone);
        }
        wait(&mut state.task, cx);
        if state.buffered_bytes > HIGH_WATER_BYTES {
            Poll::Pending
        } else {
            Poll::Ready(Capacity::Free)
        }
    }

    /// Completes when the client has left. It shares its waker with [`Exchange::poll_capacity`], so only one task may use
    /// both.
    pub async fn gone(&self) {
        poll_fn(|cx| match self.poll_capacity(cx) {
            Poll::Ready(Capacity::ClientGone) => Poll::Ready(()),
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
                capture.record(&chunk);
            }
            state.buffered_bytes += chunk.len();
            state.chunks.push_back(chunk);
        }
    }
}
