//! The state of a connection and of its provider: health, model lockouts, quota windows and the circuit breaker.
//!
//! Each connection and each provider has one lock, held only while a few numbers are read or written.

use fairlead_core::strategy::QuotaWindow;
use fairlead_core::{
    Breaker, Clear, CooldownLimits, ErrorKind, Health, Lockout, PersistedState, QuotaSpan, QuotaThresholds,
    TerminalState, WindowReading,
};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::net::IpAddr;
use tokio::sync::Notify;

/// The maximum number of locked-out models stored per connection.
const MAX_LOCKOUTS: usize = 256;

/// The state of one connection: its health, model lockouts and quota windows.
#[derive(Debug, Default)]
pub struct Condition {
    pub health: Health,
    pub last_error: Option<&'static str>,
    pub(super) lockouts: HashMap<Box<str>, Lockout>,
    /// Models that the provider rate-limits, each with a separate cooldown and probe.
    pub(super) limited: HashMap<Box<str>, Health>,
    pub(super) windows: SmallVec<[ObservedWindow; 4]>,
}

/// A quota window as last reported, with its reset on our clock.
#[derive(Debug, Clone)]
pub struct ObservedWindow {
    pub reading: WindowReading,
    /// Monotonic; `None` if no reset was reported.
    pub resets_at_ms: Option<u64>,
}

/// The state of one provider, shared by all of its connections.
#[derive(Debug, Default)]
pub struct Provider {
    pub breaker: Mutex<Breaker>,
    /// Notified when a probe of the provider or of one of its connections has finished.
    pub turned: Notify,
}

/// A model that is locked out at a connection.
#[derive(Debug)]
pub struct Locked {
    pub model: String,
    pub remaining_ms: u64,
    pub failures: u32,
    /// The provider itself stated the end of the lockout.
    pub is_binding: bool,
}

impl Condition {
    /// Quota windows whose reset has not passed yet.
    pub fn windows(&self, now_ms: u64) -> impl Iterator<Item = &ObservedWindow> {
        self.windows.iter().filter(move |window| window.resets_at_ms.is_none_or(|at_ms| now_ms < at_ms))
    }

    /// Models in lockout or cooldown.
    pub fn locked(&self, now_ms: u64) -> impl Iterator<Item = Locked> + use<'_> {
        let limited = self.limited.iter().filter_map(move |(model, health)| {
            let (remaining_ms, is_binding) = health.remaining_cooldown(now_ms)?;
            Some(Locked { model: model.to_string(), remaining_ms, failures: 1, is_binding })
        });
        self.locked_out(now_ms).chain(limited)
    }

    fn locked_out(&self, now_ms: u64) -> impl Iterator<Item = Locked> + use<'_> {
        self.lockouts.iter().filter(move |(_, lockout)| lockout.is_locked(now_ms)).map(move |(model, lockout)| Locked {
            model: model.to_string(),
            remaining_ms: lockout.remaining_ms(now_ms),
            failures: lockout.failures(),
            is_binding: lockout.is_binding(),
        })
    }

    pub(super) fn tightest(&self, span: QuotaSpan, now_ms: u64) -> Option<QuotaWindow> {
        let of_span = self.windows(now_ms).filter(|observed| observed.reading.span() == span);
        let window = |observed: &ObservedWindow| QuotaWindow {
            remaining: observed.reading.remaining,
            resets_in_ms: observed.resets_at_ms.map_or(0, |at_ms| at_ms.saturating_sub(now_ms)),
        };
        of_span.map(window).reduce(|a, b| if b.remaining < a.remaining { b } else { a })
    }

    pub fn lock_out(&mut self, model: &str, work: impl FnOnce(&mut Lockout), now_ms: u64) {
        if self.lockouts.len() >= MAX_LOCKOUTS && !self.lockouts.contains_key(model) {
            self.lockouts.retain(|_, lockout| lockout.is_locked(now_ms));
            if self.lockouts.len() >= MAX_LOCKOUTS {
                return;
            }
        }
        work(self.lockouts.entry(model.into()).or_default());
    }

    /// Starts the model's cooldown, with the length given by `cooldowns` and the provider's hint. Returns whether another
    /// model of the connection is in cooldown at the same time.
    pub fn limit(&mut self, model: &str, cooldowns: &CooldownLimits, hint_ms: Option<u64>, now_ms: u64) -> bool {
        if self.limited.len() >= MAX_LOCKOUTS && !self.limited.contains_key(model) {
            self.limited.retain(|_, health| health.remaining_cooldown(now_ms).is_some());
        }
        if self.limited.len() < MAX_LOCKOUTS || self.limited.contains_key(model) {
            let health = self.limited.entry(model.into()).or_default();
            health.fail(cooldowns, ErrorKind::UpstreamRateLimited, hint_ms, now_ms);
        }
        self.limited.iter().any(|(other, health)| &**other != model && health.remaining_cooldown(now_ms).is_some())
    }

    /// Applies an operator's reset.
    pub fn forget(&mut self, clear: &Clear) {
        match clear.model.as_deref() {
            None => {
                self.health.revive();
                self.last_error = None;
                self.lockouts.clear();
                self.limited.clear();
                self.windows.clear();
            }
            Some("*") => {
                self.lockouts.clear();
                self.limited.clear();
            }
            Some(model) => {
                self.lockouts.remove(model);
                self.limited.remove(model);
            }
        }
    }

    /// Applies observations from before this worker started, or from another worker.
    pub fn hold(&mut self, persisted: &PersistedState, now_ms: u64, now_unix_ms: u64) {
        match persisted.state.as_str() {
            "terminal" if self.health.terminal().is_none() => {
                let reason = persisted.reason.as_deref().and_then(TerminalState::named);
                self.health.end(reason.unwrap_or(TerminalState::Expired));
            }
            // A worker with its own observations of the provider has newer information.
            "quota-exhausted" if self.windows.is_empty() => {
                let left_ms = persisted.until_ms.map_or(0, |until_ms| until_ms.saturating_sub(now_unix_ms));
                if left_ms > 0 {
                    self.health.exhaust_until(now_ms.saturating_add(left_ms));
                }
            }
            _ => {}
        }
    }
}

impl Condition {
    /// Discards another worker's observations that no longer apply.
    pub fn release(&mut self, quota: &QuotaThresholds, now_ms: u64) {
        if self.windows.is_empty() {
            self.health.observe_quota(&[], quota, now_ms);
        }
    }
}

/// Whether a provider runs on this machine or in a private network.
pub fn is_own_machine(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost" || !host.contains('.'),
    }
}
