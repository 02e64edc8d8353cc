//! The permit to begin an attempt, of a circuit that may be half open. After a provider's rest one caller finds out whether it is back while the others wait for what it
//! finds out, so that five hundred do not all come at once.

use crate::clock;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::Target;
use fairlead_core::strategy::mix;
use fairlead_core::{AttemptPermit, Error, ErrorKind, Retry};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The right to ask a target, held from before an attempt until its provider has answered or failed.
#[derive(Debug)]
pub struct Permit<'a> {
    target: &'a Target,
    model: &'a str,
    is_probe: bool,
}

/// Waits until an attempt at this model may begin. An error when what was waited for says that it may not: nothing was sent then.
pub async fn acquire<'a>(target: &'a Target, model: &'a str) -> Result<Permit<'a>, AttemptFailure> {
    let mut until = None;
    loop {
        let mut turned = pin!(target.provider.turned.notified());
        // Whatever turns from here on is heard.
        turned.as_mut().enable();
        let is_probe = match target.begin(model, clock::monotonic_ms()) {
            AttemptPermit::Free => false,
            AttemptPermit::Probe => true,
            AttemptPermit::Closed(left_ms) => return Err(closed(left_ms)),
            AttemptPermit::Wait => {
                let until = *until.get_or_insert_with(|| Instant::now() + patience(target.resilience.probe_wait_ms));
                if tokio::time::timeout_at(until, turned).await.is_ok() {
                    continue;
                }
                // A slow answer is no refusal: who has waited so long goes.
                false
            }
        };
        return Ok(Permit { target, model, is_probe });
    }
}

impl Permit<'_> {
    /// Learns what came of the attempt. A failure that is held against the connection keeps the probe until that is done.
    pub fn complete<T>(mut self, outcome: &Result<T, AttemptFailure>) {
        if !std::mem::take(&mut self.is_probe) {
            return;
        }
        if outcome.as_ref().err().is_none_or(|failed| !failed.blames_connection) {
            self.target.answered(self.model);
        }
    }
}

impl Drop for Permit<'_> {
    /// The caller left, or the gateway ends.
    fn drop(&mut self) {
        if self.is_probe {
            self.target.give_up_probe(self.model);
        }
    }
}

/// Up to a quarter longer, each another time.
fn patience(wait_ms: u64) -> Duration {
    static TURN: AtomicU64 = AtomicU64::new(0);
    let spread_ms = mix(TURN.fetch_add(1, Ordering::Relaxed)) % (wait_ms / 4 + 1);
    Duration::from_millis(wait_ms + spread_ms)
}

fn closed(left_ms: Option<u64>) -> AttemptFailure {
    let error = match left_ms {
        Some(_) => Error::upstream(
            ErrorKind::UpstreamRateLimited,
            Retry::Elsewhere,
            "The connection must not be used now: its provider failed or asked to wait.",
        ),
        None => Error::upstream(
            ErrorKind::UpstreamAuth,
            Retry::Elsewhere,
            "The connection cannot be used, because the provider refuses the account or its credential. An operator must \
             replace the credential, or put the account in order and test the connection.",
        ),
    };
    AttemptFailure { error, hint_ms: left_ms, rejection: None, blames_connection: false }
}
