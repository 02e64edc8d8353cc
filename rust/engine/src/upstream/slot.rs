//! A place among the requests that a connection has open, and the queue before it.
//!
//! ```text
//! acquire -> no limits, or room and nobody waits: a slot
//!         -> a place in the queue: a slot when it is its turn and there is room, or too late
//!         -> the queue is full: busy, and the next connection is tried
//! ```
//!
//! Whoever waits is woken by a slot that is given back, by the time at which a rate has room, or by the one before. Nothing is locked
//! while anybody waits, and who leaves gives back what was taken.

use crate::clock;
use crate::shared::Shared;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::{Hot, Target};
use fairlead_core::error::{Error, Kind, Retry};
use fairlead_core::pace::{AccountLimits, Pace, Remaining, Wait};
use fairlead_core::usage::Usage;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What a caller is told to wait for a slot: nobody knows when one comes.
const SLOT_HINT_MS: u64 = 1_000;

/// The limits of one connection, what they count, and who waits.
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
pub struct Room {
    pub max_concurrent: Option<u32>,
    /// 0 to 1: what is left of the tightest rate.
    pub rate_left: Option<f32>,
    /// The request would be turned away.
    pub is_shut: bool,
}

/// What is left of a connection's limits, and who waits for it.
#[derive(Debug, Clone, Copy)]
pub struct LimiterStats {
    pub queued: usize,
    pub remaining: Remaining,
}

impl Limiter {
    /// Puts these limits in force, for those who wait too.
    pub fn set(&self, limits: &AccountLimits) {
        let mut state = self.state.lock();
        state.limits = *limits;
        self.is_on.store(limits.is_any(), Ordering::Release);
        state.wake_first();
    }

    /// `None` where no limit is set.
    pub fn room(&self, in_flight: u32, now_ms: u64) -> Option<Room> {
        if !self.is_on.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state.lock();
        let State { limits, pace, queue } = &mut *state;
        let has_queue = queue.len() < limits.queue_depth as usize;
        let is_shut = !has_queue && (!queue.is_empty() || pace.admits(limits, in_flight, 1, now_ms).is_err());
        Some(Room { max_concurrent: limits.max_concurrent, rate_left: pace.rate_left(limits, now_ms), is_shut })
    }

    /// `None` where no limit is set.
    pub fn stats(&self, in_flight: u32, now_ms: u64) -> Option<LimiterStats> {
        if !self.is_on.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state.lock();
        let State { limits, pace, queue } = &mut *state;
        Some(LimiterStats { queued: queue.len(), remaining: pace.remaining(limits, in_flight, now_ms) })
    }

    /// A slot was given back.
    fn wake(&self) {
        if self.is_on.load(Ordering::Acquire) {
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

    fn begin(&mut self, hot: &Arc<Hot>, tokens: u64) -> Result<Slot, Wait> {
        let now_ms = clock::monotonic_ms();
        self.pace.admits(&self.limits, hot.load.in_flight(), tokens, now_ms)?;
        self.pace.begin(tokens, now_ms);
        Ok(Slot::open(hot, Some(Charge { began_ms: now_ms, tokens })))
    }
}

/// One open request, counted in its connection's load until it is dropped.
#[derive(Debug)]
pub struct Slot {
    hot: Arc<Hot>,
    charge: Option<Charge>,
}

/// The tokens that a request was counted with when it began.
#[derive(Debug)]
struct Charge {
    began_ms: u64,
    tokens: u64,
}

impl Slot {
    fn open(hot: &Arc<Hot>, charge: Option<Charge>) -> Self {
        hot.load.enter();
        Self { hot: Arc::clone(hot), charge }
    }

    /// The request has come to this. Where nobody told what it came to it counts as it was estimated.
    pub fn settle(&mut self, usage: &Usage) {
        let tokens = usage.input.saturating_add(usage.output);
        if tokens > 0 {
            self.correct(tokens);
        }
    }

    /// The request has failed, and its tokens were not used.
    pub fn refund(&mut self) {
        self.correct(0);
    }

    fn correct(&mut self, tokens: u64) {
        if let Some(charge) = self.charge.take() {
            let mut state = self.hot.limiter.state.lock();
            state.pace.correct(charge.began_ms, charge.tokens, tokens, clock::monotonic_ms());
            state.wake_first();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.hot.load.leave();
        self.hot.limiter.wake();
    }
}

/// Waits for a slot of the connection, for as long as its queue allows. `tokens` are estimated; `waited` is how long the call has
/// waited in queues, here and at the connections before, so that several queues take no longer than the most patient of them.
/// An error means that nothing was sent.
pub async fn acquire(
    shared: &Shared,
    target: &Target,
    tokens: u64,
    waited: &mut Duration,
) -> Result<Slot, AttemptFailure> {
    let (turn, patience) = match enter(target, tokens, *waited)? {
        Entry::Slot(slot) => return Ok(slot),
        Entry::Turn(turn, patience) => (turn, patience),
    };
    let began = Instant::now();
    let outcome = tokio::select! {
        biased;
        outcome = turn.wait(began + patience) => outcome.map_err(|wait| busy(target, wait)),
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    };
    *waited += began.elapsed();
    outcome
}

enum Entry {
    Slot(Slot),
    Turn(Turn, Duration),
}

fn enter(target: &Target, tokens: u64, waited: Duration) -> Result<Entry, AttemptFailure> {
    let hot = &target.hot;
    if !hot.limiter.is_on.load(Ordering::Acquire) {
        return Ok(Entry::Slot(Slot::open(hot, None)));
    }
    let mut state = hot.limiter.state.lock();
    // Who comes later does not go before those who wait.
    let refusal = if state.queue.is_empty() {
        match state.begin(hot, tokens) {
            Ok(slot) => return Ok(Entry::Slot(slot)),
            Err(wait) => wait,
        }
    } else {
        Wait::Slot
    };
    let patience = Duration::from_millis(state.limits.queue_timeout_ms).saturating_sub(waited);
    if state.queue.len() >= state.limits.queue_depth as usize || patience.is_zero() {
        drop(state);
        return Err(busy(target, refusal));
    }
    let notify = Arc::new(Notify::new());
    state.queue.push_back(Arc::clone(&notify));
    Ok(Entry::Turn(Turn { hot: Arc::clone(hot), notify, tokens }, patience))
}

/// A place in a connection's queue, given up when it is dropped.
struct Turn {
    hot: Arc<Hot>,
    notify: Arc<Notify>,
    tokens: u64,
}

impl Turn {
    async fn wait(self, until: Instant) -> Result<Slot, Wait> {
        loop {
            let wait = match self.try_begin() {
                Ok(slot) => return Ok(slot),
                Err(wait) => wait,
            };
            let now = Instant::now();
            if now >= until {
                return Err(wait);
            }
            let wake_at = match wait {
                Wait::Ms(ms) => until.min(now + Duration::from_millis(ms)),
                Wait::Slot => until,
            };
            // Both a word and the time are reasons to look again.
            let _told = tokio::time::timeout_at(wake_at, self.notify.notified()).await;
        }
    }

    fn try_begin(&self) -> Result<Slot, Wait> {
        let mut state = self.hot.limiter.state.lock();
        if !state.queue.front().is_some_and(|first| Arc::ptr_eq(first, &self.notify)) {
            return Err(Wait::Slot);
        }
        state.begin(&self.hot, self.tokens)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.hot.limiter.state.lock();
        state.queue.retain(|waiting| !Arc::ptr_eq(waiting, &self.notify));
        state.wake_first();
    }
}

/// The connection takes no request now; another one may.
fn busy(target: &Target, wait: Wait) -> AttemptFailure {
    let hint_ms = match wait {
        Wait::Slot => SLOT_HINT_MS,
        Wait::Ms(ms) => ms.max(1),
    };
    let message = format!(
        "Every connection of `{}` that may serve this has as many requests as its limits allow.",
        target.provider_name()
    );
    let error = Error { retry: Retry::NothingSent, ..Error::gateway(Kind::AccountsBusy, message) };
    let error = error.after_s(hint_ms.div_ceil(1_000));
    AttemptFailure { error, hint_ms: Some(hint_ms), rejection: None, blames_connection: false }
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
