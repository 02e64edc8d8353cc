//! Relays a stream, whatever its content. Bytes are relayed as they arrive, comments bridge silence, and the caller
//! receives exactly one end.
//!
//! ```text
//! waiting ----------> passing ----------> ended
//!    |  first-token      |  idle timer       completed, upstream_failed, drained
//!    |  timer            |
//!    +--- another connection may be tried (until the head was sent)
//! ```
//!
//! The head is delayed until the first bytes can be sent, so that a provider that fails at once can be replaced.
//! Streams that support comments send the head after one heartbeat anyway, because proxies close silent connections.
//!
//! The start of a response (its id, its model, an empty text) is buffered until the response has content, so that a
//! provider with an empty response can be replaced as well.
//!
//! This is the only loop over a provider's stream. Translated conversations, typed events and bytes differ by
//! [`StreamKind`]. Responses of control have a separate loop ([`crate::control::forward::copy`]), because they are not
//! metered, checked or replaced.

use crate::call::attempt::failover;
use crate::call::context::Call;
use crate::call::guardrails::StreamFilter;
use crate::call::relay::progress::Progress;
use crate::call::relay::stream_error::{diagnosed, ErrorForm};
use crate::call::relay::{self, is_begun, is_event_stream, judged, size, FinishedStream};
use crate::exchange::{Capacity, Exchange};
use crate::observe::settle::Settlement;
use crate::patience::SEND_PATIENCE;
use crate::upstream::attempt::{provider_error, rejection};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::Target;
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::guardrail::Actions;
use fairlead_core::{Error, ErrorKind, Outcome, Retry};
use fairlead_dialect::openai::answer::UpstreamError;
use fairlead_dialect::openai::stream;
use fairlead_dialect::openai::stream::{Closing, End, StreamPiece};
use fairlead_dialect::{reason_of, Pieces, RejectionReason};
use http::header::HeaderValue;
use http::StatusCode;
use http_body::Body as _;
use smallvec::SmallVec;
use std::future::{poll_fn, Future as _};
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// The maximum number of bytes read from the provider before some are sent to the caller.
const MAX_BATCH_BYTES: usize = 64 * 1024;
/// The maximum size of the buffered start of a response.
const MAX_BEGINNING_BYTES: u64 = 64 * 1024;

/// A kind of stream: how its bytes are parsed, and how it ends.
pub trait StreamKind: Send {
    /// The name of such a response in messages.
    const NAME: &'static str;
    /// The name of the missing start of such a response in messages.
    const NO_BEGINNING: &'static str;

    /// The filter for guardrails with these actions on responses; `None` if there is no action.
    fn filter(&self, actions: Actions) -> Option<StreamFilter>;

    /// The format of errors inside the stream. `None` means that the stream cannot express an error. The caller's
    /// connection is reset instead, so that a truncated response does not look complete.
    fn error_form(&self) -> Option<ErrorForm>;

    /// Parses received bytes and records the usage and units so far.
    fn push(&mut self, settlement: &mut Settlement, chunk: &Bytes) -> StreamPiece;

    /// A comment for a waiting caller, if the stream allows one at this point.
    fn comment(&self) -> Option<Bytes> {
        None
    }

    /// Whether the start of the response is buffered regardless of its length and content.
    fn is_held(&self) -> bool {
        false
    }

    /// Ends the stream, with or without a terminal event.
    fn finish(self, settlement: &mut Settlement, end: End) -> Closing;
}

/// One attempt to relay one stream.
#[derive(Debug)]
pub struct StreamRelay<'a> {
    call: &'a mut Call,
    target: Arc<Target>,
    error_form: Option<ErrorForm>,
    content_type: HeaderValue,
    filter: Option<StreamFilter>,
    progress: Option<Progress>,
    waiting: Waiting,
    /// The start of the response, until it has content.
    beginning: Option<Pieces>,
}

/// The next event of a relay.
enum Step {
    Chunks(SmallVec<[Bytes; 4]>),
    Ended,
    Broken,
    Tick,
    ClientStalls,
    Drained,
}

/// The times of the last activity, and the provider's timeout.
#[derive(Debug)]
struct Waiting {
    /// The interval between comments.
    every: Duration,
    patience: Duration,
    idle: Duration,
    has_begun: bool,
    /// The provider sent something, or was not read because the caller did not read.
    spoke: Instant,
    read: Instant,
    sent: Instant,
}

impl Waiting {
    fn new(call: &Call, target: &Target) -> Self {
        let timeouts = target.connection.timeouts;
        let now = Instant::now();
        Self {
            every: Duration::from_millis(call.settlement.shared.config.heartbeat_ms),
            patience: Duration::from_millis(timeouts.first_token_ms),
            idle: Duration::from_millis(timeouts.idle_ms),
            has_begun: false,
            spoke: now,
            read: now,
            sent: now,
        }
    }

    fn soonest(&self, now: Instant) -> tokio::time::Instant {
        (now + self.every.min(self.patience)).into()
    }

    /// The next time to check, after a check at `now`.
    fn next(&self, now: Instant) -> tokio::time::Instant {
        let beat = if now >= self.sent + self.every { now + self.every } else { self.sent + self.every };
        (self.spoke + self.patience).min(beat).into()
    }
}

impl<'a> StreamRelay<'a> {
    pub fn new<K: StreamKind>(call: &'a mut Call, target: Arc<Target>, kind: &K, content_type: HeaderValue) -> Self {
        let filter = kind.filter(call.settlement.answer_guardrails);
        let waiting = Waiting::new(call, &target);
        Self {
            call,
            target,
            error_form: kind.error_form(),
            content_type,
            filter,
            progress: None,
            waiting,
            beginning: Some(Pieces::new()),
        }
    }

    /// Inserts progress events between those of the stream.
    #[must_use]
    pub fn with_progress(self, progress: Option<Progress>) -> Self {
        Self { progress, ..self }
    }

    /// Relays the stream to its end. `first` contains bytes that were already read. An error means that only comments
    /// were sent.
    pub async fn pass<K: StreamKind>(
        mut self,
        mut kind: K,
        mut body: Incoming,
        first: Option<Bytes>,
    ) -> Result<FinishedStream, AttemptFailure> {
        let (shared, exchange) = (self.call.shared(), Arc::clone(&self.call.settlement.exchange));
        let mut timer = pin!(tokio::time::sleep_until(self.waiting.soonest(self.waiting.spoke)));
        let mut next_step = first.map(|first| Step::Chunks(SmallVec::from_iter([first])));
        let mut drained = pin!(shared.drain.expired());
        let end = loop {
            let step = poll_fn(|cx| {
                if let Some(step) = next_step.take() {
                    return Poll::Ready(step);
                }
                let step = poll_step(&exchange, &mut body, &mut next_step, timer.as_mut(), cx);
                if step.is_pending() && drained.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Step::Drained);
                }
                step
            })
            .await;
            let now = Instant::now();
            match step {
                Step::Chunks(chunks) => match self.pass_chunks(&mut kind, &chunks, now, timer.as_mut()) {
                    Ok(None) => {}
                    Ok(Some(last)) => return self.finish_failed_stream(kind, last, body),
                    Err(fault) => break End::Broken(fault),
                },
                Step::Tick => {
                    if let Err(silent) = self.bridge_silence(&kind, now) {
                        break End::Broken(silent);
                    }
                    timer.as_mut().reset(self.waiting.next(now));
                }
                Step::ClientStalls => {
                    // Nothing is read from the provider meanwhile, so it cannot time out.
                    self.waiting.spoke = now;
                    if now - self.waiting.read >= SEND_PATIENCE {
                        exchange.cancel();
                    }
                    timer.as_mut().reset(self.waiting.next(now));
                }
                Step::Ended => break End::Clean,
                Step::Broken => {
                    let message = format!("The provider cut its {} off.", K::NAME);
                    break End::Broken(Error::upstream(ErrorKind::UpstreamReset, Retry::Elsewhere, message));
                }
                Step::Drained => break End::Broken(shared.drain.error()),
            }
        };
        self.finish(kind, end, body)
    }

    /// Parses chunks, applies guardrails and sends the result. Returns `Some` at the terminal event, with the bytes
    /// that precede it.
    fn pass_chunks<K: StreamKind>(
        &mut self,
        kind: &mut K,
        chunks: &[Bytes],
        now: Instant,
        mut timer: Pin<&mut Sleep>,
    ) -> Result<Option<Pieces>, Error> {
        (self.waiting.spoke, self.waiting.read) = (now, now);
        let mut out = Pieces::new();
        let mut done = false;
        let mut has_output = false;
        let was_between = self.progress.is_some() && kind.comment().is_some();
        for chunk in chunks {
            let passed = kind.push(&mut self.call.settlement, chunk);
            if passed.first_token {
                self.call.settlement.first_byte = Some(now);
                self.waiting.has_begun = true;
                self.waiting.patience = self.waiting.idle;
                timer.as_mut().reset(self.waiting.soonest(now));
            }
            out.extend(passed.pieces);
            has_output |= passed.has_output;
            if passed.done {
                done = true;
                break;
            }
        }
        out = judged(self.filter.as_mut(), &mut self.call.settlement, out, done)?;
        if let Some(progress) = &mut self.progress {
            let is_between = if done { was_between } else { kind.comment().is_some() };
            out = progress.pass(out, done, is_between, now);
        }
        out = self.after_beginning(out, has_output, kind.is_held());
        if done {
            return Ok(Some(out));
        }
        if !out.is_empty() {
            self.waiting.sent = now;
            self.send(out);
        }
        Ok(None)
    }

    /// Buffers the start of a response. The first bytes with content release it.
    fn after_beginning(&mut self, out: Pieces, has_output: bool, is_held: bool) -> Pieces {
        let Some(mut beginning) = self.beginning.take() else { return out };
        beginning.extend(out);
        if !is_held && (has_output || size(&beginning) > MAX_BEGINNING_BYTES) {
            return beginning;
        }
        self.beginning = Some(beginning);
        Pieces::new()
    }

    /// Sends a comment if one is due. An error means that the provider was silent for too long.
    fn bridge_silence<K: StreamKind>(&mut self, kind: &K, now: Instant) -> Result<(), Error> {
        let waiting = &mut self.waiting;
        if now - waiting.spoke >= waiting.patience {
            return Err(silent::<K>(waiting.patience, waiting.has_begun));
        }
        if now - waiting.sent >= waiting.every {
            if let Some(comment) = kind.comment() {
                waiting.sent = now;
                self.send([comment]);
            }
        }
        Ok(())
    }

    /// Ends a stream after its terminal event, with `last` before it. The remaining body is read later.
    fn finish_failed_stream<K: StreamKind>(
        mut self,
        kind: K,
        mut last: Pieces,
        body: Incoming,
    ) -> Result<FinishedStream, AttemptFailure> {
        let mut closing = kind.finish(&mut self.call.settlement, End::Clean);
        if !closing.bytes.is_empty() {
            let withheld;
            (closing, withheld) = self.take_held(closing);
            last.extend(withheld);
        }
        self.close(last, closing, Some(body))
    }

    /// Ends a stream whose body has ended or cannot be continued.
    fn finish<K: StreamKind>(mut self, kind: K, end: End, body: Incoming) -> Result<FinishedStream, AttemptFailure> {
        let tail = matches!(end, End::Clean).then_some(body);
        let closing = kind.finish(&mut self.call.settlement, end);
        let (closing, last) = self.take_held(closing);
        let tail = tail.filter(|_| closing.error.is_none());
        self.close(last, closing, tail)
    }

    /// Returns the bytes that guardrails buffered, and checks the last bytes of the stream, which may contain whole
    /// texts. A blocked stream sends no further bytes.
    fn take_held(&mut self, mut closing: Closing) -> (Closing, Pieces) {
        let is_blocked = closing.error.as_ref().is_some_and(|fault| fault.kind == ErrorKind::GuardrailBlocked);
        let Some(filter) = self.filter.as_mut().filter(|_| !is_blocked) else { return (closing, Pieces::new()) };
        // An error event was written by the gateway, except at the end of a list, which is checked as a whole.
        let is_judged = closing.error.is_none() || !filter.is_events();
        let ending = if is_judged { std::mem::take(&mut closing.bytes) } else { Bytes::new() };
        match judged(Some(filter), &mut self.call.settlement, Pieces::from_iter([ending]), true) {
            Ok(last) => (closing, last.into_iter().filter(|piece| !piece.is_empty()).collect()),
            Err(fault) => {
                let bytes = self.error_form.map(|form| form.event(&fault)).unwrap_or_default();
                let outcome = stream::Outcome::UpstreamFailed;
                (Closing { bytes, outcome, error: Some(fault), response: None, ..closing }, Pieces::new())
            }
        }
    }

    /// Ends the stream for the caller, or returns the failure while another connection may still be tried.
    fn close(
        mut self,
        mut last: Pieces,
        mut closing: Closing,
        tail: Option<Incoming>,
    ) -> Result<FinishedStream, AttemptFailure> {
        self.call.settlement.usage = closing.usage.unwrap_or_default();
        if let Some(reported) = &closing.upstream_error {
            let reported = provider_error(StatusCode::OK.as_u16(), reported, &self.target);
            closing.error = closing.error.take().map(|error| error.with_provider_error(reported));
        }
        let outcome = match (closing.outcome, &closing.error) {
            (stream::Outcome::Completed, _) => Outcome::Completed,
            (_, Some(error)) => failover::outcome(error.kind),
            _ => Outcome::UpstreamFailed,
        };
        let beginning = self.beginning.take();
        let is_rejected = closing.error.as_ref().is_some_and(|error| error.kind == ErrorKind::AnswerRejected);
        if is_rejected {
            // A rejected response is not sent, so its last bytes are dropped.
            last.clear();
        }
        let is_begun = is_begun(&self.call.settlement, &last) && (beginning.is_none() || self.call.is_headed());
        if let (false, Some(error)) = (is_begun, &closing.error) {
            match outcome {
                Outcome::Completed => {}
                Outcome::UpstreamFailed => return Err(self.failure(error, closing.upstream_error)),
                _ => return Err(error.clone().into()),
            }
        }
        if let Some(mut beginning) = beginning.filter(|_| !is_rejected) {
            beginning.extend(last);
            last = beginning;
        }
        if !closing.bytes.is_empty() {
            last.push(closing.bytes);
        }
        if closing.upstream_error.is_some() {
            last = masked(last, &self.target);
        }
        if let (Some(error), Some(form)) = (&closing.error, self.error_form) {
            last = diagnosed(last, form, self.call, error);
        }
        // The head must be sent before the end. Remaining bytes follow after the record is written.
        self.send([]);
        self.call.settlement.bytes_response += size(&last);
        let is_cut = closing.error.is_some() && self.error_form.is_none();
        let is_events = is_event_stream(&self.content_type);
        Ok(FinishedStream { outcome, error: closing.error, last, response: closing.response, tail, is_events, is_cut })
    }

    /// Builds the failure of a stream of which nothing was sent.
    fn failure(&self, error: &Error, upstream_error: Option<UpstreamError>) -> AttemptFailure {
        if let Some(reported) = upstream_error.filter(blames_request) {
            let rejected =
                Error::upstream(ErrorKind::InvalidRequest, Retry::Never, "The provider rejected the request.");
            let error = Error { cause: error.cause.clone(), ..rejected };
            let rejection = Some(Box::new(rejection(StatusCode::BAD_REQUEST, reported, &self.target)));
            return AttemptFailure { error, hint_ms: None, rejection, blames_connection: false };
        }
        // If the stream cannot express errors, each error itself determines whether a retry is safe.
        let retry = if self.error_form.is_some() { Retry::Elsewhere } else { error.retry };
        Error { retry, ..error.clone() }.into()
    }

    /// Sends bytes, with the head before the first of them.
    fn send(&mut self, pieces: impl IntoIterator<Item = Bytes>) {
        let fallbacks = self.call.fallbacks();
        let pieces = pieces.into_iter().collect();
        relay::send(&mut self.call.settlement, &self.target, fallbacks, &self.content_type, pieces);
    }
}

/// Waits for the next event. Everything that the provider has ready is returned in one step.
///
/// Bytes before the end come first: the end is stored in `held` for the next call.
fn poll_step(
    exchange: &Exchange,
    body: &mut Incoming,
    next_step: &mut Option<Step>,
    timer: Pin<&mut Sleep>,
    cx: &mut Context<'_>,
) -> Poll<Step> {
    let has_capacity = match exchange.poll_capacity(cx) {
        Poll::Ready(Capacity::Free) => true,
        // The task that watches for the caller's disconnect drops this one.
        Poll::Ready(Capacity::ClientGone) => return Poll::Pending,
        Poll::Pending => false,
    };
    if has_capacity {
        let mut chunks = SmallVec::new();
        let mut batched_bytes = 0;
        while batched_bytes < MAX_BATCH_BYTES {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        batched_bytes += data.len();
                        chunks.push(data);
                    }
                    continue;
                }
                Poll::Ready(Some(Err(_))) => *next_step = Some(Step::Broken),
                Poll::Ready(None) => *next_step = Some(Step::Ended),
                Poll::Pending => {}
            }
            break;
        }
        if !chunks.is_empty() {
            return Poll::Ready(Step::Chunks(chunks));
        }
        if let Some(step) = next_step.take() {
            return Poll::Ready(step);
        }
    }
    if timer.poll(cx).is_ready() {
        return Poll::Ready(if has_capacity { Step::Tick } else { Step::ClientStalls });
    }
    Poll::Pending
}

/// The timeout error of a stream: before its first token, or within it.
pub fn silent<K: StreamKind>(patience: Duration, has_begun: bool) -> Error {
    let waited_ms = patience.as_millis();
    let (kind, message) = if has_begun {
        (ErrorKind::UpstreamIdleTimeout, format!("The provider was silent for {waited_ms} ms inside its {}.", K::NAME))
    } else {
        let message = format!("The provider sent {} within {waited_ms} ms.", K::NO_BEGINNING);
        (ErrorKind::UpstreamFirstTokenTimeout, message)
    };
    Error::upstream(kind, Retry::Never, message)
}

/// Whether an error object blames the request rather than the provider.
fn blames_request(error: &UpstreamError) -> bool {
    let is_invalid = error.kind.as_deref() == Some("invalid_request_error")
        || error.status.as_deref() == Some("INVALID_ARGUMENT")
        || matches!(error.code.as_deref(), Some("400" | "404" | "413" | "422"));
    match reason_of(error) {
        RejectionReason::Credential => false,
        RejectionReason::Policy | RejectionReason::Request => is_invalid,
        _ => true,
    }
}

/// Removes the connection's secrets from a provider's error event.
fn masked(pieces: Pieces, target: &Target) -> Pieces {
    let whole = pieces.concat();
    if !target.is_revealed_in(&whole) {
        return pieces;
    }
    Pieces::from_iter([Bytes::from(target.mask(&String::from_utf8_lossy(&whole)))])
}
