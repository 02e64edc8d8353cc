//! Requests that control performs, run once per idempotency key: videos, searches, batches, files, leases and
//! background responses. The first request performs the work, and repeats receive its response (`call/idempotency/recording.rs`),
//! also from another worker.
//!
//! For requests that only control knows, only `Idempotency-Key` counts. Proxies give all requests of a page the same
//! `X-Request-Id`, and a lease that is taken, returned and taken again is not a repeat.

use crate::call::idempotency::recording::{self, Followed, Leader, Recording};
use crate::call::idempotency::ticket::Ticket;
use crate::call::idempotency::{self, ClaimSlot, Part};
use crate::call::settle;
use crate::gate::answer::{self, base_headers, EndGuard};
use crate::gate::headers;
use crate::gate::request::{Admission, BufferedRequest};
use crate::gate::upload::Receipt;
use crate::observe::settle::Settlement;
use crate::peers::once::{self, KeptAnswer, Ruling};
use crate::shared::Shared;
use fairlead_core::routes::{Answer, Tier};
use fairlead_core::{Error, Outcome};
use http::HeaderValue;
use std::future::Future;
use std::sync::Arc;

/// Whether the request may repeat another one, or be repeated.
pub(crate) fn may_be_repeated(admission: &Admission) -> bool {
    let is_callers = matches!(admission.route.tier, Tier::Inference | Tier::Key);
    is_callers && admission.route.method == "POST" && admission.is_key_declared
}

/// The role of a request among those with its key. `content` is its body or a digest of it.
pub(crate) fn part_of(shared: &Shared, incoming: &BufferedRequest, content: &[u8]) -> Part {
    if !may_be_repeated(&incoming.admission) {
        return Part::Alone;
    }
    let target = incoming.forward.as_ref().map_or("", |forward| forward.path_and_query.as_str());
    let digest = fairlead_cache::digest(&[target.as_bytes(), content]);
    Part::of(shared, &incoming.exchange, &incoming.admission, &digest)
}

/// Asks control to perform the `work` of a request that only control knows.
pub(crate) fn serve_forwarded<W: Future<Output = ()> + Send + 'static>(
    shared: Arc<Shared>,
    mut incoming: Box<BufferedRequest>,
    work: impl FnOnce(Arc<Shared>, Box<BufferedRequest>) -> W + Send + 'static,
) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &incoming.exchange, &incoming.admission);
    async move {
        let digest = match digest_of(&mut incoming).await {
            Ok(Some(digest)) => digest,
            // The caller has left.
            Ok(None) => return,
            Err(fault) => return refuse(&shared, &incoming, &fault),
        };
        let part = part_of(&shared, &incoming, &digest);
        serve(shared, incoming, part, work).await;
        drop(end);
    }
}

/// Returns a digest of the body once it is complete. Forms with the same parts are equal. Returns `None` if the caller
/// left.
async fn digest_of(incoming: &mut BufferedRequest) -> Result<Option<[u8; 32]>, Error> {
    let Some(upload) = incoming.upload.take() else { return Ok(Some(fairlead_cache::digest(&[&incoming.body[..]]))) };
    let stored = tokio::select! {
        biased;
        () = incoming.exchange.gone() => return Ok(None),
        stored = upload.stored() => stored.map_err(|(_, fault)| fault)?,
    };
    let digest = stored.digest().await?;
    incoming.upload = Some(Receipt::of(stored));
    Ok(Some(digest))
}

/// Performs the work of a request, or returns the response of the request that it repeats.
pub(crate) async fn serve<W: Future<Output = ()> + Send + 'static>(
    shared: Arc<Shared>,
    incoming: Box<BufferedRequest>,
    part: Part,
    work: impl FnOnce(Arc<Shared>, Box<BufferedRequest>) -> W + Send + 'static,
) {
    match part {
        Part::Alone => work(shared, incoming).await,
        Part::Refused(fault) => refuse(&shared, &incoming, &fault),
        Part::Follower(recording) => Box::pin(repeat(&shared, &incoming, recording)).await,
        Part::Leader(leader) => Box::pin(lead(shared, incoming, leader, work)).await,
    }
}

/// Performs the work for all requests with the idempotency key, unless another worker does.
async fn lead<W: Future<Output = ()> + Send + 'static>(
    shared: Arc<Shared>,
    mut incoming: Box<BufferedRequest>,
    mut leader: Leader,
    work: impl FnOnce(Arc<Shared>, Box<BufferedRequest>) -> W + Send + 'static,
) {
    let exchange = Arc::clone(&incoming.exchange);
    incoming.exchange = Arc::clone(&leader.source);
    match Box::pin(once::claim_of(&shared, leader.ticket.as_deref())).await {
        Ok(None) => leader.lead(&exchange, work(shared, incoming)).await,
        Ok(Some(claim)) => {
            leader.lead_then(&exchange, work(shared, incoming), move |recording| claim.settle(recording)).await;
        }
        Err(Ruling::UnderWay) => {
            let claim = ClaimSlot::default();
            let waiting = wait_elsewhere(shared, incoming, leader.ticket.take(), Arc::clone(&claim), work);
            let settle = move |recording: &Recording| {
                if let Some(claim) = claim.lock().take() {
                    claim.settle(recording);
                }
            };
            leader.lead_then(&exchange, waiting, settle).await;
        }
        Err(ruling) => leader.lead(&exchange, async move { repeat_elsewhere(&shared, &incoming, ruling) }).await,
    }
}

/// Waits for another worker's response and returns it. If that worker failed or is gone, this worker performs the work.
async fn wait_elsewhere<W: Future<Output = ()> + Send + 'static>(
    shared: Arc<Shared>,
    incoming: Box<BufferedRequest>,
    ticket: Option<Box<Ticket>>,
    slot: ClaimSlot,
    work: impl FnOnce(Arc<Shared>, Box<BufferedRequest>) -> W + Send + 'static,
) {
    let end = EndGuard::new(&shared, &incoming.exchange, &incoming.admission);
    match once::claim_when_free(&shared, ticket.as_deref(), &incoming.exchange).await {
        Ok(claim) => {
            *slot.lock() = claim;
            work(shared, incoming).await;
        }
        Err(ruling) => repeat_elsewhere(&shared, &incoming, ruling),
    }
    drop(end);
}

/// Returns another worker's response, or an error that says why there is none.
fn repeat_elsewhere(shared: &Arc<Shared>, incoming: &BufferedRequest, ruling: Ruling) {
    match ruling.answer() {
        Ok(KeptAnswer { mut head, body }) => {
            head.headers.extend(base_headers(shared, &incoming.admission.request_id));
            head.headers.insert(headers::IDEMPOTENT, HeaderValue::from_static("true"));
            if is_recorded(incoming) {
                let mut settlement = settlement_of(shared, incoming);
                settlement.status = head.status.as_u16();
                settlement.settle(Outcome::Completed, None);
            }
            incoming.exchange.answer(head, body);
        }
        Err(fault) => refuse(shared, incoming, &fault),
    }
}

/// Returns the response of the request that this one repeats.
async fn repeat(shared: &Arc<Shared>, incoming: &BufferedRequest, recording: Arc<Recording>) {
    if is_recorded(incoming) {
        return idempotency::repeat(&mut settlement_of(shared, incoming), recording, &incoming.body).await;
    }
    let own = base_headers(shared, &incoming.admission.request_id);
    let followed = recording::follow(recording, &incoming.exchange, |head| {
        head.headers.extend(own);
        head.headers.insert(headers::IDEMPOTENT, HeaderValue::from_static("true"));
    })
    .await;
    if followed == Followed::TooLate {
        refuse(shared, incoming, &recording::too_late());
    }
}

/// Refuses a request, and writes a usage record if its kind has one.
pub(crate) fn refuse(shared: &Arc<Shared>, incoming: &BufferedRequest, fault: &Error) {
    let Admission { route, request_id, .. } = &incoming.admission;
    if matches!(route.answer, Answer::Control | Answer::Upload) {
        shared.metrics.answered(route.endpoint, fault.kind.status());
        return answer::refuse(shared, &incoming.exchange, route.surface, request_id, fault);
    }
    settle::refuse(&mut settlement_of(shared, incoming), Outcome::Refused, fault);
}

/// Whether a repeat has a separate usage record: true for paid requests.
fn is_recorded(incoming: &BufferedRequest) -> bool {
    matches!(incoming.admission.route.answer, Answer::Search | Answer::Video)
}

fn settlement_of(shared: &Arc<Shared>, incoming: &BufferedRequest) -> Settlement {
    Settlement::open(shared, &incoming.exchange, incoming.admission.clone(), incoming.body.len() as u64)
}
