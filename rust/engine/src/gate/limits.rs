//! Checks a request against its key's limits: sessions first, then the capacity for its maximum cost.

use crate::clock;
use crate::gate::cost_bound::{assumed_output, most_of_choice};
use crate::gate::{call_budget, unpriced};
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::Shared;
use fairlead_core::{Amounts, Error, ErrorKind, Key, NeededCapacity, Served, Snapshot, Subject};
use fairlead_dialect::openai::request::ChatRequest;
use smallvec::SmallVec;
use std::time::Duration;
use tokio::time::Instant;

/// A shorter response is of no use, and some providers reject a lower limit.
const LEAST_OUTPUT_TOKENS: u64 = 16;
/// Other requests may use up a lease before this one. It retries this often at once, then after pauses.
const TRIES_AT_ONCE: u8 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Counts the session and reserves capacity, which the settlement returns. Because a request may fall back to another
/// provider, the limits of every provider that may serve it apply. Targets without capacity under their own limits are
/// removed from the choice.
pub fn reserve(
    shared: &Shared,
    snapshot: &Snapshot,
    settlement: &mut Settlement,
    request: &ChatRequest,
    choice: &mut Choice,
) -> Result<(), Error> {
    unpriced::leave_out(snapshot, settlement, &request.model, choice)?;
    call_budget::hold_to(snapshot, settlement, request, choice)?;
    let most = most_of_choice(snapshot, request, settlement, choice);
    hold(shared, settlement, &request.model, choice, Some(most))
}

/// Reserves capacity for a conversation. If its caller sets no maximum length and the key has no capacity for the
/// longest response, a shorter maximum is reserved and sent to the provider, so that nothing is overspent.
pub fn reserve_conversation(
    shared: &Shared,
    snapshot: &Snapshot,
    settlement: &mut Settlement,
    request: &ChatRequest,
    choice: &mut Choice,
) -> Result<(), Error> {
    let Err(mut fault) = reserve(shared, snapshot, settlement, request, choice) else { return Ok(()) };
    let is_of_length = |kind| matches!(kind, ErrorKind::TokenLimitExceeded | ErrorKind::BudgetExceeded);
    let Some(longest) = assumed_output(snapshot, request, choice).filter(|_| is_of_length(fault.kind)) else {
        return Err(fault);
    };
    let mut shorter = request.clone();
    let mut cap = longest / 2;
    while cap >= LEAST_OUTPUT_TOKENS {
        shorter.max_output_tokens = Some(cap);
        let most = most_of_choice(snapshot, &shorter, settlement, choice);
        match hold(shared, settlement, &request.model, choice, Some(most)) {
            Ok(()) => {
                choice.output_cap = Some(cap);
                // A response that is shortened for this key must not be cached for others.
                settlement.settled_answer = None;
                return Ok(());
            }
            Err(again) if is_of_length(again.kind) => fault = again,
            Err(other) => return Err(other),
        }
        cap /= 2;
    }
    Err(fault)
}

/// Reserves a request without usage, such as a token count. Only limits on requests and sessions apply.
pub fn reserve_free(
    shared: &Shared,
    settlement: &mut Settlement,
    model: &str,
    choice: &mut Choice,
) -> Result<(), Error> {
    hold(shared, settlement, model, choice, None)
}

/// Counts the session and reserves `most`, whichever target of the choice serves the request. The choice is empty for a
/// request that does not depend on a target.
fn hold(
    shared: &Shared,
    settlement: &mut Settlement,
    model: &str,
    choice: &mut Choice,
    most: Option<Amounts>,
) -> Result<(), Error> {
    let admission = &settlement.admission;
    let Some(key) = admission.principal.key() else { return Ok(()) };
    if let Some(session_id) = admission.session_id.as_deref().filter(|_| key.max_sessions > 0) {
        shared.sessions.enter(&key.id, session_id, key.max_sessions, clock::monotonic_ms())?;
    }
    if !key.has_limits() {
        return Ok(());
    }
    let attempt = {
        let targets: SmallVec<[Served<'_>; 4]> = (0..choice.targets.len()).map(|at| choice.served(at)).collect();
        let subject = Subject { model, served: Served::default() };
        let attempt = NeededCapacity { most, is_counted: admission.is_counted };
        shared.ledger.reserve_any(key, subject, &targets, attempt, clock::moment())
    };
    shared.wake_lease_keeper();
    let attempt = attempt?;
    if !attempt.without.is_empty() {
        let is_in = |at: &usize| !attempt.leaves_out(model, &choice.served(*at));
        let indices: Vec<usize> = (0..choice.targets.len()).filter(is_in).collect();
        *choice = choice.narrowed(&indices);
    }
    settlement.hold = attempt.hold;
    Ok(())
}

/// Reserves a response without cost: the session and the request are counted, and budgets are not checked.
pub fn reserve_request(shared: &Shared, settlement: &mut Settlement, model: &str) -> Result<(), Error> {
    hold(shared, settlement, model, &mut Choice::default(), None)
}

/// Reserves a call without a model: the session, and its maximum cost.
pub fn reserve_sum(shared: &Shared, settlement: &mut Settlement, usd_micros: u64) -> Result<(), Error> {
    call_budget::admit_sum(settlement, usd_micros)?;
    hold(shared, settlement, "", &mut Choice::default(), Some(Amounts { tokens: 0, usd_micros }))
}

/// Charges a conversation's usage so far to the key's current limits, and reserves capacity for its next response.
pub fn renew(shared: &Shared, settlement: &mut Settlement, key: &Key) -> Result<(), Error> {
    if !key.has_limits() {
        return Ok(());
    }
    unpriced::admit_next(&shared.active.load().snapshot, settlement, key)?;
    let mut hold = settlement.hold.take().unwrap_or_default();
    let total = settlement.spent_so_far();
    let renewed = shared.ledger.renew(key, settlement.subject(), &mut hold, total, clock::moment());
    settlement.hold = Some(hold);
    shared.wake_lease_keeper();
    renewed
}

/// Calls `attempt`, and repeats it while a limit shared with other nodes may still get capacity. This is the only place
/// where a request waits for the shared store, and only if the lease of its node has no capacity left.
pub async fn retry_until_limits_known<T>(
    shared: &Shared,
    mut attempt: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let fault = match attempt() {
        Ok(answer) => return Ok(answer),
        Err(fault) => fault,
    };
    // Boxed to keep the future of requests with capacity small.
    Box::pin(retry_after_lookup(shared, fault, attempt)).await
}

async fn retry_after_lookup<T>(
    shared: &Shared,
    mut fault: Error,
    mut attempt: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let Some(leases) = &shared.leases else { return Err(fault) };
    let (until, mut tries, mut pause) = (Instant::now() + leases.config.deadline(), 0, FIRST_PAUSE);
    // A retry can only succeed while the store has not yet reported the remaining capacity.
    while fault.kind == ErrorKind::LimitsUnknown && !leases.terms.is_lost() && Instant::now() < until {
        if tries < TRIES_AT_ONCE {
            tries += 1;
        } else {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        leases.answered().await;
        match attempt() {
            Ok(answer) => return Ok(answer),
            Err(again) => fault = again,
        }
    }
    Err(fault)
}

/// Delays a request by its key's `throttleDelayMs`, or until the gateway shuts down.
pub async fn throttle(settlement: &Settlement) {
    let delay_ms = settlement.admission.principal.key().map_or(0, |key| key.throttle_delay_ms);
    if delay_ms > 0 && !settlement.was_throttled {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {}
            () = settlement.shared.drain.expired() => {}
        }
    }
}
