//! The attempt phase: tries the targets of a call in order until one serves it.
//!
//! Another target is tried only while no response head has been sent to the caller, and only after a failure that is
//! safe to retry. The kind of the call defines the request to a target and how its response is relayed.
//!
//! [`failover`] decides what follows a failed attempt.

pub(crate) mod failover;

use crate::call::choose::rounds::Rounds;
use crate::call::context::Call;
use crate::call::kind::CallKind;
use crate::call::relay::deadline::within;
use crate::call::settle;
use crate::clock;
use crate::route::model;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::slot;
use fairlead_core::ErrorKind;
use smallvec::SmallVec;
use std::time::Duration;

/// Tries all targets except those in `tried_before`, which were tried before. If the combo allows it, further rounds try all
/// targets again.
pub async fn run<K: CallKind>(call: &mut Call, kind: &K, tried_before: &SmallVec<[usize; 2]>) {
    let mut queued = Duration::ZERO;
    if run_round(call, kind, tried_before, &mut queued).await == Round::AllFailed {
        // Boxed to keep the future of calls that succeed in the first round small.
        Box::pin(run_again(call, kind, queued)).await;
    }
}

/// Tries all targets again, as often as the combo allows.
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

/// The result of a round over the targets.
#[derive(PartialEq, Eq)]
enum Round {
    /// The caller has received a response or an error.
    Answered,
    AllFailed,
}

/// `queued` is the time that the call has waited in queues of connections.
async fn run_round<K: CallKind>(
    call: &mut Call,
    kind: &K,
    tried_before: &SmallVec<[usize; 2]>,
    queued: &mut Duration,
) -> Round {
    for at in (0..call.choice.targets.len()).filter(|at| !tried_before.contains(at)) {
        if let Some(late) = call.out_of_time(at) {
            call.failures.push((at, late));
            call.fail();
            return Round::Answered;
        }
        let Some(mut failed) = call_target(call, kind, at, queued).await else { return Round::Answered };
        call.record_failure(at, &failed);
        if may_repeat(call, at, &failed, 0) {
            // Boxed to keep the future of calls without repeats small.
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

/// Repeats the request to one target, as often as the combo allows. Returns the last failure, or `None` if the target
/// has served the call.
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
        failed = call_target(call, kind, at, queued).await?;
        call.record_failure(at, &failed);
    }
    Some(failed)
}

/// Whether the combo allows another request to this target after a temporary failure, and enough time is left.
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

/// Whether the failure is temporary, so that the same target may succeed soon. A rate limit, a rejected credential or a
/// rejected request is not.
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
    // A server error of the provider. A retry does not help after 501 and 505.
    let status = failed.error.upstream_status;
    let is_of_server =
        failed.error.kind == ErrorKind::UpstreamStatus && status.is_some_and(|status| !matches!(status, 501 | 505));
    failed.rejection.is_none() && (passes || is_of_server)
}

/// Sends the request to one target as soon as its connection has capacity. Returns `None` if the target has served the
/// call.
async fn call_target<K: CallKind>(
    call: &mut Call,
    kind: &K,
    at: usize,
    queued: &mut Duration,
) -> Option<AttemptFailure> {
    let acquired = {
        let tokens = model::estimate(call.settlement.bytes_request);
        let slot_request = call.choice.slot_request(at, tokens);
        slot::acquire(&call.settlement.shared, &call.choice.targets[at], &slot_request, queued).await
    };
    let mut slot = match acquired {
        Ok(slot) => slot,
        Err(busy) => return Some(busy),
    };
    call.settlement.attempts += 1;
    call.name_target(at);
    let outcome = if kind.is_stream() || call.time_for(at).is_none() {
        kind.send(call, at).await
    } else {
        // Boxed to keep the future of calls without a deadline small.
        Box::pin(within(call.time_for(at), kind.send(call, at))).await
    };
    match outcome {
        Ok(reply) => {
            slot.settle(&call.settlement.usage);
            settle::finish(call, kind, at, reply, None).await;
            None
        }
        Err(mut failed) => {
            slot.refund();
            failover::blame_translation(call, at, &mut failed);
            Some(failed)
        }
    }
}

#[cfg(test)]
mod tests;
