//! Whether a connection may be used, as one state machine. The caller passes the time.
//!
//! ```text
//!            failure                cooldown over, one probe
//!   active ----------> cooling ------------------------------> active        (the probe fails: cooling, longer)
//!     |  a window of the quota is exhausted
//!     +------------> quota-exhausted --- reset, or a check that finds quota -> active
//!     |  the remaining quota is at or below the operator's threshold
//!     +------------> policy-blocked ---- reset, or a check that finds more --> active
//!     |  banned, credential expired, no credits left
//!     +------------> terminal ---------- an operator, or a new credential ---> active
//!     |  deactivated or deleted
//!     +------------> deactivated ------- an operator ------------------------> active
//! ```
//!
//! Several conditions may hold at once. The lowest one in the diagram is reported until it is over.

use crate::cooldown::{Cooldown, CooldownLimits};
use crate::error::ErrorKind;
use crate::quota::QuotaThresholds;
use crate::strategy::{Availability, QuotaWindow};

/// The reported state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthState {
    Active,
    Cooling,
    QuotaExhausted,
    PolicyBlocked,
    Terminal,
    Deactivated,
}

impl HealthState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Cooling => "cooling",
            Self::QuotaExhausted => "quota-exhausted",
            Self::PolicyBlocked => "policy-blocked",
            Self::Terminal => "terminal",
            Self::Deactivated => "deactivated",
        }
    }
}

/// Why a connection is unusable until somebody fixes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TerminalState {
    Banned,
    Expired,
    CreditsExhausted,
}

impl TerminalState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Banned => "banned",
            Self::Expired => "expired",
            Self::CreditsExhausted => "credits_exhausted",
        }
    }

    /// The state that a provider's error states explicitly. `code` and `message` come from the provider.
    pub fn of_error(code: &str, message: &str) -> Option<Self> {
        match code {
            "insufficient_quota"
            | "billing_not_active"
            | "billing_hard_limit_reached"
            | "credits_exhausted"
            | "insufficient_balance"
            | "insufficient_credits" => Some(Self::CreditsExhausted),
            "account_deactivated"
            | "account_disabled"
            | "account_suspended"
            | "organization_suspended"
            | "access_terminated" => Some(Self::Banned),
            "api_key_expired" | "token_expired" => Some(Self::Expired),
            // Anthropic reports it with the status and code of a malformed request.
            _ if message.contains("credit balance is too low") => Some(Self::CreditsExhausted),
            _ => None,
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Banned, Self::Expired, Self::CreditsExhausted].into_iter().find(|one| one.name() == name)
    }
}

/// The answer to an attempt that would start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptPermit {
    /// The attempt may start.
    Free,
    /// The attempt may start as a probe and must report its result, because other attempts wait for it.
    Probe,
    /// Another attempt is probing; wait for its result.
    Wait,
    /// The attempt must not start for this many milliseconds; `None` until an operator fixes the connection.
    Closed(Option<u64>),
}

/// The health of one connection. Times are milliseconds of a monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Health {
    cooldown: Cooldown,
    /// When the running probe started.
    probe_at_ms: Option<u64>,
    quota_until_ms: Option<u64>,
    policy_until_ms: Option<u64>,
    terminal: Option<TerminalState>,
    is_deactivated: bool,
    /// The probe has been answered, but the answer may not be complete yet.
    is_answered: bool,
    /// The number of consecutive refusals of the credential, and the time of the last one.
    refusals: u32,
    refused_at_ms: u64,
}

/// A probe without a result for this long is abandoned, so that another may start.
const PROBE_MS: u64 = 60_000;

/// A quota window, and the share of it that the operator reserves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaReading {
    pub window: QuotaWindow,
    /// Percent.
    pub threshold_percent: f32,
}

impl QuotaReading {
    /// Whether only the reserved share is left.
    fn is_kept_back(&self) -> bool {
        self.window.remaining > 0.0 && self.window.remaining <= self.threshold_percent / 100.0
    }
}

impl Health {
    pub fn state(&self, now_ms: u64) -> HealthState {
        if self.is_deactivated {
            HealthState::Deactivated
        } else if self.terminal.is_some() {
            HealthState::Terminal
        } else if is_until(self.policy_until_ms, now_ms) {
            HealthState::PolicyBlocked
        } else if is_until(self.quota_until_ms, now_ms) {
            HealthState::QuotaExhausted
        } else if self.cooldown.is_cooling(now_ms) {
            HealthState::Cooling
        } else {
            HealthState::Active
        }
    }

    /// The connection's standing for routing strategies.
    pub fn availability(&self, now_ms: u64) -> Availability {
        match self.state(now_ms) {
            HealthState::Deactivated
            | HealthState::Terminal
            | HealthState::PolicyBlocked
            | HealthState::QuotaExhausted => Availability::Closed,
            HealthState::Cooling if self.cooldown.is_closed(now_ms) => Availability::Closed,
            HealthState::Cooling => Availability::Cooling,
            HealthState::Active if !self.is_half_open(now_ms) => Availability::Able,
            // A probe is running; callers that can use another connection do.
            HealthState::Active if self.is_probed(now_ms) => Availability::Cooling,
            HealthState::Active => Availability::Probing,
        }
    }

    /// Whether the connection has failed since it last succeeded.
    pub fn has_failed(&self) -> bool {
        self.cooldown.has_failed()
    }

    /// Whether the cooldown is over and no attempt has succeeded since.
    pub fn is_half_open(&self, now_ms: u64) -> bool {
        self.cooldown.has_failed() && !self.is_answered && !self.cooldown.is_cooling(now_ms)
    }

    /// Decides about an attempt that would start now. After a cooldown that the provider asked for, one probe goes first and the
    /// others wait. After the gateway's own cooldown nobody waits: such connections are tried anyway when no other is left.
    pub fn begin(&mut self, now_ms: u64) -> AttemptPermit {
        if self.availability(now_ms) == Availability::Closed {
            return AttemptPermit::Closed(self.remaining_ms(now_ms));
        }
        if !self.is_half_open(now_ms) {
            AttemptPermit::Free
        } else if self.try_probe(now_ms) {
            AttemptPermit::Probe
        } else if self.cooldown.is_binding() {
            AttemptPermit::Wait
        } else {
            AttemptPermit::Free
        }
    }

    /// Records that the provider has started to answer the probe. The result is reported later.
    pub fn answered(&mut self) {
        self.is_answered = true;
        self.probe_at_ms = None;
    }

    /// Records that the provider refused the credential. After enough consecutive refusals the connection becomes
    /// terminal. An attempt counts only if it started after the last refusal was recorded.
    pub fn refuse(&mut self, reason: TerminalState, started_ms: u64, terminal_after: u32, now_ms: u64) {
        if self.refusals > 0 && started_ms < self.refused_at_ms {
            return;
        }
        self.refusals = self.refusals.saturating_add(1);
        self.refused_at_ms = now_ms;
        if terminal_after > 0 && self.refusals >= terminal_after {
            self.end(reason);
        }
    }

    /// Claims the one probe of a half-open connection. Returns `false` if another attempt has it, and `true` for a
    /// connection that is not half open, which needs no probe.
    pub fn try_probe(&mut self, now_ms: u64) -> bool {
        if !self.is_half_open(now_ms) {
            return true;
        }
        if self.is_probed(now_ms) {
            return false;
        }
        self.probe_at_ms = Some(now_ms);
        true
    }

    /// Records the success of an attempt that started at `started_ms`. Ends the cooldown.
    pub fn succeed(&mut self, started_ms: u64) {
        self.cooldown.succeed(started_ms);
        self.probe_at_ms = None;
        self.refusals = 0;
    }

    /// Records a failed attempt. The hint is the provider's own time until recovery.
    pub fn fail(&mut self, cooldowns: &CooldownLimits, kind: ErrorKind, hint_ms: Option<u64>, now_ms: u64) {
        self.cooldown.fail(cooldowns, kind, hint_ms, now_ms);
        self.probe_at_ms = None;
        self.is_answered = false;
    }

    /// The remaining cooldown in milliseconds, and whether the provider asked for it.
    pub fn remaining_cooldown(&self, now_ms: u64) -> Option<(u64, bool)> {
        let left_ms = self.cooldown.remaining_ms(now_ms);
        (left_ms > 0).then(|| (left_ms, self.cooldown.is_binding()))
    }

    /// Adopts a cooldown of another worker, which has `left_ms` left.
    pub fn adopt_cooldown(&mut self, cooldowns: &CooldownLimits, left_ms: u64, is_binding: bool, now_ms: u64) {
        self.cooldown.adopt_cooldown(cooldowns, left_ms, is_binding, now_ms);
        self.is_answered = false;
    }

    /// Records that a probe was dropped without a result.
    pub fn give_up_probe(&mut self) {
        self.probe_at_ms = None;
    }

    /// Updates the quota windows that the provider reported. A connection with an empty window is exhausted until the
    /// last empty window resets, because most providers refuse requests when any window is empty.
    pub fn observe_quota(&mut self, windows: &[QuotaReading], quota: &QuotaThresholds, now_ms: u64) {
        let until = |is_out: &dyn Fn(&QuotaReading) -> bool| {
            let out = windows.iter().filter(|reading| is_out(reading)).map(|reading| reading.window);
            out.map(|window| if window.resets_in_ms == 0 { quota.recheck_ms } else { window.resets_in_ms })
                .max()
                .map(|in_ms| now_ms.saturating_add(in_ms))
        };
        self.quota_until_ms = until(&|reading| reading.window.remaining <= 0.0);
        self.policy_until_ms = until(&QuotaReading::is_kept_back);
    }

    /// Makes the connection terminal until [`Health::revive`].
    pub fn end(&mut self, reason: TerminalState) {
        self.terminal = Some(reason);
    }

    pub fn terminal(&self) -> Option<TerminalState> {
        self.terminal
    }

    /// Records an exhausted quota that another worker, or an earlier run of this one, has seen.
    pub fn exhaust_until(&mut self, until_ms: u64) {
        self.quota_until_ms = self.quota_until_ms.max(Some(until_ms));
    }

    pub fn set_active(&mut self, is_active: bool) {
        self.is_deactivated = !is_active;
    }

    /// Clears every state except deactivation, after an operator's request or with a new credential.
    pub fn revive(&mut self) {
        *self = Self { is_deactivated: self.is_deactivated, ..Self::default() };
    }

    /// The time until the connection recovers on schedule; `None` if an operator must act.
    pub fn remaining_ms(&self, now_ms: u64) -> Option<u64> {
        if self.is_deactivated || self.terminal.is_some() {
            return None;
        }
        let left = |until_ms: Option<u64>| until_ms.map_or(0, |until_ms| until_ms.saturating_sub(now_ms));
        Some(self.cooldown.remaining_ms(now_ms).max(left(self.quota_until_ms)).max(left(self.policy_until_ms)))
    }

    fn is_probed(&self, now_ms: u64) -> bool {
        self.probe_at_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < PROBE_MS)
    }
}

fn is_until(until_ms: Option<u64>, now_ms: u64) -> bool {
    until_ms.is_some_and(|until_ms| now_ms < until_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cooldown::MAX_RETRY_AFTER_MS;
    use proptest::prelude::*;

    fn reading(remaining: f32, resets_in_ms: u64) -> QuotaReading {
        QuotaReading { window: QuotaWindow { remaining, resets_in_ms }, threshold_percent: 2.0 }
    }

    #[test]
    fn a_window_is_kept_back_from_its_own_threshold_on() {
        let mut health = Health::default();
        let at = |remaining, threshold_percent| QuotaReading { threshold_percent, ..reading(remaining, 9_000) };
        for (remaining, percent, expected) in [
            (0.2, 25.0, HealthState::PolicyBlocked),
            (0.3, 25.0, HealthState::Active),
            (0.001, 0.0, HealthState::Active),
        ] {
            health.observe_quota(&[at(remaining, percent), reading(0.9, 1_000)], &QuotaThresholds::default(), 0);
            assert_eq!(health.state(0), expected, "{remaining} {percent}");
        }
    }

    #[test]
    fn a_failure_rests_and_one_probe_finds_out() {
        let mut health = Health::default();
        health.fail(&CooldownLimits::default(), ErrorKind::UpstreamReset, None, 1_000);
        assert_eq!((health.state(1_001), health.availability(1_001)), (HealthState::Cooling, Availability::Cooling));
        let over_ms = 1_000 + health.remaining_ms(1_000).expect("a time");
        assert_eq!((health.state(over_ms), health.availability(over_ms)), (HealthState::Active, Availability::Probing));
        assert!(health.try_probe(over_ms));
        assert!(!health.try_probe(over_ms), "five hundred callers, one probe");
        assert_eq!(health.availability(over_ms), Availability::Cooling);
        health.succeed(over_ms + 1);
        assert_eq!(health.availability(over_ms + 1), Availability::Able);
        assert!(health.try_probe(over_ms + 1) && health.try_probe(over_ms + 1));
    }

    #[test]
    fn a_probe_that_fails_rests_longer_and_one_that_is_lost_is_given_up() {
        let mut health = Health::default();
        health.fail(&CooldownLimits::default(), ErrorKind::UpstreamReset, None, 0);
        let first_ms = health.remaining_ms(0).expect("a time");
        assert!(health.try_probe(first_ms));
        health.fail(&CooldownLimits::default(), ErrorKind::UpstreamReset, None, first_ms);
        assert_eq!(health.remaining_ms(first_ms), Some(2 * first_ms));
        let over_ms = 3 * first_ms;
        assert!(health.try_probe(over_ms));
        assert!(health.try_probe(over_ms + PROBE_MS), "it has not come back");
        health.give_up_probe();
        assert!(health.try_probe(over_ms + PROBE_MS));
    }

    #[test]
    fn retry_after_closes_and_is_capped() {
        let mut health = Health::default();
        let cooldowns = CooldownLimits { max_retry_after_ms: u64::MAX, ..CooldownLimits::default() };
        health.fail(&cooldowns, ErrorKind::UpstreamRateLimited, Some(u64::MAX), 0);
        assert_eq!((health.availability(1), health.remaining_ms(0)), (Availability::Closed, Some(MAX_RETRY_AFTER_MS)));
    }

    #[test]
    fn quota_is_over_at_its_reset_or_at_a_better_look() {
        let mut health = Health::default();
        health.observe_quota(&[reading(0.0, 9_000), reading(0.5, 50_000)], &QuotaThresholds::default(), 0);
        assert_eq!((health.state(8_999), health.state(9_000)), (HealthState::QuotaExhausted, HealthState::Active));
        health.observe_quota(&[reading(0.01, 9_000)], &QuotaThresholds::default(), 0);
        assert_eq!((health.state(0), health.availability(0)), (HealthState::PolicyBlocked, Availability::Closed));
        health.observe_quota(&[reading(0.9, 9_000)], &QuotaThresholds::default(), 1);
        assert_eq!(health.state(1), HealthState::Active);
        health.observe_quota(&[reading(0.0, 0)], &QuotaThresholds::default(), 0);
        assert_eq!(
            health.remaining_ms(0),
            Some(QuotaThresholds::default().recheck_ms),
            "a reset without a time is checked again"
        );
    }

    #[test]
    fn what_takes_an_operator_takes_an_operator() {
        let mut health = Health::default();
        health.end(TerminalState::CreditsExhausted);
        health.succeed(u64::MAX);
        assert_eq!((health.state(u64::MAX), health.remaining_ms(0)), (HealthState::Terminal, None));
        health.set_active(false);
        assert_eq!(health.state(0), HealthState::Deactivated);
        health.revive();
        assert_eq!(health.state(0), HealthState::Deactivated, "a new credential switches nothing on");
        health.set_active(true);
        assert_eq!(health.state(0), HealthState::Active);
    }

    #[test]
    fn after_a_rest_that_was_asked_for_one_goes_first_and_the_others_wait() {
        let mut health = Health::default();
        health.fail(&CooldownLimits::default(), ErrorKind::UpstreamRateLimited, Some(1_000), 0);
        assert_eq!(health.begin(999), AttemptPermit::Closed(Some(1)));
        assert_eq!((health.begin(1_000), health.begin(1_000)), (AttemptPermit::Probe, AttemptPermit::Wait));
        health.answered();
        assert_eq!(health.begin(1_001), AttemptPermit::Free, "what is not whole yet has been answered");
        health.fail(&CooldownLimits::default(), ErrorKind::UpstreamReset, None, 1_002);
        assert_eq!(health.begin(1_003), AttemptPermit::Free, "a local cooldown closes nothing");
        let over_ms = 1_002 + health.remaining_ms(1_002).expect("a time");
        assert_eq!((health.begin(over_ms), health.begin(over_ms)), (AttemptPermit::Probe, AttemptPermit::Free));
    }

    #[test]
    fn refusals_in_a_row_end_it_and_those_of_one_moment_count_once() {
        let mut health = Health::default();
        for _ in 0..10 {
            health.refuse(TerminalState::Expired, 1, 3, 100);
        }
        assert_eq!(health.terminal(), None);
        health.refuse(TerminalState::Expired, 101, 3, 200);
        health.succeed(150);
        health.refuse(TerminalState::Expired, 201, 3, 300);
        health.refuse(TerminalState::Expired, 301, 3, 400);
        assert_eq!(health.terminal(), None, "a success begins the count anew");
        health.refuse(TerminalState::Expired, 401, 3, 500);
        assert_eq!(health.terminal(), Some(TerminalState::Expired));
        assert_eq!(health.begin(501), AttemptPermit::Closed(None));
    }

    #[test]
    fn what_a_provider_says_outright_ends_it() {
        for (code, message, expected) in [
            ("insufficient_quota", "", Some(TerminalState::CreditsExhausted)),
            ("account_deactivated", "", Some(TerminalState::Banned)),
            ("token_expired", "", Some(TerminalState::Expired)),
            ("", "Your credit balance is too low to access the API.", Some(TerminalState::CreditsExhausted)),
            ("rate_limit_exceeded", "quota", None),
            ("", "", None),
        ] {
            assert_eq!(TerminalState::of_error(code, message), expected, "{code} {message}");
        }
        for one in [TerminalState::Banned, TerminalState::Expired, TerminalState::CreditsExhausted] {
            assert_eq!(TerminalState::named(one.name()), Some(one));
        }
    }

    #[derive(Debug, Clone)]
    enum Event {
        Fail(Option<u64>),
        Succeed,
        Probe,
        QuotaThresholds(f32, u64),
        Pass(u64),
    }

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![
            proptest::option::of(0u64..200_000_000).prop_map(Event::Fail),
            Just(Event::Succeed),
            Just(Event::Probe),
            (0.0f32..1.0, 0u64..100_000).prop_map(|(remaining, reset_ms)| Event::QuotaThresholds(remaining, reset_ms)),
            (0u64..10_000_000).prop_map(Event::Pass),
        ]
    }

    proptest! {
        #[test]
        fn whatever_happens_it_is_able_again_by_itself_when_it_says_so(events in proptest::collection::vec(any_event(), 0..60)) {
            let mut health = Health::default();
            let mut now_ms = 0u64;
            for event in events {
                match event {
                    Event::Fail(hint_ms) => health.fail(&CooldownLimits::default(), ErrorKind::UpstreamReset, hint_ms, now_ms),
                    Event::Succeed => health.succeed(now_ms + 1),
                    Event::Probe => { let _took = health.try_probe(now_ms); }
                    Event::QuotaThresholds(remaining, reset_ms) => health.observe_quota(&[reading(remaining, reset_ms)], &QuotaThresholds::default(), now_ms),
                    Event::Pass(ms) => now_ms += ms,
                }
                let left_ms = health.remaining_ms(now_ms).expect("nothing here takes an operator");
                prop_assert!(left_ms <= MAX_RETRY_AFTER_MS);
                prop_assert_eq!(left_ms == 0, health.state(now_ms) == HealthState::Active);
                prop_assert_eq!(health.state(now_ms + left_ms), HealthState::Active);
                prop_assert!(health.availability(now_ms + left_ms + PROBE_MS).is_able());
            }
        }
    }
}
