//! Serves a response from the cache.

use super::CacheQuery;
use crate::blocking;
use crate::call::relay::head;
use crate::clock;
use crate::control::responses;
use crate::exchange::Head;
use crate::front;
use crate::gate::answer;
use crate::gate::headers;
use crate::gate::limits;
use crate::observe::settle::Settlement;
use crate::peers::shared_answers;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_cache::{CachedAnswer, Delivery, Digest, Found, Meta};
use fairlead_core::{CacheKind, CacheOutcome, Cached, Cost, Dialect, Error, Outcome};
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::replay;
use http::header::{self, HeaderMap, HeaderValue};
use http::StatusCode;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// A slower disk saves no time.
const DISK_DEADLINE: Duration = Duration::from_secs(1);
/// The maximum number of similar responses to try before the lookup counts as a miss.
const MAX_TRIES: usize = 3;

/// The result of a cache lookup.
#[derive(Debug)]
pub enum Lookup {
    /// The caller has the response, and the record is written.
    Given,
    /// The caller has left in the meantime.
    CallerLeft,
    /// A response was found, but the key's limits refuse it.
    Refused(Error),
    Missed,
}

const PICOS_PER_MICRO: u64 = 1_000_000;

/// Looks for an equal request, here and in the shared store, and then for a similar one. Serves the response if there
/// is one.
pub async fn look_up(
    settlement: &mut Settlement,
    query: &mut CacheQuery,
    parsed: &ChatRequest,
    request_body: &[u8],
) -> Lookup {
    let shared = &Arc::clone(&settlement.shared);
    let mut found = fetch(shared, query.key).await.map(|entry| (entry, CacheKind::Exact));
    if found.is_none() {
        // Other workers, similarity search and a call take longer than the front can wait.
        front::hop().await;
        found = left_elsewhere(settlement, query).await.map(|entry| (entry, CacheKind::Shared));
    }
    if found.is_none() {
        found = near(settlement, query).await.map(|entry| (entry, CacheKind::Vector));
    }
    let body = found.and_then(|(entry, tier)| Some((deliver(query, &entry, parsed)?, entry, tier)));
    let counts = shared.cache.store.counts();
    let Some((body, entry, tier)) = body else {
        counts.misses.fetch_add(1, Ordering::Relaxed);
        settlement.cached.cache = Some(CacheOutcome::Miss);
        return Lookup::Missed;
    };
    let reserve = || limits::reserve_request(shared, settlement, &parsed.model);
    if let Err(fault) = limits::retry_until_limits_known(shared, reserve).await {
        return Lookup::Refused(fault);
    }
    give(settlement, query, CacheHit { entry, tier, body }, parsed, request_body).await
}

/// Looks for an equal request again before a call starts. The call that it could have joined may have ended since the
/// first lookup, and its response is in the cache now.
pub(super) async fn look_again(
    settlement: &mut Settlement,
    query: &CacheQuery,
    request: &ChatRequest,
    request_body: &[u8],
) -> Lookup {
    let shared = Arc::clone(&settlement.shared);
    let Some(entry) = fetch(&shared, query.key).await else { return Lookup::Missed };
    let Some(body) = deliver(query, &entry, request) else { return Lookup::Missed };
    // It was counted as a miss, and it is stored already.
    shared.cache.store.counts().misses.fetch_sub(1, Ordering::Relaxed);
    (settlement.settled_answer, settlement.combo) = (None, None);
    give(settlement, query, CacheHit { entry, tier: CacheKind::Exact, body }, request, request_body).await
}

/// A cache hit: the kind of match, and the body in the caller's format.
struct CacheHit {
    entry: CachedAnswer,
    tier: CacheKind,
    body: Bytes,
}

/// Serves the cached response and settles the request.
async fn give(
    settlement: &mut Settlement,
    query: &CacheQuery,
    CacheHit { entry, tier, body }: CacheHit,
    parsed: &ChatRequest,
    request_body: &[u8],
) -> Lookup {
    let (shared, exchange) = (&Arc::clone(&settlement.shared), &Arc::clone(&settlement.exchange));
    let counts = shared.cache.store.counts();
    // The throttle of a key applies to cached responses as well.
    tokio::select! {
        biased;
        () = exchange.gone() => return Lookup::CallerLeft, // dropping the settlement records that the caller left
        () = limits::throttle(settlement) => {}
    }
    let is_stored = store(settlement, query.form, &entry, parsed, request_body).await;
    let meta = &entry.meta;
    let hits = match tier {
        CacheKind::Shared => &counts.shared_hits,
        CacheKind::Vector => &counts.vector_hits,
        CacheKind::Exact | CacheKind::Joined => &counts.exact_hits,
    };
    hits.fetch_add(1, Ordering::Relaxed);
    counts.tokens_saved.fetch_add(meta.tokens_input.saturating_add(meta.tokens_output), Ordering::Relaxed);
    counts.picos_saved.fetch_add(meta.cost_picos, Ordering::Relaxed);
    shared.cache.store.count_hit(&meta.key);
    let cost_saved_usd_micros = Some(meta.cost_picos / PICOS_PER_MICRO);
    settlement.cached = Cached { cache: Some(CacheOutcome::Hit), kind: Some(tier), cost_saved_usd_micros };
    settlement.status = StatusCode::OK.as_u16();
    settlement.upstream_model.clone_from(&meta.upstream_model);
    settlement.bytes_response = body.len() as u64;
    let mut headers = headers(settlement, &entry, tier, parsed, body.len());
    responses::note_unstored(is_stored, &mut headers);
    let head = Head { status: StatusCode::OK, headers };
    settlement.settle(Outcome::Completed, None);
    exchange.answer(head, body);
    Lookup::Given
}

/// If the caller wants the response stored, control stores it again, because it may have been deleted there.
async fn store(
    settlement: &Settlement,
    form: Dialect,
    entry: &CachedAnswer,
    parsed: &ChatRequest,
    request_body: &[u8],
) -> bool {
    if form != Dialect::OpenaiResponses || !parsed.stores {
        return true;
    }
    let whole = match entry.meta.delivery {
        Delivery::Plain => Some(entry.body.clone()),
        Delivery::Stream { .. } => replay::as_complete(form, &entry.body, 0),
    };
    responses::keep(&settlement.shared, &settlement.admission, request_body, parsed, whole.as_ref()).await
}

/// Looks up the response that another worker stored, and adds it to this worker's cache.
async fn left_elsewhere(settlement: &Settlement, query: &CacheQuery) -> Option<CachedAnswer> {
    // The requests of a key without a log do not leave their worker.
    if settlement.admission.principal.key().is_some_and(|key| key.no_log) {
        return None;
    }
    let shared = &settlement.shared;
    let revision = shared.cache.store.revision();
    let found = shared_answers::get(shared, &query.key).await?;
    let meta = Meta { question: query.question.clone().map(Into::into), ..Meta::clone(&found.meta) };
    let entry = CachedAnswer { meta: Arc::new(meta), body: found.body };
    shared.cache.store.adopt(&entry, revision).then_some(entry)
}

async fn near(settlement: &Settlement, query: &CacheQuery) -> Option<CachedAnswer> {
    let shared = &settlement.shared;
    let question = query.question.as_ref()?;
    for (key, _) in shared.cache.store.near(question, query.threshold?).into_iter().take(MAX_TRIES) {
        if let Some(entry) = fetch(shared, key).await {
            return Some(entry);
        }
    }
    None
}

async fn fetch(shared: &Arc<Shared>, key: Digest) -> Option<CachedAnswer> {
    let store = &shared.cache.store;
    match store.find(&key) {
        Found::Here(entry) => Some(entry),
        Found::Nothing => None,
        Found::Stored(stored) => {
            let store = Arc::clone(store);
            let reading = blocking::disk(move || store.fetch(&key, &stored));
            // A timeout or a panic counts as a miss.
            tokio::time::timeout(DISK_DEADLINE, reading).await.ok()?.ok()?
        }
    }
}

/// Returns the body in the caller's format. `None` if the cached response cannot be expressed in it.
fn deliver(query: &CacheQuery, entry: &CachedAnswer, parsed: &ChatRequest) -> Option<Bytes> {
    let events = as_events(query.form, entry, parsed)?;
    Some(if parsed.stream && query.reads_list { replay::list_of(&events) } else { events })
}

fn as_events(form: Dialect, entry: &CachedAnswer, parsed: &ChatRequest) -> Option<Bytes> {
    let created_s = entry.meta.created_ms / 1_000;
    let stream = |body: &[u8]| replay::as_stream(form, body, parsed.requests_usage, created_s);
    match (entry.meta.delivery, parsed.stream) {
        (Delivery::Plain, false) => Some(entry.body.clone()),
        (Delivery::Plain, true) => stream(&entry.body),
        (Delivery::Stream { .. }, false) => replay::as_complete(form, &entry.body, created_s),
        (Delivery::Stream { requests_usage }, true) => {
            if form == Dialect::Openai && requests_usage != parsed.requests_usage {
                stream(&replay::as_complete(form, &entry.body, created_s)?)
            } else {
                Some(entry.body.clone())
            }
        }
    }
}

fn headers(
    settlement: &Settlement,
    entry: &CachedAnswer,
    tier: CacheKind,
    parsed: &ChatRequest,
    length: usize,
) -> HeaderMap {
    let (admission, meta) = (&settlement.admission, &entry.meta);
    let mut headers = answer::base_headers(&settlement.shared, &admission.request_id);
    let latency_ms = settlement.elapsed().as_millis() as u64;
    let decision = format!("strategy={}; provider={}; latency_ms={latency_ms}", meta.strategy, meta.provider);
    headers.insert(headers::DECISION, headers::encoded(&decision));
    headers.insert(headers::PROVIDER, headers::encoded(&meta.provider));
    if let Some(model) = &meta.upstream_model {
        headers.insert(headers::MODEL, headers::encoded(model));
    }
    if let Some(session) = admission.session_tag.as_deref().or(admission.session_id.as_deref()) {
        headers.insert(headers::SESSION_ID, headers::encoded(session));
    }
    head::add_fault(settlement, &mut headers);
    headers.insert(headers::LATENCY_MS, headers::number(latency_ms));
    headers.insert(headers::RESPONSE_LATENCY, headers::number(latency_ms));
    headers.insert(headers::CACHE_LATENCY, HeaderValue::from_static("synthetic"));
    headers.insert(headers::CACHE_TIER, HeaderValue::from_static(tier.name()));
    headers.insert(headers::COST_SAVED, headers::value(Cost::from_picos(meta.cost_picos).usd_text()));
    headers.insert(headers::RESPONSE_COST, headers::value(Cost::default().usd_text()));
    if parsed.stream {
        let kind = if parsed.reads_list { "application/json" } else { "text/event-stream" };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        return headers;
    }
    headers.insert(headers::CACHE, HeaderValue::from_static("HIT"));
    headers.insert(headers::TOKENS_IN, headers::number(meta.tokens_input));
    headers.insert(headers::TOKENS_OUT, headers::number(meta.tokens_output));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::AGE, headers::number(clock::unix_ms().saturating_sub(meta.created_ms) / 1_000));
    headers
}
