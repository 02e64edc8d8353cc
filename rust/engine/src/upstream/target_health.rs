//! How a target's health is used: whether it may be tried, how it ranks, and what an attempt changes.
//!
//! ```text
//! choose: Target::standing, Target::facts    read the state, change nothing
//! attempt: half_open::acquire                 one probe at a time
//! after: Target::served, blame, hold_against  record the result
//! ```

use crate::clock;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::health::{Condition, ObservedWindow};
use crate::upstream::target::Target;
use fairlead_core::strategy::{Availability, Facts};
use fairlead_core::{
    is_provider_failure, read_quota_headers, AttemptPermit, BreakerLimits, Error, ErrorKind, HealthState, QuotaReading,
    QuotaSpan, TerminalState, WindowReading,
};
use fairlead_dialect::RejectionReason;
use http::HeaderMap;
use smallvec::SmallVec;
use std::error::Error as _;
use std::time::Duration;

/// The worse of two standings. If both are equally bad, the one that lasts longer.
fn graver(one: (Availability, u64), other: (Availability, u64)) -> (Availability, u64) {
    one.max(other)
}

impl Target {
    pub fn breaker_limits(&self) -> &BreakerLimits {
        if self.is_own_machine {
            &self.resilience.own_machine_breaker
        } else {
            &self.resilience.provider_breaker
        }
    }

    /// Returns whether this model may be tried over this connection, and the time until then. The time is `u64::MAX` if
    /// an operator has to change the connection first.
    pub fn availability(&self, model: &str, now_ms: u64) -> (Availability, u64) {
        let condition = self.hot.condition.lock();
        self.judge(&condition, model, now_ms)
    }

    fn judge(&self, condition: &Condition, model: &str, now_ms: u64) -> (Availability, u64) {
        let mut worst =
            (condition.health.availability(now_ms), condition.health.remaining_ms(now_ms).unwrap_or(u64::MAX));
        if !condition.lockouts.is_empty() {
            if let Some(lockout) = condition.lockouts.get(model).filter(|lockout| lockout.is_locked(now_ms)) {
                let availability = if lockout.is_binding() { Availability::Closed } else { Availability::Cooling };
                worst = graver(worst, (availability, lockout.remaining_ms(now_ms)));
            }
        }
        if let Some(limited) = condition.limited.get(model) {
            worst = graver(worst, (limited.availability(now_ms), limited.remaining_ms(now_ms).unwrap_or(u64::MAX)));
        }
        let breaker = self.provider.breaker.lock();
        if breaker.failures() > 0 {
            use fairlead_core::BreakerPhase;
            let availability = match breaker.phase(self.breaker_limits(), now_ms) {
                BreakerPhase::Open => Availability::Closed,
                BreakerPhase::HalfOpen if breaker.is_probed(now_ms) => Availability::Cooling,
                BreakerPhase::HalfOpen => Availability::Probing,
                BreakerPhase::Closed | BreakerPhase::Degraded => Availability::Able,
            };
            worst = graver(worst, (availability, breaker.remaining_ms(now_ms)));
        }
        worst
    }

    /// Returns the facts by which a strategy ranks targets, based on those that are already `known`.
    pub fn facts(&self, model: &str, known: Facts, now_ms: u64) -> Facts {
        let condition = self.hot.condition.lock();
        let (availability, cooldown_ms) = self.judge(&condition, model, now_ms);
        let in_flight = self.hot.load.in_flight();
        let headroom = self.hot.limiter.headroom(model, in_flight, now_ms);
        let most = headroom.and_then(|headroom| headroom.max_concurrent);
        let span = |span| if condition.windows.is_empty() { None } else { condition.tightest(span, now_ms) };
        Facts {
            availability,
            cooldown_ms,
            in_flight,
            capacity: known.capacity.into_iter().chain(most).min(),
            rate_left: headroom.and_then(|headroom| headroom.rate_left),
            is_shut: headroom.is_some_and(|headroom| headroom.is_shut),
            used: self.hot.load.used(),
            latency_ms: self.hot.latency_ms().map(|ms| ms as f32),
            success_rate: self.hot.load.success_rate(),
            session: span(QuotaSpan::Session),
            weekly: span(QuotaSpan::Weekly),
            monthly: span(QuotaSpan::Monthly),
            ..known
        }
    }

    /// Returns the facts by which connections of one provider are ranked. Latency and success rate are left out,
    /// because they depend on the provider: a connection that was slow once would never be tried again and never be
    /// found to be fast.
    pub fn account_facts(&self, model: &str, now_ms: u64) -> Facts {
        let known = Facts { weight: self.connection.weight as f32, ..Facts::default() };
        Facts { latency_ms: None, success_rate: None, ..self.facts(model, known, now_ms) }
    }

    /// Whether the connection is removed from service, as opposed to a temporary cooldown.
    pub fn is_out_of_pool(&self, now_ms: u64) -> bool {
        matches!(self.hot.condition.lock().health.state(now_ms), HealthState::Terminal | HealthState::Deactivated)
    }

    /// Whether the provider's circuit is open.
    pub fn is_broken(&self, now_ms: u64) -> bool {
        self.provider.breaker.lock().remaining_ms(now_ms) > 0
    }

    /// Returns whether an attempt at this model may start now.
    pub fn begin(&self, model: &str, now_ms: u64) -> AttemptPermit {
        let mut condition = self.hot.condition.lock();
        let mut breaker = self.provider.breaker.lock();
        let of_connection = condition.health.begin(now_ms);
        let of_provider = breaker.begin(self.breaker_limits(), now_ms);
        let of_model = condition.limited.get_mut(model).map_or(AttemptPermit::Free, |limited| limited.begin(now_ms));
        let permits = [of_connection, of_provider, of_model];
        let is_closed = |permit: &AttemptPermit| matches!(permit, AttemptPermit::Closed(_));
        let refused =
            permits.into_iter().find(is_closed).or_else(|| permits.into_iter().find(|one| *one == AttemptPermit::Wait));
        let Some(refused) = refused else {
            let is_probe = permits.contains(&AttemptPermit::Probe);
            return if is_probe { AttemptPermit::Probe } else { AttemptPermit::Free };
        };
        // Releases the probes that this attempt will not send.
        if of_connection == AttemptPermit::Probe {
            condition.health.give_up_probe();
        }
        if of_provider == AttemptPermit::Probe {
            breaker.give_up_probe();
        }
        if let Some(limited) = condition.limited.get_mut(model).filter(|_| of_model == AttemptPermit::Probe) {
            limited.give_up_probe();
        }
        refused
    }

    /// Records that the provider responded to a probe of this model.
    pub fn answered(&self, model: &str) {
        {
            let mut condition = self.hot.condition.lock();
            condition.health.answered();
            if let Some(limited) = condition.limited.get_mut(model) {
                limited.answered();
            }
        }
        self.provider.breaker.lock().answered();
        self.provider.turned.notify_waiters();
    }

    pub fn give_up_probe(&self, model: &str) {
        {
            let mut condition = self.hot.condition.lock();
            condition.health.give_up_probe();
            if let Some(limited) = condition.limited.get_mut(model) {
                limited.give_up_probe();
            }
        }
        self.provider.breaker.lock().give_up_probe();
        self.provider.turned.notify_waiters();
    }

    /// Records a successful attempt that took this long. `sample` is the value that counts as its latency.
    pub fn served(&self, took: Duration, sample: Duration) {
        let started_ms = clock::monotonic_ms().saturating_sub(took.as_millis() as u64);
        {
            let mut condition = self.hot.condition.lock();
            condition.health.succeed(started_ms);
            condition.last_error = None;
        }
        self.provider.breaker.lock().succeed();
        self.provider.turned.notify_waiters();
        self.hot.count(true);
        self.hot.load.observe(true);
        self.hot.observe_latency(sample.as_micros() as u64);
    }

    /// Records a successful attempt of a model that took this long.
    pub fn served_model(&self, model: &str, took: Duration) {
        let started_ms = clock::monotonic_ms().saturating_sub(took.as_millis() as u64);
        let mut condition = self.hot.condition.lock();
        if !condition.limited.is_empty() {
            if let Some(limited) = condition.limited.get_mut(model) {
                limited.succeed(started_ms);
                if !limited.has_failed() {
                    condition.limited.remove(model);
                }
            }
        }
        if !condition.lockouts.is_empty() {
            if let Some(lockout) = condition.lockouts.get_mut(model) {
                if lockout.succeed(started_ms) {
                    condition.lockouts.remove(model);
                }
            }
        }
    }

    /// Records a failed attempt that the connection is to blame for. A response that a guardrail blocked counts against
    /// nobody.
    pub fn blame(&self, kind: ErrorKind, hint_ms: Option<u64>) {
        if kind == ErrorKind::GuardrailBlocked {
            return self.give_up_probe("");
        }
        if kind == ErrorKind::Draining {
            return;
        }
        let now_ms = clock::monotonic_ms();
        {
            let mut condition = self.hot.condition.lock();
            condition.health.fail(&self.resilience.connection_cooldown, kind, hint_ms, now_ms);
            condition.last_error = Some(kind.code());
        }
        if is_provider_failure(kind) {
            self.provider.breaker.lock().fail(self.breaker_limits(), now_ms);
        }
        self.provider.turned.notify_waiters();
        self.hot.load.observe(false);
        self.hot.count(false);
    }

    /// Logs the underlying error, which callers do not receive. Repeated failures of the same kind are logged once, so
    /// that an unavailable provider does not fill the log.
    fn log_cause(&self, error: &Error) {
        let Some(cause) = error.source() else { return };
        if self.hot.condition.lock().last_error != Some(error.kind.code()) {
            let kind = error.kind.code();
            tracing::warn!(connection_id = %self.connection.id, kind, %cause, "a connection could not be used");
        }
    }

    /// Records a failed attempt against the model, the connection, or neither.
    pub fn hold_against(&self, model: &str, failed: &AttemptFailure) {
        self.log_cause(&failed.error);
        if self.locks_out(failed) {
            let now_ms = clock::monotonic_ms();
            let limits = &self.resilience.model_lockout;
            let mut condition = self.hot.condition.lock();
            condition.lock_out(model, |lockout| lockout.fail(limits, failed.hint_ms, now_ms), now_ms);
            // The other models of the connection are unaffected, unless the provider's servers fail.
            if !is_provider_failure(failed.error.kind) {
                drop(condition);
                return self.give_up_probe(model);
            }
        }
        let is_limited = failed.blames_connection && failed.error.kind == ErrorKind::UpstreamRateLimited;
        if is_limited && self.resilience.model_lockout.enabled && !self.limit(model, failed.hint_ms) {
            self.give_up_probe(model);
            self.hot.load.observe(false);
            return self.hot.count(false);
        }
        if failed.blames_connection {
            self.blame(failed.error.kind, failed.hint_ms);
        }
    }

    /// Starts the cooldown of a rate-limited model. Only the model is affected, because providers limit each model
    /// separately. Returns whether another model of the connection is rate-limited too, which means that the limit
    /// applies to the account.
    fn limit(&self, model: &str, hint_ms: Option<u64>) -> bool {
        let mut condition = self.hot.condition.lock();
        condition.last_error = Some(ErrorKind::UpstreamRateLimited.code());
        condition.limit(model, &self.resilience.connection_cooldown, hint_ms, clock::monotonic_ms())
    }

    fn locks_out(&self, failed: &AttemptFailure) -> bool {
        let limits = &self.resilience.model_lockout;
        let rejection = failed.rejection.as_ref();
        let status = rejection.map(|rejection| rejection.status.as_u16()).or(failed.error.upstream_status);
        let is_unknown_model = || rejection.is_some_and(|rejection| rejection.reason == RejectionReason::Model);
        limits.enabled && (status.is_some_and(|status| limits.status_codes.contains(&status)) || is_unknown_model())
    }

    /// Reads limits and quotas from the headers of a response by this model.
    pub fn observe_head(&self, model: &str, headers: &HeaderMap) {
        let named = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let windows = read_quota_headers(named, clock::unix_ms());
        if windows.is_empty() {
            return;
        }
        let now_ms = clock::monotonic_ms();
        if windows.iter().any(|one| !one.is_quota) {
            self.hot.limiter.learn(model, &windows, now_ms);
        }
        let own = &self.connection.quota_thresholds;
        let every = self.resilience.quota.threshold_percent;
        let kept_back = |one: &WindowReading| own.get(&one.name).copied().unwrap_or(every);
        let quotas: SmallVec<[QuotaReading; 4]> = windows
            .iter()
            .filter(|one| one.is_quota)
            .map(|one| QuotaReading { window: one.window(), threshold_percent: kept_back(one) })
            .collect();
        let mut condition = self.hot.condition.lock();
        if !quotas.is_empty() {
            condition.health.observe_quota(&quotas, &self.resilience.quota, now_ms);
        }
        let observed = |reading: WindowReading| ObservedWindow {
            resets_at_ms: (reading.resets_in_ms > 0).then(|| now_ms.saturating_add(reading.resets_in_ms)),
            reading,
        };
        condition.windows = windows.into_iter().map(observed).collect();
    }

    /// Records an error that makes the connection permanently unusable.
    pub fn observe_refusal(&self, status: u16, code: Option<&str>, message: &str, started_ms: u64) {
        let mut condition = self.hot.condition.lock();
        if let Some(reason) = TerminalState::of_error(code.unwrap_or_default(), message) {
            condition.health.end(reason);
            return;
        }
        let reason = match status {
            401 => TerminalState::Expired,
            402 => TerminalState::CreditsExhausted,
            _ => return,
        };
        condition.health.refuse(reason, started_ms, self.resilience.terminal_after, clock::monotonic_ms());
    }
}

#[cfg(test)]
#[path = "target_health_tests.rs"]
mod tests;
