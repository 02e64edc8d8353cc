//! Attempt: the targets of a call, one after the other, until one serves it.
//!
//! Another target is tried only until the answer's head has gone to the caller, and only after failures whose class says that
//! it is safe. What is asked, and how the answer is passed on, is the kind of the call.

use crate::call::context::Call;
use crate::call::deadline::within;
use crate::call::failover;
use crate::call::kind::CallKind;
use crate::call::rounds::Rounds;
use crate::call::settle;
use crate::clock;
use crate::route::model;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::slot;
use fairlead_core::ErrorKind;
use smallvec::SmallVec;
use std::time::Duration;

/// Tries the targets but those in `over`, which were tried before; all of them again where a combo says so.
pub async fn run<K: CallKind>(call: &mut Call, kind: &K, over: &SmallVec<[usize; 2]>) {
    let mut queued = Duration::ZERO;
    if run_round(call, kind, over, &mut queued).await == Round::AllFailed {
        // On the heap, so that calls which are served by their first target do not carry its size.
        Box::pin(run_again(call, kind, queued)).await;
    }
}

/// Tries all targets again for as often as the combo says.
async fn run_again<K: CallKind>(call: &mut Call, kind: &K, mut queued: Duration) {
    let mut rounds = Rounds::of(call);
    loop {
        let Some(wait) = rounds.next(call) else { return call.fail() };
        let shared = call.shared();
        tokio::select! {
            biased;
            () = shared.drain.expired() => return call.fail(),
            () = tokio::time::sleep(wait) => {}
        }
        call.earlier_failures += call.failures.len();
        call.failures.clear();
        if run_round(call, kind, &SmallVec::new(), &mut queued).await == Round::Answered {
            return;
        }
    }
}

/// How a round over the targets ended.
#[derive(PartialEq, Eq)]
enum Round {
    /// The caller has an answer, or an error.
    Answered,
    AllFailed,
}

/// `queued` is how long the call has waited in queues of connections.
async fn run_round<K: CallKind>(
    call: &mut Call,
    kind: &K,
    over: &SmallVec<[usize; 2]>,
    queued: &mut Duration,
) -> Round {
    for at in (0..call.choice.targets.len()).filter(|at| !over.contains(at)) {
        if let Some(late) = call.out_of_time(at) {
            call.failures.push((at, late));
            call.fail();
            return Round::Answered;
        }
        let Some(mut failed) = ask_target(call, kind, at, queued).await else { return Round::Answered };
        call.record_failure(at, &failed);
        if may_repeat(call, at, &failed, 0) {
            // On the heap, so that calls which repeat nothing do not carry its size.
            match Box::pin(repeat(call, kind, at, queued, failed)).await {
                Some(last) => failed = last,
                None => return Round::Answered,
            }
        }
        let may_go_on = failover::may_go_on(&call.choice, &failed) && !call.is_headed();
        call.failures.push((at, failed));
        if !may_go_on {
            call.fail();
            return Round::Answered;
        }
    }
    Round::AllFailed
}

/// Asks one target again for as often as the combo says: the last failure; `None`: it has served the call.
async fn repeat<K: CallKind>(
    call: &mut Call,
    kind: &K,
    at: usize,
    queued: &mut Duration,
    mut failed: AttemptFailure,
) -> Option<AttemptFailure> {
    let shared = call.shared();
    let pause_ms = call.choice.combo.as_ref().map_or(0, |combo| combo.rules.retry_delay_ms);
    let mut repeats = 0;
    while may_repeat(call, at, &failed, repeats) {
        tokio::select! {
            biased;
            () = shared.drain.expired() => break,
            () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
        }
        repeats += 1;
        call.earlier_failures += 1;
        failed = ask_target(call, kind, at, queued).await?;
        call.record_failure(at, &failed);
    }
    Some(failed)
}

/// Whether the combo has this target asked once more, after a failure that may pass, while there is time for it.
fn may_repeat(call: &Call, at: usize, failed: &AttemptFailure, repeats: u32) -> bool {
    let Some(combo) = &call.choice.combo else { return false };
    let pause = Duration::from_millis(combo.rules.retry_delay_ms);
    repeats < combo.rules.max_retries
        && may_pass(failed)
        && failover::may_go_on(&call.choice, failed)
        && !call.is_headed()
        && !call.choice.targets[at].is_broken(clock::monotonic_ms())
        && call.combo_limit().is_none_or(|limit| call.settlement.elapsed() + pause < limit)
}

/// Whether the same target may answer when it is asked again soon: failures that pass, unlike a limit, a refused credential or a
/// request that it does not take.
fn may_pass(failed: &AttemptFailure) -> bool {
    let passes = matches!(
        failed.error.kind,
        ErrorKind::UpstreamRefused
            | ErrorKind::UpstreamReset
            | ErrorKind::UpstreamInvalid
            | ErrorKind::EmptyAnswer
            | ErrorKind::AnswerRejected
            | ErrorKind::UpstreamOverloaded
            | ErrorKind::UpstreamTimeout
    );
    // A failure of the provider's own; 501 and 505 say that it never will.
    let status = failed.error.upstream_status;
    let is_of_server =
        failed.error.kind == ErrorKind::UpstreamStatus && status.is_some_and(|status| !matches!(status, 501 | 505));
    failed.rejection.is_none() && (passes || is_of_server)
}

/// Asks one target as soon as its connection has room. `None`: it has served the call.
async fn ask_target<K: CallKind>(
    call: &mut Call,
    kind: &K,
    at: usize,
    queued: &mut Duration,
) -> Option<AttemptFailure> {
    let acquired = {
        let tokens = model::estimate(call.settlement.bytes_request);
        let entrant = call.choice.entrant(at, tokens);
        slot::acquire(&call.settlement.shared, &call.choice.targets[at], &entrant, queued).await
    };
    let mut slot = match acquired {
        Ok(slot) => slot,
        Err(busy) => return Some(busy),
    };
    call.settlement.attempts += 1;
    call.name_target(at);
    let outcome = if kind.is_stream() || call.time_for(at).is_none() {
        kind.ask(call, at).await
    } else {
        // On the heap, so that calls without a deadline do not carry its size.
        Box::pin(within(call.time_for(at), kind.ask(call, at))).await
    };
    match outcome {
        Ok(reply) => {
            slot.settle(&call.settlement.usage);
            settle::finish(call, kind, at, reply, None).await;
            None
        }
        Err(failed) => {
            slot.refund();
            Some(failed)
        }
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
