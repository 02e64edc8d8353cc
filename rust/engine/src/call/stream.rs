//! A streamed answer: events pass as they came, silence is bridged by comments, and whatever happens the caller gets
//! exactly one end.
//!
//! ```text
//! asking ----------> waiting ----------> passing ----------> ended
//!   |  head timer       |  first-token      |  idle timer       completed, upstream_failed, drained
//!   |                   |  timer            |
//!   +--- another connection may be tried ---+   (until the head was sent)
//! ```
//!
//! The head is held until the first event, so a provider that fails at once can be replaced; after one heartbeat of
//! waiting it is sent all the same, because proxies cut silent connections.

use crate::call::context::Call;
use crate::call::failover;
use crate::call::guardrails::StreamFilter;
use crate::call::progress::Progress;
use crate::call::reasoning;
use crate::call::relay::{is_begun, is_event_stream, judged, send, size, stream_type, FinishedStream};
use crate::call::translation::Translation;
use crate::exchange::{Exchange, Room};
use crate::patience::SEND_PATIENCE;
use crate::upstream::attempt::{self, rejection, Contents};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::{InFlightGuard, Target};
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::error::{Error, Kind, Retry};
use fairlead_core::record::Outcome;
use fairlead_dialect::openai::answer::UpstreamError;
use fairlead_dialect::openai::reasoning::Listener;
use fairlead_dialect::openai::stream::{self, Closing, End};
use fairlead_dialect::shapes::ErrorText;
use fairlead_dialect::stream::terminal_error;
use fairlead_dialect::Pieces;
use http::header;
use http::{Response, StatusCode};
use http_body::Body as _;
use smallvec::SmallVec;
use std::future::{poll_fn, Future as _};
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// What is taken from the provider before the caller is told of it.
const MAX_BATCH_BYTES: usize = 64 * 1024;

/// A stream of which the first bytes are here.
#[derive(Debug)]
pub struct StartedStream {
    pub body: Incoming,
    pub first: Bytes,
    pub began: Instant,
    pub in_flight: InFlightGuard,
}

/// One attempt to relay one stream.
#[derive(Debug)]
pub struct StreamRelay<'a> {
    call: &'a mut Call,
    target: Arc<Target>,
    translation: &'a Translation,
}

/// What happened next.
enum Step {
    Frames(SmallVec<[Bytes; 4]>),
    Ended,
    Broken,
    Tick,
    ClientStalls,
    Drained,
}

impl<'a> StreamRelay<'a> {
    /// `at`: the place of the target in the choice.
    pub fn new(call: &'a mut Call, at: usize, translation: &'a Translation) -> Self {
        let target = Arc::clone(&call.choice.targets[at]);
        Self { call, target, translation }
    }

    /// Asks the target and relays to the end. An error means that nothing but comments was sent.
    pub async fn run(&mut self, at: usize) -> Result<FinishedStream, AttemptFailure> {
        let response = self.ask(at).await?;
        if !response.headers().get(header::CONTENT_TYPE).is_some_and(is_event_stream) {
            return Err(no_events().into());
        }
        self.pass(response.into_body(), None).await
    }

    /// Relays a stream whose first bytes are here already.
    pub async fn resume(&mut self, started: StartedStream) -> Result<FinishedStream, AttemptFailure> {
        let StartedStream { body, first, in_flight: _in_flight, .. } = started;
        self.pass(body, Some(first)).await
    }

    /// Waits for the provider's head, with comments for the caller once waiting is long.
    async fn ask(&mut self, at: usize) -> Result<Response<Incoming>, AttemptFailure> {
        let shared = self.call.shared();
        let every = Duration::from_millis(shared.config.heartbeat_ms);
        let betas = self.call.settlement.admission.anthropic_beta.clone();
        let upstream_model = self.call.choice.upstream_model(at);
        let (target, translation) = (Arc::clone(&self.target), self.translation);
        let body = translation.body(&target, upstream_model);
        let uri = translation.uri(&target, upstream_model, true)?;
        let request =
            attempt::Upstream { uri: &uri, betas: betas.as_ref(), body: Contents::Json(body), is_stream: true };
        let mut asking = pin!(attempt::send(&shared.pool, &target, request));
        let mut tick = pin!(tokio::time::sleep(every));
        loop {
            tokio::select! {
                biased;
                answered = &mut asking => return answered,
                () = shared.drain.expired() => return Err(shared.drain.error().into()),
                () = &mut tick => {
                    self.send([translation.heartbeat()]);
                    tick.as_mut().reset(tokio::time::Instant::now() + every);
                }
            }
        }
    }

    /// Progress events between those of the answer, where the caller wants them.
    fn progress(&self) -> Option<Progress> {
        let admission = &self.call.settlement.admission;
        admission.wants_progress.then(|| Progress::new(self.translation.caller, admission.started))
    }

    #[allow(clippy::too_many_lines, reason = "the one loop of a stream reads from the top")]
    async fn pass(&mut self, mut body: Incoming, first: Option<Bytes>) -> Result<FinishedStream, AttemptFailure> {
        let (shared, target) = (self.call.shared(), Arc::clone(&self.target));
        let exchange = Arc::clone(&self.call.settlement.exchange);
        let every = Duration::from_millis(shared.config.heartbeat_ms);
        let timeouts = target.connection.timeouts;
        let mut patience = Duration::from_millis(timeouts.first_token_ms);
        let mut scan = self.translation.follow(&target);
        let mut listener = reasoning::listen(&target);
        let mut filter = StreamFilter::new(self.call.settlement.answer_guardrails, self.translation.is_events());
        let mut progress = self.progress();
        let mut heard = Instant::now();
        let (mut said, mut read) = (heard, heard);
        let mut timer = pin!(tokio::time::sleep(every.min(patience)));
        let mut held = first.map(|first| Step::Frames(SmallVec::from_iter([first])));
        let mut drained_signal = pin!(shared.drain.expired());
        let how = loop {
            let step = poll_fn(|cx| {
                if let Some(step) = held.take() {
                    return Poll::Ready(step);
                }
                let step = poll_step(&exchange, &mut body, &mut held, timer.as_mut(), cx);
                if step.is_pending() && drained_signal.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Step::Drained);
                }
                step
            })
            .await;
            let now = Instant::now();
            match step {
                Step::Frames(frames) => {
                    (heard, read) = (now, now);
                    let mut out = Pieces::new();
                    let mut done = false;
                    let was_between = scan.between_events();
                    for frame in &frames {
                        self.call.settlement.count_delivered(frame);
                        if let Some(listener) = &mut listener {
                            listener.push(frame);
                        }
                        let passed = scan.push(frame);
                        if passed.first_token {
                            self.call.settlement.first_byte = Some(now);
                            patience = Duration::from_millis(timeouts.idle_ms);
                            timer.as_mut().reset((now + every.min(patience)).into());
                        }
                        out.extend(passed.pieces);
                        if passed.done {
                            done = true;
                            break;
                        }
                    }
                    out = match judged(filter.as_mut(), &mut self.call.settlement, out, done) {
                        Ok(out) => out,
                        Err(fault) => break End::Broken(fault),
                    };
                    if let Some(progress) = &mut progress {
                        out = progress.pass(out, done, if done { was_between } else { scan.between_events() }, now);
                    }
                    // A caller that leaves in the middle is settled with what was told until then.
                    self.call.settlement.usage = scan.usage().unwrap_or_default();
                    if done {
                        reasoning::keep(&self.call.settlement, &target, listener.and_then(Listener::finish));
                        let mut closing = scan.finish(End::Clean);
                        if filter.is_some() && !closing.bytes.is_empty() {
                            let last;
                            (closing, last) = self.last_words(filter.as_mut(), closing);
                            out.extend(last);
                        }
                        return self.close(out, closing, Some(body));
                    }
                    if !out.is_empty() {
                        said = now;
                        self.send(out);
                    }
                }
                Step::Tick | Step::ClientStalls => {
                    if matches!(step, Step::ClientStalls) {
                        // Nobody reads from the provider meanwhile, so its silence says nothing.
                        heard = now;
                        if now - read >= SEND_PATIENCE {
                            exchange.cancel();
                        }
                    } else if now - heard >= patience {
                        break End::Broken(silent(patience, self.call.settlement.first_byte.is_some()));
                    } else if now - said >= every && scan.between_events() {
                        said = now;
                        self.send([self.translation.heartbeat()]);
                    }
                    let beat = if now >= said + every { now + every } else { said + every };
                    timer.as_mut().reset((heard + patience).min(beat).into());
                }
                Step::Ended => break End::Clean,
                Step::Broken => {
                    let message = "The provider cut its stream off.";
                    break End::Broken(Error::upstream(Kind::UpstreamReset, Retry::Never, message));
                }
                Step::Drained => break End::Broken(shared.drain.error()),
            }
        };
        let tail = matches!(how, End::Clean).then_some(body);
        let (closing, last) = self.last_words(filter.as_mut(), scan.finish(how));
        let tail = tail.filter(|_| closing.error.is_none());
        self.close(last, closing, tail)
    }

    /// What guardrails held back, and what ends the stream, which may hold whole texts. What they stopped says nothing more.
    fn last_words(&mut self, filter: Option<&mut StreamFilter>, mut closing: Closing) -> (Closing, Pieces) {
        let is_blocked = closing.error.as_ref().is_some_and(|fault| fault.kind == Kind::GuardrailBlocked);
        if filter.is_none() || is_blocked {
            return (closing, Pieces::new());
        }
        // An error event is ours, unless it is the end of a list, which is judged whole.
        let is_judged = closing.error.is_none() || !self.translation.is_events();
        let ending = if is_judged { std::mem::take(&mut closing.bytes) } else { Bytes::new() };
        match judged(filter, &mut self.call.settlement, Pieces::from_iter([ending]), true) {
            Ok(last) => (closing, last.into_iter().filter(|piece| !piece.is_empty()).collect()),
            Err(fault) => {
                let bytes =
                    terminal_error(self.translation.caller, !self.translation.is_events(), &ErrorText::from(&fault));
                let outcome = stream::Outcome::UpstreamFailed;
                (Closing { bytes, outcome, error: Some(fault), response: None, ..closing }, Pieces::new())
            }
        }
    }

    /// Ends the stream for the caller, or hands the failure back while another connection may still be tried.
    fn close(
        &mut self,
        mut last: Pieces,
        closing: Closing,
        tail: Option<Incoming>,
    ) -> Result<FinishedStream, AttemptFailure> {
        self.call.settlement.usage = closing.usage.unwrap_or_default();
        let outcome = match (closing.outcome, &closing.error) {
            (stream::Outcome::Completed, _) => Outcome::Completed,
            (_, Some(error)) => failover::outcome(error.kind),
            _ => Outcome::UpstreamFailed,
        };
        let is_begun = is_begun(&self.call.settlement, &last);
        if let (Outcome::Refused, false, Some(error)) = (outcome, is_begun, &closing.error) {
            return Err(error.clone().into());
        }
        if let (Outcome::UpstreamFailed, false, Some(error)) = (outcome, is_begun, &closing.error) {
            if let Some(told) = closing.upstream_error.filter(is_the_callers) {
                let error = Error::upstream(Kind::InvalidRequest, Retry::Never, "The provider rejected the request.");
                let rejection = Some(Box::new(rejection(StatusCode::BAD_REQUEST, told, &self.target)));
                return Err(AttemptFailure { error, hint_ms: None, rejection, blames_connection: false });
            }
            let retry = Retry::Elsewhere;
            return Err(Error { retry, ..error.clone() }.into());
        }
        if !closing.bytes.is_empty() {
            last.push(closing.bytes);
        }
        if closing.upstream_error.is_some() {
            last = masked(last, &self.target);
        }
        // The head must be out before the end; without bytes, they follow once the record is written.
        self.send([]);
        self.call.settlement.bytes_response += size(&last);
        Ok(FinishedStream { outcome, error: closing.error, last, response: closing.response, tail, is_cut: false })
    }

    /// Sends bytes, with the head before the first of them.
    fn send(&mut self, pieces: impl IntoIterator<Item = Bytes>) {
        let content_type = stream_type(self.translation.is_events());
        let fallbacks = self.call.failures.len();
        send(&mut self.call.settlement, &self.target, fallbacks, &content_type, pieces.into_iter().collect());
    }
}

/// Looks for what happens next; everything that the provider has ready comes in one step.
///
/// What came before the end goes first: the end is put into `held` for the next look.
fn poll_step(
    exchange: &Exchange,
    body: &mut Incoming,
    held: &mut Option<Step>,
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
        let mut frames = SmallVec::new();
        let mut batched_bytes = 0;
        while batched_bytes < MAX_BATCH_BYTES {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        batched_bytes += data.len();
                        frames.push(data);
                    }
                    continue;
                }
                Poll::Ready(Some(Err(_))) => *held = Some(Step::Broken),
                Poll::Ready(None) => *held = Some(Step::Ended),
                Poll::Pending => {}
            }
            break;
        }
        if !frames.is_empty() {
            return Poll::Ready(Step::Frames(frames));
        }
        if let Some(step) = held.take() {
            return Poll::Ready(step);
        }
    }
    if timer.poll(cx).is_ready() {
        return Poll::Ready(if has_room { Step::Tick } else { Step::ClientStalls });
    }
    Poll::Pending
}

pub(crate) fn no_events() -> Error {
    let message = "The provider's answer is not an event stream.";
    Error::upstream(Kind::UpstreamInvalid, Retry::Elsewhere, message)
}

/// Which of the two silences inside a stream it was.
pub(crate) fn silent(patience: Duration, has_begun: bool) -> Error {
    let waited_ms = patience.as_millis();
    let (kind, message) = if has_begun {
        (Kind::UpstreamIdleTimeout, format!("The provider was silent for {waited_ms} ms inside its stream."))
    } else {
        (Kind::UpstreamFirstTokenTimeout, format!("The provider sent no first event within {waited_ms} ms."))
    };
    Error::upstream(kind, Retry::Never, message)
}

/// Whether an error object blames the request rather than the provider.
fn is_the_callers(told: &UpstreamError) -> bool {
    let is_invalid = told.kind.as_deref() == Some("invalid_request_error");
    let code = told.code.as_deref().unwrap_or("");
    is_invalid || matches!(code, "context_length_exceeded" | "400" | "404" | "413" | "422")
}

/// A provider's own error event, without the connection's secrets should it echo them.
fn masked(pieces: Pieces, target: &Target) -> Pieces {
    let whole = pieces.concat();
    if !target.is_told_in(&whole) {
        return pieces;
    }
    Pieces::from_iter([Bytes::from(target.mask(&String::from_utf8_lossy(&whole)))])
}
