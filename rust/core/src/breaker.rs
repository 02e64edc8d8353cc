//! A circuit breaker for a provider, and a lockout for one model of a connection.
//!
//! The breaker opens when too many attempts in a row fail over any of the provider's connections. When the reset time
//! is over, one probe tests whether the provider has recovered. A lockout stops only its model.
//!
//! ```text
//! closed --failures--> degraded --more--> open --reset time over--> half open --probe succeeds--> closed
//!                                          ^                            |
//!                                          +----- probe fails: longer --+
//! ```

use crate::cooldown::MAX_RETRY_AFTER_MS;
use crate::error::ErrorKind;
use crate::health::AttemptPermit;
use serde::Deserialize;

/// The thresholds of a breaker, in consecutive failures, and its reset time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BreakerLimits {
    pub degraded_after: u32,
    pub open_after: u32,
    pub reset_ms: u64,
    /// The longest reset time, as a multiple of `reset_ms`. From the third consecutive opening on, each opening doubles
    /// the reset time up to this limit.
    pub max_stretch: u64,
}

impl BreakerLimits {
    pub const HOSTED: Self = Self { degraded_after: 7, open_after: 12, reset_ms: 30_000, max_stretch: 4 };
    /// For a provider on this machine, which usually recovers quickly or not at all.
    pub const OWN_MACHINE: Self = Self { degraded_after: 3, open_after: 5, reset_ms: 15_000, max_stretch: 1 };
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self::HOSTED
    }
}

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerPhase {
    Closed,
    /// The provider fails more often than it should. It is used only when the others are no better.
    Degraded,
    Open,
    /// The reset time is over, and one attempt may probe the provider.
    HalfOpen,
}

impl BreakerPhase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Degraded => "degraded",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// The breaker of one provider. Times are milliseconds of a monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    openings: u32,
    open_until_ms: Option<u64>,
    probe_at_ms: Option<u64>,
    /// The provider has answered the probe, but the answer may not be complete yet.
    is_answered: bool,
}

const PROBE_MS: u64 = 60_000;

/// Whether a failure indicates that the provider itself is failing, and not one credential, limit or request.
pub fn is_provider_failure(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UpstreamRefused
            | ErrorKind::UpstreamReset
            | ErrorKind::UpstreamStatus
            | ErrorKind::UpstreamOverloaded
            | ErrorKind::UpstreamTimeout
            | ErrorKind::UpstreamFirstTokenTimeout
            | ErrorKind::UpstreamIdleTimeout
    )
}

impl Breaker {
    pub fn phase(&self, limits: &BreakerLimits, now_ms: u64) -> BreakerPhase {
        match self.open_until_ms {
            Some(until_ms) if now_ms < until_ms => BreakerPhase::Open,
            Some(_) if self.is_answered => BreakerPhase::Degraded,
            Some(_) => BreakerPhase::HalfOpen,
            None if self.failures >= limits.degraded_after => BreakerPhase::Degraded,
            None => BreakerPhase::Closed,
        }
    }

    /// Whether an attempt may start now. A half-open breaker lets one attempt through until its result is reported.
    pub fn try_pass(&mut self, limits: &BreakerLimits, now_ms: u64) -> bool {
        match self.phase(limits, now_ms) {
            BreakerPhase::Closed | BreakerPhase::Degraded => true,
            BreakerPhase::Open => false,
            BreakerPhase::HalfOpen => {
                let is_out = self.probe_at_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < PROBE_MS);
                if !is_out {
                    self.probe_at_ms = Some(now_ms);
                }
                !is_out
            }
        }
    }

    /// Requests permission for an attempt that would start now.
    pub fn begin(&mut self, limits: &BreakerLimits, now_ms: u64) -> AttemptPermit {
        match self.phase(limits, now_ms) {
            BreakerPhase::Closed | BreakerPhase::Degraded => AttemptPermit::Free,
            BreakerPhase::Open => AttemptPermit::Closed(Some(self.remaining_ms(now_ms))),
            BreakerPhase::HalfOpen if self.try_pass(limits, now_ms) => AttemptPermit::Probe,
            BreakerPhase::HalfOpen => AttemptPermit::Wait,
        }
    }

    /// Whether a probe is running.
    pub fn is_probed(&self, now_ms: u64) -> bool {
        self.probe_at_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < PROBE_MS)
    }

    /// Records that the provider has started to answer the probe. The result is reported later.
    pub fn answered(&mut self) {
        self.probe_at_ms = None;
        self.is_answered = self.open_until_ms.is_some();
    }

    /// Records that a probe was dropped without a result.
    pub fn give_up_probe(&mut self) {
        self.probe_at_ms = None;
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// Records a failure of the provider ([`is_provider_failure`]). Failures that arrive while the breaker is open
    /// belong to the event that opened it and are ignored.
    pub fn fail(&mut self, limits: &BreakerLimits, now_ms: u64) {
        self.probe_at_ms = None;
        match self.phase(limits, now_ms) {
            BreakerPhase::Open => return,
            BreakerPhase::HalfOpen => {}
            BreakerPhase::Degraded if self.is_answered => {}
            BreakerPhase::Closed | BreakerPhase::Degraded => {
                self.failures = self.failures.saturating_add(1);
                if self.failures < limits.open_after {
                    return;
                }
            }
        }
        self.is_answered = false;
        self.openings = self.openings.saturating_add(1);
        let stretch = (1u64 << self.openings.saturating_sub(2).min(16)).min(limits.max_stretch);
        self.open_until_ms = Some(now_ms.saturating_add(limits.reset_ms.saturating_mul(stretch)));
    }

    /// Adopts the opening of this provider's breaker in another worker, which has `left_ms` left. An opening of this
    /// worker that lasts longer is kept.
    pub fn adopt_opening(&mut self, limits: &BreakerLimits, left_ms: u64, now_ms: u64) {
        let longest_ms = limits.reset_ms.saturating_mul(limits.max_stretch);
        let until_ms = now_ms.saturating_add(left_ms.min(longest_ms));
        if until_ms > self.open_until_ms.unwrap_or_default().max(now_ms) {
            self.open_until_ms = Some(until_ms);
            self.openings = self.openings.max(1);
            self.is_answered = false;
        }
    }

    pub fn remaining_ms(&self, now_ms: u64) -> u64 {
        self.open_until_ms.map_or(0, |until_ms| until_ms.saturating_sub(now_ms))
    }
}

const MAX_STEPS: u32 = 10;

/// Which failures lock a model out, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LockoutLimits {
    pub enabled: bool,
    /// The status codes that say something about the model and not about the connection.
    pub status_codes: Vec<u16>,
    pub base_ms: u64,
    pub max_ms: u64,
}

impl Default for LockoutLimits {
    fn default() -> Self {
        Self { enabled: true, status_codes: vec![404], base_ms: 120_000, max_ms: 30 * 60_000 }
    }
}

/// The lockout of one model over one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lockout {
    failures: u32,
    failed_at_ms: u64,
    until_ms: u64,
    is_binding: bool,
}

impl Lockout {
    pub fn is_locked(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    pub fn remaining_ms(&self, now_ms: u64) -> u64 {
        self.until_ms.saturating_sub(now_ms)
    }

    /// Whether the provider itself set the end of the lockout.
    pub fn is_binding(&self) -> bool {
        self.is_binding
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Records a failure of the model. Failures that arrive while the model is locked belong to the event that locked
    /// it and are ignored. `reset_ms` is the time until recovery that the provider reported; it overrides the maximum.
    pub fn fail(&mut self, limits: &LockoutLimits, reset_ms: Option<u64>, now_ms: u64) {
        if self.is_locked(now_ms) && reset_ms.is_none() {
            return;
        }
        let cooldown_ms = match reset_ms {
            Some(reset_ms) => reset_ms.min(MAX_RETRY_AFTER_MS),
            None => limits.base_ms.saturating_mul(1 << self.failures.min(MAX_STEPS)).min(limits.max_ms),
        };
        self.is_binding = reset_ms.is_some() || (self.is_binding && self.is_locked(now_ms));
        self.failures = (self.failures + 1).min(MAX_STEPS);
        self.failed_at_ms = now_ms;
        self.until_ms = self.until_ms.max(now_ms.saturating_add(cooldown_ms));
    }

    /// Adopts a lockout of another worker, limited to the longest that this worker would set itself.
    pub fn adopt_cooldown(&mut self, limits: &LockoutLimits, left_ms: u64, is_binding: bool, now_ms: u64) {
        let longest_ms = if is_binding { MAX_RETRY_AFTER_MS } else { limits.max_ms };
        let until_ms = now_ms.saturating_add(left_ms.min(longest_ms));
        if until_ms > self.until_ms.max(now_ms) {
            self.is_binding = is_binding || (self.is_binding && self.is_locked(now_ms));
            self.failures = self.failures.max(1);
            self.until_ms = until_ms;
        }
    }

    /// Halves the failure count. Returns `true` when the count reaches zero and the entry can be removed. An attempt
    /// that started before the last failure says nothing about the model's current state and changes nothing.
    pub fn succeed(&mut self, started_ms: u64) -> bool {
        if started_ms <= self.failed_at_ms {
            return false;
        }
        self.failures /= 2;
        self.until_ms = 0;
        self.failures == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BreakerLimits = BreakerLimits { degraded_after: 2, open_after: 3, reset_ms: 1_000, max_stretch: 4 };

    fn opened(now_ms: u64) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            breaker.fail(&LIMITS, now_ms);
        }
        breaker
    }

    #[test]
    fn failures_in_a_row_degrade_then_open() {
        let mut breaker = Breaker::default();
        let mut phases = Vec::new();
        for _ in 0..3 {
            breaker.fail(&LIMITS, 0);
            phases.push(breaker.phase(&LIMITS, 0));
        }
        assert_eq!(phases, [BreakerPhase::Closed, BreakerPhase::Degraded, BreakerPhase::Open]);
        assert!(!breaker.try_pass(&LIMITS, 999));
        let mut mixed = Breaker::default();
        for _ in 0..10 {
            mixed.fail(&LIMITS, 0);
            mixed.fail(&LIMITS, 0);
            mixed.succeed();
        }
        assert_eq!(mixed.phase(&LIMITS, 0), BreakerPhase::Closed, "a success between them starts the count anew");
    }

    #[test]
    fn one_probe_decides() {
        let mut breaker = opened(0);
        assert_eq!(breaker.phase(&LIMITS, 1_000), BreakerPhase::HalfOpen);
        let passed = (0..500).filter(|_| breaker.try_pass(&LIMITS, 1_000)).count();
        assert_eq!(passed, 1);
        breaker.succeed();
        assert_eq!(breaker.phase(&LIMITS, 1_000), BreakerPhase::Closed);
    }

    #[test]
    fn each_failed_probe_opens_it_for_longer_up_to_the_cap() {
        let mut breaker = opened(0);
        let mut now_ms = 0;
        let mut cooldowns = Vec::new();
        for _ in 0..6 {
            cooldowns.push(breaker.remaining_ms(now_ms));
            now_ms += cooldowns[cooldowns.len() - 1];
            assert!(breaker.try_pass(&LIMITS, now_ms));
            breaker.fail(&LIMITS, now_ms);
        }
        assert_eq!(cooldowns, [1_000, 1_000, 2_000, 4_000, 4_000, 4_000]);
    }

    #[test]
    fn failures_while_open_change_nothing() {
        let mut breaker = opened(0);
        let before = breaker;
        breaker.fail(&LIMITS, 500);
        assert_eq!(breaker, before);
    }

    #[test]
    fn a_probe_that_never_comes_back_makes_room() {
        let mut breaker = opened(0);
        assert!(breaker.try_pass(&LIMITS, 1_000));
        assert!(!breaker.try_pass(&LIMITS, 1_000 + PROBE_MS - 1));
        assert!(breaker.try_pass(&LIMITS, 1_000 + PROBE_MS));
    }

    #[test]
    fn a_lockout_that_another_worker_took_lasts_no_longer_than_ones_own() {
        let limits = LockoutLimits::default();
        let mut lockout = Lockout::default();
        lockout.adopt_cooldown(&limits, 60_000, false, 1_000);
        assert_eq!((lockout.remaining_ms(1_000), lockout.failures(), lockout.is_binding()), (60_000, 1, false));
        lockout.adopt_cooldown(&limits, 1_000, false, 1_000);
        assert_eq!(lockout.remaining_ms(1_000), 60_000, "a shorter one ends nothing");
        lockout.adopt_cooldown(&limits, u64::MAX, false, 1_000);
        assert_eq!(lockout.remaining_ms(1_000), limits.max_ms);
        lockout.adopt_cooldown(&limits, u64::MAX, true, 1_000);
        assert_eq!(lockout.remaining_ms(1_000), MAX_RETRY_AFTER_MS);
        assert!(lockout.is_binding());
    }

    #[test]
    fn a_lockout_grows_and_is_halved_by_success() {
        let mut lockout = Lockout::default();
        let mut now_ms = 0;
        let mut cooldowns = Vec::new();
        for _ in 0..6 {
            lockout.fail(&LockoutLimits::default(), None, now_ms);
            lockout.fail(&LockoutLimits::default(), None, now_ms);
            cooldowns.push(lockout.remaining_ms(now_ms) / 1_000);
            now_ms += lockout.remaining_ms(now_ms);
        }
        assert_eq!(cooldowns, [120, 240, 480, 960, 1_800, 1_800], "two at once count once");
        lockout.fail(&LockoutLimits::default(), Some(7_200_000), now_ms);
        assert_eq!(lockout.remaining_ms(now_ms), 7_200_000, "what the provider says overrides the cap");
        assert!(
            !lockout.succeed(now_ms) && lockout.is_locked(now_ms),
            "an attempt from before the failure ends nothing"
        );
        assert!((0..4).any(|_| lockout.succeed(now_ms + 1)), "a few successes and nothing is left of it");
        assert!(!lockout.is_locked(now_ms));
    }

    #[test]
    fn only_the_providers_own_failures_count() {
        assert!(is_provider_failure(ErrorKind::UpstreamRefused) && is_provider_failure(ErrorKind::UpstreamStatus));
        assert!(
            !is_provider_failure(ErrorKind::UpstreamAuth)
                && !is_provider_failure(ErrorKind::UpstreamRateLimited)
                && !is_provider_failure(ErrorKind::InvalidRequest)
        );
    }
}
