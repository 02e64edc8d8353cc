//! Reports about connections and providers, sent with each poll of the link (docs/explanation/contracts.md). Times are
//! in UTC there, because another process has a different monotonic clock.

use crate::active_config::ActiveConfig;
use crate::clock;
use crate::upstream::limiter::LimiterStats;
use crate::upstream::target::Target;
use fairlead_core::{BreakerPhase, HealthState};
use serde::Serialize;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of a connection as reported to control.
#[derive(Debug, Serialize)]
pub struct ConnectionStats<'a> {
    id: &'a str,
    /// The revision of the connection's record in the snapshot to which the report refers.
    revision: u64,
    state: &'static str,
    reason: Option<&'static str>,
    /// When the state ends without intervention.
    until_ms: Option<u64>,
    cooling_ms: u64,
    last_error: Option<&'static str>,
    successes: u64,
    failures: u64,
    /// The times of the last success and of the last failure.
    served_at_ms: Option<u64>,
    failed_at_ms: Option<u64>,
    latency_ms: Option<f64>,
    in_flight: u32,
    /// Set if the operator configured limits or the provider reported rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<LimitStats>,
    quota: Vec<WindowStats>,
    lockouts: Vec<LockoutStats>,
}

#[derive(Debug, Serialize)]
pub struct WindowStats {
    name: String,
    remaining: f32,
    resets_at_ms: Option<u64>,
    is_quota: bool,
}

/// The remaining capacity under a connection's limits, and the number of waiting requests; null for a limit that is not
/// set.
#[derive(Debug, Serialize)]
pub struct LimitStats {
    queued: usize,
    slots: Option<u32>,
    requests: Option<u64>,
    tokens: Option<u64>,
    /// Rate limits that the provider reported.
    learned: Vec<LearnedStats>,
}

/// A rate limit of a model that the provider reported, and what remains of it.
#[derive(Debug, Serialize)]
pub struct LearnedStats {
    model: String,
    name: &'static str,
    limit: u64,
    remaining: u64,
    /// The amount that is restored per minute.
    per_minute: Option<u64>,
    /// The time until the limit is fully available again and is discarded.
    full_in_ms: u64,
}

impl From<LimiterStats> for LimitStats {
    fn from(stats: LimiterStats) -> Self {
        let LimiterStats { queued, remaining, rates } = stats;
        let learned = rates.into_iter().map(|rate| LearnedStats {
            model: rate.model,
            name: rate.name.name(),
            limit: rate.limit,
            remaining: rate.remaining,
            per_minute: rate.per_minute,
            full_in_ms: rate.full_in_ms,
        });
        let learned = learned.collect();
        Self { queued, slots: remaining.slots, requests: remaining.requests, tokens: remaining.tokens, learned }
    }
}

#[derive(Debug, Serialize)]
pub struct LockoutStats {
    model: String,
    until_ms: u64,
    failures: u32,
}

#[derive(Debug, Serialize)]
pub struct ProviderStats<'a> {
    id: &'a str,
    phase: &'static str,
    failures: u32,
    until_ms: Option<u64>,
}

/// Both clocks, read at the same time.
#[derive(Clone, Copy)]
struct Now {
    monotonic_ms: u64,
    unix_ms: u64,
}

impl Now {
    fn unix(self, monotonic_ms: u64) -> u64 {
        self.unix_ms.saturating_add(monotonic_ms.saturating_sub(self.monotonic_ms))
    }
}

pub fn of(active: &ActiveConfig) -> (Vec<ConnectionStats<'_>>, Vec<ProviderStats<'_>>) {
    let now = Now { monotonic_ms: clock::monotonic_ms(), unix_ms: clock::unix_ms() };
    let connections = active.targets.iter().flatten().map(|target| connection(target, now)).collect();
    let mut seen = HashSet::new();
    let providers = active.targets.iter().flatten().filter(|target| seen.insert(target.connection.provider.as_str()));
    (connections, providers.map(|target| provider(target, now)).collect())
}

fn connection(target: &Target, now: Now) -> ConnectionStats<'_> {
    let condition = target.hot.condition.lock();
    let health = &condition.health;
    let state = health.state(now.monotonic_ms);
    let cooling_ms = health.remaining_ms(now.monotonic_ms).unwrap_or(0);
    let windows = condition.windows(now.monotonic_ms).map(|window| WindowStats {
        name: window.reading.name.clone(),
        remaining: window.reading.remaining,
        resets_at_ms: window.resets_at_ms.map(|at_ms| now.unix(at_ms)),
        is_quota: window.reading.is_quota,
    });
    let lockouts = condition.locked(now.monotonic_ms).map(|locked| LockoutStats {
        model: locked.model,
        until_ms: now.unix_ms.saturating_add(locked.remaining_ms),
        failures: locked.failures,
    });
    ConnectionStats {
        id: &target.connection.id,
        revision: target.connection.revision,
        state: state.name(),
        reason: match state {
            HealthState::Terminal => health.terminal().map(fairlead_core::TerminalState::name),
            HealthState::Cooling => condition.last_error,
            _ => None,
        },
        until_ms: (cooling_ms > 0).then(|| now.unix_ms.saturating_add(cooling_ms)),
        cooling_ms,
        last_error: condition.last_error,
        successes: target.hot.successes.load(Ordering::Relaxed),
        failures: target.hot.failures.load(Ordering::Relaxed),
        served_at_ms: moment(&target.hot.served_ms),
        failed_at_ms: moment(&target.hot.failed_ms),
        latency_ms: target.hot.latency_ms(),
        in_flight: target.hot.load.in_flight(),
        limits: target.hot.limiter.stats(target.hot.load.in_flight(), now.monotonic_ms).map(LimitStats::from),
        quota: windows.collect(),
        lockouts: lockouts.collect(),
    }
}

fn moment(at_ms: &AtomicU64) -> Option<u64> {
    Some(at_ms.load(Ordering::Relaxed)).filter(|at_ms| *at_ms > 0)
}

fn provider(target: &Target, now: Now) -> ProviderStats<'_> {
    let breaker = target.provider.breaker.lock();
    let phase = breaker.phase(target.breaker_limits(), now.monotonic_ms);
    ProviderStats {
        id: &target.connection.provider,
        phase: phase.name(),
        failures: breaker.failures(),
        until_ms: (phase == BreakerPhase::Open)
            .then(|| now.unix_ms.saturating_add(breaker.remaining_ms(now.monotonic_ms))),
    }
}
