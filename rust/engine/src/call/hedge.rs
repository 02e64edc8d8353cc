//! Hedging: a combo's first target that takes long is joined by the second, and the first to answer wins. The other call is dropped,
//! which ends it at its provider as well.
//!
//! For answers in one piece; streams have `hedged_stream`. What the dropped call came to is not known and not counted; both count as attempts.

use crate::call::chat::served;
use crate::call::failover;
use crate::call::plain;
use crate::call::translation::Wording;
use crate::exchange::Head;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::Shared;
use crate::upstream::attempt;
use crate::upstream::failure::Failed;
use crate::upstream::target::{InFlightGuard, Target};
use bytes::Bytes;
use fairlead_core::error::Error;
use fairlead_core::usage::Usage;
use http::HeaderValue;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who answered first, and what.
#[derive(Debug)]
pub struct Won {
    at: usize,
    said: Said,
    failures: usize,
}

#[derive(Debug)]
struct Said {
    answer: plain::Answer,
    usage: Usage,
    took: Duration,
}

/// How long the first target is waited for alone; `None` where the combo does not hedge, or cannot.
pub fn delay(choice: &Choice) -> Option<Duration> {
    let params = &choice.combo.as_ref()?.params;
    let can = params.hedging && choice.targets.len() > 1;
    can.then(|| Duration::from_millis(params.hedge_delay_ms))
}

/// An error is what those that were asked came to, in the order of the choice: one of them, or both.
pub async fn race(
    shared: &Arc<Shared>,
    settlement: &mut Settlement,
    choice: &Choice,
    wording: &Wording,
    delay: Duration,
) -> Result<Won, Vec<(Arc<Target>, Failed)>> {
    let betas = settlement.admission.anthropic_beta.clone();
    let ask = |at: usize| say(shared, choice, at, wording, betas.as_ref());
    settlement.attempts += 1;
    let mut first = pin!(ask(0));
    match tokio::time::timeout(delay, first.as_mut()).await {
        Ok(Ok(said)) => return Ok(Won { at: 0, said, failures: 0 }),
        Ok(Err(failed)) => return Err(vec![lost(shared, settlement, choice, 0, failed)]),
        Err(_) => settlement.attempts += 1,
    }
    let mut second = pin!(ask(1));
    let (at, outcome) = tokio::select! {
        biased;
        outcome = first.as_mut() => (0, outcome),
        outcome = second.as_mut() => (1, outcome),
    };
    let failed = match outcome {
        Ok(said) => return Ok(Won { at, said, failures: 0 }),
        Err(failed) => lost(shared, settlement, choice, at, failed),
    };
    if !failover::may_go_on(choice, &failed.1) {
        return Err(vec![failed]);
    }
    let other = 1 - at;
    let outcome = if other == 0 { first.await } else { second.await };
    match outcome {
        Ok(said) => Ok(Won { at: other, said, failures: 1 }),
        Err(last) => {
            let last = lost(shared, settlement, choice, other, last);
            Err(if other == 0 { vec![last, failed] } else { vec![failed, last] })
        }
    }
}

impl Won {
    /// The answer for the caller; an error where a guardrail withholds it.
    pub fn tell(self, shared: &Shared, settlement: &mut Settlement, choice: &Choice) -> Result<(Head, Bytes), Error> {
        let Self { at, said, failures } = self;
        let target = &choice.targets[at];
        name(settlement, choice, at);
        settlement.usage = said.usage;
        settlement.first_byte.get_or_insert_with(Instant::now);
        served(target, said.took, said.took);
        failover::remember(shared, choice, at, settlement, true);
        plain::answer(shared, settlement, target, said.answer, failures)
    }
}

pub(crate) fn name(settlement: &mut Settlement, choice: &Choice, at: usize) {
    settlement.target = choice.targets.get(at).cloned();
    settlement.upstream_model = Some(choice.upstream_model(at).to_owned());
    settlement.priced_model = Some(choice.model(at).to_owned());
}

pub(crate) fn lost(
    shared: &Shared,
    settlement: &mut Settlement,
    choice: &Choice,
    at: usize,
    failed: Failed,
) -> (Arc<Target>, Failed) {
    name(settlement, choice, at);
    let target = &choice.targets[at];
    target.hold_against(choice.upstream_model(at), &failed);
    if failed.blames_connection {
        failover::remember(shared, choice, at, settlement, false);
    }
    (Arc::clone(target), failed)
}

async fn say(
    shared: &Shared,
    choice: &Choice,
    at: usize,
    wording: &Wording,
    betas: Option<&HeaderValue>,
) -> Result<Said, Failed> {
    let began = Instant::now();
    let target = &choice.targets[at];
    let _busy = InFlightGuard::new(&target.hot);
    let work = async {
        let body = wording.body(target, choice.upstream_model(at));
        let uri = target.uri(choice.upstream_model(at), false)?;
        let sent = attempt::send(&shared.pool, target, &uri, betas, body, false);
        plain::take(target, sent.await?, wording).await
    };
    let (answer, usage) = tokio::select! {
        biased;
        taken = work => taken?,
        () = shared.drain.expired() => return Err(shared.drain.error().into()),
    };
    Ok(Said { answer, usage, took: began.elapsed() })
}
