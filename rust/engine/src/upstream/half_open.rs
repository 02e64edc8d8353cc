//! The permit to start an attempt when a circuit may be half open. After a provider's cooldown one request probes the
//! provider while the others wait for the result, so that hundreds of requests do not arrive at once.

use crate::clock;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::Target;
use fairlead_core::strategy::mix;
use fairlead_core::{AttemptPermit, Error, ErrorKind, Retry};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The permit to send a request to a target. It is held until the provider has responded or failed.
#[derive(Debug)]
pub struct Permit<'a> {
    target: &'a Target,
    model: &'a str,
    is_probe: bool,
}

/// Waits until an attempt at this model may start. Returns an error if the probe's result forbids it; nothing was sent
/// then.
pub async fn acquire<'a>(target: &'a Target, model: &'a str) -> Result<Permit<'a>, AttemptFailure> {
    let mut until = None;
    loop {
        let mut turned = pin!(target.provider.turned.notified());
        // Subscribes before the check, so that no notification is missed.
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
                // A slow probe is not a failure: after this wait the request is sent anyway.
                false
            }
        };
        return Ok(Permit { target, model, is_probe });
    }
}

impl Permit<'_> {
    /// Records the result of the attempt. If the connection is to blame, the probe stays reserved until the failure is
    /// recorded.
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
    /// Releases the probe if the caller left or the gateway is shutting down.
    fn drop(&mut self) {
        if self.is_probe {
            self.target.give_up_probe(self.model);
        }
    }
}

/// Adds a random delay of up to a quarter, so that waiting requests do not continue all at once.
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
