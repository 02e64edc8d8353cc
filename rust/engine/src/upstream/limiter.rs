//! The limits of one connection, their counters, and the queue of waiting requests. Limits are set by the operator or
//! reported by the provider.
//!
//! A waiting request is woken when a slot is returned, when a rate has capacity again, or by the request ahead of it.
//! The lock is never held while a request waits.

use crate::clock;
use crate::upstream::load::Load;
use crate::upstream::target_cap::TargetCap;
use fairlead_core::strategy::QueueRule;
use fairlead_core::{AccountLimits, Pace, PaceWait, ProviderRates, RateName, Remaining, WindowReading};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How long a request waits if its combo lets it wait without a timeout.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits of one connection, their counters and the queue of waiting requests.
#[derive(Debug, Default)]
pub struct Limiter {
    /// Whether any limit is set or any rate was reported. Connections without either take no lock.
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    limits: AccountLimits,
    pace: Pace,
    rates: ProviderRates,
    /// First come, first served.
    queue: VecDeque<Arc<Notify>>,
}

/// The capacity that a connection with limits has for a new request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimiterHeadroom {
    pub max_concurrent: Option<u32>,
    /// The remaining share of the tightest rate, 0 to 1.
    pub rate_left: Option<f32>,
    /// The request would be rejected.
    pub is_shut: bool,
}

/// The remaining capacity under a connection's limits, and the number of waiting requests.
#[derive(Debug, Clone)]
pub struct LimiterStats {
    pub queued: usize,
    pub remaining: Remaining,
    pub rates: Vec<RateStats>,
}

/// A rate limit as its provider reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateStats {
    pub model: String,
    pub name: RateName,
    pub limit: u64,
    pub remaining: u64,
    pub per_minute: Option<u64>,
    /// The time until the limit is fully available again and is discarded.
    pub full_in_ms: u64,
}

/// A request that asks for capacity of a connection.
#[derive(Debug, Clone, Copy)]
pub struct SlotRequest<'a> {
    /// The provider's name for the model.
    pub model: &'a str,
    /// Estimated tokens.
    pub tokens: u64,
    /// The combo's rule for waiting.
    pub queue: QueueRule,
    /// The combo's limit of concurrent requests at the target.
    pub cap: Option<TargetCap>,
}

/// The tokens that were charged for a request when it started.
#[derive(Debug)]
pub struct Charge {
    began_ms: u64,
    tokens: u64,
}

/// The result of a request for capacity.
#[derive(Debug)]
pub enum Entry {
    /// The request may start. It has a charge if a limit is set.
    Begun(Option<Charge>),
    /// The request waits, for at most this time. [`Limiter::leave`] removes it from the queue.
    Queued(Arc<Notify>, Duration),
    /// The request is rejected.
    Refused(PaceWait),
}

impl Limiter {
    /// Applies new limits, also to waiting requests.
    pub fn set(&self, limits: &AccountLimits) {
        let mut state = self.state.lock();
        state.limits = *limits;
        if !limits.learns {
            state.rates.clear();
        }
        self.is_on.store(limits.is_any() || !state.rates.is_empty(), Ordering::Release);
        state.wake_first();
    }

    /// Stores the rate limits that a response reported for this model.
    pub fn learn(&self, model: &str, readings: &[WindowReading], now_ms: u64) {
        let mut state = self.state.lock();
        if state.limits.learns {
            state.rates.learn(model, readings, now_ms);
            self.is_on.store(state.limits.is_any() || !state.rates.is_empty(), Ordering::Release);
            state.wake_first();
        }
    }

    /// Discards the reported rate limits.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        state.rates.clear();
        self.is_on.store(state.limits.is_any(), Ordering::Release);
        state.wake_first();
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Returns the capacity for a model; `None` if no limit is set.
    pub fn headroom(&self, model: &str, in_flight: u32, now_ms: u64) -> Option<LimiterHeadroom> {
        if !self.is_on() {
            return None;
        }
        let mut state = self.state.lock();
        let is_full = !state.queue.is_empty() || state.admits(model, 1, in_flight, now_ms).is_err();
        let State { limits, pace, rates, queue } = &mut *state;
        let left = pace.rate_left(limits, now_ms).into_iter().chain(rates.left(model, now_ms));
        Some(LimiterHeadroom {
            max_concurrent: limits.max_concurrent,
            rate_left: left.reduce(f32::min),
            is_shut: is_full && queue.len() >= limits.queue_depth as usize,
        })
    }

    /// Returns the remaining capacity; `None` if no limit is set.
    pub fn stats(&self, in_flight: u32, now_ms: u64) -> Option<LimiterStats> {
        if !self.is_on() {
            return None;
        }
        let mut state = self.state.lock();
        let State { limits, pace, rates, queue } = &mut *state;
        let rates = rates.all(now_ms).map(|(model, name, rate)| RateStats {
            model: model.to_owned(),
            name,
            limit: rate.limit,
            remaining: rate.remaining(now_ms),
            per_minute: rate.per_minute(),
            full_in_ms: rate.full_ms - now_ms,
        });
        let rates = rates.collect();
        Some(LimiterStats { queued: queue.len(), remaining: pace.remaining(limits, in_flight, now_ms), rates })
    }

    /// Starts or queues a request that has waited for `waited` in other queues. New requests do not overtake waiting
    /// ones.
    pub fn enter(&self, load: &Load, slot_request: &SlotRequest<'_>, waited: Duration) -> Entry {
        if !self.is_on() {
            load.enter();
            return Entry::Begun(None);
        }
        let mut state = self.state.lock();
        let refusal = if state.queue.is_empty() {
            match state.begin(load, slot_request) {
                Ok(charge) => return Entry::Begun(Some(charge)),
                Err(wait) => wait,
            }
        } else {
            PaceWait::Slot
        };
        let (depth, patience) = queue_of(&state.limits, slot_request.queue);
        let patience = patience.saturating_sub(waited);
        if state.queue.len() >= depth as usize || patience.is_zero() {
            return Entry::Refused(refusal);
        }
        let waiter = Arc::new(Notify::new());
        state.queue.push_back(Arc::clone(&waiter));
        Entry::Queued(waiter, patience)
    }

    /// Starts a queued request if it is the first in the queue and there is capacity.
    pub fn begin_queued(
        &self,
        waiter: &Arc<Notify>,
        load: &Load,
        slot_request: &SlotRequest<'_>,
    ) -> Result<Charge, PaceWait> {
        let mut state = self.state.lock();
        if !state.queue.front().is_some_and(|first| Arc::ptr_eq(first, waiter)) {
            return Err(PaceWait::Slot);
        }
        state.begin(load, slot_request)
    }

    /// Removes a request from the queue.
    pub fn leave(&self, waiter: &Arc<Notify>) {
        let mut state = self.state.lock();
        state.queue.retain(|waiting| !Arc::ptr_eq(waiting, waiter));
        state.wake_first();
    }

    /// Replaces a request's estimated tokens with the actual number.
    pub fn correct(&self, charge: &Charge, tokens: u64) {
        let mut state = self.state.lock();
        state.pace.correct(charge.began_ms, charge.tokens, tokens, clock::monotonic_ms());
        state.wake_first();
    }

    /// Charges tokens in addition to the original charge.
    pub fn spend(&self, tokens: u64) {
        if self.is_on() {
            self.state.lock().pace.spend(tokens, clock::monotonic_ms());
        }
    }

    /// Wakes the next request after one has ended.
    pub fn wake(&self) {
        if self.is_on() {
            self.state.lock().wake_first();
        }
    }
}

/// Returns the length of the queue and the longest wait. The combo's rule takes precedence over the connection's.
fn queue_of(limits: &AccountLimits, rule: QueueRule) -> (u32, Duration) {
    let own = (limits.queue_timeout_ms > 0).then_some(limits.queue_timeout_ms);
    let patience = rule.timeout_ms.or(own).map_or(QUEUE_TIMEOUT, Duration::from_millis);
    (rule.depth.unwrap_or(limits.queue_depth), patience)
}

impl State {
    fn wake_first(&self) {
        if let Some(first) = self.queue.front() {
            first.notify_one();
        }
    }

    fn admits(&mut self, model: &str, tokens: u64, in_flight: u32, now_ms: u64) -> Result<(), PaceWait> {
        let own = self.pace.admits(&self.limits, in_flight, tokens, now_ms);
        match (own, self.rates.wait_ms(model, tokens, now_ms)) {
            (own, 0) => own,
            (Ok(()), provider_ms) => Err(PaceWait::Ms(provider_ms)),
            (Err(PaceWait::Ms(own_ms)), provider_ms) => Err(PaceWait::Ms(own_ms.max(provider_ms))),
            (Err(PaceWait::Slot), _) => Err(PaceWait::Slot),
        }
    }

    fn begin(&mut self, load: &Load, slot_request: &SlotRequest<'_>) -> Result<Charge, PaceWait> {
        let now_ms = clock::monotonic_ms();
        let SlotRequest { model, tokens, .. } = *slot_request;
        self.admits(model, tokens, load.in_flight(), now_ms)?;
        self.pace.begin(tokens, now_ms);
        self.rates.begin(model, tokens);
        load.enter();
        Ok(Charge { began_ms: now_ms, tokens })
    }
}
