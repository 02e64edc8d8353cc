//! A place among the requests that a connection has open.
//!
//! ```text
//! acquire -> no limits, or room and nobody waits: a slot
//!         -> a place in the queue: a slot when it is its turn and there is room, or too late
//!         -> the queue is full: busy, and the next connection is tried
//! ```
//!
//! Who leaves, while it waits or while it is served, gives back what it took.

use crate::shared::Shared;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::limiter::{Charge, Entrant, Entry};
use crate::upstream::target::{ConnectionMeasures, Target};
use fairlead_core::{Error, ErrorKind, PaceWait, Retry, Usage};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

/// The wait that a caller is told for a slot, milliseconds: nobody knows when one comes.
const SLOT_HINT_MS: u64 = 1_000;

/// One open request, counted in its connection's load until it is dropped.
#[derive(Debug)]
pub struct Slot {
    hot: Arc<ConnectionMeasures>,
    charge: Option<Charge>,
    /// The request's place among those of its combo, where the combo counts them.
    place: Option<OwnedSemaphorePermit>,
}

impl Slot {
    /// The request has come to this. Where nobody told what it came to it counts as it was estimated.
    pub fn settle(&mut self, usage: &Usage) {
        let tokens = usage.input.saturating_add(usage.output);
        if tokens > 0 {
            self.correct(tokens);
        }
    }

    /// The request has failed, and its tokens were not used.
    pub fn refund(&mut self) {
        self.correct(0);
    }

    /// A request that goes on has come to so much more.
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

/// Waits for a slot of the connection, for as long as its queue or the combo allows. `waited` is how long the call has
/// waited in queues, here and at the connections before, so that several queues take no longer than the most patient of them.
/// An error means that nothing was sent.
pub async fn acquire(
    shared: &Shared,
    target: &Target,
    entrant: &Entrant<'_>,
    waited: &mut Duration,
) -> Result<Slot, AttemptFailure> {
    let Some(cap) = entrant.cap else {
        return acquire_own(shared, target, entrant, waited).await;
    };
    let began = Instant::now();
    // Apart, so that calls without a cap carry no room for it.
    let entering = Box::pin(target.hot.caps.enter(cap, entrant.queue, *waited));
    let place = tokio::select! {
        biased;
        place = entering => place.ok_or_else(|| busy(target, PaceWait::Slot)),
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    };
    *waited += began.elapsed();
    let place = place?;
    let mut slot = acquire_own(shared, target, entrant, waited).await?;
    slot.place = Some(place);
    Ok(slot)
}

/// Waits for what the connection's own limits allow.
async fn acquire_own(
    shared: &Shared,
    target: &Target,
    entrant: &Entrant<'_>,
    waited: &mut Duration,
) -> Result<Slot, AttemptFailure> {
    let hot = &target.hot;
    let (place, patience) = match hot.limiter.enter(&hot.load, entrant, *waited) {
        Entry::Begun(charge) => return Ok(Slot { hot: Arc::clone(hot), charge, place: None }),
        Entry::Refused(wait) => return Err(busy(target, wait)),
        Entry::Queued(place, patience) => (place, patience),
    };
    let turn = Turn { hot: Arc::clone(hot), place, entrant };
    let began = Instant::now();
    let outcome = tokio::select! {
        biased;
        outcome = turn.wait(began + patience) => outcome.map_err(|wait| busy(target, wait)),
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    };
    *waited += began.elapsed();
    outcome
}

/// A place in a connection's queue, given up when it is dropped.
struct Turn<'a> {
    hot: Arc<ConnectionMeasures>,
    place: Arc<Notify>,
    entrant: &'a Entrant<'a>,
}

impl Turn<'_> {
    async fn wait(self, until: Instant) -> Result<Slot, PaceWait> {
        loop {
            let wait = match self.hot.limiter.begin_queued(&self.place, &self.hot.load, self.entrant) {
                Ok(charge) => return Ok(Slot { hot: Arc::clone(&self.hot), charge: Some(charge), place: None }),
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
            // Both a word and the time are reasons to look again.
            let _woken = tokio::time::timeout_at(wake_at, self.place.notified()).await;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.hot.limiter.leave(&self.place);
    }
}

/// The connection takes no request now; another one may.
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
