//! A streamed conversation. The caller receives comments until the provider responds, and then the stream in its
//! dialect.
//!
//! ```text
//! requesting -----> relayed by [`crate::call::relay::stream`]
//!   |  head timer
//!   +--- another connection may be tried (until the head was sent)
//! ```

use crate::call::context::Call;
use crate::call::conversation::plain;
use crate::call::conversation::reasoning;
use crate::call::conversation::translation::Translation;
use crate::call::guardrails::StreamFilter;
use crate::call::relay::deadline::too_slow;
use crate::call::relay::progress::Progress;
use crate::call::relay::stream::{StreamKind, StreamRelay};
use crate::call::relay::stream_error::ErrorForm;
use crate::call::relay::stream_judge::StreamJudge;
use crate::call::relay::{self, is_event_stream, stream_type, FinishedStream};
use crate::observe::cut_stream::ReportedUsage;
use crate::observe::settle::Settlement;
use crate::upstream::attempt::{self, Contents};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::slot::Slot;
use crate::upstream::target::Target;
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::guardrail::Actions;
use fairlead_core::{Dialect, Error, ErrorKind, Retry};
use fairlead_dialect::openai::reasoning::ReasoningCollector;
use fairlead_dialect::openai::stream::{Closing, End, Outcome, StreamPiece};
use fairlead_dialect::protocol::EventReader;
use fairlead_dialect::stream::Follow;
use fairlead_dialect::{stream_of_whole, Pieces};
use http::{header, HeaderValue, Response};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A stream whose first bytes have arrived.
#[derive(Debug)]
pub struct StartedStream {
    pub body: Incoming,
    pub first: Bytes,
    pub began: Instant,
    pub slot: Slot,
}

/// Sends the request to the target and relays the stream to its end. `at` is the target's index in the choice. An error
/// means that only comments were sent to the caller.
pub async fn run(call: &mut Call, at: usize, translation: &Translation) -> Result<FinishedStream, AttemptFailure> {
    let target = Arc::clone(&call.choice.targets[at]);
    let response = send(call, &target, at, translation).await?;
    let model = call.choice.upstream_model(at);
    let (body, first) = begin(response, &target, (translation, model)).await?;
    relay(call, at, translation, body, first).await
}

/// Relays a stream whose first bytes have already arrived.
pub async fn resume(
    call: &mut Call,
    at: usize,
    translation: &Translation,
    started: StartedStream,
) -> Result<FinishedStream, AttemptFailure> {
    let StartedStream { body, first, mut slot, .. } = started;
    let finished = relay(call, at, translation, body, Some(first)).await;
    slot.settle(&call.settlement.usage);
    finished
}

/// Returns the body of an event stream in the form of the connection's protocol. Some servers ignore that a stream was
/// requested: their JSON is read to its end, and returned as events before the empty rest. An error for any other
/// response.
pub async fn begin(
    response: Response<Incoming>,
    target: &Target,
    (translation, upstream_model): (&Translation, &str),
) -> Result<(Incoming, Option<Bytes>), Error> {
    let protocol = target.connection.protocol;
    let has_frames = protocol.streams_frames();
    let is_stream = if has_frames { is_amazons_stream } else { is_event_stream };
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if content_type.is_some_and(is_stream) {
        return Ok((response.into_body(), None));
    }
    let is_rewritten = has_frames || protocol.is_always_written();
    let is_json = !is_rewritten && content_type.is_some_and(plain::is_json);
    let mut body = response.into_body();
    if is_json {
        let idle = Duration::from_millis(target.connection.timeouts.idle_ms);
        // On the heap, because few responses are read here and all calls contain the future.
        let whole = Box::pin(plain::read_to_end(&mut body, idle)).await?;
        // The same errors as for a request without a stream.
        translation.answer(target, upstream_model, &whole)?;
        if let Some(events) = stream_of_whole(target.connection.dialect, &whole) {
            return Ok((body, Some(events)));
        }
    }
    let message = "The provider's answer is neither an event stream nor a complete answer.";
    Err(Error::upstream(ErrorKind::UpstreamInvalid, Retry::Elsewhere, message))
}

fn is_amazons_stream(value: &HeaderValue) -> bool {
    value.as_bytes().starts_with(b"application/vnd.amazon.eventstream")
}

/// Waits for the provider's response head. During a long wait the caller receives comments.
async fn send(
    call: &mut Call,
    target: &Arc<Target>,
    at: usize,
    translation: &Translation,
) -> Result<Response<Incoming>, AttemptFailure> {
    let shared = call.shared();
    let every = Duration::from_millis(shared.config.heartbeat_ms);
    let betas = call.settlement.admission.anthropic_beta.clone();
    let session = call.settlement.admission.session();
    let upstream_model = call.choice.upstream_model(at);
    let body = Contents::Json(translation.body(target, upstream_model));
    let uri = translation.uri(target, upstream_model, true)?;
    let (betas, session) = (betas.as_ref(), session.as_ref());
    let request = attempt::Upstream { uri: &uri, model: upstream_model, betas, session, body, is_stream: true };
    let mut asking = pin!(attempt::send(&shared.pool, target, request));
    let limit = call.time_for(at);
    let mut late = pin!(async move {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    });
    let holds = translation.holds_streams();
    let mut tick = pin!(tokio::time::sleep(every));
    loop {
        tokio::select! {
            biased;
            answered = &mut asking => return answered,
            () = &mut late => return Err(too_slow(limit.unwrap_or_default())),
            () = shared.drain.expired() => return Err(shared.drain.error().into()),
            // A caller that has received nothing can still be served by another target.
            () = &mut tick, if !holds => {
                let content_type = stream_type(translation.is_events());
                let comment = Pieces::from_iter([translation.heartbeat()]);
                let fallbacks = call.fallbacks();
                relay::send(&mut call.settlement, target, fallbacks, &content_type, comment);
                tick.as_mut().reset(tokio::time::Instant::now() + every);
            }
        }
    }
}

async fn relay(
    call: &mut Call,
    at: usize,
    translation: &Translation,
    body: Incoming,
    first: Option<Bytes>,
) -> Result<FinishedStream, AttemptFailure> {
    let target = Arc::clone(&call.choice.targets[at]);
    let reader = translation.event_reader(&target, call.choice.upstream_model(at)).map(Box::new);
    let admission = &call.settlement.admission;
    let progress = admission.wants_progress.then(|| Progress::new(translation.caller, admission.started));
    let kind = ConversationStream {
        translation,
        target: Arc::clone(&target),
        judge: translation.judge_stream(&target),
        reader,
        follow: translation.follow(&target),
        listener: reasoning::listen(&target),
        is_done: false,
    };
    let content_type = stream_type(translation.is_events());
    StreamRelay::new(call, target, &kind, content_type).with_progress(progress).pass(kind, body, first).await
}

/// A conversation's events, translated from the provider's dialect to the caller's.
#[derive(Debug)]
pub struct ConversationStream<'a> {
    translation: &'a Translation,
    target: Arc<Target>,
    /// Reads events that are not server-sent events. Boxed, because few streams have it and all wait with it.
    reader: Option<Box<EventReader>>,
    follow: Follow,
    /// Collects reasoning that the connection expects back in later requests.
    listener: Option<ReasoningCollector>,
    /// The rules that the response must satisfy before any of it is sent.
    judge: Option<Box<StreamJudge>>,
    /// The stream has sent its terminal event.
    is_done: bool,
}

/// The format of errors in a stream to this caller.
fn error_form(translation: &Translation) -> ErrorForm {
    ErrorForm { dialect: translation.caller, is_list: !translation.is_events() }
}

impl StreamKind for ConversationStream<'_> {
    const NAME: &'static str = "stream";
    const NO_BEGINNING: &'static str = "no first event";

    fn filter(&self, actions: Actions) -> Option<StreamFilter> {
        StreamFilter::new(actions, self.translation.is_events())
    }

    fn error_form(&self) -> Option<ErrorForm> {
        Some(error_form(self.translation))
    }

    fn push(&mut self, settlement: &mut Settlement, chunk: &Bytes) -> StreamPiece {
        let events;
        let chunk = match &mut self.reader {
            None => chunk,
            Some(reader) => {
                events = reader.push(chunk);
                &events
            }
        };
        if let Some(listener) = &mut self.listener {
            listener.push(chunk);
        }
        let mut passed = self.follow.push(chunk);
        if let Some(judge) = &mut self.judge {
            judge.push(chunk);
            passed.has_output &= !judge.holds();
            passed.done |= judge.is_too_long();
        }
        self.is_done |= passed.done;
        // Anthropic's streams start with the usage of the prompt.
        let is_of_prompt = self.target.connection.dialect == Dialect::Anthropic;
        settlement.note_events(chunk, passed.has_output, ReportedUsage { usage: self.follow.usage(), is_of_prompt });
        passed
    }

    fn comment(&self) -> Option<Bytes> {
        (self.follow.between_events() && !self.is_held()).then(|| self.translation.heartbeat())
    }

    fn is_held(&self) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.holds())
    }

    fn finish(mut self, settlement: &mut Settlement, end: End) -> Closing {
        // Taken, because what it returns is a part of the stream that has been read.
        let rest = self.reader.take().map(|mut reader| reader.finish());
        let rest = rest.filter(|rest| !rest.is_empty() && end == End::Clean);
        let last = rest.map(|rest| self.push(settlement, &rest).pieces);
        let judge = self.judge.as_ref().filter(|_| end == End::Clean);
        let is_too_long = judge.is_some_and(|judge| judge.is_too_long());
        let rejection = judge.and_then(|judge| judge.fault());
        if self.is_done && end == End::Clean && rejection.is_none() {
            reasoning::keep(settlement, &self.target, self.listener.and_then(ReasoningCollector::finish));
        }
        let form = error_form(self.translation);
        let mut closing = self.follow.finish(end);
        if let Some(mut last) = last {
            last.push(closing.bytes);
            closing.bytes = last.concat().into();
        }
        match rejection.filter(|_| is_too_long || closing.error.is_none()) {
            None => closing,
            Some(fault) => Closing {
                bytes: form.event(&fault),
                outcome: Outcome::UpstreamFailed,
                usage: None,
                error: Some(fault),
                upstream_error: None,
                response: None,
            },
        }
    }
}
