//! A call that passes with only its model changed, from its body to its record. It passes the same gate as a conversation
//! and fails over in the same way; its answer is one JSON object, a stream of events, or bytes.

use crate::call::chat::{self, Part};
use crate::call::chat::{admit, admit_aliases, fail, give, observe, refuse};
use crate::call::counting::{self, Expected};
use crate::call::endpoints::{self, Comes, Surface};
use crate::call::failover;
use crate::call::guardrails;
use crate::call::passthrough_stream::{self, Passed};
use crate::call::plain;
use crate::call::stream::is_event_stream;
use crate::exchange::{Exchange, Head};
use crate::gate::answer::EndGuard;
use crate::gate::limits;
use crate::gate::request::Whole;
use crate::gate::upload::Stored;
use crate::observe::settle::Settlement;
use crate::observe::trace;
use crate::route::choice::Choice;
use crate::route::model;
use crate::shared::{Gauge, Held, Shared};
use crate::upstream::attempt::{self, Contents};
use crate::upstream::failure::Failed;
use crate::upstream::target::{InFlightGuard, Target};
use crate::upstream::wire::{Chunk, Incoming};
use bytes::Bytes;
use fairlead_core::error::{Error, Kind};
use fairlead_core::record::Outcome;
use fairlead_core::routes::Relayed;
use fairlead_core::snapshot::Dialect;
use fairlead_core::usage::Units;
use fairlead_dialect::embeddings;
use fairlead_dialect::openai::metered;
use fairlead_dialect::openai::named;
use fairlead_dialect::openai::request::{rewrite, ChatRequest};
use fairlead_dialect::Pieces;
use http::header::{self, HeaderValue};
use http::StatusCode;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the caller sent.
enum Sent<'a> {
    Json(Bytes),
    /// Asked for in these words, which the provider may not speak.
    Embedding {
        form: embeddings::Form,
        body: Bytes,
    },
    Form {
        stored: &'a Stored,
        content_type: HeaderValue,
    },
}

/// What goes to one provider.
enum Letter {
    Json(Pieces),
    Embedding { caller: embeddings::Form, letter: embeddings::Letter, asked: Bytes },
    Form { content_type: HeaderValue, chunks: Vec<Chunk> },
}

impl Letter {
    fn contents(&self) -> Contents<'_> {
        match self {
            Self::Json(pieces) | Self::Embedding { letter: embeddings::Letter { body: pieces, .. }, .. } => {
                Contents::Json(pieces)
            }
            Self::Form { content_type, chunks } => Contents::Form { content_type, chunks },
        }
    }
}

/// Serves one form. As with a conversation, dropping the future is cancelling it.
pub fn serve_form(shared: Arc<Shared>, whole: Box<Whole>) -> impl Future<Output = ()> {
    let Whole { exchange, admission, upload, in_flight, .. } = *whole;
    let end = EndGuard::new(&shared, &exchange, &admission);
    let mut settlement = Settlement::open(&shared, &exchange, admission, 0);
    async move {
        let counted = Arc::new(in_flight);
        let Some(upload) = upload else { return };
        let stored = tokio::select! {
            biased;
            () = exchange.gone() => return, // the settlement's drop says who left
            stored = upload.stored() => stored,
        };
        match stored {
            Ok(stored) => {
                let part = part_of(&shared, &exchange, &settlement, &stored).await;
                match part {
                    Part::Alone => run_form(&shared, &exchange, settlement, &stored).await,
                    Part::Refused(fault) => refuse(&shared, &exchange, settlement, Outcome::Refused, &fault),
                    Part::Twin(recording) => {
                        let model = stored.form.field("model");
                        settlement.model = model.map(|model| model::shown_name(&shared.live.load(), model));
                        chat::repeat(&shared, &exchange, settlement, recording, &Bytes::new()).await;
                    }
                    Part::Leader(leader) => {
                        let source = Arc::clone(&leader.source);
                        settlement.move_to(&source);
                        let end = EndGuard::new(&shared, &source, &settlement.admission);
                        let counted = Arc::clone(&counted);
                        let work = trace::within(trace::current(), async move {
                            run_form(&shared, &source, settlement, &stored).await;
                            drop((end, counted));
                        });
                        leader.lead(&exchange, Box::pin(work)).await;
                    }
                }
            }
            Err((outcome, fault)) => {
                settlement.status = fault.kind.status();
                refuse(&shared, &exchange, settlement, outcome, &fault);
            }
        }
        drop((end, counted));
    }
}

/// What the form is to others of its idempotency key: it is the same as another with the same parts, whatever stands between
/// them.
async fn part_of(shared: &Shared, exchange: &Exchange, settlement: &Settlement, stored: &Stored) -> Part {
    if settlement.admission.idempotency_key.is_none() {
        return Part::Alone;
    }
    match stored.digest().await {
        Ok(digest) => Part::of(shared, exchange, &settlement.admission, &digest),
        Err(fault) => Part::Refused(fault),
    }
}

async fn run_form(shared: &Arc<Shared>, exchange: &Arc<Exchange>, mut settlement: Settlement, stored: &Stored) {
    let fairlead_core::routes::Answer::Relayed(kind) = settlement.admission.route.answer else { return };
    let surface = endpoints::of(kind);
    let live = shared.live.load_full();
    settlement.answer_guardrails = guardrails::of_answer(&live, &settlement.admission);
    let texts = stored.form.parts.iter().filter_map(|part| part.value.as_deref());
    let actions = guardrails::of_request(&live, &settlement.admission);
    let judged = guardrails::judge_form(texts, actions, &mut settlement.guardrail_findings);
    drop(live);
    let sent = judged.and_then(|()| letter_head(stored, surface));
    let sent = sent.map(|(parsed, content_type)| (parsed, Sent::Form { stored, content_type }));
    // Only what is text counts as input that a model reads by the token.
    settlement.bytes_request =
        stored.form.parts.iter().filter_map(|part| part.value.as_ref()).map(|text| text.len() as u64).sum();
    match sent {
        Ok((parsed, sent)) => {
            let expected = counting::of_form(surface, stored, parsed.choices).await;
            go(shared, exchange, settlement, surface, parsed, expected, &sent, b"", stored.bytes).await;
        }
        Err(fault) => refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    }
}

fn letter_head(stored: &Stored, surface: &Surface) -> Result<(ChatRequest, HeaderValue), Error> {
    let missing =
        |name: &'static str| Error::client(Kind::InvalidRequest, format!("`{name}` is required.")).about(name);
    let form = &stored.form;
    let model = form.field("model").ok_or_else(|| missing("model"))?;
    if form.part(surface.needs.member).is_none() {
        return Err(missing(surface.needs.member));
    }
    let stream = surface.may_stream && form.field("stream").is_some_and(|text| matches!(text, "true" | "True" | "1"));
    // What is reserved is reserved for so many.
    let choices = match form.field("n").filter(|text| !text.is_empty()).map(str::parse::<u64>) {
        None => 1,
        Some(Ok(choices)) => choices.max(1),
        Some(Err(_)) => {
            return Err(Error::client(Kind::InvalidRequest, "`n` must be a whole number in digits.").about("n"));
        }
    };
    let parsed = named::of_form(model, stream, choices)?;
    // The body goes out as it came, so its boundary is the caller's; the body begins with it.
    let content_type =
        stored.content_type().map_err(|_| Error::client(Kind::InvalidRequest, "The boundary is no header."))?;
    Ok((parsed, content_type))
}

/// Runs one call in JSON, admitted and deduplicated before.
pub(crate) async fn run(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    mut settlement: Settlement,
    kind: Relayed,
    body: &Bytes,
) {
    let surface = endpoints::of(kind);
    let body = match guardrails::admit(&shared.live.load(), &mut settlement, body) {
        Ok(body) => body,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    let form = endpoints::embedding(settlement.admission.route);
    let read = match form {
        Some(embeddings::Form::One | embeddings::Form::Many) => {
            embeddings::read_gemini(&body, &settlement.admission.tail).map(|parsed| (parsed, body))
        }
        _ => named::read(&body, &surface.needs),
    };
    match read {
        Ok((mut parsed, body)) => {
            parsed.stream &= surface.may_stream;
            let bytes = body.len() as u64;
            let expected = counting::of_json(surface, &body, parsed.choices);
            let sent = match form {
                Some(form) => Sent::Embedding { form, body: body.clone() },
                None => Sent::Json(body.clone()),
            };
            go(shared, exchange, settlement, surface, parsed, expected, &sent, &body, bytes).await;
        }
        Err(fault) => refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    }
}

#[allow(clippy::too_many_arguments, reason = "one request in its parts")]
async fn go(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    mut settlement: Settlement,
    surface: &'static Surface,
    parsed: ChatRequest,
    expected: Expected,
    sent: &Sent<'_>,
    body: &[u8],
    bytes_request: u64,
) {
    let live = shared.live.load_full();
    settlement.set_units(expected.most);
    let parsed = match admit(&live, &settlement, parsed) {
        Ok(parsed) => parsed,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    settlement.model = Some(parsed.model.clone());
    settlement.stream = parsed.stream;
    let choice = model::choose(shared, &live, &settlement.admission, &parsed.model, body).and_then(|mut choice| {
        endpoints::narrow(settlement.admission.route, &mut choice)?;
        admit_aliases(&settlement, &choice)?;
        limits::reserve(shared, &live.snapshot, &mut settlement, &parsed, &mut choice)?;
        Ok(choice)
    });
    // Nothing came of it yet.
    settlement.set_units(Units::default());
    settlement.bytes_request = bytes_request;
    let choice = match choice {
        Ok(choice) => choice,
        Err(fault) => return refuse(shared, exchange, settlement, Outcome::Refused, &fault),
    };
    drop(live);
    settlement.strategy = choice.strategy();
    settlement.combo = choice.combo.as_ref().map(|combo| combo.name.clone());
    let is_open_long = parsed.stream || surface.comes == Comes::Bytes;
    let stream_slot = if is_open_long {
        let Some(slot) = Held::take(shared, Gauge::OpenStreams, 1, shared.config.max_open_streams) else {
            shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
            let message = "The gateway has as many streams open as it takes; try again shortly.";
            let fault = Error::gateway(Kind::Overloaded, message).after_s(1);
            return refuse(shared, exchange, settlement, Outcome::Shed, &fault);
        };
        Some(slot)
    } else {
        None
    };
    tokio::select! {
        biased;
        () = exchange.gone() => {} // the settlement's drop says who left
        () = work(shared, exchange, settlement, surface, &choice, &parsed, expected.likely, sent) => {}
    }
    drop(stream_slot);
}

#[allow(clippy::too_many_arguments, reason = "one request in its parts")]
async fn work(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    mut settlement: Settlement,
    surface: &'static Surface,
    choice: &Choice,
    parsed: &ChatRequest,
    likely: Units,
    sent: &Sent<'_>,
) {
    limits::throttle(shared, &settlement).await;
    let mut failures: Vec<(Arc<Target>, Failed)> = Vec::new();
    for (at, target) in choice.targets.iter().enumerate() {
        settlement.attempts += 1;
        settlement.target = Some(Arc::clone(target));
        settlement.upstream_model = Some(choice.upstream_model(at).to_owned());
        settlement.priced_model = Some(choice.model(at).to_owned());
        let _busy = InFlightGuard::new(&target.hot);
        let letter = match letter(sent, parsed, target, choice.upstream_model(at)) {
            Ok(letter) => letter,
            // The caller's to mend, unless another connection can be told.
            Err(fault) => {
                failures.push((Arc::clone(target), Failed { blames_connection: false, ..fault.into() }));
                continue;
            }
        };
        let call = Call { surface, letter: &letter, wants_stream: parsed.stream, likely };
        let failed = match ask(shared, exchange, &mut settlement, target, call, failures.len()).await {
            Ok(Done::Whole(body)) => {
                observe(target, None, &settlement);
                failover::remember(shared, choice, at, &settlement, true);
                let told = plain::answer(shared, &mut settlement, target, body.into(), failures.len());
                return give(shared, exchange, settlement, told);
            }
            Ok(Done::Text(body, content_type)) => {
                observe(target, None, &settlement);
                failover::remember(shared, choice, at, &settlement, true);
                let told = text_answer(shared, &mut settlement, target, &body, content_type, failures.len());
                return give(shared, exchange, settlement, told);
            }
            Ok(Done::Passed(passed)) => {
                let Passed { outcome, error, last, is_cut } = passed;
                observe(target, error.as_ref(), &settlement);
                failover::remember(shared, choice, at, &settlement, error.is_none());
                settlement.settle(outcome, error.as_ref());
                return if is_cut { exchange.abort() } else { exchange.end(last) };
            }
            Err(failed) => failed,
        };
        settlement.set_units(Units::default());
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

/// What this provider gets: the caller's bytes around its own name of the model.
fn letter(sent: &Sent<'_>, parsed: &ChatRequest, target: &Target, upstream_model: &str) -> Result<Letter, Error> {
    Ok(match sent {
        Sent::Json(body) => Letter::Json(rewrite(body, parsed, upstream_model)),
        Sent::Embedding { form, body } => {
            let to_google = target.connection.dialect == Dialect::Gemini;
            let letter = embeddings::letter(*form, to_google, body, parsed, upstream_model)?;
            Letter::Embedding { caller: *form, letter, asked: body.clone() }
        }
        Sent::Form { stored, content_type } => {
            let mut chunks = Vec::with_capacity(3);
            match stored.form.part("model") {
                Some(model) => {
                    chunks.push(stored.chunk(0, model.start));
                    chunks.push(Chunk::Bytes(Bytes::copy_from_slice(upstream_model.as_bytes())));
                    chunks.push(stored.chunk(model.end, stored.bytes));
                }
                None => chunks.push(stored.chunk(0, stored.bytes)),
            }
            Letter::Form { content_type: content_type.clone(), chunks }
        }
    })
}

/// What came of one attempt.
enum Done {
    /// A whole answer, not yet told.
    Whole(Bytes),
    /// A whole text of this type, not yet told.
    Text(Bytes, HeaderValue),
    /// Told as it came.
    Passed(Passed),
}

/// One attempt.
#[derive(Clone, Copy)]
struct Call<'a> {
    surface: &'static Surface,
    letter: &'a Letter,
    wants_stream: bool,
    /// What the answer is taken for beside tokens, where its provider does not say.
    likely: Units,
}

async fn ask(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    settlement: &mut Settlement,
    target: &Arc<Target>,
    call: Call<'_>,
    fallbacks: usize,
) -> Result<Done, Failed> {
    let Call { surface, letter, wants_stream, likely } = call;
    let uri = match letter {
        Letter::Embedding { letter, .. } => {
            target.embedding_uri(letter.form, settlement.upstream_model.as_deref().unwrap_or_default())?
        }
        _ => target.uri_of(surface.path)?,
    };
    let response = tokio::select! {
        biased;
        answered = attempt::send_contents(&shared.pool, target, &uri, None, letter.contents(), wants_stream) => answered?,
        () = shared.drain.expired() => return Err(shared.drain.error().into()),
    };
    settlement.set_units(likely);
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
    let is_json = content_type.as_ref().is_some_and(plain::is_json);
    // Speech is asked for as events by another member, `stream_format`.
    let may_be_events = wants_stream || (surface.may_stream && surface.comes == Comes::Bytes);
    if may_be_events && content_type.as_ref().is_some_and(is_event_stream) {
        return passthrough_stream::events(shared, exchange, settlement, target, response.into_body(), fallbacks)
            .await
            .map(Done::Passed);
    }
    match surface.comes {
        Comes::Json(member) | Comes::JsonOrText(member) if is_json => {
            settlement.first_byte = Some(Instant::now());
            let body = whole(shared, target, response.into_body(), (surface, member), letter, settlement).await?;
            Ok(Done::Whole(body))
        }
        Comes::JsonOrText(_)
            if !settlement.answer_guardrails.is_off() && content_type.as_ref().is_some_and(is_plain_text) =>
        {
            // Guardrails judge it whole.
            settlement.first_byte = Some(Instant::now());
            let body = collect(shared, target, response.into_body()).await?;
            Ok(Done::Text(body, content_type.unwrap_or(HeaderValue::from_static("text/plain"))))
        }
        Comes::JsonOrText(_) if content_type.as_ref().is_some_and(is_plain_text) => {
            passthrough_stream::bytes(shared, exchange, settlement, target, response, fallbacks).await.map(Done::Passed)
        }
        Comes::Bytes if content_type.as_ref().is_some_and(is_media) => {
            passthrough_stream::bytes(shared, exchange, settlement, target, response, fallbacks).await.map(Done::Passed)
        }
        _ => Err(plain::invalid("The provider's answer is not of the type that was asked for.").into()),
    }
}

async fn collect(shared: &Shared, target: &Target, body: Incoming) -> Result<Bytes, Failed> {
    let idle = Duration::from_millis(target.connection.timeouts.idle_ms);
    tokio::select! {
        biased;
        body = plain::collect(body, idle) => Ok(body?),
        () = shared.drain.expired() => Err(shared.drain.error().into()),
    }
}

/// A text for the caller; an error where a guardrail withholds it.
fn text_answer(
    shared: &Shared,
    settlement: &mut Settlement,
    target: &Target,
    body: &Bytes,
    content_type: HeaderValue,
    fallbacks: usize,
) -> Result<(Head, Bytes), Error> {
    let body = guardrails::judge_answer_text(settlement, body)?;
    settlement.status = StatusCode::OK.as_u16();
    settlement.bytes_response = body.len() as u64;
    let mut headers = plain::head_headers(shared, settlement, target, fallbacks, content_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    Ok((Head { status: StatusCode::OK, headers }, body))
}

async fn whole(
    shared: &Shared,
    target: &Target,
    body: Incoming,
    (surface, member): (&Surface, &str),
    letter: &Letter,
    settlement: &mut Settlement,
) -> Result<Bytes, Failed> {
    let body = collect(shared, target, body).await?;
    if let Letter::Embedding { caller, letter, asked } = letter {
        let model = settlement.model.as_deref().unwrap_or_default();
        let told = embeddings::answer(*caller, letter.form, &body, asked, model)
            .ok_or_else(|| plain::invalid("The provider's answer has no embeddings."))?;
        settlement.usage = told.usage;
        settlement.set_units(told.units);
        return Ok(told.body);
    }
    let seen =
        metered::inspect(&body, member).map_err(|_| plain::invalid("The provider's answer is not one JSON object."))?;
    if seen.error.is_some() {
        return Err(plain::invalid("The provider told an error under a status of success.").into());
    }
    if !seen.is_answer {
        return Err(plain::invalid("The provider's answer lacks what such an answer must have.").into());
    }
    let units = counting::came_to(surface, &seen, settlement.units());
    settlement.set_units(units);
    settlement.usage = seen.usage.unwrap_or_default();
    Ok(body)
}

fn essence(value: &HeaderValue) -> &[u8] {
    value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

/// Transcripts also come as text or as subtitles.
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
    /// The type of the body as it came: its boundary is what it begins with.
    fn content_type(&self) -> Result<HeaderValue, header::InvalidHeaderValue> {
        HeaderValue::from_str(&format!("multipart/form-data; boundary=\"{}\"", self.boundary))
    }
}
