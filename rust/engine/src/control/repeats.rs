//! Requests that control works on, done once under an idempotency key: a video, a search, a batch, a file, a lease, a background
//! response. The first is worked on; whoever repeats it gets its answer (`call/coalesce.rs`), from another worker too.
//!
//! For requests that only control knows, the key is `Idempotency-Key` alone. Proxies give all requests of one page the same
//! `X-Request-Id`, and a lease that is taken, given back and taken again is no repetition.

use crate::call::coalesce::{self, Followed, Leader, Recording};
use crate::call::idempotency::{self, ClaimSlot, Part};
use crate::call::settle;
use crate::call::ticket::Ticket;
use crate::gate::answer::{self, base_headers, EndGuard};
use crate::gate::headers;
use crate::gate::request::{Admission, Whole};
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

/// The part of a request among those of its key. `content`: its body, or what stands for it.
pub(crate) fn part_of(shared: &Shared, whole: &Whole, content: &[u8]) -> Part {
    if !may_be_repeated(&whole.admission) {
        return Part::Alone;
    }
    let target = whole.forward.as_ref().map_or("", |forward| forward.path_and_query.as_str());
    let digest = fairlead_cache::digest(&[target.as_bytes(), content]);
    Part::of(shared, &whole.exchange, &whole.admission, &digest)
}

/// Has control do the `work` of a request that it alone knows.
pub(crate) fn serve_forwarded<W: Future<Output = ()> + Send + 'static>(
    shared: Arc<Shared>,
    mut whole: Box<Whole>,
    work: impl FnOnce(Arc<Shared>, Box<Whole>) -> W + Send + 'static,
) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &whole.exchange, &whole.admission);
    async move {
        let digest = match digest_of(&mut whole).await {
            Ok(Some(digest)) => digest,
            // Nobody is there to be told.
            Ok(None) => return,
            Err(fault) => return refuse(&shared, &whole, &fault),
        };
        let part = part_of(&shared, &whole, &digest);
        serve(shared, whole, part, work).await;
        drop(end);
    }
}

/// What tells the body from others, once it is there. A form is the same as another with the same parts. `None`: the caller left.
async fn digest_of(whole: &mut Whole) -> Result<Option<[u8; 32]>, Error> {
    let Some(upload) = whole.upload.take() else { return Ok(Some(fairlead_cache::digest(&[&whole.body[..]]))) };
    let stored = tokio::select! {
        biased;
        () = whole.exchange.gone() => return Ok(None),
        stored = upload.stored() => stored.map_err(|(_, fault)| fault)?,
    };
    let digest = stored.digest().await?;
    whole.upload = Some(Receipt::of(stored));
    Ok(Some(digest))
}

/// Does the work of a request, or gives it the answer of the one that it repeats.
pub(crate) async fn serve<W: Future<Output = ()> + Send + 'static>(
    shared: Arc<Shared>,
    whole: Box<Whole>,
    part: Part,
    work: impl FnOnce(Arc<Shared>, Box<Whole>) -> W + Send + 'static,
) {
    match part {
        Part::Alone => work(shared, whole).await,
        Part::Refused(fault) => refuse(&shared, &whole, &fault),
        Part::Follower(recording) => Box::pin(repeat(&shared, &whole, recording)).await,
        Part::Leader(leader) => Box::pin(lead(shared, whole, leader, work)).await,
    }
}

/// Does the work for everybody who sends the idempotency key, unless another worker does.
async fn lead<W: Future<Output = ()> + Send + 'static>(
    shared: Arc<Shared>,
    mut whole: Box<Whole>,
    mut leader: Leader,
    work: impl FnOnce(Arc<Shared>, Box<Whole>) -> W + Send + 'static,
) {
    let exchange = Arc::clone(&whole.exchange);
    whole.exchange = Arc::clone(&leader.source);
    match Box::pin(once::claim_of(&shared, leader.ticket.as_deref())).await {
        Ok(None) => leader.lead(&exchange, work(shared, whole)).await,
        Ok(Some(claim)) => {
            leader.lead_then(&exchange, work(shared, whole), move |recording| claim.settle(recording)).await;
        }
        Err(Ruling::UnderWay) => {
            let claim = ClaimSlot::default();
            let waiting = wait_elsewhere(shared, whole, leader.ticket.take(), Arc::clone(&claim), work);
            let settle = move |recording: &Recording| {
                if let Some(claim) = claim.lock().take() {
                    claim.settle(recording);
                }
            };
            leader.lead_then(&exchange, waiting, settle).await;
        }
        Err(ruling) => leader.lead(&exchange, async move { repeat_elsewhere(&shared, &whole, ruling) }).await,
    }
}

/// Waits until another worker has answered, and answers as it has; does the work where that one failed or is gone.
async fn wait_elsewhere<W: Future<Output = ()> + Send + 'static>(
    shared: Arc<Shared>,
    whole: Box<Whole>,
    ticket: Option<Box<Ticket>>,
    slot: ClaimSlot,
    work: impl FnOnce(Arc<Shared>, Box<Whole>) -> W + Send + 'static,
) {
    let end = EndGuard::new(&shared, &whole.exchange, &whole.admission);
    match once::claim_when_free(&shared, ticket.as_deref(), &whole.exchange).await {
        Ok(claim) => {
            *slot.lock() = claim;
            work(shared, whole).await;
        }
        Err(ruling) => repeat_elsewhere(&shared, &whole, ruling),
    }
    drop(end);
}

/// Gives the answer that another worker has given, or says why that cannot be.
fn repeat_elsewhere(shared: &Arc<Shared>, whole: &Whole, ruling: Ruling) {
    match ruling.answer() {
        Ok(KeptAnswer { mut head, body }) => {
            head.headers.extend(base_headers(shared, &whole.admission.request_id));
            head.headers.insert(headers::IDEMPOTENT, HeaderValue::from_static("true"));
            if is_recorded(whole) {
                let mut settlement = settlement_of(shared, whole);
                settlement.status = head.status.as_u16();
                settlement.settle(Outcome::Completed, None);
            }
            whole.exchange.answer(head, body);
        }
        Err(fault) => refuse(shared, whole, &fault),
    }
}

/// Gives the answer of the request that this one repeats.
async fn repeat(shared: &Arc<Shared>, whole: &Whole, recording: Arc<Recording>) {
    if is_recorded(whole) {
        return idempotency::repeat(&mut settlement_of(shared, whole), recording, &whole.body).await;
    }
    let own = base_headers(shared, &whole.admission.request_id);
    let followed = coalesce::follow(recording, &whole.exchange, |head| {
        head.headers.extend(own);
        head.headers.insert(headers::IDEMPOTENT, HeaderValue::from_static("true"));
    })
    .await;
    if followed == Followed::TooLate {
        refuse(shared, whole, &coalesce::too_late());
    }
}

/// Answers one that was refused, and writes it down where such requests have records.
pub(crate) fn refuse(shared: &Arc<Shared>, whole: &Whole, fault: &Error) {
    let Admission { route, request_id, .. } = &whole.admission;
    if matches!(route.answer, Answer::Control | Answer::Upload) {
        shared.metrics.answered(route.endpoint, fault.kind.status());
        return answer::refuse(shared, &whole.exchange, route.surface, request_id, fault);
    }
    settle::refuse(&mut settlement_of(shared, whole), Outcome::Refused, fault);
}

/// Whether a repetition has a usage record of its own: of what is paid for.
fn is_recorded(whole: &Whole) -> bool {
    matches!(whole.admission.route.answer, Answer::Search | Answer::Video)
}

fn settlement_of(shared: &Arc<Shared>, whole: &Whole) -> Settlement {
    Settlement::open(shared, &whole.exchange, whole.admission.clone(), whole.body.len() as u64)
}
