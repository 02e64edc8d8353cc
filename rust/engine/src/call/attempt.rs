//! Attempt: the targets of a call, one after the other, until one serves it.
//!
//! Another target is tried only until the answer's head has gone to the caller, and only after failures whose class says that
//! it is safe. What is asked, and how the answer is passed on, is the kind of the call.

use crate::call::context::Call;
use crate::call::deadline::{too_slow, within};
use crate::call::failover;
use crate::call::plain;
use crate::call::relay::{self, FinishedStream};
use crate::call::rounds::Rounds;
use crate::clock;
use crate::control::responses;
use crate::route::model;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::slot;
use crate::upstream::target::Target;
use bytes::Bytes;
use fairlead_core::Error;
use smallvec::SmallVec;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A kind of call: how one target is asked, and what is done with its answer.
pub trait CallKind: Sync {
    /// Asks one target, and passes on what is not given whole. An error means that the caller has nothing of the answer.
    fn ask(&self, call: &mut Call, at: usize) -> impl Future<Output = Result<Reply, AttemptFailure>> + Send;

    /// Whether the answer is passed on as it comes: then each kind holds its beginning to the combo's deadlines by itself.
    fn is_stream(&self) -> bool {
        false
    }

    /// Keeps the answer as the caller was told it, where the caller asked for that. `false`: it asked and the answer is not kept.
    fn store(&self, _call: &Call, _answer: Option<&Bytes>) -> impl Future<Output = bool> + Send {
        std::future::ready(true)
    }
}

/// The answer of a target that serves a call.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a box would be an allocation for each stream")]
pub enum Reply {
    /// A whole answer, not yet given.
    Whole(plain::Answer),
    /// A stream that was passed on, but for its last bytes.
    Stream(FinishedStream),
}

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
        if let Some(limit) = call.time_for(at).filter(Duration::is_zero) {
            call.failures.push((at, too_slow(call.combo_limit().unwrap_or(limit))));
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
    let mut repeats = 0;
    while may_repeat(call, at, &failed, repeats) && pause(call).await {
        repeats += 1;
        call.earlier_failures += 1;
        failed = ask_target(call, kind, at, queued).await?;
        call.record_failure(at, &failed);
    }
    Some(failed)
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
    let asked = if kind.is_stream() || call.time_for(at).is_none() {
        kind.ask(call, at).await
    } else {
        // On the heap, so that calls without a deadline do not carry its size.
        Box::pin(within(call.time_for(at), kind.ask(call, at))).await
    };
    match asked {
        Ok(reply) => {
            slot.settle(&call.settlement.usage);
            finish(call, kind, at, reply, None).await;
            None
        }
        Err(failed) => {
            slot.refund();
            Some(failed)
        }
    }
}

/// Whether the combo has this target asked once more, after a failure that may pass, while there is time for it.
fn may_repeat(call: &Call, at: usize, failed: &AttemptFailure, repeats: u32) -> bool {
    let Some(combo) = &call.choice.combo else { return false };
    let pause = Duration::from_millis(combo.rules.retry_delay_ms);
    repeats < combo.rules.max_retries
        && failover::may_pass(failed)
        && failover::may_go_on(&call.choice, failed)
        && !call.is_headed()
        && !call.choice.targets[at].is_broken(clock::monotonic_ms())
        && call.combo_limit().is_none_or(|limit| call.settlement.elapsed() + pause < limit)
}

/// The pause before one target is asked again; `false`: the gateway stops meanwhile.
async fn pause(call: &Call) -> bool {
    let pause_ms = call.choice.combo.as_ref().map_or(0, |combo| combo.rules.retry_delay_ms);
    let shared = call.shared();
    tokio::select! {
        biased;
        () = shared.drain.expired() => false,
        () = tokio::time::sleep(Duration::from_millis(pause_ms)) => true,
    }
}

/// A target has served the call: what is learnt of it, what is kept of the answer, the record, the last bytes.
///
/// `began`: when the target was asked, where that is not when the request came.
pub async fn finish<K: CallKind>(call: &mut Call, kind: &K, at: usize, reply: Reply, began: Option<Instant>) {
    let answer = match reply {
        Reply::Stream(stream) => return finish_stream(call, kind, at, stream, began).await,
        Reply::Whole(answer) => answer,
    };
    record_answer(call, at, None, began);
    let target = Arc::clone(&call.choice.targets[at]);
    give(call, kind, &target, answer).await;
}

/// Gives a whole answer of this target, kept first where the caller asked for that.
pub async fn give<K: CallKind>(call: &mut Call, kind: &K, target: &Target, answer: plain::Answer) {
    let fallbacks = call.fallbacks();
    let mut answer = plain::answer(&mut call.settlement, target, answer, fallbacks);
    if let Ok((head, body)) = &mut answer {
        // As the caller is told it: what a guardrail took out is kept nowhere.
        let is_stored = kind.store(call, Some(body)).await;
        responses::note_unstored(is_stored, &mut head.headers);
    }
    call.give(answer);
}

async fn finish_stream<K: CallKind>(
    call: &mut Call,
    kind: &K,
    at: usize,
    mut stream: FinishedStream,
    began: Option<Instant>,
) {
    let error = stream.error.as_ref();
    record_answer(call, at, error, began);
    if error.is_none() {
        let response = stream.take_response(&mut call.settlement);
        kind.store(call, response.as_ref()).await;
    }
    if stream.is_events && call.settlement.admission.wants_cost {
        let comment = relay::cost_comment(&mut call.settlement);
        call.settlement.bytes_response += comment.len() as u64;
        stream.last.push(comment);
    }
    call.settlement.settle(stream.outcome, stream.error.as_ref());
    if stream.is_cut {
        return call.settlement.exchange.abort();
    }
    call.settlement.exchange.end(std::mem::take(&mut stream.last));
    stream.keep_connection().await;
}

/// Teaches what the answer of a target came to: its health, and the combo's memory.
fn record_answer(call: &mut Call, at: usize, error: Option<&Error>, began: Option<Instant>) {
    let (target, settlement) = (&call.choice.targets[at], &mut call.settlement);
    match error {
        None => {
            let began = began.unwrap_or(settlement.admission.started);
            let took = began.elapsed();
            target.served(took, settlement.first_byte.map_or(took, |first| first.saturating_duration_since(began)));
        }
        Some(error) => target.blame(error.kind, None),
    }
    failover::remember(&call.choice, at, settlement, error.is_none());
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
