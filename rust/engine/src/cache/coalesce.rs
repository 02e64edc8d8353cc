//! Coalescing: concurrent equal requests share one call, and its response is cached.
//!
//! The first request performs the call. Requests that arrive in the meantime read along, also while it streams. A
//! successful and cacheable response is stored when its last byte has arrived. Nothing is stored if the call failed, if
//! all callers left before its end, or if its settlement excludes it from the cache.

use super::give::{look_again, Lookup};
use super::CacheQuery;
use crate::call::context::Call;
use crate::call::idempotency::recording::{self, Followed, Leader, Recording, Role};
use crate::call::idempotency::ticket::Name;
use crate::clock;
use crate::exchange::Head;
use crate::gate::answer::{self, EndGuard};
use crate::gate::headers;
use crate::gate::limits;
use crate::observe::settle::{SettledAnswer, Settlement};
use crate::peers::shared_answers;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_cache::{CachedAnswer, Delivery, Meta, MAX_BODY_BYTES};
use fairlead_core::{hex, CacheKind, CacheOutcome, Cached, Cost, Error, ErrorKind, Outcome};
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::replay;
use http::{HeaderValue, StatusCode};
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// A call whose response may be shared. The leader performs it.
pub trait ShareableCall: Send + Sync + 'static {
    /// Returns the request, and the body as sent.
    fn question(&self) -> (&ChatRequest, &[u8]);

    /// Sends the request to a provider.
    fn serve(self, call: Call) -> impl Future<Output = ()> + Send + 'static;
}

/// The parts of a cache entry that are known before the response.
struct EntryDraft {
    shared: Arc<Shared>,
    key_id: Option<String>,
    route: &'static str,
    model: String,
    /// Entries of a key without a log stay in this process.
    to_disk: bool,
    settled: Arc<OnceLock<SettledAnswer>>,
    query: Arc<CacheQuery>,
    delivery: Delivery,
}

impl EntryDraft {
    /// Stores the response if it succeeded and is cacheable.
    fn done(self, recording: &Recording) {
        let (Some(settled), Some(chunks)) = (self.settled.get(), recording.complete_chunks()) else { return };
        if chunks.iter().map(Bytes::len).sum::<usize>() > MAX_BODY_BYTES {
            return;
        }
        let body = match chunks.as_slice() {
            [chunk] => chunk.clone(),
            chunks => Bytes::from(chunks.concat()),
        };
        let body = match self.delivery {
            Delivery::Plain => replay::is_fit(self.query.form, &body).then_some(body),
            Delivery::Stream { .. } if self.query.reads_list => {
                replay::events_of(&body).and_then(|events| replay::fit_stream(self.query.form, &events))
            }
            Delivery::Stream { .. } => replay::fit_stream(self.query.form, &body),
        };
        let Some(body) = body else { return };
        let now_ms = clock::unix_ms();
        let meta = Meta {
            key: self.query.key,
            question: self.query.question.clone().map(Into::into),
            key_id: self.key_id,
            route: self.route.to_owned(),
            model: self.model,
            provider: settled.provider.clone().unwrap_or_default(),
            upstream_model: settled.upstream_model.clone(),
            strategy: settled.strategy.to_owned(),
            delivery: self.delivery,
            tokens_input: settled.usage.input,
            tokens_output: settled.usage.output,
            cost_picos: settled.cost.picos(),
            created_ms: now_ms,
            expires_ms: now_ms.saturating_add(self.query.ttl_ms),
        };
        let fresh = CachedAnswer { meta: Arc::new(meta), body };
        let revision = self.shared.cache.store.revision();
        let is_kept = self.shared.cache.store.keep(&fresh, self.query.epoch, self.to_disk);
        if is_kept && self.to_disk {
            shared_answers::put(&self.shared, fresh, revision);
        }
    }
}

/// Performs the call, or joins the one in progress.
pub async fn share<C: ShareableCall>(mut call: Call, question: CacheQuery, delivery: Delivery, shareable: C) {
    let (shared, exchange) = (call.shared(), Arc::clone(&call.settlement.exchange));
    let list = if question.reads_list { " list" } else { "" };
    let name = Name {
        principal: call.settlement.admission.principal.to_header(),
        key: format!("{} {delivery:?}{list}", hex(&question.key)),
    };
    let recording = match shared.cache.calls_under_way.enter(name, question.key, clock::monotonic_ms()) {
        Ok(Role::Leader(recording)) => recording,
        Ok(Role::Follower(recording)) => {
            // If the beginning was dropped before this caller could read it, the caller makes a separate call.
            if join(&mut call.settlement, recording).await {
                shareable.serve(call).await;
            }
            return;
        }
        // The call in progress is too large to be shared.
        Err(_) => return shareable.serve(call).await,
    };
    let leader = Leader::new(&recording, exchange.id());
    let source = Arc::clone(&leader.source);
    let settled = Arc::new(OnceLock::new());
    call.settlement.move_to(&source);
    call.settlement.settled_answer = Some(Arc::clone(&settled));
    let admission = &call.settlement.admission;
    let question = Arc::new(question);
    let keep = EntryDraft {
        shared: Arc::clone(&shared),
        key_id: admission.principal.key().map(|key| key.id.clone()),
        route: admission.route.path,
        model: call.settlement.model.clone().unwrap_or_default(),
        to_disk: admission.principal.key().is_none_or(|key| !key.no_log),
        settled,
        query: Arc::clone(&question),
        delivery,
    };
    let end = EndGuard::new(&shared, &source, admission);
    let work = async move {
        let (request, body) = shareable.question();
        match look_again(&mut call.settlement, &question, request, body).await {
            Lookup::Missed => shareable.serve(call).await,
            Lookup::Refused(fault) => call.refuse(&fault),
            Lookup::Given | Lookup::CallerLeft => drop(call),
        }
        drop(end);
    };
    leader.lead_then(&exchange, work, move |recording| keep.done(recording)).await;
}

/// Returns the response of the call in progress to the caller. Returns `true` if its beginning is no longer available.
async fn join(settlement: &mut Settlement, recording: Arc<Recording>) -> bool {
    let (shared, exchange) = (Arc::clone(&settlement.shared), Arc::clone(&settlement.exchange));
    shared.cache.store.counts().joined.fetch_add(1, Ordering::Relaxed);
    let joined = Cached { cache: Some(CacheOutcome::Hit), kind: Some(CacheKind::Joined), ..Cached::default() };
    let before = std::mem::replace(&mut settlement.cached, joined);
    tokio::select! {
        biased;
        () = exchange.gone() => return false, // dropping the settlement records that the caller left
        () = limits::throttle(settlement) => settlement.was_throttled = true,
    }
    let admission = &settlement.admission;
    let own = answer::base_headers(&shared, &admission.request_id);
    let session = admission.session_tag.as_deref().or(admission.session_id.as_deref()).map(headers::encoded);
    let is_plain = !settlement.stream;
    let mut status = StatusCode::OK;
    let followed = recording::follow(recording, &exchange, |head: &mut Head| {
        status = head.status;
        head.headers.extend(own);
        // The session belongs to the first caller.
        head.headers.remove(headers::SESSION_ID);
        if let Some(session) = session {
            head.headers.insert(headers::SESSION_ID, session);
        }
        if status.is_success() {
            head.headers.insert(headers::CACHE_TIER, HeaderValue::from_static(CacheKind::Joined.name()));
            if is_plain {
                head.headers.insert(headers::CACHE, HeaderValue::from_static("HIT"));
            }
            let nothing = headers::value(Cost::default().usd_text());
            if let Some(cost) = head.headers.insert(headers::RESPONSE_COST, nothing) {
                head.headers.insert(headers::COST_SAVED, cost);
            }
        }
    })
    .await;
    if followed == Followed::TooLate {
        shared.cache.store.counts().joined.fetch_sub(1, Ordering::Relaxed);
        settlement.cached = before;
        return true;
    }
    settlement.status = status.as_u16();
    if followed == Followed::Complete && status.is_success() {
        settlement.settle(Outcome::Completed, None);
    } else if !exchange.is_cancelled() {
        let error = Error::gateway(ErrorKind::UpstreamStatus, "The call that this request joined failed.");
        settlement.settle(Outcome::UpstreamFailed, Some(&error));
    }
    false
}
