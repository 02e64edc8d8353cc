//! The relay of a stream, whatever is in it: bytes pass as they come, silence is bridged by comments, and whatever happens the
//! caller gets exactly one end.
//!
//! ```text
//! waiting ----------> passing ----------> ended
//!    |  first-token      |  idle timer       completed, upstream_failed, drained
//!    |  timer            |
//!    +--- another connection may be tried (until the head was sent)
//! ```
//!
//! The head is held until the first bytes may go to the caller, so a provider that fails at once can be replaced. A kind of stream
//! that has comments sends the head after one heartbeat of waiting all the same, because proxies cut silent connections.
//!
//! How an answer begins (its id, its model, an empty text) is held back until the answer says something, so that a provider
//! whose answer comes to nothing can be replaced as well.
//!
//! This is the one loop over a provider's stream: translated conversations, typed events and bytes differ by [`StreamKind`].
//! Answers of control have a loop of their own ([`crate::control::forward::copy`]): they are not metered, judged or replaced.

use crate::call::context::Call;
use crate::call::failover;
use crate::call::guardrails::StreamFilter;
use crate::call::progress::Progress;
use crate::call::relay::{self, is_begun, is_event_stream, judged, size, FinishedStream};
use crate::call::stream_error::{diagnosed, ErrorForm};
use crate::exchange::{Exchange, Room};
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

/// The most bytes that are taken from the provider before any of them goes to the caller.
const MAX_BATCH_BYTES: usize = 64 * 1024;
/// As much of an answer's beginning is held back until it says something.
const MAX_BEGINNING_BYTES: u64 = 64 * 1024;

/// A kind of stream: how its bytes are followed, and how it ends.
pub trait StreamKind: Send {
    /// The name of such an answer in messages.
    const NAME: &'static str;
    /// The missing beginning of such an answer in messages.
    const NO_BEGINNING: &'static str;

    /// The filter for guardrails that do this to answers; `None` where nothing is done.
    fn filter(&self, actions: Actions) -> Option<StreamFilter>;

    /// The form of errors inside the stream. `None`: an error cannot be said there, and the caller's connection is broken
    /// instead, so that nobody takes half for whole.
    fn error_form(&self) -> Option<ErrorForm>;

    /// Follows what came. Usage and units so far are noted in the settlement.
    fn push(&mut self, settlement: &mut Settlement, chunk: &Bytes) -> StreamPiece;

    /// A comment for a caller that waits, where one may stand now.
    fn comment(&self) -> Option<Bytes> {
        None
    }

    /// Whether how it begins is held back, however long it is and whatever it says.
    fn is_held(&self) -> bool {
        false
    }

    /// Ends the stream, told or not.
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
    /// How the answer begins, until it says something.
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

/// When somebody last did something, and how long the provider may be silent.
#[derive(Debug)]
struct Waiting {
    /// Time between comments.
    every: Duration,
    patience: Duration,
    idle: Duration,
    has_begun: bool,
    /// The provider said something, or could not because nobody read.
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

    /// The next time to look, after a look at `now`.
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

    /// Puts progress events between those of the stream.
    #[must_use]
    pub fn with_progress(self, progress: Option<Progress>) -> Self {
        Self { progress, ..self }
    }

    /// Relays to the end. `first`: bytes that were read already. An error means that nothing but comments was sent.
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
                    // Nobody reads from the provider meanwhile, so its silence says nothing.
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

    /// Follows chunks, has them judged and sends what may go. `Some`: the stream has told its end, and this is what goes before it.
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
        let mut has_said = false;
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
            has_said |= passed.has_said;
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
        out = self.after_beginning(out, has_said, kind.is_held());
        if done {
            return Ok(Some(out));
        }
        if !out.is_empty() {
            self.waiting.sent = now;
            self.send(out);
        }
        Ok(None)
    }

    /// Holds back how the answer begins; with the first bytes that say something it goes before them.
    fn after_beginning(&mut self, out: Pieces, has_said: bool, is_held: bool) -> Pieces {
        let Some(mut beginning) = self.beginning.take() else { return out };
        beginning.extend(out);
        if !is_held && (has_said || size(&beginning) > MAX_BEGINNING_BYTES) {
            return beginning;
        }
        self.beginning = Some(beginning);
        Pieces::new()
    }

    /// Sends a comment where one is due. An error means that the provider was silent for too long.
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

    /// Ends a stream that told its end, with `last` before it. What comes behind it in the provider's body is read later.
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

    /// Ends a stream whose provider's body came to its end, or that cannot go on.
    fn finish<K: StreamKind>(mut self, kind: K, end: End, body: Incoming) -> Result<FinishedStream, AttemptFailure> {
        let tail = matches!(end, End::Clean).then_some(body);
        let closing = kind.finish(&mut self.call.settlement, end);
        let (closing, last) = self.take_held(closing);
        let tail = tail.filter(|_| closing.error.is_none());
        self.close(last, closing, tail)
    }

    /// Takes the bytes that guardrails held back, and judges those that end the stream, which may hold whole texts. A stream that
    /// was blocked says nothing more.
    fn take_held(&mut self, mut closing: Closing) -> (Closing, Pieces) {
        let is_blocked = closing.error.as_ref().is_some_and(|fault| fault.kind == ErrorKind::GuardrailBlocked);
        let Some(filter) = self.filter.as_mut().filter(|_| !is_blocked) else { return (closing, Pieces::new()) };
        // An error event is ours, unless it is the end of a list, which is judged whole.
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

    /// Ends the stream for the caller, or hands the failure back while another connection may still be tried.
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
            // Of an answer that nobody gets nothing is told, and nothing is paid for.
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
        // The head must be out before the end; without bytes, they follow once the record is written.
        self.send([]);
        self.call.settlement.bytes_response += size(&last);
        let is_cut = closing.error.is_some() && self.error_form.is_none();
        let is_events = is_event_stream(&self.content_type);
        Ok(FinishedStream { outcome, error: closing.error, last, response: closing.response, tail, is_events, is_cut })
    }

    /// A stream that failed before anything of it was sent.
    fn failure(&self, error: &Error, upstream_error: Option<UpstreamError>) -> AttemptFailure {
        if let Some(reported) = upstream_error.filter(blames_request) {
            let rejected =
                Error::upstream(ErrorKind::InvalidRequest, Retry::Never, "The provider rejected the request.");
            let error = Error { cause: error.cause.clone(), ..rejected };
            let rejection = Some(Box::new(rejection(StatusCode::BAD_REQUEST, reported, &self.target)));
            return AttemptFailure { error, hint_ms: None, rejection, blames_connection: false };
        }
        // Where no error can be said, each says itself whether it is safe to ask again.
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

/// Looks for what happens next; everything that the provider has ready comes in one step.
///
/// Bytes before the end go first: the end is put into `held` for the next look.
fn poll_step(
    exchange: &Exchange,
    body: &mut Incoming,
    next_step: &mut Option<Step>,
    timer: Pin<&mut Sleep>,
    cx: &mut Context<'_>,
) -> Poll<Step> {
    let has_room = match exchange.poll_room(cx) {
        Poll::Ready(Room::Free) => true,
        // The caller's own task is dropped by whoever watches for it.
        Poll::Ready(Room::ClientGone) => return Poll::Pending,
        Poll::Pending => false,
    };
    if has_room {
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
        return Poll::Ready(if has_room { Step::Tick } else { Step::ClientStalls });
    }
    Poll::Pending
}

/// The error for one of the two silences of a stream: before its first token, or inside it.
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
        RejectionReason::Request => is_invalid,
        _ => true,
    }
}

/// A provider's own error event, without the connection's secrets should it echo them.
fn masked(pieces: Pieces, target: &Target) -> Pieces {
    let whole = pieces.concat();
    if !target.is_revealed_in(&whole) {
        return pieces;
    }
    Pieces::from_iter([Bytes::from(target.mask(&String::from_utf8_lossy(&whole)))])
}
