//! The state of a connection, which its worker monitors: idle, reading a head or serving, since when, and how it should
//! close.
//!
//! The connection records the time of each change with a clock that ticks four times a second, and the worker checks
//! all of its connections at each tick. Requests therefore need no timers.

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

/// The time that an idle connection has to close.
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

/// Whether and how a connection should close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum CloseMode {
    /// The connection stays open.
    Open,
    /// The connection closes after the next answer, which announces it. Without a request it stays open.
    AfterAnswer,
    /// The connection closes after the current request, or immediately if there is none.
    Graceful,
    /// The connection closes immediately, even during a request.
    Now,
}

const IDLE_STATE: u8 = 0;
const HEADING: u8 = 1;
const SERVING: u8 = 2;

/// The state of one connection. Only the connection's own thread writes it, except for the close mode.
#[derive(Debug)]
pub struct ConnectionState {
    clock: Arc<Clock>,
    state: AtomicU8,
    since: AtomicU32,
    /// The tick since which the caller has not accepted any bytes; 0 if it accepts them.
    stuck_since: AtomicU32,
    requests: AtomicU32,
    open: AtomicU32,
    /// The answer was sent before the request's body was read completely.
    has_unread_body: AtomicBool,
    /// The connection uses HTTP/2, where bytes between requests are not a head.
    is_http2: AtomicBool,
    /// The connection carries WebSocket frames, which have other timeouts.
    is_upgraded: AtomicBool,
    close_mode: AtomicU8,
    close_sent_at: AtomicU32,
    waker: Mutex<Option<Waker>>,
}

impl ConnectionState {
    /// A new connection waits for its first head.
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

    // --- called by the connection

    fn enter(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
        self.since.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Records that bytes arrived. An idle connection is now reading a head.
    pub fn note_read(&self) {
        if self.state.load(Ordering::Relaxed) == IDLE_STATE && !self.is_http2.load(Ordering::Relaxed) {
            self.enter(HEADING);
        }
    }

    /// Records that the connection uses HTTP/2. It is idle whenever it has no stream.
    pub fn enter_http2(&self) {
        self.is_http2.store(true, Ordering::Relaxed);
        self.enter(IDLE_STATE);
    }

    /// Records that bytes were sent.
    pub fn note_write(&self) {
        self.stuck_since.store(0, Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) == IDLE_STATE && !self.is_http2.load(Ordering::Relaxed) {
            self.since.store(self.clock.now(), Ordering::Relaxed);
        }
    }

    /// Records that the caller does not accept the bytes to be sent.
    pub fn note_blocked_write(&self) {
        if self.stuck_since.load(Ordering::Relaxed) == 0 {
            self.stuck_since.store(self.clock.now(), Ordering::Relaxed);
        }
    }

    /// Records the start of a request. Returns `true` if it is the last one that this connection serves.
    pub fn begin_request(self: &Arc<Self>) -> (RequestGuard, bool) {
        self.enter(SERVING);
        self.open.fetch_add(1, Ordering::Relaxed);
        self.has_unread_body.store(false, Ordering::Relaxed);
        let is_last = self.requests.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_REQUESTS;
        (RequestGuard(Arc::clone(self)), is_last)
    }

    /// Records that the answer is sent before the request's body was read.
    pub fn leave_body_unread(&self) {
        self.has_unread_body.store(true, Ordering::Relaxed);
    }

    pub fn has_unread_body(&self) -> bool {
        self.has_unread_body.load(Ordering::Relaxed)
    }

    /// Records that the connection carries WebSocket frames from now on.
    pub fn note_upgrade(&self) {
        self.is_upgraded.store(true, Ordering::Relaxed);
    }

    /// Stores the waker of the one task that serves the connection.
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

    /// Waits until the connection should close at least in this way.
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

    // --- called by the worker

    /// Sets how the connection should close. A stricter mode that was set before is kept.
    pub fn close(&self, mode: CloseMode) {
        if self.close_mode.fetch_max(mode as u8, Ordering::AcqRel) < mode as u8 {
            self.close_sent_at.store(self.clock.now(), Ordering::Relaxed);
            let waker = self.waker.lock().clone();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Checks the timeouts. The worker calls this at each tick.
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

/// A running request, until it is dropped.
#[derive(Debug)]
pub struct RequestGuard(Arc<ConnectionState>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.enter(IDLE_STATE);
        }
    }
}

/// Polls a connection to its end and forwards the close mode. `finish` is called once when the connection should close
/// after the current request. Errors of the connection are ignored, because its requests have reported them.
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
