//! How long a combo lets its targets take: each of them, and all of them together.

use crate::call::context::Call;
use crate::route::choice::Choice;
use crate::upstream::failure::AttemptFailure;
use fairlead_core::{Error, ErrorKind, Retry};
use std::future::Future;
use std::time::Duration;

impl Call {
    /// How long this target has, at most; `None` where the combo says nothing of it.
    pub fn time_for(&self, at: usize) -> Option<Duration> {
        let own = target_limit(&self.choice, at);
        let together = self.combo_limit().map(|limit| limit.saturating_sub(self.settlement.elapsed()));
        own.into_iter().chain(together).min()
    }

    /// How long all targets have together, from the request's arrival.
    pub fn combo_limit(&self) -> Option<Duration> {
        self.choice.combo.as_ref()?.rules.combo_timeout_ms.map(Duration::from_millis)
    }

    /// The failure of a target that has no time left before it is asked.
    pub fn out_of_time(&self, at: usize) -> Option<AttemptFailure> {
        let limit = self.time_for(at).filter(Duration::is_zero)?;
        Some(too_slow(self.combo_limit().unwrap_or(limit)))
    }
}

/// How long a target has by itself.
pub fn target_limit(choice: &Choice, at: usize) -> Option<Duration> {
    let rules = &choice.combo.as_ref()?.rules;
    rules.timeout_ms_of(&choice.targets.get(at)?.connection.prefixes).map(Duration::from_millis)
}

/// Works within a limit of a combo's. What takes longer is dropped, which ends it at its provider as well; the connection is not
/// to blame, since others may give it more time.
pub async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, AttemptFailure>>,
) -> Result<T, AttemptFailure> {
    let Some(limit) = limit else { return work.await };
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(too_slow(limit)))
}

/// The failure of a target that took longer than its combo lets it.
pub fn too_slow(limit: Duration) -> AttemptFailure {
    let message = format!("The target did not answer within the {} ms that the combo gives it.", limit.as_millis());
    AttemptFailure {
        blames_connection: false,
        ..Error::upstream(ErrorKind::UpstreamTimeout, Retry::Elsewhere, message).into()
    }
}
