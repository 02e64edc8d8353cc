//! Requests with an idempotency key. The first request performs the call, and repeats receive its response. If workers
//! share a store, the first request at each worker asks the store whether it is the first of all.
//!
//! [`recording`] stores the response for the followers, and [`ticket`] names requests that must run once.

pub(crate) mod recording;
pub(crate) mod ticket;

use crate::call::context::Call;
use crate::call::conversation::read;
use crate::call::idempotency::recording::{Followed, Leader, Recording, Role};
use crate::call::idempotency::ticket::{Name, Ticket};
use crate::call::settle::refuse;
use crate::clock;
use crate::exchange::Exchange;
use crate::gate::answer::{self, EndGuard};
use crate::gate::headers;
use crate::gate::request::Admission;
use crate::observe::settle::Settlement;
use crate::observe::trace;
use crate::peers::once::{self, Claim, KeptAnswer, Ruling};
use crate::route::model;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::{hex, Error, ErrorKind, Outcome};
use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;

/// Performs the call of an idempotency key for all its requests. `body` is recorded as the request, unless it is
/// recorded already.
pub async fn lead<W: Future<Output = ()> + Send + 'static>(
    mut leader: Leader,
    exchange: &Exchange,
    call: Call,
    body: &Bytes,
    work: impl FnOnce(Call) -> W + Send + 'static,
) {
    let settlement = &call.settlement;
    let end = EndGuard::new(&settlement.shared, &settlement.exchange, &settlement.admission);
    let permits = call.request_permits.clone();
    let claim = match once::claim_of(&settlement.shared, leader.ticket.as_deref()).await {
        Ok(claim) => claim,
        Err(Ruling::UnderWay) => {
            let claim = ClaimSlot::default();
            let work = wait_elsewhere(call, leader.ticket.take(), Arc::clone(&claim), body.clone(), work);
            let work = trace::within(trace::current(), async move {
                Box::pin(work).await;
                drop((end, permits));
            });
            let settle = move |recording: &Recording| {
                if let Some(claim) = claim.lock().take() {
                    claim.settle(recording);
                }
            };
            return leader.lead_then(exchange, work, settle).await;
        }
        Err(ruling) => {
            let body = body.clone();
            let work = async move {
                repeat_elsewhere(call, ruling, &body);
                drop((end, permits));
            };
            return leader.lead(exchange, work).await;
        }
    };
    let work = work(call);
    let work = trace::within(trace::current(), async move {
        work.await;
        drop((end, permits));
    });
    match claim {
        None => leader.lead(exchange, Box::pin(work)).await,
        Some(claim) => leader.lead_then(exchange, Box::pin(work), move |recording| claim.settle(recording)).await,
    }
}

/// The claim of a call that another worker performed, once this worker has taken it over.
pub(crate) type ClaimSlot = Arc<Mutex<Option<Claim>>>;

/// Waits for another worker's response and returns it. If that worker failed or is gone, this worker performs the call.
async fn wait_elsewhere<W: Future<Output = ()> + Send + 'static>(
    call: Call,
    ticket: Option<Box<Ticket>>,
    slot: ClaimSlot,
    body: Bytes,
    work: impl FnOnce(Call) -> W + Send + 'static,
) {
    let settlement = &call.settlement;
    match once::claim_when_free(&settlement.shared, ticket.as_deref(), &settlement.exchange).await {
        Ok(claim) => {
            *slot.lock() = claim;
            work(call).await;
        }
        Err(ruling) => repeat_elsewhere(call, ruling, &body),
    }
}

/// Returns another worker's response, or an error that says why there is none.
fn repeat_elsewhere(call: Call, ruling: Ruling, body: &Bytes) {
    let mut settlement = call.settlement;
    note_request(&mut settlement, body);
    match ruling.answer() {
        Ok(KeptAnswer { mut head, body }) => {
            head.headers.extend(answer::base_headers(&settlement.shared, &settlement.admission.request_id));
            head.headers.insert(headers::IDEMPOTENT, HeaderValue::from_static("true"));
            settlement.status = head.status.as_u16();
            settlement.exchange.answer(head, body);
            settlement.settle(Outcome::Completed, None);
        }
        Err(fault) => refuse(&mut settlement, Outcome::Refused, &fault),
    }
}

/// The role of a request among those with its idempotency key.
#[derive(Debug)]
pub enum Part {
    Alone,
    Leader(Leader),
    Follower(Arc<Recording>),
    Refused(Error),
}

impl Part {
    /// `body` distinguishes the request from others under its key.
    pub fn of(shared: &Shared, exchange: &Exchange, admission: &Admission, body: &[u8]) -> Self {
        let Some(key) = &admission.idempotency_key else { return Self::Alone };
        let name = Name { principal: admission.principal.to_header(), key: key.clone() };
        let model = admission.route_model.as_deref().unwrap_or_default();
        let pin = admission.pin.as_deref().unwrap_or_default();
        let progress = if admission.wants_progress { "progress" } else { "" };
        // In Gemini's dialect the end of the path is the model, and the query selects the stream's format.
        let framing = if admission.reads_list { "list" } else { "" };
        let scope = [admission.route.path, &admission.tail, framing, progress, model, pin].map(str::as_bytes);
        let digest = fairlead_cache::digest(&[scope[0], scope[1], scope[2], scope[3], scope[4], scope[5], body]);
        let is_shared = shared.peers.is_some() && admission.is_key_declared;
        let ticket = is_shared.then(|| Box::new(Ticket::new(&name, digest)));
        // A proxy may give one id to all requests of a page. Such an id is not a key: another body under it is a
        // different request.
        let name = if admission.is_key_declared {
            name
        } else {
            Name { key: format!("{}#{}", name.key, hex(&digest)), ..name }
        };
        match shared.idempotency.enter(name, digest, clock::monotonic_ms()) {
            Ok(Role::Leader(recording)) => Self::Leader(Leader::new(&recording, exchange.id()).with(ticket)),
            Ok(Role::Follower(recording)) => Self::Follower(recording),
            Err(fault) => Self::Refused(fault),
        }
    }
}

/// Returns the response of the request that this one repeats.
pub async fn repeat(settlement: &mut Settlement, recording: Arc<Recording>, body: &Bytes) {
    let (shared, exchange) = (Arc::clone(&settlement.shared), Arc::clone(&settlement.exchange));
    note_request(settlement, body);
    let own = answer::base_headers(&shared, &settlement.admission.request_id);
    let mut status = StatusCode::OK;
    let followed = recording::follow(recording, &exchange, |head| {
        status = head.status;
        head.headers.extend(own);
        head.headers.insert(headers::IDEMPOTENT, HeaderValue::from_static("true"));
    })
    .await;
    if followed == Followed::TooLate {
        return refuse(settlement, Outcome::Refused, &recording::too_late());
    }
    settlement.status = status.as_u16();
    if followed == Followed::Complete && status.is_success() {
        settlement.settle(Outcome::Completed, None);
    } else if !exchange.is_cancelled() {
        let error = Error::gateway(ErrorKind::UpstreamStatus, "The call that this request repeats failed.");
        settlement.settle(Outcome::UpstreamFailed, Some(&error));
    }
}

/// Records what a repeated request asks for, because it is not parsed otherwise.
fn note_request(settlement: &mut Settlement, body: &Bytes) {
    if let Ok(parsed) = read::request(&settlement.admission, body) {
        settlement.model = Some(model::shown_name(&settlement.shared.active.load(), &parsed.model));
        settlement.stream = parsed.stream;
    }
}
