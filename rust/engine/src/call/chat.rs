//! A chat completion from its body to its record: read, choose, attempt, relay, settle.
//!
//! Another connection is tried only until the answer's head has gone to the caller, and only after failures whose class says
//! that it is safe.

use crate::active_config::Live;
use crate::cache::{self, Looked};
use crate::call::coalesce::{self, Followed, Leader, Name, Recording, Role};
use crate::call::endpoints;
use crate::call::failover;
use crate::call::guardrails;
use crate::call::hedge;
use crate::call::hedged_stream;
use crate::call::passthrough;
use crate::call::plain;
use crate::call::reasoning;
use crate::call::stages::{self, Staged};
use crate::call::stream::{Finished, Relay};
use crate::call::translation::{self, caller_of, Wording};
use crate::clock;
use crate::control::responses;
use crate::exchange::{Exchange, Head};
use crate::gate::answer;
use crate::gate::answer::EndGuard;
use crate::gate::defaults;
use crate::gate::headers;
use crate::gate::limits;
use crate::gate::request::{Admission, Whole};
use crate::observe::settle::Settlement;
use crate::observe::trace;
use crate::route::choice::Choice;
use crate::route::model;
use crate::shared::{Gauge, Held, Shared};
use crate::upstream::attempt;
use crate::upstream::failure::Failed;
use crate::upstream::target::{InFlightGuard, Target};
use bytes::Bytes;
use fairlead_core::error::{Error, Kind, Origin};
use fairlead_core::policy;
use fairlead_core::record::{self, Outcome};
use fairlead_core::routes::Answer;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::shapes;
use http::{HeaderValue, StatusCode};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Serves one chat completion. Dropping the future is cancelling it: the upstream call ends and the request settles.
///
/// The settlement is open before the first poll: work that is dropped before it began is settled too.
pub fn serve(shared: Arc<Shared>, whole: Box<Whole>) -> impl Future<Output = ()> {
    let Whole { exchange, admission, body, in_flight, buffered, .. } = *whole;
    let end = EndGuard::new(&shared, &exchange, &admission);
    let part = Part::of(&shared, &exchange, &admission, &body);
    // The leader's work answers to its twins as well, so it does not end with the leader's caller.
    let source = if let Part::Leader(leader) = &part { &leader.source } else { &exchange };
    let settlement = Settlement::open(&shared, source, admission, body.len() as u64);
    async move {
        let counted: Counted = Arc::new((in_flight, buffered));
        match part {
            Part::Alone => start(&shared, &exchange, settlement, &body, &counted).await,
            Part::Refused(fault) => refuse(&shared, &exchange, settlement, Outcome::Refused, &fault),
            Part::Twin(recording) => repeat(&shared, &exchange, settlement, recording, &body).await,
            Part::Leader(leader) => {
                let source = Arc::clone(&leader.source);
                let end = EndGuard::new(&shared, &source, &settlement.admission);
                let work = trace::within(trace::current(), async move {
                    start(&shared, &source, settlement, &body, &counted).await;
                    drop((end, counted));
                });
                leader.lead(&exchange, Box::pin(work)).await;
            }
        }
        drop(end);
    }
}

/// What counts as in flight while somebody holds it.
type Counted = Arc<(Held, Option<Held>)>;

/// What a request is to others of its idempotency key.
pub(crate) enum Part {
    Alone,
    Leader(Leader),
    Twin(Arc<Recording>),
    Refused(Error),
}

impl Part {
    /// `body`: what tells the request from others under its key.
    pub(crate) fn of(shared: &Shared, exchange: &Exchange, admission: &Admission, body: &[u8]) -> Self {
        let Some(key) = &admission.idempotency_key else { return Self::Alone };
        let name = Name { principal: admission.principal.to_header(), key: key.clone() };
        let model = admission.route_model.as_deref().unwrap_or_default();
        let pin = admission.pin.as_deref().unwrap_or_default();
        let progress = if admission.wants_progress { "progress" } else { "" };
        // In Gemini's dialect the model is the address's tail, and the query says how the stream is told.
        let framing = if admission.reads_list { "list" } else { "" };
        let place = [admission.route.path, &admission.tail, framing, progress, model, pin].map(str::as_bytes);
        let digest = coalesce::digest(&[place[0], place[1], place[2], place[3], place[4], place[5], body]);
        match shared.twins.enter(name, digest, clock::monotonic_ms()) {
            Ok(Role::Leader(recording)) => Self::Leader(Leader::new(&recording, exchange.id())),
            Ok(Role::Twin(recording)) => Self::Twin(recording),
            Err(fault) => Self::Refused(fault),
        }
    }
}

/// Gives the answer of the request that this one repeats.
pub(crate) async fn repeat(
    shared: &Shared,
    exchange: &Exchange,
    mut settlement: Settlement,
    recording: Arc<Recording>,
    body: &Bytes,
) {
    if let Ok(parsed) = translation::read(&settlement.admission, body) {
        settlement.model = Some(model::shown_name(&shared.live.load(), &parsed.model));
        settlement.stream = parsed.stream;
    }
    let own = answer::base_headers(shared, &settlement.admission.request_id);
    let mut status = StatusCode::OK;
    let followed = coalesce::follow(recording, exchange, |head| {
        status = head.status;
        head.headers.extend(own);
        head.headers.insert(headers::IDEMPOTENT, HeaderValue::from_static("true"));
    })
    .await;
    if followed == Followed::TooLate {
        return refuse(shared, exchange, settlement, Outcome::Refused, &coalesce::too_late());
    }
    settlement.status = status.as_u16();
    if followed == Followed::Whole && status.is_success() {
        settlement.settle(Outcome::Completed, None);
    } else if !exchange.is_cancelled() {
        let error = Error::gateway(Kind::UpstreamStatus, "The call that this request repeats failed.");
        settlement.settle(Outcome::UpstreamFailed, Some(&error));
    }
}

async fn start(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    settlement: Settlement,
    body: &Bytes,
    counted: &Counted,
) {
    match settlement.admission.route.answer {
        // On the heap, so that conversations do not carry its size.
        Answer::Relayed(kind) => Box::pin(passthrough::run(shared, exchange, settlement, kind, body)).await,
        _ => run(shared, exchange, settlement, body, counted).await,
    }
}

async fn run(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    mut settlement: Settlement,
    body: &Bytes,
    counted: &Counted,
) {
    let live = shared.live.load_full();
    let body = match guardrails::admit(&live, &mut settlement, body) {
        Ok(body) => body,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    let body = &body;
    let caller = caller_of(settlement.admission.route);
    let streamed;
    let body = match defaults::with_stream(&settlement.admission, body) {
        Some(asked) => {
            streamed = asked;
            &streamed
        }
        None => body,
    };
    let parsed =
        match translation::read(&settlement.admission, body).and_then(|parsed| admit(&live, &settlement, parsed)) {
            Ok(parsed) => parsed,
            Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
        };
    settlement.model = Some(parsed.model.clone());
    settlement.stream = parsed.stream;
    let recalled = tokio::select! {
        biased;
        () = exchange.gone() => return, // the settlement's drop says who left
        recalled = responses::recall(shared, &settlement.admission, body, &parsed) => recalled,
    };
    let said = body;
    // What it goes on from may be of a day when less was redacted.
    let recalled =
        recalled.and_then(|whole| whole.map(|whole| guardrails::admit(&live, &mut settlement, &whole)).transpose());
    let (body, parsed) = match recalled.and_then(|whole| reread(&settlement, whole, body, parsed)) {
        Ok(both) => both,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    let mut choice = match model::choose(shared, &live, &settlement.admission, &parsed.model, &body) {
        Ok(choice) => choice,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    if let Err(fault) = admit_aliases(&settlement, &choice) {
        return refuse(shared, exchange, settlement, Outcome::Refused, &fault);
    }
    let mut asked = cache::ask(shared, &live, &settlement.admission, &parsed, &body);
    if let Some(asked) = &mut asked {
        match Box::pin(cache::look(shared, exchange, settlement, asked, &parsed, said)).await {
            Looked::Given | Looked::Left => return,
            Looked::Refused(refused, fault) => return refuse(shared, exchange, refused, Outcome::Refused, &fault),
            Looked::Missed(missed) => settlement = missed,
        }
    } else if settlement.admission.bypasses_cache() {
        settlement.cached.cache = Some(record::Cache::Bypass);
    }
    if let Err(fault) = limits::reserve(shared, &live.snapshot, &mut settlement, &parsed, &mut choice) {
        return refuse(shared, exchange, settlement, Outcome::Refused, &fault);
    }
    settlement.strategy = choice.strategy();
    settlement.combo = choice.combo.as_ref().map(|combo| combo.name.clone());
    let wording = endpoints::narrow(settlement.admission.route, &mut choice)
        .and_then(|()| Wording::prepare(caller, &body, &parsed, &mut choice, &live.snapshot));
    drop(live);
    let wording = match wording {
        Ok(mut wording) => {
            reasoning::put_back(shared, &settlement.admission, &choice, &mut wording);
            wording.towards(settlement.admission.route)
        }
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
    let (shared, said, held) = (Arc::clone(shared), said.clone(), (stream_slot, Arc::clone(counted)));
    let (own, delivery) = (Arc::clone(&shared), cache::delivery(&parsed));
    let work = move |exchange: Arc<Exchange>, settlement| async move {
        tokio::select! {
            biased;
            () = exchange.gone() => {} // the settlement's drop says who left
            () = work(&own, &exchange, settlement, &choice, wording.of(&said), &said, &parsed) => {}
        }
        drop(held);
    };
    match asked {
        None => work(Arc::clone(exchange), settlement).await,
        // On the heap, so that requests that are never kept do not carry its size.
        Some(asked) => Box::pin(cache::fly(&shared, exchange, settlement, asked, delivery, work)).await,
    }
}

/// The request with what it goes on from in place of its own body, if there is any.
fn reread(
    settlement: &Settlement,
    whole: Option<Bytes>,
    body: &Bytes,
    parsed: ChatRequest,
) -> Result<(Bytes, ChatRequest), Error> {
    let Some(whole) = whole else { return Ok((body.clone(), parsed)) };
    let read = translation::read(&settlement.admission, &whole)?;
    Ok((whole, read.going_on_from(parsed)))
}

/// The key's forced model goes before the header's, and that before the body's; whichever it is, the key must be allowed
/// to call it.
pub(crate) fn admit(live: &Live, settlement: &Settlement, mut parsed: ChatRequest) -> Result<ChatRequest, Error> {
    let key = settlement.admission.principal.key();
    let forced = key.and_then(|key| key.forced_model.as_ref());
    if let Some(model) = forced.or(settlement.admission.route_model.as_ref()) {
        parsed.model.clone_from(model);
    }
    // Rules, limits, prices, kept answers and records all go by the one name.
    if let Cow::Owned(name) = live.snapshot.name(&parsed.model)? {
        parsed.model = name;
    }
    if let Some(key) = key {
        if let Some(name) = model::resolve(live, key, &parsed.model) {
            parsed.model = name;
        }
        model::admit(live, key, &parsed.model)?;
    }
    Ok(parsed)
}

/// A connection answers to several prefixes: what is blocked under one of them is blocked under all. A combo has left such
/// targets out by itself.
pub(crate) fn admit_aliases(settlement: &Settlement, choice: &Choice) -> Result<(), Error> {
    let Some(key) =
        settlement.admission.principal.key().filter(|key| !key.blocked_models.is_empty() && choice.combo.is_none())
    else {
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
    wording: Wording,
    body: &Bytes,
    parsed: &ChatRequest,
) {
    limits::throttle(shared, &settlement).await;
    let staged = match stages::prepare(shared, exchange, &mut settlement, choice, body, parsed).await {
        Ok(staged) => staged,
        Err(fault) => {
            let outcome = match fault.origin {
                _ if fault.kind == Kind::Draining => Outcome::Drained,
                Origin::Upstream => Outcome::UpstreamFailed,
                Origin::Client | Origin::Gateway => Outcome::Refused,
            };
            return refuse(shared, exchange, settlement, outcome, &fault);
        }
    };
    let next;
    let (wording, parsed, choice) = match staged {
        Staged::AsIs => (&wording, parsed, choice),
        Staged::Next { wording, parsed, choice } => {
            next = (wording, parsed, choice);
            (&*next.0, &next.1, &*next.2)
        }
        Staged::Failed { choice, failures } => return fail(shared, exchange, settlement, &choice, failures),
        Staged::Done { target, answer } => {
            let told = plain::answer(shared, &mut settlement, &target, answer, 0);
            return give(shared, exchange, settlement, told);
        }
    };
    let mut failures: Vec<(Arc<Target>, Failed)> = Vec::new();
    let mut over: SmallVec<[usize; 2]> = SmallVec::new();
    if let Some(delay) = hedge::delay(choice).filter(|_| parsed.stream) {
        let raced = race_streams(shared, exchange, settlement, choice, wording, delay, (body, parsed));
        match Box::pin(raced).await {
            None => return,
            Some(Lost { settlement: open, failures: lost, over: asked }) => {
                (settlement, failures, over) = (open, lost, asked);
            }
        }
    } else if let Some(delay) = hedge::delay(choice) {
        match Box::pin(hedge::race(shared, &mut settlement, choice, wording, delay)).await {
            Ok(won) => {
                let told = won.tell(shared, &mut settlement, choice);
                return give(shared, exchange, settlement, told);
            }
            Err(lost) => {
                over.extend(0..lost.len());
                failures = lost;
            }
        }
    }
    if failures.last().is_some_and(|(_, failed)| !failover::may_go_on(choice, failed) || exchange.is_headed()) {
        return fail(shared, exchange, settlement, choice, failures);
    }
    for (at, target) in choice.targets.iter().enumerate().filter(|(at, _)| !over.contains(at)) {
        settlement.attempts += 1;
        settlement.target = Some(Arc::clone(target));
        settlement.upstream_model = Some(choice.upstream_model(at).to_owned());
        settlement.priced_model = Some(choice.model(at).to_owned());
        let _busy = InFlightGuard::new(&target.hot);
        let failed = if parsed.stream {
            let mut relay = Relay::new(shared, exchange, wording, choice.upstream_model(at));
            match relay.run(&mut settlement, target, failures.len()).await {
                Ok(finished) => {
                    let served = Served { choice, at, began: None };
                    return end_stream(shared, exchange, settlement, served, finished, body, parsed).await;
                }
                Err(failed) => failed,
            }
        } else {
            match attempt_plain(shared, target, wording, choice.upstream_model(at), &mut settlement).await {
                Ok(answer) => {
                    observe(target, None, &settlement);
                    failover::remember(shared, choice, at, &settlement, true);
                    let mut told = plain::answer(shared, &mut settlement, target, answer, failures.len());
                    if let Ok((head, told)) = &mut told {
                        // As the caller is told it: what a guardrail took out is kept nowhere.
                        let is_kept = responses::keep(shared, &settlement.admission, body, parsed, Some(told)).await;
                        responses::tell(is_kept, &mut head.headers);
                    }
                    return give(shared, exchange, settlement, told);
                }
                Err(failed) => failed,
            }
        };
        target.hold_against(choice.upstream_model(at), &failed);
        if failed.blames_connection {
            failover::remember(shared, choice, at, &settlement, false);
        }
        let may_go_on = failover::may_go_on(choice, &failed) && !exchange.is_headed();
        failures.push((Arc::clone(target), failed));
        if !may_go_on {
            break;
        }
    }
    fail(shared, exchange, settlement, choice, failures);
}

/// A race that nobody won, and which targets are over.
struct Lost {
    settlement: Settlement,
    failures: Vec<(Arc<Target>, Failed)>,
    over: SmallVec<[usize; 2]>,
}

/// Lets a combo's first two targets race for a stream and relays the winner's. `None`: to its end.
async fn race_streams(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    mut settlement: Settlement,
    choice: &Choice,
    wording: &Wording,
    delay: Duration,
    (body, parsed): (&Bytes, &ChatRequest),
) -> Option<Lost> {
    let mut begun = match hedged_stream::race(shared, exchange, &mut settlement, choice, wording, delay).await {
        Ok(begun) => begun,
        Err(failures) => return Some(Lost { settlement, over: (0..failures.len()).collect(), failures }),
    };
    let mut failures = std::mem::take(&mut begun.failures);
    let (at, began) = (begun.at, begun.began);
    hedge::name(&mut settlement, choice, at);
    let mut relay = Relay::new(shared, exchange, wording, choice.upstream_model(at));
    match relay.go_on(&mut settlement, &choice.targets[at], begun, failures.len()).await {
        Ok(finished) => {
            let served = Served { choice, at, began: Some(began) };
            end_stream(shared, exchange, settlement, served, finished, body, parsed).await;
            None
        }
        Err(failed) => {
            failures.push(hedge::lost(shared, &mut settlement, choice, at, failed));
            let over = [at, 1 - at].into_iter().take(failures.len()).collect();
            Some(Lost { settlement, failures, over })
        }
    }
}

/// Who served a stream, and when it was asked, where that is not when the request came.
struct Served<'a> {
    choice: &'a Choice,
    at: usize,
    began: Option<Instant>,
}

/// A stream has come to its end: what is learnt of its target, what is kept of it, its record, its last bytes.
async fn end_stream(
    shared: &Shared,
    exchange: &Exchange,
    mut settlement: Settlement,
    Served { choice, at, began }: Served<'_>,
    mut finished: Finished,
    body: &Bytes,
    parsed: &ChatRequest,
) {
    let target = &choice.targets[at];
    match began.filter(|_| finished.error.is_none()) {
        Some(began) => {
            let first = settlement.first_byte.map_or(began.elapsed(), |first| first.saturating_duration_since(began));
            served(target, began.elapsed(), first);
        }
        None => observe(target, finished.error.as_ref(), &settlement),
    }
    failover::remember(shared, choice, at, &settlement, finished.error.is_none());
    if finished.error.is_none() {
        // As the caller was told it.
        let response = finished.response.take();
        let response = response.and_then(|whole| guardrails::judge_answer(&mut settlement, &whole).ok());
        responses::keep(shared, &settlement.admission, body, parsed, response.as_ref()).await;
    }
    settlement.settle(finished.outcome, finished.error.as_ref());
    exchange.end(std::mem::take(&mut finished.last));
    finished.keep_connection().await;
}

/// Gives a plain answer, or says why it is withheld.
pub(crate) fn give(shared: &Shared, exchange: &Exchange, settlement: Settlement, told: Result<(Head, Bytes), Error>) {
    match told {
        Ok((head, body)) => {
            settlement.settle(Outcome::Completed, None);
            exchange.answer(head, body);
        }
        Err(fault) => refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    }
}

async fn attempt_plain(
    shared: &Arc<Shared>,
    target: &Arc<Target>,
    wording: &Wording,
    upstream_model: &str,
    settlement: &mut Settlement,
) -> Result<plain::Answer, Failed> {
    let betas = settlement.admission.anthropic_beta.clone();
    let body = wording.body(target, upstream_model);
    let uri = wording.uri(target, upstream_model, false)?;
    let response = tokio::select! {
        biased;
        answered = attempt::send(&shared.pool, target, &uri, betas.as_ref(), body, false) => answered?,
        () = shared.drain.expired() => return Err(shared.drain.error().into()),
    };
    tokio::select! {
        biased;
        answer = plain::read(target, response, wording, settlement) => answer,
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    }
}

pub(crate) fn observe(target: &Target, error: Option<&Error>, settlement: &Settlement) {
    match error {
        None => {
            let took = settlement.elapsed();
            let sample = settlement.first_byte.map_or(took, |at| at - settlement.admission.started);
            served(target, took, sample);
        }
        Some(error) => blame(target, error.kind, None),
    }
}

/// A target has served an attempt that took so long; `sample` is what counts as its latency.
pub fn served(target: &Target, took: Duration, sample: Duration) {
    target.served(took, sample);
}

/// The gateway's own end blames nobody.
pub fn blame(target: &Target, kind: Kind, hint_ms: Option<u64>) {
    target.blame(kind, hint_ms);
}

/// Nothing served the request: one error that says what every attempt came to.
pub(crate) fn fail(
    shared: &Shared,
    exchange: &Exchange,
    mut settlement: Settlement,
    choice: &Choice,
    mut failures: Vec<(Arc<Target>, Failed)>,
) {
    let told = failover::tell(choice, &failures);
    if told.is_some() {
        // The error that the caller gets is the one that says most: a provider's failure rather than a model it does not have.
        if let Some(at) = failures.iter().rposition(|(_, failed)| failed.rejection.is_none()) {
            let one = failures.remove(at);
            failures.push(one);
        }
    }
    let Some((target, mut last)) = failures.pop() else {
        return;
    };
    let outcome = failover::outcome(last.error.kind);
    let mut error = last.error;
    if let Some(told) = told {
        (error.message, last.rejection) = (told.into(), None);
    }
    if matches!(error.kind, Kind::UpstreamRateLimited | Kind::UpstreamOverloaded) {
        // What the provider said, or else how long the connection rests on its own.
        let model = settlement.upstream_model.as_deref().unwrap_or_default();
        let (_, rest_ms) = target.standing(model, clock::monotonic_ms());
        error.retry_after_s = Some(last.hint_ms.unwrap_or(rest_ms).div_ceil(1_000).max(1));
    }
    if !failures.is_empty() && choice.combo.is_none() {
        let others: Vec<&str> = failures.iter().map(|(_, failed)| failed.error.kind.code()).collect();
        error.message = format!("{} Other connections failed before: {}.", error.message, others.join(", ")).into();
    }
    // The provider's own words where the request is what is wrong with it; ours otherwise.
    let text = last.rejection.as_ref().map_or_else(|| shapes::ErrorText::from(&error), |rejection| rejection.text());
    if exchange.is_headed() {
        // Only comments went out so far; the failure is told in the stream.
        let bytes = translation::terminal_error(&settlement.admission, &text);
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
    if exchange.is_headed() {
        // Only comments went out so far; the failure is told in the stream.
        let text = shapes::ErrorText::from(fault);
        let bytes = translation::terminal_error(&settlement.admission, &text);
        settlement.bytes_response += bytes.len() as u64;
        settlement.settle(outcome, Some(fault));
        return exchange.end([bytes]);
    }
    settlement.status = fault.kind.status();
    let surface = settlement.admission.route.surface;
    let (head, body) = answer::error(shared, surface, &settlement.admission.request_id, fault);
    settlement.bytes_response = body.len() as u64;
    settlement.settle(outcome, Some(fault));
    exchange.answer(head, body);
}
#[cfg(test)]
mod tests {
    fn size<A, B, F>(_: impl Fn(A, B) -> F) -> usize {
        std::mem::size_of::<F>()
    }

    #[test]
    fn an_open_stream_carries_little() {
        // Ten thousand of them wait for providers at once.
        assert!(size(super::serve) <= 8 * 1024, "{}", size(super::serve));
    }
}
