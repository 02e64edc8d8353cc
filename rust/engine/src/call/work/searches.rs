//! Web searches and videos as paid requests. Control does the work and reports who did it. The relay checks the key's
//! limits and settles the request like any other call.
//!
//! The provider may be paid as soon as control has the request, even if the caller leaves. So the call runs in a
//! separate task that continues until control's response head arrives, and the request is always settled. The number of
//! requests in flight, control's deadline and the shutdown of the gateway, which waits for the task, limit it.

use crate::call::account_objects;
use crate::call::chaos;
use crate::call::guardrails;
use crate::call::relay::head;
use crate::call::settle::refuse;
use crate::call::work::video_form;
use crate::call::work::videos;
use crate::control::forward::{self, NoControlAnswer};
use crate::control::repeats;
use crate::exchange::Head;
use crate::gate::answer::{self, EndGuard};
use crate::gate::limits;
use crate::gate::request::{BufferedRequest, Forward};
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::Shared;
use crate::upstream::wire::BodySlices;
use bytes::Bytes;
use fairlead_core::routes::Answer;
use fairlead_core::{Cost, Error, ErrorKind, Outcome, Units};
use fairlead_dialect::Pieces;
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Deserialize;
use std::future::Future;
use std::sync::Arc;

/// A header of control's response, for use between the planes only.
const BILL: HeaderName = HeaderName::from_static("x-fairlead-bill");

/// Who did the work.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Bill {
    /// A search provider, and its price per search.
    Search { provider: String, usd_micros: u64 },
    /// The index of the connection in the choice.
    Video { lane: usize },
}

/// Serves one such request. Work in progress continues if this is dropped.
pub(crate) fn serve(shared: Arc<Shared>, incoming: Box<BufferedRequest>) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &incoming.exchange, &incoming.admission);
    async move {
        Box::pin(read(shared, incoming)).await;
        drop(end);
    }
}

/// Parses the request. A request that repeats another under its idempotency key receives that response, and nothing is
/// paid.
async fn read(shared: Arc<Shared>, mut incoming: Box<BufferedRequest>) {
    incoming.capture(&shared);
    if incoming.admission.route.takes_parts() {
        let Some(forward) = &mut incoming.forward else { return };
        match video_form::into_json(&mut forward.headers, &incoming.body) {
            Ok(json) => incoming.body = json,
            Err(fault) => return repeats::refuse(&shared, &incoming, &fault),
        }
    }
    let part = repeats::part_of(&shared, &incoming, &incoming.body);
    let work = |shared: Arc<Shared>, incoming: Box<BufferedRequest>| async move {
        let end = EndGuard::new(&shared, &incoming.exchange, &incoming.admission);
        begin(&shared, *incoming).await;
        drop(end);
    };
    repeats::serve(shared, incoming, part, work).await;
}

async fn begin(shared: &Arc<Shared>, incoming: BufferedRequest) {
    let BufferedRequest { exchange, admission, forward, mut body, in_flight, buffered, .. } = incoming;
    let Some(forward) = forward else { return };
    let mut settlement = Settlement::open(shared, &exchange, admission, body.len() as u64);
    let admit = || admit(shared, &mut settlement, &mut body);
    let choice = match limits::retry_until_limits_known(shared, admit).await {
        Ok(choice) => choice,
        Err(fault) => return refuse(&mut settlement, Outcome::Refused, &fault),
    };
    let Some(runtime) = shared.runtime() else {
        let fault = Error::gateway(ErrorKind::Internal, "The engine does not run.");
        return refuse(&mut settlement, Outcome::Refused, &fault);
    };
    let task = runtime.spawn(async move {
        limits::throttle(&settlement).await;
        if let Err(fault) = chaos::inject(&mut settlement).await {
            return refuse(&mut settlement, Outcome::Refused, &fault);
        }
        run(settlement, choice, forward, body).await;
        drop((in_flight, buffered));
    });
    if task.await.is_err() {
        // The settlement wrote its record when it was dropped, and the guard of the exchange reports the error to the
        // caller.
        tracing::error!("a paid call of control ended with a panic");
    }
}

/// Checks guardrails and the key's limits before control gets the request.
fn admit(shared: &Shared, settlement: &mut Settlement, body: &mut Bytes) -> Result<Option<Choice>, Error> {
    forward::check_body(body)?;
    guardrails::admit_paid(shared, settlement, body)?;
    account_objects::admit(&settlement.admission, body)?;
    if settlement.admission.route.answer == Answer::Video {
        return videos::admit_video(shared, settlement, body).map(Some);
    }
    let most = shared.active.load().snapshot.search_usd_micros;
    limits::reserve_sum(shared, settlement, most).map(|()| None)
}

async fn run(mut settlement: Settlement, mut choice: Option<Choice>, mut forward: Forward, body: Bytes) {
    let (shared, exchange) = (&Arc::clone(&settlement.shared), &Arc::clone(&settlement.exchange));
    let mut _slot = None;
    if let Some(chosen) = &choice {
        match videos::reserve_capacity(shared, chosen, &mut forward.headers).await {
            Ok((open, slot)) => (choice, _slot) = (Some(open), Some(slot)),
            Err(fault) => {
                settlement.set_units(Units::default());
                let outcome = if fault.kind == ErrorKind::Draining { Outcome::Drained } else { Outcome::Refused };
                return refuse(&mut settlement, outcome, &fault);
            }
        }
    }
    forward::dress(shared, &settlement.admission, &mut forward);
    settlement.attempts = 1;
    let answered = tokio::select! {
        biased;
        answered = forward::call(shared, forward, BodySlices::new(Pieces::from_iter([body]))) => answered,
        () = shared.drain.expired() => Err(NoControlAnswer { error: shared.drain.error(), is_sent: true }),
    };
    let (parts, mut body) = match answered {
        Ok(response) => response.into_parts(),
        Err(NoControlAnswer { error: fault, is_sent }) => {
            match choice.as_ref().filter(|_| is_sent) {
                // A provider may be working on it and will not report the result, so its cost counts as spent.
                Some(choice) => serve_by(&mut settlement, choice, 0),
                None => settlement.set_units(Units::default()),
            }
            let is_drained = fault.kind == ErrorKind::Draining;
            let outcome = if is_drained { Outcome::Drained } else { Outcome::UpstreamFailed };
            return refuse(&mut settlement, outcome, &fault);
        }
    };
    take_bill(&mut settlement, choice.as_ref(), &parts.headers);
    shared.metrics.answered(settlement.admission.route.endpoint, parts.status.as_u16());
    let mut headers = answer::base_headers(shared, &settlement.admission.request_id);
    forward::pass_headers(&parts.headers, &mut headers);
    head::add_findings(&settlement, &mut headers);
    head::add_fault(&settlement, &mut headers);
    exchange.start(Head { status: parts.status, headers }, []);
    // The record is written before the caller has the last byte, so that it is visible immediately.
    let is_complete = forward::copy(exchange, &mut body).await;
    settlement.status = parts.status.as_u16();
    let is_gone = !is_complete && exchange.is_cancelled();
    let (outcome, error) = ending(parts.status, is_complete, is_gone);
    settlement.settle(outcome, error.as_ref());
    if is_complete {
        exchange.end([]);
    } else {
        exchange.abort();
    }
}

/// Records who did the work and what it cost. Without a bill nobody did any work.
fn take_bill(settlement: &mut Settlement, choice: Option<&Choice>, headers: &HeaderMap) {
    let bill = headers.get(BILL).and_then(|bill| serde_json::from_slice::<Bill>(bill.as_bytes()).ok());
    match (bill, choice) {
        (Some(Bill::Search { provider, usd_micros }), None) => {
            settlement.serve_by(provider, Cost::from_usd_micros(usd_micros));
        }
        (Some(Bill::Video { lane }), Some(choice)) if lane < choice.targets.len() => {
            settlement.attempts = lane as u32 + 1;
            serve_by(settlement, choice, lane);
        }
        _ => settlement.set_units(Units::default()),
    }
}

fn serve_by(settlement: &mut Settlement, choice: &Choice, lane: usize) {
    settlement.target = choice.targets.get(lane).cloned();
    settlement.upstream_model = Some(choice.upstream_model(lane).to_owned());
    settlement.priced_model = Some(choice.model(lane).to_owned());
}

fn ending(status: StatusCode, is_complete: bool, is_gone: bool) -> (Outcome, Option<Error>) {
    let fault = |kind| Some(Error::gateway(kind, "The work that control was asked for failed."));
    match status {
        _ if is_gone => (Outcome::ClientGone, fault(ErrorKind::ClientGone)),
        _ if !is_complete => (Outcome::UpstreamFailed, fault(ErrorKind::ControlUnavailable)),
        status if status.is_success() => (Outcome::Completed, None),
        status if status.is_server_error() => (Outcome::UpstreamFailed, fault(ErrorKind::UpstreamStatus)),
        _ => (Outcome::Refused, fault(ErrorKind::InvalidRequest)),
    }
}
