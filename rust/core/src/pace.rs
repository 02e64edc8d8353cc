//! The operator's rate limits for one connection: concurrent requests, requests and tokens per minute, and a minimum
//! gap between requests. The caller passes the time and counts the open requests, so the module has no side effects.

use serde::Deserialize;

/// The length of the windows in seconds.
const MINUTE_S: u64 = 60;
/// The full seconds of a window and the current one.
const SECONDS: usize = MINUTE_S as usize + 1;
/// Larger amounts count as this, so that no sum overflows.
const MOST_PER_SECOND: u64 = u64::MAX / SECONDS as u64;

/// The limits of one connection. Each is off by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AccountLimits {
    /// Concurrent requests.
    pub max_concurrent: Option<u32>,
    /// Requests in any 60 seconds.
    pub requests_per_minute: Option<u32>,
    /// Tokens, input and output, in any 60 seconds.
    pub tokens_per_minute: Option<u64>,
    /// The minimum time in milliseconds between the starts of two requests.
    pub min_gap_ms: Option<u64>,
    /// The number of requests that may wait. With 0, none waits.
    pub queue_depth: u32,
    /// The longest wait of a request, in milliseconds.
    pub queue_timeout_ms: u64,
    /// Whether the rate limits that the provider reports apply too.
    pub learns: bool,
}

impl Default for AccountLimits {
    fn default() -> Self {
        Self {
            max_concurrent: None,
            requests_per_minute: None,
            tokens_per_minute: None,
            min_gap_ms: None,
            queue_depth: 0,
            queue_timeout_ms: 0,
            learns: true,
        }
    }
}

impl AccountLimits {
    pub fn is_any(&self) -> bool {
        self.max_concurrent.is_some()
            || self.requests_per_minute.is_some()
            || self.tokens_per_minute.is_some()
            || self.min_gap_ms.is_some()
    }
}

/// Why a request may not start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaceWait {
    /// Until an open request ends.
    Slot,
    /// At least this many milliseconds.
    Ms(u64),
}

/// The remaining capacity under each configured limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remaining {
    pub slots: Option<u32>,
    pub requests: Option<u64>,
    pub tokens: Option<u64>,
}

/// The requests that started on one connection, and their tokens.
#[derive(Debug, Default)]
pub struct Pace {
    requests: RollingMinute,
    tokens: RollingMinute,
    last_ms: Option<u64>,
}

impl Pace {
    /// Checks that a request with this many estimated tokens may start now.
    ///
    /// A request larger than the token limit is admitted when nothing else was sent for a minute, because an estimate
    /// is no reason to refuse it forever.
    pub fn admits(&mut self, limits: &AccountLimits, in_flight: u32, tokens: u64, now_ms: u64) -> Result<(), PaceWait> {
        if limits.max_concurrent.is_some_and(|most| in_flight >= most) {
            return Err(PaceWait::Slot);
        }
        let of_gap =
            limits.min_gap_ms.zip(self.last_ms).map(|(gap_ms, last_ms)| (last_ms + gap_ms).saturating_sub(now_ms));
        let of_requests = limits.requests_per_minute.map(|most| self.requests.wait_ms(u64::from(most), 1, now_ms));
        let of_tokens = limits.tokens_per_minute.map(|most| self.tokens.wait_ms(most, tokens, now_ms));
        match [of_gap, of_requests, of_tokens].into_iter().flatten().max() {
            None | Some(0) => Ok(()),
            Some(wait_ms) => Err(PaceWait::Ms(wait_ms)),
        }
    }

    /// Records the start of a request.
    pub fn begin(&mut self, tokens: u64, now_ms: u64) {
        self.requests.add(1, now_ms);
        self.tokens.add(tokens, now_ms);
        self.last_ms = Some(now_ms);
    }

    /// Adds tokens of a request that started without an estimate.
    pub fn spend(&mut self, tokens: u64, now_ms: u64) {
        self.tokens.add(tokens, now_ms);
    }

    /// Replaces the estimated tokens of a request that started at `began_ms` with the actual ones.
    pub fn correct(&mut self, began_ms: u64, estimated: u64, tokens: u64, now_ms: u64) {
        self.tokens.replace(began_ms, estimated, tokens, now_ms);
    }

    pub fn remaining(&mut self, limits: &AccountLimits, in_flight: u32, now_ms: u64) -> Remaining {
        Remaining {
            slots: limits.max_concurrent.map(|most| most.saturating_sub(in_flight)),
            requests: limits.requests_per_minute.map(|most| u64::from(most).saturating_sub(self.requests.sum(now_ms))),
            tokens: limits.tokens_per_minute.map(|most| most.saturating_sub(self.tokens.sum(now_ms))),
        }
    }

    /// The remaining share of the tightest rate limit, from 0 to 1; `None` if no rate limit is set.
    pub fn rate_left(&mut self, limits: &AccountLimits, now_ms: u64) -> Option<f32> {
        let left = self.remaining(limits, 0, now_ms);
        let share = |left: Option<u64>, most: Option<u64>| Some(left? as f32 / most?.max(1) as f32);
        let requests = share(left.requests, limits.requests_per_minute.map(u64::from));
        requests.into_iter().chain(share(left.tokens, limits.tokens_per_minute)).reduce(f32::min)
    }
}

/// A sum over the last sixty seconds in steps of one second. It is never less than the amount of any sixty seconds, and
/// at most that of sixty-one.
#[derive(Debug)]
struct RollingMinute {
    seconds: [u64; SECONDS],
    /// The current second.
    newest_s: u64,
    sum: u64,
}

impl Default for RollingMinute {
    fn default() -> Self {
        Self { seconds: [0; SECONDS], newest_s: 0, sum: 0 }
    }
}

impl RollingMinute {
    fn slot_of(second: u64) -> usize {
        (second % SECONDS as u64) as usize
    }

    /// Drops the seconds that are past.
    fn advance(&mut self, now_ms: u64) {
        let now_s = now_ms / 1_000;
        let steps = now_s.saturating_sub(self.newest_s).min(SECONDS as u64);
        for step in 1..=steps {
            let slot_of = Self::slot_of(now_s - steps + step);
            self.sum -= std::mem::take(&mut self.seconds[slot_of]);
        }
        self.newest_s = self.newest_s.max(now_s);
    }

    fn sum(&mut self, now_ms: u64) -> u64 {
        self.advance(now_ms);
        self.sum
    }

    fn add(&mut self, amount: u64, now_ms: u64) {
        self.advance(now_ms);
        self.put(self.newest_s, amount);
    }

    /// Replaces an amount that was added at `added_ms`, if it still counts.
    fn replace(&mut self, added_ms: u64, before: u64, after: u64, now_ms: u64) {
        self.advance(now_ms);
        let second = added_ms / 1_000;
        if second + SECONDS as u64 <= self.newest_s || second > self.newest_s {
            return;
        }
        let slot = &mut self.seconds[Self::slot_of(second)];
        let less = before.min(*slot);
        *slot -= less;
        self.sum -= less;
        self.put(second, after);
    }

    fn put(&mut self, second: u64, amount: u64) {
        let slot = &mut self.seconds[Self::slot_of(second)];
        let before = *slot;
        *slot = before.saturating_add(amount).min(MOST_PER_SECOND);
        self.sum += *slot - before;
    }

    /// Milliseconds until `amount` fits below `most`; 0 if it fits now. An amount that never fits waits until nothing
    /// else counts.
    fn wait_ms(&mut self, most: u64, amount: u64, now_ms: u64) -> u64 {
        self.advance(now_ms);
        let capacity_for_others = most.saturating_sub(amount);
        let mut left = self.sum;
        if left <= capacity_for_others {
            return 0;
        }
        for age in (0..SECONDS as u64).rev() {
            let Some(second) = self.newest_s.checked_sub(age) else { continue };
            left -= self.seconds[Self::slot_of(second)];
            if left <= capacity_for_others {
                return (second + SECONDS as u64) * 1_000 - now_ms;
            }
        }
        MINUTE_S * 1_000
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
