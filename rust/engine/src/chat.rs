//! A chat completion from its body to its record: read, choose, attempt, relay, settle.
//!
//! Another connection is tried only until the answer's head has gone to the caller, and only after failures whose class says
//! that it is safe.

use crate::admission::Whole;
use crate::answer;
use crate::answer::EndGuard;
use crate::attempt::{self, Answered, Failed};
use crate::choose::{self, Choice};
use crate::clock;
use crate::exchange::Exchange;
use crate::plain;
use crate::settle::Settlement;
use crate::shared::{Gauge, Held, Shared};
use crate::stream::Relay;
use crate::target::Target;
use crate::wording::{caller_of, Wording};
use bytes::Bytes;
use fairlead_core::error::{Error, Kind, Retry};
use fairlead_core::policy;
use fairlead_core::record::Outcome;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::shapes;
use fairlead_dialect::translate;
use http::StatusCode;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Serves one chat completion. Dropping the future is cancelling it: the upstream call ends and the request settles.
///
/// The settlement is open before the first poll: work that is dropped before it began is settled too.
pub fn serve(shared: Arc<Shared>, whole: Box<Whole>) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &whole);
    let Whole { exchange, admission, body, in_flight, buffered, .. } = *whole;
    let settlement = Settlement::open(&shared, &exchange, admission, body.len() as u64);
    async move {
        let _counted = (in_flight, buffered);
        run(&shared, &exchange, settlement, &body).await;
        drop(end);
    }
}

async fn run(shared: &Arc<Shared>, exchange: &Arc<Exchange>, mut settlement: Settlement, body: &Bytes) {
    let caller = caller_of(settlement.admission.route);
    let parsed = match translate::read(caller, body).and_then(|parsed| admit(&settlement, parsed)) {
        Ok(parsed) => parsed,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    settlement.model = Some(parsed.model.clone());
    settlement.stream = parsed.stream;
    let mut choice = match choose::choose(&shared.live.load(), &parsed.model) {
        Ok(choice) => choice,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    if let Err(fault) = admit_aliases(&settlement, &choice) {
        return refuse(shared, exchange, settlement, Outcome::Refused, &fault);
    }
    settlement.upstream_model = Some(choice.upstream_model.clone());
    let wording = match Wording::prepare(caller, body, &parsed, &mut choice) {
        Ok(wording) => wording,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    let stream_slot = if parsed.stream {
        let Some(slot) = Held::take(shared, Gauge::OpenStreams, 1, shared.config.max_open_streams) else {
            shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
            let fault = Error::gateway(
                Kind::Overloaded,
                "The gateway has as many streams open as it takes; try again shortly.",
            )
            .after_s(1);
            return refuse(shared, exchange, settlement, Outcome::Shed, &fault);
        };
        Some(slot)
    } else {
        None
    };
    tokio::select! {
        biased;
        () = exchange.gone() => {} // the settlement's drop says who left
        () = work(shared, exchange, settlement, &choice, &wording, parsed.stream) => {}
    }
    drop(stream_slot);
}

pub(crate) fn admit(settlement: &Settlement, parsed: ChatRequest) -> Result<ChatRequest, Error> {
    if let Some(key) = settlement.admission.principal.key() {
        policy::admit_model(key, &parsed.model)?;
    }
    Ok(parsed)
}

/// A connection answers to several prefixes: what is blocked under one of them is blocked under all.
pub(crate) fn admit_aliases(settlement: &Settlement, choice: &Choice) -> Result<(), Error> {
    let Some(key) = settlement.admission.principal.key().filter(|key| !key.blocked_models.is_empty()) else {
        return Ok(());
    };
    for prefix in choice.targets.iter().flat_map(|target| &target.connection.prefixes) {
        policy::admit_unblocked(key, &format!("{prefix}/{}", choice.upstream_model))?;
    }
    Ok(())
}

async fn work(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    mut settlement: Settlement,
    choice: &Choice,
    wording: &Wording,
    stream: bool,
) {
    let mut failures: Vec<(Arc<Target>, Failed)> = Vec::new();
    for target in &choice.targets {
        settlement.attempts += 1;
        settlement.target = Some(Arc::clone(target));
        let failed = if stream {
            let mut relay = Relay::new(shared, exchange, wording);
            match relay.run(&mut settlement, target, failures.len()).await {
                Ok(mut finished) => {
                    observe(target, finished.error.as_ref(), &settlement);
                    settlement.settle(finished.outcome, finished.error.as_ref());
                    exchange.end(std::mem::take(&mut finished.last));
                    return finished.keep_connection(shared).await;
                }
                Err(failed) => failed,
            }
        } else {
            match attempt_plain(shared, target, wording, &mut settlement).await {
                Ok(answer) => {
                    observe(target, None, &settlement);
                    let (head, body) = plain::answer(shared, &mut settlement, target, answer, failures.len());
                    settlement.settle(Outcome::Completed, None);
                    return exchange.answer(head, body);
                }
                Err(failed) => failed,
            }
        };
        if failed.blames_connection {
            blame(target, failed.error.kind, failed.hint_ms);
        }
        let may_go_on = failed.error.retry != Retry::Never && !exchange.is_headed();
        failures.push((Arc::clone(target), failed));
        if !may_go_on {
            break;
        }
    }
    fail(shared, exchange, settlement, failures);
}

async fn attempt_plain(
    shared: &Arc<Shared>,
    target: &Arc<Target>,
    wording: &Wording,
    settlement: &mut Settlement,
) -> Result<plain::Answer, Failed> {
    let betas = settlement.admission.anthropic_beta.clone();
    let Answered { response, lease } = tokio::select! {
        biased;
        answered = attempt::send(&shared.pool, target, &target.chat_uri, betas.as_ref(), wording.body(target), false) => answered?,
        () = shared.drain.expired() => return Err(drained().into()),
    };
    tokio::select! {
        biased;
        answer = plain::read(shared, target, response, lease, wording, settlement) => answer,
        () = shared.drain.expired() => Err(drained().into()),
    }
}

/// The gateway's own end, which rests no connection and is tried nowhere else.
pub fn drained() -> Error {
    Error::gateway(Kind::Draining, "The gateway is shutting down.").after_s(1)
}

fn observe(target: &Target, error: Option<&Error>, settlement: &Settlement) {
    match error {
        None => {
            let now_ms = clock::monotonic_ms();
            let started_ms = now_ms.saturating_sub(settlement.elapsed().as_millis() as u64);
            target.hot.cooldown.lock().succeed(started_ms);
            *target.hot.last_error.lock() = None;
            target.hot.successes.fetch_add(1, Ordering::Relaxed);
            let sample =
                settlement.first_byte.map_or_else(|| settlement.elapsed(), |at| at - settlement.admission.started);
            target.hot.observe_latency(sample.as_micros() as u64);
        }
        Some(error) => blame(target, error.kind, None),
    }
}

/// The gateway's own end blames nobody.
fn blame(target: &Target, kind: Kind, hint_ms: Option<u64>) {
    if kind == Kind::Draining {
        return;
    }
    target.hot.cooldown.lock().fail(kind, hint_ms, clock::monotonic_ms());
    *target.hot.last_error.lock() = Some(kind.code());
    target.hot.failures.fetch_add(1, Ordering::Relaxed);
}

/// Nothing served the request: one error that says what every attempt came to.
pub(crate) fn fail(
    shared: &Shared,
    exchange: &Exchange,
    mut settlement: Settlement,
    mut failures: Vec<(Arc<Target>, Failed)>,
) {
    let Some((target, last)) = failures.pop() else {
        return;
    };
    let outcome = if last.error.kind == Kind::Draining { Outcome::Drained } else { Outcome::UpstreamFailed };
    let mut error = last.error;
    if matches!(error.kind, Kind::UpstreamRateLimited | Kind::UpstreamOverloaded) {
        // What the provider said, or else how long the connection rests on its own.
        let rest_ms = target.hot.cooldown.lock().remaining_ms(clock::monotonic_ms());
        error.retry_after_s = Some(last.hint_ms.unwrap_or(rest_ms).div_ceil(1_000).max(1));
    }
    if !failures.is_empty() {
        let others: Vec<&str> = failures.iter().map(|(_, failed)| failed.error.kind.code()).collect();
        error.message = format!("{} Other connections failed before: {}.", error.message, others.join(", ")).into();
    }
    // The provider's own words where the request is what is wrong with it; ours otherwise.
    let text = last.rejection.as_ref().map_or_else(|| shapes::ErrorText::from(&error), |rejection| rejection.text());
    if exchange.is_headed() {
        // Only comments went out so far; the failure is told in the stream.
        let bytes = fairlead_dialect::stream::terminal_error(caller_of(settlement.admission.route), &text);
        settlement.bytes_response += bytes.len() as u64;
        settlement.settle(outcome, Some(&error));
        return exchange.end([bytes]);
    }
    let request_id = &settlement.admission.request_id;
    let surface = settlement.admission.route.surface;
    let body = shapes::error_body(surface, &text, request_id);
    let (mut head, _) = answer::error(shared, surface, request_id, &error);
    head.headers.extend(plain::headers(shared, &settlement, &target, failures.len()));
    head.status = StatusCode::from_u16(text.status).unwrap_or(StatusCode::BAD_GATEWAY);
    settlement.status = text.status;
    settlement.bytes_response = body.len() as u64;
    settlement.settle(outcome, Some(&error));
    exchange.answer(head, body);
}

pub(crate) fn refuse(
    shared: &Shared,
    exchange: &Exchange,
    mut settlement: Settlement,
    outcome: Outcome,
    fault: &Error,
) {
    settlement.status = fault.kind.status();
    let surface = settlement.admission.route.surface;
    let (head, body) = answer::error(shared, surface, &settlement.admission.request_id, fault);
    settlement.bytes_response = body.len() as u64;
    settlement.settle(outcome, Some(fault));
    exchange.answer(head, body);
}
