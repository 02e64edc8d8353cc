//! The state of a connection, for the worker that watches over it: idle, reading a head or serving, since when, and how it is to close.
//!
//! The connection notes moments as it passes them, with a clock that ticks four times a second; the worker looks at all of its
//! connections with each tick. So no request sets a timer.

use crate::config::{HEAD_WITHIN, IDLE, MAX_REQUESTS};
use fairlead_engine::patience::SEND_PATIENCE;
use parking_lot::Mutex;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU8, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// One tick of the worker's clock.
pub const TICK: Duration = Duration::from_millis(250);

/// How long a connection that was asked to end may take where it has nothing to do.
const END_WITHIN: Duration = Duration::from_secs(5);

/// A worker's clock: ticks since its start, from 1.
#[derive(Debug)]
pub struct Clock(AtomicU32);

impl Default for Clock {
    fn default() -> Self {
        Self(AtomicU32::new(1))
    }
}

impl Clock {
    pub fn tick(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn now(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

fn ticks(duration: Duration) -> u32 {
    duration.as_millis().div_ceil(TICK.as_millis()) as u32
}

/// How a connection is to close, if at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum CloseMode {
    /// The connection stays.
    Open,
    /// The connection ends with the next answer, which says so. Where nothing is asked it stays.
    AfterAnswer,
    /// The connection ends after the request that is under way, or at once where there is none.
    Graceful,
    /// The connection ends at once, whatever is under way.
    Now,
}

const IDLE_STATE: u8 = 0;
const HEADING: u8 = 1;
const SERVING: u8 = 2;

/// The state of one connection. It is written by the connection's own thread; only the close mode is set from elsewhere.
#[derive(Debug)]
pub struct ConnectionState {
    clock: Arc<Clock>,
    state: AtomicU8,
    since: AtomicU32,
    /// The tick since which the caller takes nothing of what is to be sent; 0 while it does.
    stuck_since: AtomicU32,
    requests: AtomicU32,
    open: AtomicU32,
    /// The answer went out before the request's body was read to its end.
    has_unread_body: AtomicBool,
    /// HTTP/2: bytes between requests are no head.
    is_http2: AtomicBool,
    /// The connection carries WebSocket frames, which have timeouts of their own.
    is_upgraded: AtomicBool,
    close_mode: AtomicU8,
    close_sent_at: AtomicU32,
    waker: Mutex<Option<Waker>>,
}

impl ConnectionState {
    /// A connection that has just come is in its first head.
    pub fn new(clock: Arc<Clock>) -> Arc<Self> {
        let since = AtomicU32::new(clock.now());
        Arc::new(Self {
            clock,
            state: AtomicU8::new(HEADING),
            since,
            stuck_since: AtomicU32::new(0),
            requests: AtomicU32::new(0),
            open: AtomicU32::new(0),
            has_unread_body: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            is_upgraded: AtomicBool::new(false),
            close_mode: AtomicU8::new(CloseMode::Open as u8),
            close_sent_at: AtomicU32::new(0),
            waker: Mutex::new(None),
        })
    }

    // --- the connection's side

    fn enter(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
        self.since.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Notes that bytes came: an idle connection is in a head from here on.
    pub fn note_read(&self) {
        if self.state.load(Ordering::Relaxed) == IDLE_STATE && !self.is_http2.load(Ordering::Relaxed) {
            self.enter(HEADING);
        }
    }

    /// The connection speaks HTTP/2: from here on it is idle while it has no stream, whatever else it says.
    pub fn enter_http2(&self) {
        self.is_http2.store(true, Ordering::Relaxed);
        self.enter(IDLE_STATE);
    }

    /// Notes that bytes went out.
    pub fn note_write(&self) {
        self.stuck_since.store(0, Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) == IDLE_STATE && !self.is_http2.load(Ordering::Relaxed) {
            self.since.store(self.clock.now(), Ordering::Relaxed);
        }
    }

    /// Notes that the caller takes nothing of what is to be sent.
    pub fn note_blocked_write(&self) {
        if self.stuck_since.load(Ordering::Relaxed) == 0 {
            self.stuck_since.store(self.clock.now(), Ordering::Relaxed);
        }
    }

    /// A request begins. `true`: it is the last one that this connection serves.
    pub fn begin_request(self: &Arc<Self>) -> (RequestGuard, bool) {
        self.enter(SERVING);
        self.open.fetch_add(1, Ordering::Relaxed);
        self.has_unread_body.store(false, Ordering::Relaxed);
        let is_last = self.requests.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_REQUESTS;
        (RequestGuard(Arc::clone(self)), is_last)
    }

    /// Notes that the answer goes out before the request's body was read.
    pub fn leave_body_unread(&self) {
        self.has_unread_body.store(true, Ordering::Relaxed);
    }

    pub fn has_unread_body(&self) -> bool {
        self.has_unread_body.load(Ordering::Relaxed)
    }

    /// Notes that the connection carries WebSocket frames from here on.
    pub fn note_upgrade(&self) {
        self.is_upgraded.store(true, Ordering::Relaxed);
    }

    /// Remembers whom to wake; once, by the one task that is the connection.
    pub fn register_waker(&self, cx: &Context<'_>) {
        let mut waker = self.waker.lock();
        if waker.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    pub fn close_mode(&self) -> CloseMode {
        match self.close_mode.load(Ordering::Acquire) {
            0 => CloseMode::Open,
            1 => CloseMode::AfterAnswer,
            2 => CloseMode::Graceful,
            _ => CloseMode::Now,
        }
    }

    /// Ends when the connection is to close at least in this way.
    pub async fn wait_for_close(&self, least: CloseMode) {
        poll_fn(|cx| {
            self.register_waker(cx);
            if self.close_mode() >= least {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    // --- the worker's side

    /// Tells the connection how to close. A stricter mode that it was told before stays.
    pub fn close(&self, mode: CloseMode) {
        if self.close_mode.fetch_max(mode as u8, Ordering::AcqRel) < mode as u8 {
            self.close_sent_at.store(self.clock.now(), Ordering::Relaxed);
            let waker = self.waker.lock().clone();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Holds the connection to its timeouts; called by its worker with each tick.
    pub fn check_timeouts(&self) {
        let now = self.clock.now();
        let is_over = |since: u32, patience: Duration| now.saturating_sub(since) > ticks(patience);
        let stuck_since = self.stuck_since.load(Ordering::Relaxed);
        if stuck_since > 0 && is_over(stuck_since, SEND_PATIENCE) {
            return self.close(CloseMode::Now);
        }
        let since = self.since.load(Ordering::Relaxed);
        let is_idle = match self.state.load(Ordering::Relaxed) {
            HEADING if is_over(since, HEAD_WITHIN) => return self.close(CloseMode::Now),
            IDLE_STATE => true,
            HEADING | SERVING => false,
            _ => return,
        };
        if self.is_upgraded.load(Ordering::Relaxed) || stuck_since > 0 {
            return;
        }
        match self.close_mode() {
            CloseMode::Open | CloseMode::AfterAnswer if is_idle && is_over(since, IDLE) => {
                self.close(CloseMode::Graceful);
            }
            CloseMode::Graceful if is_idle && is_over(self.close_sent_at.load(Ordering::Relaxed), END_WITHIN) => {
                self.close(CloseMode::Now);
            }
            _ => {}
        }
    }
}

/// A request under way, until it is dropped.
#[derive(Debug)]
pub struct RequestGuard(Arc<ConnectionState>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.enter(IDLE_STATE);
        }
    }
}

/// Polls a connection to its end, and passes on how it is to close: `finish` is called once when it is to end after the request that is
/// under way. An error of the connection is not looked at: its requests have told it.
pub async fn drive<C: Future>(
    state: &ConnectionState,
    mut connection: Pin<&mut C>,
    mut finish: impl FnMut(Pin<&mut C>),
) {
    let mut is_finishing = false;
    let mut is_watched = false;
    poll_fn(|cx: &mut Context<'_>| {
        if !std::mem::replace(&mut is_watched, true) {
            state.register_waker(cx);
        }
        match state.close_mode() {
            CloseMode::Open => {}
            CloseMode::AfterAnswer | CloseMode::Graceful => {
                if !std::mem::replace(&mut is_finishing, true) {
                    finish(connection.as_mut());
                }
            }
            CloseMode::Now => return Poll::Ready(()),
        }
        connection.as_mut().poll(cx).map(drop)
    })
    .await;
}

#[cfg(test)]
#[allow(clippy::unchecked_time_subtraction, reason = "constants of this file")]
mod tests {
    use super::*;

    fn state() -> (Arc<Clock>, Arc<ConnectionState>) {
        let clock = Arc::new(Clock::default());
        (Arc::clone(&clock), ConnectionState::new(clock))
    }

    fn wait(clock: &Clock, state: &ConnectionState, duration: Duration) {
        for _ in 0..ticks(duration) {
            clock.tick();
            state.check_timeouts();
        }
    }

    #[test]
    fn a_head_that_does_not_end_ends_the_connection() {
        let (clock, state) = state();
        wait(&clock, &state, HEAD_WITHIN);
        assert_eq!(state.close_mode(), CloseMode::Open);
        state.note_read();
        wait(&clock, &state, TICK);
        assert_eq!(state.close_mode(), CloseMode::Now);
    }

    #[test]
    fn a_request_may_take_as_long_as_it_takes_and_idleness_counts_from_its_end() {
        let (clock, state) = state();
        let (serving, _) = state.begin_request();
        wait(&clock, &state, IDLE * 10);
        drop(serving);
        wait(&clock, &state, IDLE);
        assert_eq!(state.close_mode(), CloseMode::Open);
        wait(&clock, &state, TICK);
        assert_eq!(state.close_mode(), CloseMode::Graceful);
        wait(&clock, &state, END_WITHIN + TICK);
        assert_eq!(state.close_mode(), CloseMode::Now);
    }

    #[test]
    fn a_second_head_has_its_own_time() {
        let (clock, state) = state();
        drop(state.begin_request());
        wait(&clock, &state, IDLE - TICK);
        state.note_read();
        wait(&clock, &state, HEAD_WITHIN);
        assert_eq!(state.close_mode(), CloseMode::Open);
        wait(&clock, &state, TICK);
        assert_eq!(state.close_mode(), CloseMode::Now);
    }

    #[test]
    fn pings_of_http2_are_no_head_and_no_request() {
        let (clock, state) = state();
        state.enter_http2();
        for _ in 0..3 {
            state.note_read();
            wait(&clock, &state, HEAD_WITHIN * 2);
            assert_eq!(state.close_mode(), CloseMode::Open);
        }
        wait(&clock, &state, IDLE - HEAD_WITHIN * 6 + TICK);
        assert_eq!(state.close_mode(), CloseMode::Graceful);
    }

    #[test]
    fn a_caller_that_takes_nothing_is_waited_for_with_patience() {
        let (clock, state) = state();
        let (_serving, _) = state.begin_request();
        state.note_blocked_write();
        wait(&clock, &state, SEND_PATIENCE);
        assert_eq!(state.close_mode(), CloseMode::Open);
        state.note_blocked_write();
        wait(&clock, &state, TICK);
        assert_eq!(state.close_mode(), CloseMode::Now);
    }

    #[test]
    fn a_connection_serves_a_bounded_number_of_requests() {
        let (_, state) = state();
        for _ in 1..MAX_REQUESTS {
            assert!(!state.begin_request().1);
        }
        assert!(state.begin_request().1);
    }
}
