//! The limits of one connection, what they count, and the queue of those who wait for them.
//!
//! Whoever waits is woken by a slot that is given back, by the time at which a rate has room, or by the one before. The lock is held
//! for as long as it takes to look, never while anybody waits.

use crate::clock;
use crate::upstream::load::Load;
use fairlead_core::pace::{AccountLimits, Pace, Remaining, Wait};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The limits of one connection, what they count, and who waits for them.
#[derive(Debug, Default)]
pub struct Limiter {
    /// Whether any limit is set: connections without one lock nothing.
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    limits: AccountLimits,
    pace: Pace,
    /// First come, first served.
    queue: VecDeque<Arc<Notify>>,
}

/// How a connection with limits stands to a request that came now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimiterRoom {
    pub max_concurrent: Option<u32>,
    /// 0 to 1: what is left of the tightest rate.
    pub rate_left: Option<f32>,
    /// The request would be turned away.
    pub is_shut: bool,
}

/// The room left under a connection's limits, and how many requests wait for it.
#[derive(Debug, Clone, Copy)]
pub struct LimiterStats {
    pub queued: usize,
    pub remaining: Remaining,
}

/// The tokens that a request was counted with when it began.
#[derive(Debug)]
pub struct Charge {
    began_ms: u64,
    tokens: u64,
}

/// The answer to a request that wants to begin.
#[derive(Debug)]
pub enum Entry {
    /// The request may begin; counted where a limit is set.
    Begun(Option<Charge>),
    /// The request waits, for so long at most; its place is given up with [`Limiter::leave`].
    Queued(Arc<Notify>, Duration),
    /// The request is turned away.
    Refused(Wait),
}

impl Limiter {
    /// Puts these limits in force, for those who wait too.
    pub fn set(&self, limits: &AccountLimits) {
        let mut state = self.state.lock();
        state.limits = *limits;
        self.is_on.store(limits.is_any(), Ordering::Release);
        state.wake_first();
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// `None` where no limit is set.
    pub fn room(&self, in_flight: u32, now_ms: u64) -> Option<LimiterRoom> {
        if !self.is_on() {
            return None;
        }
        let mut state = self.state.lock();
        let State { limits, pace, queue } = &mut *state;
        let has_queue = queue.len() < limits.queue_depth as usize;
        let is_shut = !has_queue && (!queue.is_empty() || pace.admits(limits, in_flight, 1, now_ms).is_err());
        Some(LimiterRoom { max_concurrent: limits.max_concurrent, rate_left: pace.rate_left(limits, now_ms), is_shut })
    }

    /// `None` where no limit is set.
    pub fn stats(&self, in_flight: u32, now_ms: u64) -> Option<LimiterStats> {
        if !self.is_on() {
            return None;
        }
        let mut state = self.state.lock();
        let State { limits, pace, queue } = &mut *state;
        Some(LimiterStats { queued: queue.len(), remaining: pace.remaining(limits, in_flight, now_ms) })
    }

    /// A request comes, which has waited for so long elsewhere. Who comes later does not go before those who wait.
    pub fn enter(&self, load: &Load, tokens: u64, waited: Duration) -> Entry {
        if !self.is_on() {
            load.enter();
            return Entry::Begun(None);
        }
        let mut state = self.state.lock();
        let refusal = if state.queue.is_empty() {
            match state.begin(load, tokens) {
                Ok(charge) => return Entry::Begun(Some(charge)),
                Err(wait) => wait,
            }
        } else {
            Wait::Slot
        };
        let patience = Duration::from_millis(state.limits.queue_timeout_ms).saturating_sub(waited);
        if state.queue.len() >= state.limits.queue_depth as usize || patience.is_zero() {
            return Entry::Refused(refusal);
        }
        let place = Arc::new(Notify::new());
        state.queue.push_back(Arc::clone(&place));
        Entry::Queued(place, patience)
    }

    /// Begins the request that waits at this place, if it is the first and there is room.
    pub fn begin_queued(&self, place: &Arc<Notify>, load: &Load, tokens: u64) -> Result<Charge, Wait> {
        let mut state = self.state.lock();
        if !state.queue.front().is_some_and(|first| Arc::ptr_eq(first, place)) {
            return Err(Wait::Slot);
        }
        state.begin(load, tokens)
    }

    /// Gives up a place in the queue.
    pub fn leave(&self, place: &Arc<Notify>) {
        let mut state = self.state.lock();
        state.queue.retain(|waiting| !Arc::ptr_eq(waiting, place));
        state.wake_first();
    }

    /// A request has come to so many tokens.
    pub fn correct(&self, charge: &Charge, tokens: u64) {
        let mut state = self.state.lock();
        state.pace.correct(charge.began_ms, charge.tokens, tokens, clock::monotonic_ms());
        state.wake_first();
    }

    /// A request has ended.
    pub fn wake(&self) {
        if self.is_on() {
            self.state.lock().wake_first();
        }
    }
}

impl State {
    fn wake_first(&self) {
        if let Some(first) = self.queue.front() {
            first.notify_one();
        }
    }

    fn begin(&mut self, load: &Load, tokens: u64) -> Result<Charge, Wait> {
        let now_ms = clock::monotonic_ms();
        self.pace.admits(&self.limits, load.in_flight(), tokens, now_ms)?;
        self.pace.begin(tokens, now_ms);
        load.enter();
        Ok(Charge { began_ms: now_ms, tokens })
    }
}
