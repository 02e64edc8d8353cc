//! A slot: one of the concurrent requests of a connection.
//!
//! ```text
//! acquire -> no limits, or free capacity and an empty queue: a slot
//!         -> queued: a slot when the request is first and there is capacity, or a timeout
//!         -> the queue is full: busy, and the next connection is tried
//! ```
//!
//! A request that is cancelled while it waits or is served returns its capacity.

use crate::shared::Shared;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::limiter::{Charge, Entry, SlotRequest};
use crate::upstream::target::{ConnectionMeasures, Target};
use fairlead_core::{Error, ErrorKind, PaceWait, Retry, Usage};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

/// The retry delay reported to a caller when no slot is free, in milliseconds. The actual wait is unknown.
const SLOT_HINT_MS: u64 = 1_000;

/// One open request. It counts in its connection's load until it is dropped.
#[derive(Debug)]
pub struct Slot {
    hot: Arc<ConnectionMeasures>,
    charge: Option<Charge>,
    /// The request's permit under its combo's limit, if there is one.
    permit: Option<OwnedSemaphorePermit>,
}

impl Slot {
    /// Charges the actual tokens of the request. Without usage the estimate remains.
    pub fn settle(&mut self, usage: &Usage) {
        let tokens = usage.input.saturating_add(usage.output);
        if tokens > 0 {
            self.correct(tokens);
        }
    }

    /// Refunds the tokens of a failed request.
    pub fn refund(&mut self) {
        self.correct(0);
    }

    /// Charges additional tokens of a request in progress.
    pub fn spend(&self, usage: &Usage) {
        self.hot.limiter.spend(usage.input.saturating_add(usage.output));
    }

    fn correct(&mut self, tokens: u64) {
        if let Some(charge) = self.charge.take() {
            self.hot.limiter.correct(&charge, tokens);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.hot.load.leave();
        self.hot.limiter.wake();
    }
}

/// Waits for a slot of the connection, as long as its queue or the combo allows. `waited` is the time that the call has
/// spent in queues so far, so that several queues together take no longer than the longest of their timeouts. An error
/// means that nothing was sent.
pub async fn acquire(
    shared: &Shared,
    target: &Target,
    slot_request: &SlotRequest<'_>,
    waited: &mut Duration,
) -> Result<Slot, AttemptFailure> {
    let Some(cap) = slot_request.cap else {
        return acquire_own(shared, target, slot_request, waited).await;
    };
    let began = Instant::now();
    // Boxed, so that calls without a cap do not reserve space for this future.
    let entering = Box::pin(target.hot.caps.enter(cap, slot_request.queue, *waited));
    let permit = tokio::select! {
        biased;
        permit = entering => permit.ok_or_else(|| busy(target, PaceWait::Slot)),
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    };
    *waited += began.elapsed();
    let permit = permit?;
    let mut slot = acquire_own(shared, target, slot_request, waited).await?;
    slot.permit = Some(permit);
    Ok(slot)
}

/// Waits for capacity under the connection's own limits.
async fn acquire_own(
    shared: &Shared,
    target: &Target,
    slot_request: &SlotRequest<'_>,
    waited: &mut Duration,
) -> Result<Slot, AttemptFailure> {
    let hot = &target.hot;
    let (waiter, patience) = match hot.limiter.enter(&hot.load, slot_request, *waited) {
        Entry::Begun(charge) => return Ok(Slot { hot: Arc::clone(hot), charge, permit: None }),
        Entry::Refused(wait) => return Err(busy(target, wait)),
        Entry::Queued(waiter, patience) => (waiter, patience),
    };
    let turn = Turn { hot: Arc::clone(hot), waiter, slot_request };
    let began = Instant::now();
    let outcome = tokio::select! {
        biased;
        outcome = turn.wait(began + patience) => outcome.map_err(|wait| busy(target, wait)),
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    };
    *waited += began.elapsed();
    outcome
}

/// A position in a connection's queue, given up on drop.
struct Turn<'a> {
    hot: Arc<ConnectionMeasures>,
    waiter: Arc<Notify>,
    slot_request: &'a SlotRequest<'a>,
}

impl Turn<'_> {
    async fn wait(self, until: Instant) -> Result<Slot, PaceWait> {
        loop {
            let wait = match self.hot.limiter.begin_queued(&self.waiter, &self.hot.load, self.slot_request) {
                Ok(charge) => return Ok(Slot { hot: Arc::clone(&self.hot), charge: Some(charge), permit: None }),
                Err(wait) => wait,
            };
            let now = Instant::now();
            if now >= until {
                return Err(wait);
            }
            let wake_at = match wait {
                PaceWait::Ms(ms) => until.min(now + Duration::from_millis(ms)),
                PaceWait::Slot => until,
            };
            // Both a notification and the elapsed time are reasons to check again.
            let _woken = tokio::time::timeout_at(wake_at, self.waiter.notified()).await;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.hot.limiter.leave(&self.waiter);
    }
}

/// The connection has no capacity now; another one may have.
fn busy(target: &Target, wait: PaceWait) -> AttemptFailure {
    let hint_ms = match wait {
        PaceWait::Slot => SLOT_HINT_MS,
        PaceWait::Ms(ms) => ms.max(1),
    };
    let message = format!(
        "Every connection of `{}` that may serve this has as many requests as its limits allow.",
        target.provider_name()
    );
    let error = Error { retry: Retry::NothingSent, ..Error::gateway(ErrorKind::AccountsBusy, message) };
    let error = error.after_s(hint_ms.div_ceil(1_000));
    AttemptFailure { error, hint_ms: Some(hint_ms), rejection: None, blames_connection: false }
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
