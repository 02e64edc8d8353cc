//! Counts the tokens of a request without generating a response. The provider counts them if its dialect supports it;
//! otherwise they are estimated.

use crate::active_config::ActiveConfig;
use crate::call::chaos;
use crate::call::choose::{admit_aliases, admit_model};
use crate::call::context::Call;
use crate::call::conversation::plain;
use crate::call::conversation::read::{self, recall, Recall};
use crate::call::guardrails;
use crate::call::relay::head;
use crate::exchange::Head;
use crate::gate::answer::EndGuard;
use crate::gate::headers;
use crate::gate::limits;
use crate::gate::request::BufferedRequest;
use crate::observe::settle::Settlement;
use crate::route::model;
use crate::shared::Shared;
use crate::upstream::attempt::{self, Contents, Upstream};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::slot;
use crate::upstream::target::Target;
use bytes::Bytes;
use fairlead_core::json::{self, Kind as JsonKind};
use fairlead_core::{Dialect, Error, ErrorKind, Outcome, Retry};
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::{estimate_tokens, translate, Pieces};
use http::header::{self, HeaderValue};
use http::StatusCode;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Serves one request. As with a completion, dropping the future cancels it.
pub fn serve(shared: &Arc<Shared>, incoming: Box<BufferedRequest>) -> impl Future<Output = ()> {
    let end = EndGuard::new(shared, &incoming.exchange, &incoming.admission);
    incoming.capture(shared);
    let BufferedRequest { exchange, admission, body, in_flight, buffered, .. } = *incoming;
    let settlement = Settlement::open(shared, &exchange, admission, body.len() as u64);
    async move {
        let _permits = (in_flight, buffered);
        run(Call::new(settlement), &body).await;
        drop(end);
    }
}

async fn run(mut call: Call, body: &Bytes) {
    let shared = call.shared();
    let active = shared.active.load_full();
    let (body, request) = match read(&mut call, &active, body).await {
        Ok(Some(read)) => read,
        // The caller has left; dropping the settlement records it.
        Ok(None) => return,
        Err(fault) => return call.refuse(&fault),
    };
    let chosen = || choose(&mut call, &active, &body, &request);
    if let Err(fault) = limits::retry_until_limits_known(&shared, chosen).await {
        return call.refuse(&fault);
    }
    drop(active);
    let exchange = Arc::clone(&call.settlement.exchange);
    tokio::select! {
        biased;
        () = exchange.gone() => {} // dropping the settlement records that the caller left
        () = try_targets(&mut call, &body, &request) => {}
    }
}

/// Parses the request, including stored earlier turns. Returns `None` if the caller left.
async fn read(call: &mut Call, active: &ActiveConfig, body: &Bytes) -> Result<Option<(Bytes, ChatRequest)>, Error> {
    let settlement = &mut call.settlement;
    // The count covers what a conversation would send.
    let body = guardrails::admit(active, settlement, body)?;
    let request = read::request(&settlement.admission, &inner_request(settlement, &body))?;
    let request = admit_model(active, settlement, request)?;
    settlement.model = Some(request.model.clone());
    let incoming = match recall(active, settlement, &body, &request).await? {
        Recall::CallerLeft => return Ok(None),
        Recall::Nothing => return Ok(Some((body, request))),
        Recall::Body(incoming) => incoming,
    };
    let request = read::again(&settlement.admission, &incoming, request)?;
    Ok(Some((incoming, request)))
}

/// Chooses the targets that may count the tokens.
fn choose(call: &mut Call, active: &ActiveConfig, body: &Bytes, request: &ChatRequest) -> Result<(), Error> {
    let Call { settlement, choice, .. } = call;
    let shared = Arc::clone(&settlement.shared);
    *choice = model::choose(&shared, active, &settlement.admission, &request.model, body)?;
    admit_aliases(settlement, choice)?;
    // Counting uses no tokens and costs nothing, but counts as a request.
    limits::reserve_free(&shared, settlement, &request.model, choice)
}

/// Tries the targets in order until one returns a count.
///
/// This loop differs from [`crate::call::attempt`]. An estimate is not an attempt, and counting does not show how well
/// a provider generates responses. So latency, session affinity and combo statistics are not updated.
async fn try_targets(call: &mut Call, body: &Bytes, request: &ChatRequest) {
    limits::throttle(&call.settlement).await;
    if let Err(fault) = chaos::inject(&mut call.settlement).await {
        return call.refuse(&fault);
    }
    for at in 0..call.choice.targets.len() {
        let own = &call.choice.targets[at];
        let variant = if call.choice.needs_responses(at) { own.with_responses() } else { None };
        let target = variant.unwrap_or_else(|| Arc::clone(own));
        call.settlement.target = Some(Arc::clone(&target));
        call.settlement.upstream_model = Some(call.choice.upstream_model(at).to_owned());
        let counted = match count_at(call, &target, at, body, request).await {
            Ok(counted) => counted,
            Err(fault) => return call.refuse(&fault),
        };
        match counted {
            Ok(body) => return give(call, &target, body),
            Err(failed) => {
                target.hold_against(call.choice.upstream_model(at), &failed);
                call.settlement.note_failed_attempt(&target, call.choice.upstream_model(at), &failed.error);
                let may_go_on = failed.error.retry != Retry::Never;
                call.failures.push((at, failed));
                if !may_go_on {
                    break;
                }
            }
        }
    }
    call.fail();
}

/// Returns one target's count, from its provider or estimated. The outer error ends the call.
async fn count_at(
    call: &mut Call,
    target: &Target,
    at: usize,
    body: &Bytes,
    request: &ChatRequest,
) -> Result<Result<Bytes, AttemptFailure>, Error> {
    let Call { settlement, choice, .. } = call;
    let caller = settlement.admission.dialect;
    let member = if caller == Dialect::Gemini { "totalTokens" } else { "input_tokens" };
    let uri = target.count_uri(choice.upstream_model(at))?;
    let Some(uri) = uri.filter(|_| target.connection.dialect == caller) else {
        return estimate(caller, &inner_request(settlement, body), member).map(Ok);
    };
    let _slot =
        match slot::acquire(&settlement.shared, target, &choice.slot_request(at, 0), &mut Duration::default()).await {
            Ok(slot) => slot,
            Err(busy) => return Ok(Err(busy)),
        };
    settlement.attempts += 1;
    let pieces = renamed(caller, body, request, target.connection.called_name(choice.upstream_model(at)));
    let betas = settlement.admission.anthropic_beta.as_ref();
    let model = choice.upstream_model(at);
    let contents = Contents::Json(&pieces);
    let upstream = Upstream { uri: &uri, model, betas, session: None, body: contents, is_stream: false };
    match send(&settlement.shared, target, upstream, member).await {
        // Few servers with the responses dialect support this call.
        Err(failed) if caller == Dialect::OpenaiResponses && is_unserved(&failed) => {
            estimate(caller, body, member).map(Ok)
        }
        outcome => Ok(outcome),
    }
}

/// Whether the provider lacks this call.
fn is_unserved(failed: &AttemptFailure) -> bool {
    let status = failed.rejection.as_ref().map(|rejection| rejection.status);
    matches!(status, Some(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED))
}

fn estimate(caller: Dialect, body: &[u8], member: &str) -> Result<Bytes, Error> {
    let tokens = estimate_tokens(caller, body)?;
    let object = if caller == Dialect::OpenaiResponses { r#""object":"response.input_tokens","# } else { "" };
    Ok(Bytes::from(format!(r#"{{{object}"{member}":{tokens}}}"#)))
}

/// Returns the request whose tokens are counted. Gemini's clients may nest it in a member of the body.
fn inner_request(settlement: &Settlement, body: &Bytes) -> Bytes {
    body.slice(counted_span(settlement.admission.dialect, body))
}

fn counted_span(caller: Dialect, body: &[u8]) -> Range<usize> {
    let wanted = ["generateContentRequest"];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH).ok();
    let inner = scan.and_then(|scan| scan.get("generateContentRequest")).filter(|inner| inner.kind == JsonKind::Object);
    inner.filter(|_| caller == Dialect::Gemini).map_or(0..body.len(), |inner| inner.span())
}

/// Replaces the model with the provider's name for it. Gemini's clients name the model inside the nested request.
fn renamed(caller: Dialect, body: &Bytes, parsed: &ChatRequest, upstream_model: &str) -> Pieces {
    let span = counted_span(caller, body);
    let mut pieces = Pieces::new();
    pieces.push(body.slice(..span.start));
    pieces.extend(translate::rewrite(caller, &body.slice(span.clone()), parsed, upstream_model));
    pieces.push(body.slice(span.end..));
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Returns the provider's count in its original form.
async fn send(shared: &Shared, target: &Target, request: Upstream<'_>, member: &str) -> Result<Bytes, AttemptFailure> {
    let asking = async {
        let answered = attempt::send(&shared.pool, target, request).await?;
        let idle = Duration::from_millis(target.connection.timeouts.idle_ms);
        let answer = plain::read_body(answered.into_body(), idle).await?;
        let wanted = [member];
        let counted = json::scan_object(&answer, &wanted, json::MAX_DEPTH).ok();
        if counted.and_then(|scan| json::as_u64(&answer, scan.get(member)?)).is_none() {
            let message = format!("The provider's answer has no `{member}`.");
            return Err(Error::upstream(ErrorKind::UpstreamInvalid, Retry::Elsewhere, message).into());
        }
        Ok(answer)
    };
    tokio::select! {
        biased;
        answer = asking => answer,
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    }
}

/// Sends the count to the caller.
fn give(call: &mut Call, target: &Target, body: Bytes) {
    let fallbacks = call.fallbacks();
    let settlement = &mut call.settlement;
    settlement.status = StatusCode::OK.as_u16();
    settlement.bytes_response = body.len() as u64;
    let mut headers = head::headers(settlement, target, fallbacks);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, headers::number(body.len() as u64));
    settlement.settle(Outcome::Completed, None);
    settlement.exchange.answer(Head { status: StatusCode::OK, headers }, body);
}
