//! A passthrough call, which changes only the model, from its body to its record. It uses the same admission and
//! failover as a conversation. Its response is one JSON object, an event stream, or bytes.
//!
//! [`body`] has the bodies for each provider, and [`byte_stream`] relays the streams.

mod body;
pub(crate) mod byte_stream;

use crate::call::account_objects;
use crate::call::attempt;
use crate::call::chaos;
use crate::call::choose::counting::{self, Expected};
use crate::call::choose::endpoints::{self, Endpoint, ResponseKind};
use crate::call::choose::{admit_model, choose_for_endpoint};
use crate::call::context::Call;
use crate::call::conversation::plain;
use crate::call::conversation::read::{recall, Recall};
use crate::call::guardrails;
use crate::call::idempotency::{self, Part};
use crate::call::kind::{CallKind, Reply};
use crate::call::passthrough::body::{in_openais_form, input_tokens, CallerBody, UpstreamBody};
use crate::call::passthrough::byte_stream::{ByteStream, EventStream};
use crate::call::relay::deadline::within;
use crate::call::relay::stream::{StreamKind, StreamRelay};
use crate::call::relay::{is_event_stream, FinishedStream, EVENT_STREAM};
use crate::call::settle;
use crate::gate::answer::EndGuard;
use crate::gate::limits;
use crate::gate::request::BufferedRequest;
use crate::gate::upload::Stored;
use crate::observe::settle::Settlement;
use crate::route::model;
use crate::shared::Shared;
use crate::upstream;
use crate::upstream::attempt::{provider_error, Upstream};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::Target;
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::routes::Relayed;
use fairlead_core::{Dialect, Error, ErrorKind, Outcome, Retry, Units};
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::openai::{metered, named};
use fairlead_dialect::{embeddings, translate};
use http::header::{self, HeaderValue};
use http::Response;
use smallvec::SmallVec;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Serves one form. As with a conversation, dropping the future cancels it.
pub fn serve_form(shared: &Arc<Shared>, incoming: Box<BufferedRequest>) -> impl Future<Output = ()> {
    incoming.capture(shared);
    let BufferedRequest { exchange, admission, upload, in_flight, .. } = *incoming;
    let end = EndGuard::new(shared, &exchange, &admission);
    let mut settlement = Settlement::open(shared, &exchange, admission, 0);
    async move {
        let permits = Arc::new((in_flight, None));
        let Some(upload) = upload else { return };
        let stored = tokio::select! {
            biased;
            () = exchange.gone() => return, // dropping the settlement records that the caller left
            stored = upload.stored() => stored,
        };
        match stored {
            Ok(stored) => match part_of(&settlement, &stored).await {
                Part::Alone => run_form(Call::new(settlement), &stored).await,
                Part::Refused(fault) => settle::refuse(&mut settlement, Outcome::Refused, &fault),
                Part::Follower(recording) => {
                    note_model(&mut settlement, &stored);
                    idempotency::repeat(&mut settlement, recording, &Bytes::new()).await;
                }
                Part::Leader(leader) => {
                    settlement.move_to(&leader.source);
                    note_model(&mut settlement, &stored);
                    let mut call = Call::new(settlement);
                    call.request_permits = Some(Arc::clone(&permits));
                    idempotency::lead(leader, &exchange, call, &Bytes::new(), move |call| async move {
                        run_form(call, &stored).await;
                    })
                    .await;
                }
            },
            Err((outcome, fault)) => {
                settlement.status = fault.kind.status();
                settle::refuse(&mut settlement, outcome, &fault);
            }
        }
        drop((end, permits));
    }
}

/// Records the model of a form that repeats another one, here or at another worker, because it is not parsed otherwise.
fn note_model(settlement: &mut Settlement, stored: &Stored) {
    let model = stored.form.field("model");
    settlement.model = model.map(|model| model::shown_name(&settlement.shared.active.load(), model));
}

/// The form's role among those with its idempotency key. Forms with the same parts are equal, whatever is between the
/// parts.
async fn part_of(settlement: &Settlement, stored: &Stored) -> Part {
    if settlement.admission.idempotency_key.is_none() {
        return Part::Alone;
    }
    match stored.digest().await {
        Ok(digest) => Part::of(&settlement.shared, &settlement.exchange, &settlement.admission, &digest),
        Err(fault) => Part::Refused(fault),
    }
}

async fn run_form(mut call: Call, stored: &Stored) {
    let settlement = &mut call.settlement;
    let fairlead_core::routes::Answer::Relayed(kind) = settlement.admission.route.answer else { return };
    let endpoint = endpoints::of(kind);
    let active = settlement.shared.active.load_full();
    let guardrails = guardrails::of_call(&active, &settlement.admission);
    settlement.answer_guardrails = guardrails.answer;
    let parts = stored.form.parts.iter();
    let texts = parts.flat_map(|part| [part.value.as_deref(), part.file_name.as_deref()]).flatten();
    let judged = guardrails::judge_form(texts, guardrails.request, &mut settlement.guardrail_findings);
    drop(active);
    // Only text counts as input that a model reads token by token.
    settlement.bytes_request =
        stored.form.parts.iter().filter_map(|part| part.value.as_ref()).map(|text| text.len() as u64).sum();
    match judged.and_then(|()| read_form(stored, endpoint)) {
        Ok((request, content_type)) => {
            let expected = counting::of_form(endpoint, stored, request.choices).await;
            let body = CallerBody::Form { stored, content_type };
            serve(call, endpoint, request, expected, body).await;
        }
        Err(fault) => call.refuse(&fault),
    }
}

/// Parses the call from a form. The content type is the one to send.
fn read_form(stored: &Stored, endpoint: &Endpoint) -> Result<(ChatRequest, HeaderValue), Error> {
    let missing =
        |name: &'static str| Error::client(ErrorKind::InvalidRequest, format!("`{name}` is required.")).about(name);
    let form = &stored.form;
    let model = form.field("model").ok_or_else(|| missing("model"))?;
    if form.part(endpoint.needs.member).is_none() {
        return Err(missing(endpoint.needs.member));
    }
    let stream = endpoint.may_stream && form.field("stream").is_some_and(|text| matches!(text, "true" | "True" | "1"));
    // The reservation covers this number of results.
    let choices = match form.field("n").filter(|text| !text.is_empty()).map(str::parse::<u64>) {
        None => 1,
        Some(Ok(choices)) => choices.max(1),
        Some(Err(_)) => {
            return Err(Error::client(ErrorKind::InvalidRequest, "`n` must be a whole number in digits.").about("n"));
        }
    };
    let parsed = named::of_form(model, stream, choices)?;
    // The body is sent unchanged, so the boundary must be the caller's; the body starts with it.
    let content_type =
        stored.content_type().map_err(|_| Error::client(ErrorKind::InvalidRequest, "The boundary is no header."))?;
    Ok((parsed, content_type))
}

/// Runs one JSON call that has been admitted and deduplicated.
pub async fn run(mut call: Call, kind: Relayed, body: &Bytes) {
    let endpoint = endpoints::of(kind);
    let active = call.settlement.shared.active.load_full();
    let body = match guardrails::admit(&active, &mut call.settlement, body) {
        Ok(body) => body,
        Err(fault) => return call.refuse(&fault),
    };
    drop(active);
    let body = if kind == Relayed::Compact {
        match whole_conversation(&mut call, &body).await {
            Ok(Some(incoming)) => incoming,
            // The caller has left; dropping the settlement records it.
            Ok(None) => return,
            Err(fault) => return call.refuse(&fault),
        }
    } else {
        if let Err(fault) = account_objects::admit(&call.settlement.admission, &body) {
            return call.refuse(&fault);
        }
        body
    };
    let form = endpoints::embedding(call.settlement.admission.route);
    let read = match form {
        Some(embeddings::EmbeddingCall::One | embeddings::EmbeddingCall::Many) => {
            embeddings::read_gemini(&body, &call.settlement.admission.tail).map(|request| (request, body))
        }
        _ => named::read(&body, &endpoint.needs),
    };
    match read {
        Ok((mut request, body)) => {
            request.stream &= endpoint.may_stream;
            let expected = counting::of_json(endpoint, &body, request.choices);
            let body = match form {
                Some(form) => CallerBody::Embedding { form, body },
                None => CallerBody::Json(body),
            };
            serve(call, endpoint, request, expected, body).await;
        }
        Err(fault) => call.refuse(&fault),
    }
}

/// Adds the stored earlier turns to the request, because the gateway stores them and not the provider. Returns `None`
/// if the caller left.
async fn whole_conversation(call: &mut Call, body: &Bytes) -> Result<Option<Bytes>, Error> {
    let request = translate::read(Dialect::OpenaiResponses, body)?;
    let active = call.settlement.shared.active.load_full();
    Ok(match recall(&active, &mut call.settlement, body, &request).await? {
        Recall::CallerLeft => None,
        Recall::Nothing => Some(body.clone()),
        Recall::Body(incoming) => Some(incoming),
    })
}

/// Runs a call from the choice of its targets to its record.
async fn serve(
    mut call: Call,
    endpoint: &'static Endpoint,
    request: ChatRequest,
    expected: Expected,
    body: CallerBody<'_>,
) {
    let shared = call.shared();
    let active = shared.active.load_full();
    let settlement = &mut call.settlement;
    settlement.set_units(expected.most);
    let request = match admit_model(&active, settlement, request) {
        Ok(request) => request,
        Err(fault) => return call.refuse(&fault),
    };
    settlement.model = Some(request.model.clone());
    settlement.stream = request.stream;
    if let Err(fault) = chaos::inject(settlement).await {
        return call.refuse(&fault);
    }
    let (text, bytes_request) = body.text();
    let choose = || choose_for_endpoint(&active, settlement, &request, text);
    let choice = limits::retry_until_limits_known(&shared, choose).await;
    // Nothing has been used yet.
    settlement.set_units(Units::default());
    settlement.bytes_request = bytes_request;
    match choice {
        Ok(choice) => call.choice = choice,
        Err(fault) => return call.refuse(&fault),
    }
    drop(active);
    let is_open_long = request.stream || endpoint.response == ResponseKind::Bytes;
    if is_open_long {
        if let Err(fault) = call.open_stream() {
            return call.end_refused(Outcome::Shed, &fault);
        }
    }
    let passthrough = Passthrough { endpoint, request, body, likely: expected.likely };
    let exchange = Arc::clone(&call.settlement.exchange);
    let serving = async {
        limits::throttle(&call.settlement).await;
        attempt::run(&mut call, &passthrough, &SmallVec::new()).await;
    };
    tokio::select! {
        biased;
        () = exchange.gone() => {} // dropping the settlement records that the caller left
        () = serving => {}
    }
}

/// A call whose body is sent with only its model changed.
struct Passthrough<'a> {
    endpoint: &'static Endpoint,
    request: ChatRequest,
    body: CallerBody<'a>,
    /// The assumed units other than tokens, if the provider does not report them.
    likely: Units,
}

impl CallKind for Passthrough<'_> {
    fn is_stream(&self) -> bool {
        // The response type is known only with the head.
        true
    }

    async fn send(&self, call: &mut Call, at: usize) -> Result<Reply, AttemptFailure> {
        let target = Arc::clone(&call.choice.targets[at]);
        let upstream_model = call.choice.upstream_model(at);
        // The caller has to fix this request, unless another connection supports it.
        let body = self.body.towards(&self.request, &target, upstream_model);
        let body = body.map_err(|fault| AttemptFailure {
            blames_connection: false,
            ..Error { retry: Retry::Elsewhere, ..fault }.into()
        })?;
        let reply = self.send_body(call, at, &body).await;
        if reply.is_err() {
            call.settlement.set_units(Units::default());
        }
        reply
    }
}

impl Passthrough<'_> {
    async fn send_body(&self, call: &mut Call, at: usize, body: &UpstreamBody) -> Result<Reply, AttemptFailure> {
        let endpoint = self.endpoint;
        let target = &Arc::clone(&call.choice.targets[at]);
        let uri = match body {
            UpstreamBody::Embedding { letter, .. } => {
                target.embedding_uri(letter.form, call.settlement.upstream_model.as_deref().unwrap_or_default())?
            }
            UpstreamBody::Cloud { .. } => target.uri(call.choice.upstream_model(at), false)?,
            _ => target.uri_of(endpoint.path, call.choice.upstream_model(at))?,
        };
        let shared = call.shared();
        let (contents, is_stream) = (body.contents(), self.request.stream);
        let model = call.choice.upstream_model(at);
        let request = Upstream { uri: &uri, model, betas: None, session: None, body: contents, is_stream };
        let limit = call.time_for(at);
        let response = tokio::select! {
            biased;
            answered = within(limit, upstream::attempt::send(&shared.pool, target, request)) => answered?,
            () = shared.drain.expired() => return Err(shared.drain.error().into()),
        };
        let settlement = &mut call.settlement;
        settlement.set_units(self.likely);
        let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
        let is_json = content_type.as_ref().is_some_and(plain::is_json);
        // Speech is requested as events by a different member, `stream_format`.
        let may_be_events = self.request.stream || (endpoint.may_stream && endpoint.response == ResponseKind::Bytes);
        if may_be_events && content_type.as_ref().is_some_and(is_event_stream) {
            return relay(call, target, EventStream::default(), EVENT_STREAM, response).await.map(Reply::Stream);
        }
        match endpoint.response {
            ResponseKind::Json(member) | ResponseKind::JsonOrText(member) if is_json => {
                settlement.first_byte = Some(Instant::now());
                let input_tokens = input_tokens(response.headers());
                let answer = read_body(&shared, target, response.into_body()).await?;
                let answer = in_openais_form(settlement, body, answer, input_tokens)?;
                self.read_answer(settlement, member, body.in_openais_form(), answer)
                    .map(|body| Reply::Complete(body.into()))
            }
            ResponseKind::JsonOrText(_)
                if !settlement.answer_guardrails.is_off() && content_type.as_ref().is_some_and(is_plain_text) =>
            {
                // Guardrails check it as a whole.
                settlement.first_byte = Some(Instant::now());
                let body = read_body(&shared, target, response.into_body()).await?;
                Ok(Reply::Complete(plain::Answer { text_type: content_type, ..body.into() }))
            }
            ResponseKind::JsonOrText(_) | ResponseKind::Bytes => {
                let is_wanted = if endpoint.response == ResponseKind::Bytes { is_media } else { is_plain_text };
                let Some(content_type) = content_type.filter(is_wanted) else { return Err(wrong_format().into()) };
                relay(call, target, ByteStream::default(), content_type, response).await.map(Reply::Stream)
            }
            ResponseKind::Json(_) => Err(wrong_format().into()),
        }
    }

    /// Returns a complete response for the caller and records its usage. A 200 with an error or without a response in
    /// its body is a failure.
    fn read_answer(
        &self,
        settlement: &mut Settlement,
        member: &str,
        sent: &UpstreamBody,
        answer: Bytes,
    ) -> Result<Bytes, AttemptFailure> {
        if let UpstreamBody::Embedding { caller, letter, caller_body } = sent {
            let model = settlement.model.as_deref().unwrap_or_default();
            let translated = embeddings::answer(*caller, letter.form, &answer, caller_body, model)
                .ok_or_else(|| plain::invalid("The provider's answer has no embeddings."))?;
            settlement.usage = translated.usage;
            settlement.set_units(translated.units);
            return Ok(translated.body);
        }
        let seen = metered::inspect(&answer, member)
            .map_err(|_| plain::invalid("The provider's answer is not one JSON object."))?;
        if let Some(reported) = &seen.error {
            let error = plain::invalid("The provider returned an error with a status of success.");
            let target = settlement.target.as_ref();
            let reported = target.map(|target| provider_error(200, reported, target)).unwrap_or_default();
            return Err(error.with_provider_error(reported).into());
        }
        if !seen.is_answer {
            return Err(plain::invalid("The provider's answer lacks what such an answer must have.").into());
        }
        let units = counting::came_to(self.endpoint, &seen, settlement.units());
        settlement.set_units(units);
        settlement.usage = seen.usage.unwrap_or_default();
        Ok(answer)
    }
}

async fn relay<K: StreamKind>(
    call: &mut Call,
    target: &Arc<Target>,
    kind: K,
    content_type: HeaderValue,
    response: Response<Incoming>,
) -> Result<FinishedStream, AttemptFailure> {
    let relay = StreamRelay::new(call, Arc::clone(target), &kind, content_type);
    relay.pass(kind, response.into_body(), None).await
}

fn wrong_format() -> Error {
    plain::invalid("The provider's answer is not of the type that was asked for.")
}

async fn read_body(shared: &Shared, target: &Target, body: Incoming) -> Result<Bytes, AttemptFailure> {
    let idle = Duration::from_millis(target.connection.timeouts.idle_ms);
    tokio::select! {
        biased;
        body = plain::read_body(body, idle) => Ok(body?),
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    }
}

fn essence(value: &HeaderValue) -> &[u8] {
    value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

/// Transcripts may also be plain text or subtitles.
fn is_plain_text(value: &HeaderValue) -> bool {
    let essence = essence(value).to_ascii_lowercase();
    matches!(
        essence.as_slice(),
        b"text/plain" | b"text/vtt" | b"text/srt" | b"application/x-subrip" | b"application/srt"
    )
}

fn is_media(value: &HeaderValue) -> bool {
    let essence = essence(value).to_ascii_lowercase();
    essence.starts_with(b"audio/") || matches!(essence.as_slice(), b"application/octet-stream" | b"binary/octet-stream")
}

impl Stored {
    /// Returns the content type of the stored body, with the boundary that the body starts with.
    fn content_type(&self) -> Result<HeaderValue, header::InvalidHeaderValue> {
        HeaderValue::from_str(&format!("multipart/form-data; boundary=\"{}\"", self.boundary))
    }
}
