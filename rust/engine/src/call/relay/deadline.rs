//! The time limits of a combo: for each target, and for all targets together.

use crate::call::context::Call;
use crate::route::choice::Choice;
use crate::upstream::failure::AttemptFailure;
use fairlead_core::{Error, ErrorKind, Retry};
use std::future::Future;
use std::time::Duration;

impl Call {
    /// The time left for this target; `None` if the combo sets no limit.
    pub fn time_for(&self, at: usize) -> Option<Duration> {
        let own = target_limit(&self.choice, at);
        let together = self.combo_limit().map(|limit| limit.saturating_sub(self.settlement.elapsed()));
        own.into_iter().chain(together).min()
    }

    /// The time limit for all targets together, from the arrival of the request.
    pub fn combo_limit(&self) -> Option<Duration> {
        self.choice.combo.as_ref()?.rules.combo_timeout_ms.map(Duration::from_millis)
    }

    /// Returns the failure of a target if no time is left before its request.
    pub fn out_of_time(&self, at: usize) -> Option<AttemptFailure> {
        let limit = self.time_for(at).filter(Duration::is_zero)?;
        Some(too_slow(self.combo_limit().unwrap_or(limit)))
    }
}

/// The time limit of a single target.
pub fn target_limit(choice: &Choice, at: usize) -> Option<Duration> {
    let rules = &choice.combo.as_ref()?.rules;
    rules.timeout_ms_of(&choice.targets.get(at)?.connection.prefixes).map(Duration::from_millis)
}

/// Runs work within a combo's time limit. On timeout the work is dropped, which also ends the request to the provider.
/// The connection is not blamed, because other combos may allow it more time.
pub async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, AttemptFailure>>,
) -> Result<T, AttemptFailure> {
    let Some(limit) = limit else { return work.await };
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(too_slow(limit)))
}

/// The failure of a target that exceeded its combo's time limit.
pub fn too_slow(limit: Duration) -> AttemptFailure {
    let message = format!("The target did not answer within the {} ms that the combo gives it.", limit.as_millis());
    AttemptFailure {
        blames_connection: false,
        ..Error::upstream(ErrorKind::UpstreamTimeout, Retry::Elsewhere, message).into()
    }
}
