//! What has been learnt of a connection and of its provider: may it be tried, in which order, and what an attempt came to.
//!
//! ```text
//! choose: Target::standing, Target::facts     attempt: half_open::leave     after: Target::served, blame, hold_against
//!         what is known, nothing changes               one probe first            what it came to
//! ```
//!
//! One lock for each connection and one for each provider, held for as long as it takes to look at a few numbers.

use crate::clock;
use crate::upstream::attempt::Failed;
use crate::upstream::target::Target;
use fairlead_core::breaker::{counts, Breaker, Limits, Lockout};
use fairlead_core::error::Kind;
use fairlead_core::health::{Begin, Health, State, Terminal};
use fairlead_core::quota::QuotaThresholds;
use fairlead_core::quota::{self, Span, WindowReading};
use fairlead_core::resilience::Clear;
use fairlead_core::snapshot::PersistedState;
use fairlead_core::strategy::{Facts, QuotaWindow, Standing};
use http::HeaderMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use tokio::sync::Notify;

/// Models of one connection that are remembered as locked out.
const MAX_LOCKOUTS: usize = 256;
/// Rejections whose code says that the provider does not serve the model, whatever their status.
const UNKNOWN_MODEL: &[&str] = &["model_not_found", "model_not_available", "invalid_model"];

/// Of one connection.
#[derive(Debug, Default)]
pub struct Condition {
    pub health: Health,
    pub last_error: Option<&'static str>,
    lockouts: HashMap<Box<str>, Lockout>,
    windows: SmallVec<[Kept; 4]>,
}

/// A window as it was last told of, with its reset on our clock.
#[derive(Debug, Clone)]
pub struct Kept {
    pub told: WindowReading,
    /// Monotonic; `None` where no reset was told.
    pub resets_at_ms: Option<u64>,
}

/// Of one provider: shared by its connections.
#[derive(Debug, Default)]
pub struct Provider {
    pub breaker: Mutex<Breaker>,
    /// A probe of the provider or of one of its connections has come back.
    pub turned: Notify,
}

/// A model that is locked out at a connection.
#[derive(Debug)]
pub struct Locked {
    pub model: String,
    pub remaining_ms: u64,
    pub failures: u32,
}

impl Condition {
    /// Windows whose reset has passed say nothing any more.
    pub fn windows(&self, now_ms: u64) -> impl Iterator<Item = &Kept> {
        self.windows.iter().filter(move |kept| kept.resets_at_ms.is_none_or(|at_ms| now_ms < at_ms))
    }

    pub fn locked(&self, now_ms: u64) -> impl Iterator<Item = Locked> + use<'_> {
        self.lockouts.iter().filter(move |(_, lockout)| lockout.is_locked(now_ms)).map(move |(model, lockout)| Locked {
            model: model.to_string(),
            remaining_ms: lockout.remaining_ms(now_ms),
            failures: lockout.failures(),
        })
    }

    fn tightest(&self, span: Span, now_ms: u64) -> Option<QuotaWindow> {
        let of_span = self.windows(now_ms).filter(|kept| kept.told.span() == span);
        let window = |kept: &Kept| QuotaWindow {
            remaining: kept.told.remaining,
            resets_in_ms: kept.resets_at_ms.map_or(0, |at_ms| at_ms.saturating_sub(now_ms)),
        };
        of_span.map(window).reduce(|a, b| if b.remaining < a.remaining { b } else { a })
    }

    fn lock_out(&mut self, model: &str, work: impl FnOnce(&mut Lockout), now_ms: u64) {
        if self.lockouts.len() >= MAX_LOCKOUTS && !self.lockouts.contains_key(model) {
            self.lockouts.retain(|_, lockout| lockout.is_locked(now_ms));
            if self.lockouts.len() >= MAX_LOCKOUTS {
                return;
            }
        }
        work(self.lockouts.entry(model.into()).or_default());
    }

    /// Carries out what an operator has had forgotten.
    pub fn forget(&mut self, clear: &Clear) {
        match clear.model.as_deref() {
            None => {
                self.health.revive();
                self.last_error = None;
                self.lockouts.clear();
                self.windows.clear();
            }
            Some("*") => self.lockouts.clear(),
            Some(model) => {
                self.lockouts.remove(model);
            }
        }
    }

    /// What was seen before this worker began, or by another.
    pub fn hold(&mut self, held: &PersistedState, now_ms: u64, now_unix_ms: u64) {
        match held.state.as_str() {
            "terminal" if self.health.terminal().is_none() => {
                let reason = held.reason.as_deref().and_then(Terminal::named);
                self.health.end(reason.unwrap_or(Terminal::Expired));
            }
            // Who has heard of the provider itself knows better.
            "quota-exhausted" if self.windows.is_empty() => {
                let left_ms = held.until_ms.map_or(0, |until_ms| until_ms.saturating_sub(now_unix_ms));
                if left_ms > 0 {
                    self.health.exhaust_until(now_ms.saturating_add(left_ms));
                }
            }
            _ => {}
        }
    }
}

impl Condition {
    /// What was seen by another is so no more.
    pub fn release(&mut self, quota: &QuotaThresholds, now_ms: u64) {
        if self.windows.is_empty() {
            self.health.observe_quota(&[], quota, now_ms);
        }
    }
}

/// The worse of two reasons; of two that are as bad, the one that lasts longer.
fn graver(one: (Standing, u64), other: (Standing, u64)) -> (Standing, u64) {
    one.max(other)
}

/// Whether a provider runs on this machine or a private network.
pub fn is_own_machine(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost" || !host.contains('.'),
    }
}

impl Target {
    pub fn breaker_limits(&self) -> &Limits {
        if self.is_own_machine {
            &self.resilience.own_machine_breaker
        } else {
            &self.resilience.provider_breaker
        }
    }

    /// Whether this model may be tried over this connection, and until when not; `u64::MAX` is until an operator mends it.
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
            use fairlead_core::breaker::Phase;
            let standing = match breaker.phase(self.breaker_limits(), now_ms) {
                Phase::Open => Standing::Closed,
                Phase::HalfOpen if breaker.is_probed(now_ms) => Standing::Resting,
                Phase::HalfOpen => Standing::Probing,
                Phase::Closed | Phase::Degraded => Standing::Able,
            };
            worst = graver(worst, (standing, breaker.remaining_ms(now_ms)));
        }
        worst
    }

    /// What a strategy asks of it, beside what is `known`.
    pub fn facts(&self, model: &str, known: Facts, now_ms: u64) -> Facts {
        let condition = self.hot.condition.lock();
        let (standing, rest_ms) = self.judge(&condition, model, now_ms);
        let span = |span| if condition.windows.is_empty() { None } else { condition.tightest(span, now_ms) };
        Facts {
            standing,
            rest_ms,
            in_flight: self.hot.load.in_flight(),
            used: self.hot.load.used(),
            latency_ms: self.hot.latency_ms().map(|ms| ms as f32),
            success_rate: self.hot.load.success_rate(),
            session: span(Span::Session),
            weekly: span(Span::Weekly),
            monthly: span(Span::Monthly),
            ..known
        }
    }

    /// Not in the pool from which requests are served, rather than resting for a while.
    pub fn is_out_of_pool(&self, now_ms: u64) -> bool {
        matches!(self.hot.condition.lock().health.state(now_ms), State::Terminal | State::Deactivated)
    }

    /// Whether its provider as a whole rests.
    pub fn is_broken(&self, now_ms: u64) -> bool {
        self.provider.breaker.lock().remaining_ms(now_ms) > 0
    }

    /// What an attempt does that would begin now.
    pub fn begin(&self, now_ms: u64) -> Begin {
        let mut condition = self.hot.condition.lock();
        let mut breaker = self.provider.breaker.lock();
        match (condition.health.begin(now_ms), breaker.begin(self.breaker_limits(), now_ms)) {
            (Begin::Closed(left), other) | (other, Begin::Closed(left)) => {
                if other == Begin::Probe {
                    condition.health.give_up_probe();
                    breaker.give_up_probe();
                }
                Begin::Closed(left)
            }
            (Begin::Probe, Begin::Wait) => {
                condition.health.give_up_probe();
                Begin::Wait
            }
            (Begin::Wait, Begin::Probe) => {
                breaker.give_up_probe();
                Begin::Wait
            }
            (Begin::Wait, _) | (_, Begin::Wait) => Begin::Wait,
            (Begin::Probe, _) | (_, Begin::Probe) => Begin::Probe,
            (Begin::Free, Begin::Free) => Begin::Free,
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

    /// It has served an attempt that took so long; `sample` is what counts as its latency.
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
    pub fn blame(&self, kind: Kind, hint_ms: Option<u64>) {
        if kind == Kind::GuardrailBlocked {
            return self.give_up_probe();
        }
        if kind == Kind::Draining {
            return;
        }
        let now_ms = clock::monotonic_ms();
        {
            let mut condition = self.hot.condition.lock();
            condition.health.fail(&self.resilience.connection_cooldown, kind, hint_ms, now_ms);
            condition.last_error = Some(kind.code());
        }
        if counts(kind) {
            self.provider.breaker.lock().fail(self.breaker_limits(), now_ms);
        }
        self.provider.turned.notify_waiters();
        self.hot.load.observe(false);
        self.hot.count(false);
    }

    /// What a failed attempt says of the model, of the connection, or of neither.
    pub fn hold_against(&self, model: &str, failed: &Failed) {
        if self.locks_out(failed) {
            let now_ms = clock::monotonic_ms();
            let limits = &self.resilience.model_lockout;
            let mut condition = self.hot.condition.lock();
            condition.lock_out(model, |lockout| lockout.fail(limits, failed.hint_ms, now_ms), now_ms);
            // The rest of the connection's models are as good as before, unless the provider's servers fail.
            if !counts(failed.error.kind) {
                drop(condition);
                return self.give_up_probe();
            }
        }
        if failed.blames_connection {
            self.blame(failed.error.kind, failed.hint_ms);
        }
    }

    fn locks_out(&self, failed: &Failed) -> bool {
        let limits = &self.resilience.model_lockout;
        let rejection = failed.rejection.as_ref();
        let status = rejection.map(|rejection| rejection.status.as_u16()).or(failed.error.upstream_status);
        let is_unknown_model = || {
            let code = rejection.and_then(|rejection| rejection.code.as_deref());
            code.is_some_and(|code| UNKNOWN_MODEL.contains(&code))
        };
        limits.enabled && (status.is_some_and(|status| limits.status_codes.contains(&status)) || is_unknown_model())
    }

    /// What an answer's headers say of limits and quotas.
    pub fn observe_head(&self, headers: &HeaderMap) {
        let named = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let told = quota::read(named, clock::unix_ms());
        if told.is_empty() {
            return;
        }
        let now_ms = clock::monotonic_ms();
        let quotas: SmallVec<[QuotaWindow; 4]> =
            told.iter().filter(|one| one.is_quota).map(WindowReading::window).collect();
        let mut condition = self.hot.condition.lock();
        if !quotas.is_empty() {
            condition.health.observe_quota(&quotas, &self.resilience.quota, now_ms);
        }
        let kept = |told: WindowReading| Kept {
            resets_at_ms: (told.resets_in_ms > 0).then(|| now_ms.saturating_add(told.resets_in_ms)),
            told,
        };
        condition.windows = told.into_iter().map(kept).collect();
    }

    /// What an error of the provider says of the connection for good.
    pub fn observe_refusal(&self, status: u16, code: Option<&str>, message: &str, started_ms: u64) {
        let mut condition = self.hot.condition.lock();
        if let Some(reason) = Terminal::of_error(code.unwrap_or_default(), message) {
            condition.health.end(reason);
            return;
        }
        let reason = match status {
            401 => Terminal::Expired,
            402 => Terminal::CreditsExhausted,
            _ => return,
        };
        condition.health.refuse(reason, started_ms, self.resilience.terminal_after, clock::monotonic_ms());
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
