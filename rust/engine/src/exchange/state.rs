//! The state of an exchange, which both sides share under a lock, and how either side waits for the other.

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

/// Status and headers of an answer.
#[derive(Debug)]
pub struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap<HeaderValue>,
}

/// How a front learns that an exchange has something for it. Called from the engine's thread; must not block.
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
    /// The answer was given at once. A stream that came to its end before anybody looked is still a stream.
    pub(super) is_whole: bool,
    pub(super) aborted: bool,
    pub(super) cancelled: bool,
    /// The answer, whole as it may look, tells of a failure.
    pub(super) failed: bool,
    /// The front looked, found nothing and wants to be woken.
    pub(super) front_waits: bool,
    /// The waker of a front that is a task, looked for something and found nothing.
    pub(super) front: Option<Waker>,
    /// The task waits for room or is watching for the client's going away.
    pub(super) task: Option<Waker>,
    /// The cross-origin headers of the answer, whoever makes it.
    pub(super) cors: Option<Cors>,
    /// Bytes that the front gave and the task has not dealt with.
    pub(super) given_bytes: usize,
    /// Copies what goes to the caller, where that is to be kept.
    pub(super) capture: Option<Box<Capture>>,
}

impl State {
    /// The one way out for a head, whichever front takes it.
    pub(super) fn take_head(&mut self) -> Option<Head> {
        let mut head = self.head.take()?;
        if let Some(cors) = self.cors.take() {
            cors.mark(&mut head.headers);
        }
        Some(head)
    }
}

/// One request's answer on its way from the task that makes it to the front that sends it.
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

    /// From here on what goes to the caller is copied.
    pub fn set_capture(&self, capture: Box<Capture>) {
        self.state.lock().capture = Some(capture);
    }

    pub fn is_readable_elsewhere(&self) -> bool {
        matches!(self.state.lock().cors, Some(Cors::Readable(_)))
    }

    /// Wakes a front that asked and found nothing.
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

/// Notes who waits at this place.
pub(super) fn wait(place: &mut Option<Waker>, cx: &Context<'_>) {
    if place.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
        *place = Some(cx.waker().clone());
    }
}
