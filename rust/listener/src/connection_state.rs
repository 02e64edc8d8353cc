//! What is known of a connection from outside: whether it is idle, in a head or at work, since when, and what it is told to do.
//!
//! The connection notes moments as it passes them, with a clock that ticks four times a second; the worker looks at all of its
//! connections with each tick. So no request sets a timer.

use crate::config::{HEAD_WITHIN, IDLE, MAX_REQUESTS};
use fairlead_engine::patience::SEND_PATIENCE;
use parking_lot::Mutex;
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

/// What a connection is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Order {
    None,
    /// Finish what is under way and end.
    Finish,
    /// End now.
    End,
}

const IDLE_STATE: u8 = 0;
const HEADING: u8 = 1;
const SERVING: u8 = 2;

/// See the module's page. All of it is written by the connection's own thread; only orders come from elsewhere.
#[derive(Debug)]
pub struct ConnectionState {
    clock: Arc<Clock>,
    state: AtomicU8,
    since: AtomicU32,
    /// Since when the caller takes nothing of what is to be sent; 0: it does.
    stuck_since: AtomicU32,
    requests: AtomicU32,
    open: AtomicU32,
    /// The request's body was not read to its end.
    has_unread: AtomicBool,
    /// Bytes may come that are no head: HTTP/2.
    is_http2: AtomicBool,
    /// Frames, which have a patience of their own.
    is_upgraded: AtomicBool,
    order: AtomicU8,
    ordered_at: AtomicU32,
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
            has_unread: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            is_upgraded: AtomicBool::new(false),
            order: AtomicU8::new(Order::None as u8),
            ordered_at: AtomicU32::new(0),
            waker: Mutex::new(None),
        })
    }

    // --- the connection's side

    fn enter(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
        self.since.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Bytes came.
    pub fn heard(&self) {
        if self.state.load(Ordering::Relaxed) == IDLE_STATE && !self.is_http2.load(Ordering::Relaxed) {
            self.enter(HEADING);
        }
    }

    /// The connection speaks HTTP/2: from here on it is idle while it has no stream, whatever else it says.
    pub fn speak_http2(&self) {
        self.is_http2.store(true, Ordering::Relaxed);
        self.enter(IDLE_STATE);
    }

    /// Bytes went.
    pub fn sent(&self) {
        self.stuck_since.store(0, Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) == IDLE_STATE && !self.is_http2.load(Ordering::Relaxed) {
            self.since.store(self.clock.now(), Ordering::Relaxed);
        }
    }

    /// The caller takes nothing.
    pub fn stuck(&self) {
        if self.stuck_since.load(Ordering::Relaxed) == 0 {
            self.stuck_since.store(self.clock.now(), Ordering::Relaxed);
        }
    }

    /// A request begins. `true`: it is the last one that this connection serves.
    pub fn begin(self: &Arc<Self>) -> (Serving, bool) {
        self.enter(SERVING);
        self.open.fetch_add(1, Ordering::Relaxed);
        self.has_unread.store(false, Ordering::Relaxed);
        let is_last = self.requests.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_REQUESTS;
        (Serving(Arc::clone(self)), is_last)
    }

    /// The answer went ahead of the request's body.
    pub fn leave_unread(&self) {
        self.has_unread.store(true, Ordering::Relaxed);
    }

    pub fn has_unread(&self) -> bool {
        self.has_unread.load(Ordering::Relaxed)
    }

    /// From here on there are frames.
    pub fn upgrade(&self) {
        self.is_upgraded.store(true, Ordering::Relaxed);
    }

    /// Remembers whom to wake; once, by the one task that is the connection.
    pub fn watch(&self, cx: &Context<'_>) {
        let mut waker = self.waker.lock();
        if waker.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    pub fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::None,
            1 => Order::Finish,
            _ => Order::End,
        }
    }

    /// Ends when the connection is told at least this.
    pub async fn ordered(&self, least: Order) {
        std::future::poll_fn(|cx| {
            self.watch(cx);
            if self.order() >= least {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    // --- the worker's side

    /// Tells the connection; what it was told before holds where it is more.
    pub fn tell(&self, order: Order) {
        if self.order.fetch_max(order as u8, Ordering::AcqRel) < order as u8 {
            self.ordered_at.store(self.clock.now(), Ordering::Relaxed);
            let waker = self.waker.lock().clone();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Looks at the connection, with each tick.
    pub fn judge(&self) {
        let now = self.clock.now();
        let is_over = |since: u32, patience: Duration| now.saturating_sub(since) > ticks(patience);
        let stuck_since = self.stuck_since.load(Ordering::Relaxed);
        if stuck_since > 0 && is_over(stuck_since, SEND_PATIENCE) {
            return self.tell(Order::End);
        }
        let since = self.since.load(Ordering::Relaxed);
        let is_idle = match self.state.load(Ordering::Relaxed) {
            HEADING if is_over(since, HEAD_WITHIN) => return self.tell(Order::End),
            IDLE_STATE => true,
            HEADING | SERVING => false,
            _ => return,
        };
        if self.is_upgraded.load(Ordering::Relaxed) || stuck_since > 0 {
            return;
        }
        match self.order() {
            Order::None if is_idle && is_over(since, IDLE) => self.tell(Order::Finish),
            Order::Finish if is_idle && is_over(self.ordered_at.load(Ordering::Relaxed), END_WITHIN) => {
                self.tell(Order::End);
            }
            _ => {}
        }
    }
}

/// A request under way, until it is dropped.
#[derive(Debug)]
pub struct Serving(Arc<ConnectionState>);

impl Drop for Serving {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.enter(IDLE_STATE);
        }
    }
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
            state.judge();
        }
    }

    #[test]
    fn a_head_that_does_not_end_ends_the_connection() {
        let (clock, state) = state();
        wait(&clock, &state, HEAD_WITHIN);
        assert_eq!(state.order(), Order::None);
        state.heard();
        wait(&clock, &state, TICK);
        assert_eq!(state.order(), Order::End);
    }

    #[test]
    fn a_request_may_take_as_long_as_it_takes_and_idleness_counts_from_its_end() {
        let (clock, state) = state();
        let (serving, _) = state.begin();
        wait(&clock, &state, IDLE * 10);
        drop(serving);
        wait(&clock, &state, IDLE);
        assert_eq!(state.order(), Order::None);
        wait(&clock, &state, TICK);
        assert_eq!(state.order(), Order::Finish);
        wait(&clock, &state, END_WITHIN + TICK);
        assert_eq!(state.order(), Order::End);
    }

    #[test]
    fn a_second_head_has_its_own_time() {
        let (clock, state) = state();
        drop(state.begin());
        wait(&clock, &state, IDLE - TICK);
        state.heard();
        wait(&clock, &state, HEAD_WITHIN);
        assert_eq!(state.order(), Order::None);
        wait(&clock, &state, TICK);
        assert_eq!(state.order(), Order::End);
    }

    #[test]
    fn pings_of_http2_are_no_head_and_no_request() {
        let (clock, state) = state();
        state.speak_http2();
        for _ in 0..3 {
            state.heard();
            wait(&clock, &state, HEAD_WITHIN * 2);
            assert_eq!(state.order(), Order::None);
        }
        wait(&clock, &state, IDLE - HEAD_WITHIN * 6 + TICK);
        assert_eq!(state.order(), Order::Finish);
    }

    #[test]
    fn a_caller_that_takes_nothing_is_waited_for_with_patience() {
        let (clock, state) = state();
        let (_serving, _) = state.begin();
        state.stuck();
        wait(&clock, &state, SEND_PATIENCE);
        assert_eq!(state.order(), Order::None);
        state.stuck();
        wait(&clock, &state, TICK);
        assert_eq!(state.order(), Order::End);
    }

    #[test]
    fn a_connection_serves_a_bounded_number_of_requests() {
        let (_, state) = state();
        for _ in 1..MAX_REQUESTS {
            assert!(!state.begin().1);
        }
        assert!(state.begin().1);
    }
}
