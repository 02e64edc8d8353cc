//! The state of an exchange, which both sides share under a lock, and how each side waits for the other.

use crate::gate::cors::Cors;
use crate::observe::capture::Capture;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Waker};

/// Above this many unread bytes the task stops reading from the provider.
pub const HIGH_WATER_BYTES: usize = 256 * 1024;

/// The status and headers of a response.
#[derive(Debug)]
pub struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap<HeaderValue>,
}

/// Notifies a front that an exchange has data for it. Called from the engine's thread; must not block.
pub trait Wake: Send + Sync + std::fmt::Debug {
    fn wake(&self, exchange_id: u64);
}

#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, each set by one side")]
pub(super) struct State {
    pub(super) head: Option<Head>,
    pub(super) headed: bool,
    pub(super) chunks: VecDeque<Bytes>,
    pub(super) buffered_bytes: usize,
    pub(super) ended: bool,
    /// The response was set at once. A stream that ended before the front read it is still a stream.
    pub(super) is_complete: bool,
    pub(super) aborted: bool,
    pub(super) cancelled: bool,
    /// The response reports a failure, even if it looks complete.
    pub(super) failed: bool,
    /// The front found nothing and must be woken.
    pub(super) front_waits: bool,
    /// The waker of a front that is a task and found nothing.
    pub(super) front: Option<Waker>,
    /// The task waits for capacity, or for the client to leave.
    pub(super) task: Option<Waker>,
    /// The cross-origin headers of the response.
    pub(super) cors: Option<Cors>,
    /// Bytes that the front has passed and the task has not processed.
    pub(super) given_bytes: usize,
    /// Copies the response, if it is captured.
    pub(super) capture: Option<Box<Capture>>,
}

impl State {
    /// Takes the head. Every front gets it from here.
    pub(super) fn take_head(&mut self) -> Option<Head> {
        let mut head = self.head.take()?;
        if let Some(cors) = self.cors.take() {
            cors.mark(&mut head.headers);
        }
        Some(head)
    }
}

/// The response of one request, between the task that creates it and the front that sends it.
#[derive(Debug)]
pub struct Exchange {
    pub(super) id: u64,
    pub(super) wake: Arc<dyn Wake>,
    pub(super) state: Mutex<State>,
}

impl Exchange {
    pub fn new(id: u64, wake: Arc<dyn Wake>) -> Arc<Self> {
        Arc::new(Self { id, wake, state: Mutex::new(State::default()) })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn set_cors(&self, cors: Option<Cors>) {
        self.state.lock().cors = cors;
    }

    /// Starts to copy the response.
    pub fn set_capture(&self, capture: Box<Capture>) {
        self.state.lock().capture = Some(capture);
    }

    pub fn is_readable_elsewhere(&self) -> bool {
        matches!(self.state.lock().cors, Some(Cors::Readable(_)))
    }

    /// Wakes a front that is waiting.
    pub(super) fn wake_front(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        let wake = std::mem::take(&mut state.front_waits);
        let front = state.front.take();
        drop(state);
        if wake {
            self.wake.wake(self.id);
        }
        if let Some(front) = front {
            front.wake();
        }
    }
}

/// Registers the waker of a waiting task.
pub(super) fn wait(slot: &mut Option<Waker>, cx: &Context<'_>) {
    if slot.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
        *slot = Some(cx.waker().clone());
    }
}
