//! A target's health in use: may it be tried, in which order, and what an attempt came to.
//!
//! ```text
//! choose: Target::standing, Target::facts     attempt: half_open::acquire     after: Target::served, blame, hold_against
//!         what is known, nothing changes               one probe first            what it came to
//! ```

use crate::clock;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::health::{Condition, ObservedWindow};
use crate::upstream::target::Target;
use fairlead_core::strategy::{Facts, Standing};
use fairlead_core::{
    is_provider_failure, read_quota_headers, AttemptPermit, BreakerLimits, Error, ErrorKind, HealthState, QuotaReading,
    QuotaSpan, TerminalState, WindowReading,
};
use http::HeaderMap;
use smallvec::SmallVec;
use std::error::Error as _;
use std::time::Duration;

/// Rejections whose code says that the provider does not serve the model, whatever their status.
const UNKNOWN_MODEL: &[&str] = &["model_not_found", "model_not_available", "invalid_model"];

/// The worse of two reasons; of two that are as bad, the one that lasts longer.
fn graver(one: (Standing, u64), other: (Standing, u64)) -> (Standing, u64) {
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

    /// Whether this model may be tried over this connection, and until when not; `u64::MAX` until an operator changes the connection.
    pub fn standing(&self, model: &str, now_ms: u64) -> (Standing, u64) {
        let condition = self.hot.condition.lock();
        self.judge(&condition, model, now_ms)
    }

    fn judge(&self, condition: &Condition, model: &str, now_ms: u64) -> (Standing, u64) {
        let mut worst = (condition.health.standing(now_ms), condition.health.remaining_ms(now_ms).unwrap_or(u64::MAX));
        if !condition.lockouts.is_empty() {
            if let Some(lockout) = condition.lockouts.get(model).filter(|lockout| lockout.is_locked(now_ms)) {
                let standing = if lockout.is_binding() { Standing::Closed } else { Standing::Resting };
                worst = graver(worst, (standing, lockout.remaining_ms(now_ms)));
            }
        }
        let breaker = self.provider.breaker.lock();
        if breaker.failures() > 0 {
            use fairlead_core::BreakerPhase;
            let standing = match breaker.phase(self.breaker_limits(), now_ms) {
                BreakerPhase::Open => Standing::Closed,
                BreakerPhase::HalfOpen if breaker.is_probed(now_ms) => Standing::Resting,
                BreakerPhase::HalfOpen => Standing::Probing,
                BreakerPhase::Closed | BreakerPhase::Degraded => Standing::Able,
            };
            worst = graver(worst, (standing, breaker.remaining_ms(now_ms)));
        }
        worst
    }

    /// The facts that a strategy ranks targets by, beside those that are `known`.
    pub fn facts(&self, model: &str, known: Facts, now_ms: u64) -> Facts {
        let condition = self.hot.condition.lock();
        let (standing, rest_ms) = self.judge(&condition, model, now_ms);
        let in_flight = self.hot.load.in_flight();
        let room = self.hot.limiter.room(model, in_flight, now_ms);
        let most = room.and_then(|room| room.max_concurrent);
        let span = |span| if condition.windows.is_empty() { None } else { condition.tightest(span, now_ms) };
        Facts {
            standing,
            rest_ms,
            in_flight,
            capacity: known.capacity.into_iter().chain(most).min(),
            rate_left: room.and_then(|room| room.rate_left),
            is_shut: room.is_some_and(|room| room.is_shut),
            used: self.hot.load.used(),
            latency_ms: self.hot.latency_ms().map(|ms| ms as f32),
            success_rate: self.hot.load.success_rate(),
            session: span(QuotaSpan::Session),
            weekly: span(QuotaSpan::Weekly),
            monthly: span(QuotaSpan::Monthly),
            ..known
        }
    }

    /// The facts that connections of one provider are told apart by. How fast and how well they answer is the provider's doing: a
    /// connection that happened to be slower once would never be asked again, and never be found to be as fast.
    pub fn account_facts(&self, model: &str, now_ms: u64) -> Facts {
        let known = Facts { weight: self.connection.weight as f32, ..Facts::default() };
        Facts { latency_ms: None, success_rate: None, ..self.facts(model, known, now_ms) }
    }

    /// Not in the pool from which requests are served, rather than resting for a while.
    pub fn is_out_of_pool(&self, now_ms: u64) -> bool {
        matches!(self.hot.condition.lock().health.state(now_ms), HealthState::Terminal | HealthState::Deactivated)
    }

    /// Whether its provider as a whole rests.
    pub fn is_broken(&self, now_ms: u64) -> bool {
        self.provider.breaker.lock().remaining_ms(now_ms) > 0
    }

    /// How the target stands for an attempt that would begin now.
    pub fn begin(&self, now_ms: u64) -> AttemptPermit {
        let mut condition = self.hot.condition.lock();
        let mut breaker = self.provider.breaker.lock();
        match (condition.health.begin(now_ms), breaker.begin(self.breaker_limits(), now_ms)) {
            (AttemptPermit::Closed(left), other) | (other, AttemptPermit::Closed(left)) => {
                if other == AttemptPermit::Probe {
                    condition.health.give_up_probe();
                    breaker.give_up_probe();
                }
                AttemptPermit::Closed(left)
            }
            (AttemptPermit::Probe, AttemptPermit::Wait) => {
                condition.health.give_up_probe();
                AttemptPermit::Wait
            }
            (AttemptPermit::Wait, AttemptPermit::Probe) => {
                breaker.give_up_probe();
                AttemptPermit::Wait
            }
            (AttemptPermit::Wait, _) | (_, AttemptPermit::Wait) => AttemptPermit::Wait,
            (AttemptPermit::Probe, _) | (_, AttemptPermit::Probe) => AttemptPermit::Probe,
            (AttemptPermit::Free, AttemptPermit::Free) => AttemptPermit::Free,
        }
    }

    /// The provider has answered a probe.
    pub fn answered(&self) {
        self.hot.condition.lock().health.answered();
        self.provider.breaker.lock().answered();
        self.provider.turned.notify_waiters();
    }

    pub fn give_up_probe(&self) {
        self.hot.condition.lock().health.give_up_probe();
        self.provider.breaker.lock().give_up_probe();
        self.provider.turned.notify_waiters();
    }

    /// Notes an attempt that the target served in this time; `sample` is what counts as its latency.
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

    /// A model has been served.
    pub fn served_model(&self, model: &str) {
        let mut condition = self.hot.condition.lock();
        if !condition.lockouts.is_empty() {
            if let Some(lockout) = condition.lockouts.get_mut(model) {
                if lockout.succeed() {
                    condition.lockouts.remove(model);
                }
            }
        }
    }

    /// An attempt has failed, and the connection is to blame. The gateway's own end blames nobody.
    pub fn blame(&self, kind: ErrorKind, hint_ms: Option<u64>) {
        if kind == ErrorKind::GuardrailBlocked {
            return self.give_up_probe();
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

    /// Logs the error below a failure, which callers are not shown. Once for failures of one kind in a row, so that a provider that is
    /// down does not fill the log.
    fn log_cause(&self, error: &Error) {
        let Some(cause) = error.source() else { return };
        if self.hot.condition.lock().last_error != Some(error.kind.code()) {
            let kind = error.kind.code();
            tracing::warn!(connection_id = %self.connection.id, kind, %cause, "a connection could not be used");
        }
    }

    /// Holds a failed attempt against the model, the connection, or neither.
    pub fn hold_against(&self, model: &str, failed: &AttemptFailure) {
        self.log_cause(&failed.error);
        if self.locks_out(failed) {
            let now_ms = clock::monotonic_ms();
            let limits = &self.resilience.model_lockout;
            let mut condition = self.hot.condition.lock();
            condition.lock_out(model, |lockout| lockout.fail(limits, failed.hint_ms, now_ms), now_ms);
            // The rest of the connection's models are as good as before, unless the provider's servers fail.
            if !is_provider_failure(failed.error.kind) {
                drop(condition);
                return self.give_up_probe();
            }
        }
        if failed.blames_connection {
            self.blame(failed.error.kind, failed.hint_ms);
        }
    }

    fn locks_out(&self, failed: &AttemptFailure) -> bool {
        let limits = &self.resilience.model_lockout;
        let rejection = failed.rejection.as_ref();
        let status = rejection.map(|rejection| rejection.status.as_u16()).or(failed.error.upstream_status);
        let is_unknown_model = || {
            let code = rejection.and_then(|rejection| rejection.code.as_deref());
            code.is_some_and(|code| UNKNOWN_MODEL.contains(&code))
        };
        limits.enabled && (status.is_some_and(|status| limits.status_codes.contains(&status)) || is_unknown_model())
    }

    /// Reads limits and quotas from the headers of an answer by this model.
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

    /// Notes an error of the provider that condemns the connection for good.
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
