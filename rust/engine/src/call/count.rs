//! How many tokens a request has, without asking for an answer: the provider says it where its dialect can, and it is
//! estimated where it cannot.

use crate::call::chat::{admit, admit_aliases, fail, refuse};
use crate::call::guardrails;
use crate::call::plain;
use crate::call::translation::{self, caller_of, form_of};
use crate::exchange::{Exchange, Head};
use crate::gate::answer::EndGuard;
use crate::gate::headers;
use crate::gate::limits;
use crate::gate::request::Whole;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::route::model;
use crate::shared::Shared;
use crate::upstream::attempt;
use crate::upstream::failure::Failed;
use crate::upstream::target::{InFlightGuard, Target};
use bytes::Bytes;
use fairlead_core::error::{Error, Kind, Retry};
use fairlead_core::json::{self, Kind as JsonKind};
use fairlead_core::record::Outcome;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::translate::{self, Form};
use fairlead_dialect::{count, Pieces};
use http::header::{self, HeaderValue};
use http::{StatusCode, Uri};
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Serves one request. As with a completion, dropping the future is cancelling it.
pub fn serve(shared: Arc<Shared>, whole: Box<Whole>) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &whole.exchange, &whole.admission);
    let Whole { exchange, admission, body, in_flight, buffered, .. } = *whole;
    let settlement = Settlement::open(&shared, &exchange, admission, body.len() as u64);
    async move {
        let _counted = (in_flight, buffered);
        run(&shared, &exchange, settlement, &body).await;
        drop(end);
    }
}

async fn run(shared: &Arc<Shared>, exchange: &Arc<Exchange>, mut settlement: Settlement, body: &Bytes) {
    let live = shared.live.load_full();
    // What is counted is what a conversation would send.
    let body = match guardrails::admit(&live, &mut settlement, body) {
        Ok(body) => body,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    let body = &body;
    let parsed = match translation::read(&settlement.admission, &asked(&settlement, body))
        .and_then(|parsed| admit(&live, &settlement, parsed))
    {
        Ok(parsed) => parsed,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    settlement.model = Some(parsed.model.clone());
    let choice = model::choose(shared, &live, &settlement.admission, &parsed.model, body);
    let mut choice = match choice.and_then(|choice| admit_aliases(&settlement, &choice).map(|()| choice)) {
        Ok(choice) => choice,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    // It uses no tokens and costs nothing, and is a request like any other.
    if let Err(fault) = limits::reserve_free(shared, &mut settlement, &parsed.model, &mut choice) {
        return refuse(shared, exchange, settlement, Outcome::Refused, &fault);
    }
    tokio::select! {
        biased;
        () = exchange.gone() => {} // the settlement's drop says who left
        () = work(shared, exchange, settlement, &choice, body, &parsed) => {}
    }
}

async fn work(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    mut settlement: Settlement,
    choice: &Choice,
    body: &Bytes,
    parsed: &ChatRequest,
) {
    limits::throttle(shared, &settlement).await;
    let mut failures: Vec<(Arc<Target>, Failed)> = Vec::new();
    for (at, target) in choice.targets.iter().enumerate() {
        settlement.target = Some(Arc::clone(target));
        settlement.upstream_model = Some(choice.upstream_model(at).to_owned());
        let caller = caller_of(settlement.admission.route);
        let member = if caller == Form::Gemini { "totalTokens" } else { "input_tokens" };
        let uri = match target.count_uri(choice.upstream_model(at)) {
            Ok(uri) => uri,
            Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
        };
        let counted = match uri.filter(|_| form_of(target.connection.dialect) == caller) {
            Some(uri) => {
                settlement.attempts += 1;
                let _busy = InFlightGuard::new(&target.hot);
                let pieces = renamed(caller, body, parsed, choice.upstream_model(at));
                let betas = settlement.admission.anthropic_beta.as_ref();
                ask(shared, target, &uri, betas, &pieces, member).await
            }
            None => match count::estimate(caller, &asked(&settlement, body)) {
                Ok(tokens) => Ok(Bytes::from(format!(r#"{{"{member}":{tokens}}}"#))),
                Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
            },
        };
        match counted {
            Ok(body) => return tell(shared, exchange, settlement, target, body, failures.len()),
            Err(failed) => {
                target.hold_against(choice.upstream_model(at), &failed);
                let goes_on = failed.error.retry != Retry::Never;
                failures.push((Arc::clone(target), failed));
                if !goes_on {
                    break;
                }
            }
        }
    }
    fail(shared, exchange, settlement, choice, failures);
}

/// The request whose tokens are counted; Gemini's clients may put it into a member of the body.
fn asked(settlement: &Settlement, body: &Bytes) -> Bytes {
    body.slice(asked_span(caller_of(settlement.admission.route), body))
}

fn asked_span(caller: Form, body: &[u8]) -> Range<usize> {
    let wanted = ["generateContentRequest"];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH).ok();
    let inner = scan.and_then(|scan| scan.get("generateContentRequest")).filter(|inner| inner.kind == JsonKind::Object);
    inner.filter(|_| caller == Form::Gemini).map_or(0..body.len(), |inner| inner.span())
}

/// The body around the provider's own name of the model, which Gemini's clients name inside that member.
fn renamed(caller: Form, body: &Bytes, parsed: &ChatRequest, upstream_model: &str) -> Pieces {
    let span = asked_span(caller, body);
    let mut pieces = Pieces::new();
    pieces.push(body.slice(..span.start));
    pieces.extend(translate::rewrite(caller, &body.slice(span.clone()), parsed, upstream_model));
    pieces.push(body.slice(span.end..));
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The provider's own count, as it tells it.
async fn ask(
    shared: &Shared,
    target: &Target,
    uri: &Uri,
    betas: Option<&HeaderValue>,
    pieces: &Pieces,
    member: &str,
) -> Result<Bytes, Failed> {
    let asking = async {
        let answered = attempt::send(&shared.pool, target, uri, betas, pieces, false).await?;
        let idle = Duration::from_millis(target.connection.timeouts.idle_ms);
        let told = plain::collect(answered.into_body(), idle).await?;
        let wanted = [member];
        let counted = json::scan_object(&told, &wanted, json::MAX_DEPTH).ok();
        if counted.and_then(|scan| json::as_u64(&told, scan.get(member)?)).is_none() {
            let message = format!("The provider's answer has no `{member}`.");
            return Err(Error::upstream(Kind::UpstreamInvalid, Retry::Elsewhere, message).into());
        }
        Ok(told)
    };
    tokio::select! {
        biased;
        told = asking => told,
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    }
}

fn tell(
    shared: &Shared,
    exchange: &Exchange,
    mut settlement: Settlement,
    target: &Target,
    body: Bytes,
    fallbacks: usize,
) {
    settlement.status = StatusCode::OK.as_u16();
    settlement.bytes_response = body.len() as u64;
    let mut headers = plain::headers(shared, &settlement, target, fallbacks);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, headers::number(body.len() as u64));
    settlement.settle(Outcome::Completed, None);
    exchange.answer(Head { status: StatusCode::OK, headers }, body);
}
