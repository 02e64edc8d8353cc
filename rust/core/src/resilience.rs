//! How the gateway treats failing providers: the thresholds that an operator may set (`PATCH /api/resilience`), and the
//! states that an operator has cleared. Part of the snapshot; absent values have the default.

use crate::breaker::{BreakerLimits, LockoutLimits};
use crate::cooldown::CooldownLimits;
use crate::quota::QuotaThresholds;
use serde::Deserialize;

/// How the gateway treats failing providers: the thresholds that an operator may set (`PATCH /api/resilience`), and the
/// states that an operator has cleared. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resilience {
    pub connection_cooldown: CooldownLimits,
    /// For remote providers.
    pub provider_breaker: BreakerLimits,
    /// For providers on this machine or a private network.
    pub own_machine_breaker: BreakerLimits,
    pub model_lockout: LockoutLimits,
    pub quota: QuotaThresholds,
    /// The number of consecutive refusals of a credential after which the connection is not tried again until an
    /// operator changes the credential.
    pub terminal_after: u32,
    /// How long callers wait for the probe of a connection or provider after a cooldown.
    pub probe_wait_ms: u64,
    /// The states that an operator cleared, in the order of their numbers.
    pub clears: Vec<Clear>,
}

impl Default for Resilience {
    fn default() -> Self {
        Self {
            connection_cooldown: CooldownLimits::default(),
            provider_breaker: BreakerLimits::HOSTED,
            own_machine_breaker: BreakerLimits::OWN_MACHINE,
            model_lockout: LockoutLimits::default(),
            quota: QuotaThresholds::default(),
            terminal_after: 3,
            probe_wait_ms: 2_000,
            clears: Vec::new(),
        }
    }
}

/// A request to clear the state of connections. A worker processes each number once. A worker that has just started has
/// nothing to clear.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Clear {
    pub number: u64,
    /// `None` means every provider.
    #[serde(default)]
    pub provider: Option<String>,
    #[serde(default)]
    pub connection: Option<String>,
    /// Clears only the lockouts of this model, or of all models with `*`. Without it every state is cleared.
    #[serde(default)]
    pub model: Option<String>,
}

impl Clear {
    pub fn is_about(&self, provider: &str, connection: &str) -> bool {
        self.provider.as_deref().is_none_or(|one| one == provider)
            && self.connection.as_deref().is_none_or(|one| one == connection)
    }
}

impl Resilience {
    pub fn newest_clear(&self) -> u64 {
        self.clears.iter().map(|clear| clear.number).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_has_its_default() {
        let read: Resilience = serde_json::from_str("{}").expect("read");
        assert_eq!(read, Resilience::default());
        let json = r#"{"provider_breaker":{"open_after":3},"quota":{"threshold_percent":5.0},"terminal_after":1}"#;
        let read: Resilience = serde_json::from_str(json).expect("read");
        assert_eq!(read.provider_breaker, BreakerLimits { open_after: 3, ..BreakerLimits::HOSTED });
        assert_eq!((read.quota.threshold_percent, read.quota.recheck_ms, read.terminal_after), (5.0, 300_000, 1));
    }

    #[test]
    fn a_clear_is_about_what_it_names() {
        let clear = |json: &str| serde_json::from_str::<Clear>(json).expect("a clear");
        assert!(clear(r#"{"number":1}"#).is_about("p", "c"));
        assert!(clear(r#"{"number":1,"provider":"p"}"#).is_about("p", "c"));
        assert!(!clear(r#"{"number":1,"provider":"q"}"#).is_about("p", "c"));
        assert!(!clear(r#"{"number":1,"provider":"p","connection":"d"}"#).is_about("p", "c"));
    }
}
