//! A request held against its key's limits: sessions, then room for the most that it can cost.

use crate::clock;
use crate::gate::cost_bound::{assumed_output, most_of_choice};
use crate::gate::{call_budget, unpriced};
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::Shared;
use fairlead_core::{Amounts, Ask, Error, ErrorKind, Key, Served, Snapshot, Subject};
use fairlead_dialect::openai::request::ChatRequest;
use smallvec::SmallVec;
use std::time::Duration;
use tokio::time::Instant;

/// A shorter answer is of no use, and some providers refuse to be asked for one.
const LEAST_OUTPUT_TOKENS: u64 = 16;
/// Others may take what was leased for a request before it does: it asks again at once so often, then after pauses.
const TRIES_AT_ONCE: u8 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Takes a session and reserves room; the settlement gives the room back. A request goes on to another provider when one fails: the limits of each that may serve it hold, and those
/// under whose own limits there is no room leave the choice.
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

/// Reserves room for a conversation. Where its caller names no length and the key has no room for the longest answer, room is reserved
/// for a shorter one, and the provider is asked for no more: so nothing is overspent.
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
                // An answer that is cut for this key is no answer for others.
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

/// For a request that uses nothing, as a count of tokens: only limits of requests and sessions hold.
pub fn reserve_free(
    shared: &Shared,
    settlement: &mut Settlement,
    model: &str,
    choice: &mut Choice,
) -> Result<(), Error> {
    hold(shared, settlement, model, choice, None)
}

/// Takes a session and reserves room for `most`, whichever target of the choice serves the request; of a request that any may serve, or
/// none, the choice is empty.
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
    let ask = {
        let targets: SmallVec<[Served<'_>; 4]> = (0..choice.targets.len()).map(|at| choice.served(at)).collect();
        let subject = Subject { model, served: Served::default() };
        let ask = Ask { most, is_counted: admission.is_counted };
        shared.ledger.reserve_any(key, subject, &targets, ask, clock::moment())
    };
    shared.ask_store_soon();
    let ask = ask?;
    if !ask.without.is_empty() {
        let is_in = |at: &usize| !ask.leaves_out(model, &choice.served(*at));
        let places: Vec<usize> = (0..choice.targets.len()).filter(is_in).collect();
        *choice = choice.narrowed(&places);
    }
    settlement.hold = ask.hold;
    Ok(())
}

/// For an answer that costs nothing: it takes a session and counts as a request, and no budget is asked.
pub fn reserve_request(shared: &Shared, settlement: &mut Settlement, model: &str) -> Result<(), Error> {
    hold(shared, settlement, model, &mut Choice::default(), None)
}

/// For a call that names no model: a session, and room for what it costs at most.
pub fn reserve_sum(shared: &Shared, settlement: &mut Settlement, usd_micros: u64) -> Result<(), Error> {
    call_budget::admit_sum(settlement, usd_micros)?;
    hold(shared, settlement, "", &mut Choice::default(), Some(Amounts { tokens: 0, usd_micros }))
}

/// Counts what a conversation has used so far under the limits that its key has now, and holds room for its next answer.
pub fn renew(shared: &Shared, settlement: &mut Settlement, key: &Key) -> Result<(), Error> {
    if !key.has_limits() {
        return Ok(());
    }
    unpriced::admit_next(&shared.live.load().snapshot, settlement, key)?;
    let mut hold = settlement.hold.take().unwrap_or_default();
    let total = settlement.spent_so_far();
    let renewed = shared.ledger.renew(key, settlement.subject(), &mut hold, total, clock::moment());
    settlement.hold = Some(hold);
    shared.ask_store_soon();
    renewed
}

/// Asks for room, and again for as long as a limit that is held together with other nodes may have some by now. A request waits for
/// the shared store only here, where its node's lease has no room for it.
pub async fn ask_until_known<T>(shared: &Shared, mut ask: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let fault = match ask() {
        Ok(answer) => return Ok(answer),
        Err(fault) => fault,
    };
    // On the heap, so that calls with room do not carry its size.
    Box::pin(ask_again(shared, fault, ask)).await
}

async fn ask_again<T>(
    shared: &Shared,
    mut fault: Error,
    mut ask: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let Some(leases) = &shared.leases else { return Err(fault) };
    let (until, mut tries, mut pause) = (Instant::now() + leases.config.deadline(), 0, FIRST_PAUSE);
    // A refusal changes only where the store has yet to say whether there is room.
    while fault.kind == ErrorKind::LimitsUnknown && !leases.terms.is_lost() && Instant::now() < until {
        if tries < TRIES_AT_ONCE {
            tries += 1;
        } else {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        leases.answered().await;
        match ask() {
            Ok(answer) => return Ok(answer),
            Err(again) => fault = again,
        }
    }
    Err(fault)
}

/// Holds a request back as its key's `throttleDelayMs` says, or until the gateway goes down.
pub async fn throttle(settlement: &Settlement) {
    let delay_ms = settlement.admission.principal.key().map_or(0, |key| key.throttle_delay_ms);
    if delay_ms > 0 && !settlement.was_throttled {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {}
            () = settlement.shared.drain.expired() => {}
        }
    }
}
