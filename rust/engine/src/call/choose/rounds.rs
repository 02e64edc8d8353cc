//! Further rounds over the targets of a combo after all of them failed. A round starts after a pause, or when the first
//! target's cooldown ends, as the operator configured.

use crate::call::context::Call;
use crate::clock;
use fairlead_core::strategy::Rules;
use fairlead_core::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// A longer cooldown is not waited for.
const MAX_WAIT: Duration = Duration::from_secs(90);
const MAX_WAITS: u32 = 5;

/// The rounds of one call so far.
#[derive(Debug)]
pub struct Rounds {
    rules: Option<Arc<Rules>>,
    repeated: u32,
    waits: u32,
}

impl Rounds {
    pub fn of(call: &Call) -> Self {
        Self { rules: call.choice.combo.as_ref().map(|combo| Arc::clone(&combo.rules)), repeated: 0, waits: 0 }
    }

    /// Returns the wait before all targets are tried again; `None` if there is no further round.
    pub fn next(&mut self, call: &Call) -> Option<Duration> {
        let rules = Arc::clone(self.rules.as_ref()?);
        let wait = self.cooldown(&rules, call).or_else(|| self.repeat(&rules))?;
        let is_in_time = call.combo_limit().is_none_or(|limit| call.settlement.elapsed() + wait < limit);
        is_in_time.then_some(wait)
    }

    fn repeat(&mut self, rules: &Rules) -> Option<Duration> {
        if self.repeated >= rules.max_set_retries {
            return None;
        }
        self.repeated += 1;
        Some(Duration::from_millis(rules.set_retry_delay_ms))
    }

    /// Returns the time until the first target's cooldown ends. Applies if all targets reported a limit or overload,
    /// and the wait is within the operator's maximum.
    fn cooldown(&mut self, rules: &Rules, call: &Call) -> Option<Duration> {
        let waits = |kind| matches!(kind, ErrorKind::UpstreamRateLimited | ErrorKind::UpstreamOverloaded);
        if self.waits >= MAX_WAITS || !call.failures.iter().all(|(_, failed)| waits(failed.error.kind)) {
            return None;
        }
        let now_ms = clock::monotonic_ms();
        let cooldowns = (0..call.choice.targets.len())
            .map(|at| call.choice.targets[at].availability(call.choice.upstream_model(at), now_ms).1);
        let wait = worth_waiting(rules, call.settlement.elapsed(), cooldowns.min()?)?;
        self.waits += 1;
        Some(wait)
    }
}

/// Returns the time to wait for a target in cooldown, given the age of the request; `None` if it is not worth waiting.
pub fn worth_waiting(rules: &Rules, age: Duration, cooldown_ms: u64) -> Option<Duration> {
    let wait = Duration::from_millis(cooldown_ms.max(1));
    let is_worth = cooldown_ms < u64::MAX / 2 && wait <= MAX_WAIT;
    (is_worth && age + wait <= Duration::from_millis(rules.cooldown_wait_ms)).then_some(wait)
}
