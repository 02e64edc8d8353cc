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

use crate::call::failover;
use crate::call::guardrails::StreamFilter;
use crate::call::plain;
use crate::call::progress::Progress;
use crate::call::reasoning;
use crate::call::translation::{caller_of, Wording};
use crate::exchange::{Exchange, Head, Room};
use crate::gate::headers;
use crate::observe::settle::Settlement;
use crate::patience::SEND_PATIENCE;
use crate::shared::Shared;
use crate::upstream::attempt::{self, rejection};
use crate::upstream::failure::Failed;
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
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use smallvec::SmallVec;
use std::future::{poll_fn, Future as _};
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

pub(crate) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
pub(crate) const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// What is taken from the provider before the caller is told of it.
const MAX_BATCH_BYTES: usize = 64 * 1024;
/// How long the end of a provider's body is waited for after its last event, to keep the connection.
const TAIL_DEADLINE: Duration = Duration::from_millis(500);

/// A stream of which the first bytes are here.
#[derive(Debug)]
pub struct Begun {
    pub at: usize,
    pub body: Incoming,
    pub first: Bytes,
    pub began: Instant,
    /// Those that were asked and failed.
    pub failures: Vec<(Arc<Target>, Failed)>,
    pub in_flight: InFlightGuard,
}

impl Begun {
    /// The target counts as busy for as long as this lives.
    pub fn into_parts(self) -> (Incoming, Bytes, InFlightGuard) {
        (self.body, self.first, self.in_flight)
    }
}

/// One attempt to relay one stream.
#[derive(Debug)]
pub struct Relay<'a> {
    shared: &'a Arc<Shared>,
    exchange: &'a Arc<Exchange>,
    wording: &'a Wording,
    upstream_model: &'a str,
}

/// A stream that came to an end after something was sent.
#[derive(Debug)]
pub struct Finished {
    pub outcome: Outcome,
    pub error: Option<Error>,
    /// The last bytes for the caller, to be sent once the record is written.
    pub last: Pieces,
    /// The whole response, where it is to be kept.
    pub response: Option<Bytes>,
    tail: Option<Incoming>,
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

impl<'a> Relay<'a> {
    pub fn new(
        shared: &'a Arc<Shared>,
        exchange: &'a Arc<Exchange>,
        wording: &'a Wording,
        upstream_model: &'a str,
    ) -> Self {
        Self { shared, exchange, wording, upstream_model }
    }

    /// Relays until the end. An error means that nothing but comments was sent.
    pub async fn run(
        &mut self,
        settlement: &mut Settlement,
        target: &Arc<Target>,
        fallbacks: usize,
    ) -> Result<Finished, Failed> {
        let response = self.ask(settlement, target, fallbacks).await?;
        if !response.headers().get(header::CONTENT_TYPE).is_some_and(is_event_stream) {
            return Err(no_events().into());
        }
        self.pass(settlement, target, response.into_body(), None, fallbacks).await
    }

    /// The same from a stream's first bytes on.
    pub async fn go_on(
        &mut self,
        settlement: &mut Settlement,
        target: &Arc<Target>,
        begun: Begun,
        fallbacks: usize,
    ) -> Result<Finished, Failed> {
        let (body, first, _busy) = begun.into_parts();
        self.pass(settlement, target, body, Some(first), fallbacks).await
    }

    /// Waits for the provider's head, with comments for the caller once waiting is long.
    async fn ask(
        &self,
        settlement: &mut Settlement,
        target: &Arc<Target>,
        fallbacks: usize,
    ) -> Result<Response<Incoming>, Failed> {
        let every = Duration::from_millis(self.shared.config.heartbeat_ms);
        let betas = settlement.admission.anthropic_beta.clone();
        let body = self.wording.body(target, self.upstream_model);
        let uri = self.wording.uri(target, self.upstream_model, true)?;
        let mut asking = pin!(attempt::send(&self.shared.pool, target, &uri, betas.as_ref(), body, true));
        let mut tick = pin!(tokio::time::sleep(every));
        loop {
            tokio::select! {
                biased;
                answered = &mut asking => return answered,
                () = self.shared.drain.expired() => return Err(self.shared.drain.error().into()),
                () = &mut tick => {
                    self.send(settlement, target, fallbacks, [self.wording.heartbeat()]);
                    tick.as_mut().reset(tokio::time::Instant::now() + every);
                }
            }
        }
    }

    /// Progress events between those of the answer, where the caller wants them.
    fn progress(&self, settlement: &Settlement) -> Option<Progress> {
        let admission = &settlement.admission;
        admission.wants_progress.then(|| Progress::new(self.wording.caller, admission.started))
    }

    async fn pass(
        &self,
        settlement: &mut Settlement,
        target: &Arc<Target>,
        mut body: Incoming,
        first: Option<Bytes>,
        fallbacks: usize,
    ) -> Result<Finished, Failed> {
        let every = Duration::from_millis(self.shared.config.heartbeat_ms);
        let timeouts = target.connection.timeouts;
        let mut patience = Duration::from_millis(timeouts.first_token_ms);
        let mut scan = self.wording.follow(target);
        let mut listener = reasoning::listen(target);
        let mut filter = StreamFilter::new(settlement.answer_guardrails, self.wording.is_events());
        let mut progress = self.progress(settlement);
        let mut heard = Instant::now();
        let (mut said, mut read) = (heard, heard);
        let mut timer = pin!(tokio::time::sleep(every.min(patience)));
        let mut held = first.map(|first| Step::Frames(SmallVec::from_iter([first])));
        let mut drained_signal = pin!(self.shared.drain.expired());
        let how = loop {
            let step = poll_fn(|cx| {
                if let Some(step) = held.take() {
                    return Poll::Ready(step);
                }
                let step = poll_step(self.exchange, &mut body, &mut held, timer.as_mut(), cx);
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
                        settlement.count_delivered(frame);
                        if let Some(listener) = &mut listener {
                            listener.push(frame);
                        }
                        let passed = scan.push(frame);
                        if passed.first_token {
                            settlement.first_byte = Some(now);
                            patience = Duration::from_millis(timeouts.idle_ms);
                            timer.as_mut().reset((now + every.min(patience)).into());
                        }
                        out.extend(passed.pieces);
                        if passed.done {
                            done = true;
                            break;
                        }
                    }
                    out = match judged(filter.as_mut(), settlement, out, done) {
                        Ok(out) => out,
                        Err(fault) => break End::Broken(fault),
                    };
                    if let Some(progress) = &mut progress {
                        out = progress.pass(out, done, if done { was_between } else { scan.between_events() }, now);
                    }
                    // A caller that leaves in the middle is settled with what was told until then.
                    settlement.usage = scan.usage().unwrap_or_default();
                    if done {
                        reasoning::keep(self.shared, settlement, target, listener.and_then(Listener::finish));
                        let mut closing = scan.finish(End::Clean);
                        if filter.is_some() && !closing.bytes.is_empty() {
                            let last;
                            (closing, last) = self.last_words(filter.as_mut(), settlement, closing);
                            out.extend(last);
                        }
                        return self.close(settlement, target, fallbacks, out, closing, Some(body));
                    }
                    if !out.is_empty() {
                        said = now;
                        self.send(settlement, target, fallbacks, out);
                    }
                }
                Step::Tick | Step::ClientStalls => {
                    if matches!(step, Step::ClientStalls) {
                        // Nobody reads from the provider meanwhile, so its silence says nothing.
                        heard = now;
                        if now - read >= SEND_PATIENCE {
                            self.exchange.cancel();
                        }
                    } else if now - heard >= patience {
                        break End::Broken(silent(patience, settlement.first_byte.is_some()));
                    } else if now - said >= every && scan.between_events() {
                        said = now;
                        self.send(settlement, target, fallbacks, [self.wording.heartbeat()]);
                    }
                    let beat = if now >= said + every { now + every } else { said + every };
                    timer.as_mut().reset((heard + patience).min(beat).into());
                }
                Step::Ended => break End::Clean,
                Step::Broken => {
                    let message = "The provider cut its stream off.";
                    break End::Broken(Error::upstream(Kind::UpstreamReset, Retry::Never, message));
                }
                Step::Drained => break End::Broken(self.shared.drain.error()),
            }
        };
        let tail = matches!(how, End::Clean).then_some(body);
        let (closing, last) = self.last_words(filter.as_mut(), settlement, scan.finish(how));
        let tail = tail.filter(|_| closing.error.is_none());
        self.close(settlement, target, fallbacks, last, closing, tail)
    }

    /// What guardrails held back, and what ends the stream, which may hold whole texts. What they stopped says nothing more.
    fn last_words(
        &self,
        filter: Option<&mut StreamFilter>,
        settlement: &mut Settlement,
        mut closing: Closing,
    ) -> (Closing, Pieces) {
        let is_blocked = closing.error.as_ref().is_some_and(|fault| fault.kind == Kind::GuardrailBlocked);
        if filter.is_none() || is_blocked {
            return (closing, Pieces::new());
        }
        // An error event is ours, unless it is the end of a list, which is judged whole.
        let is_judged = closing.error.is_none() || !self.wording.is_events();
        let ending = if is_judged { std::mem::take(&mut closing.bytes) } else { Bytes::new() };
        match judged(filter, settlement, Pieces::from_iter([ending]), true) {
            Ok(last) => (closing, last.into_iter().filter(|piece| !piece.is_empty()).collect()),
            Err(fault) => {
                let bytes = terminal_error(self.wording.caller, !self.wording.is_events(), &ErrorText::from(&fault));
                let outcome = stream::Outcome::UpstreamFailed;
                (Closing { bytes, outcome, error: Some(fault), response: None, ..closing }, Pieces::new())
            }
        }
    }

    /// Ends the stream for the caller, or hands the failure back while another connection may still be tried.
    fn close(
        &self,
        settlement: &mut Settlement,
        target: &Arc<Target>,
        fallbacks: usize,
        mut last: Pieces,
        closing: Closing,
        tail: Option<Incoming>,
    ) -> Result<Finished, Failed> {
        settlement.usage = closing.usage.unwrap_or_default();
        let outcome = match (closing.outcome, &closing.error) {
            (stream::Outcome::Completed, _) => Outcome::Completed,
            (_, Some(error)) => failover::outcome(error.kind),
            _ => Outcome::UpstreamFailed,
        };
        let is_begun = is_begun(self.exchange, settlement, &last);
        if let (Outcome::Refused, false, Some(error)) = (outcome, is_begun, &closing.error) {
            return Err(error.clone().into());
        }
        if let (Outcome::UpstreamFailed, false, Some(error)) = (outcome, is_begun, &closing.error) {
            if let Some(told) = closing.upstream_error.filter(is_the_callers) {
                let error = Error::upstream(Kind::InvalidRequest, Retry::Never, "The provider rejected the request.");
                let rejection = Some(Box::new(rejection(StatusCode::BAD_REQUEST, told, target)));
                return Err(Failed { error, hint_ms: None, rejection, blames_connection: false });
            }
            let retry = Retry::Elsewhere;
            return Err(Error { retry, ..error.clone() }.into());
        }
        if !closing.bytes.is_empty() {
            last.push(closing.bytes);
        }
        if closing.upstream_error.is_some() {
            last = masked(last, target);
        }
        // The head must be out before the end; without bytes, they follow once the record is written.
        self.send(settlement, target, fallbacks, []);
        settlement.bytes_response += last.iter().map(|piece| piece.len() as u64).sum::<u64>();
        Ok(Finished { outcome, error: closing.error, last, response: closing.response, tail })
    }

    /// Sends bytes, with the head before the first of them.
    fn send(
        &self,
        settlement: &mut Settlement,
        target: &Target,
        fallbacks: usize,
        pieces: impl IntoIterator<Item = Bytes>,
    ) {
        let kind = kind_of(self.wording.is_events());
        send(self.shared, self.exchange, settlement, target, fallbacks, kind, pieces.into_iter().collect());
    }
}

/// A comment for a caller whose stream has not begun, with the head before the first.
pub fn beat(shared: &Shared, exchange: &Exchange, settlement: &mut Settlement, target: &Target) {
    let is_list = settlement.admission.reads_list;
    let beat = fairlead_dialect::stream::heartbeat(caller_of(settlement.admission.route), is_list);
    send(shared, exchange, settlement, target, 0, kind_of(!is_list), Pieces::from_iter([beat]));
}

fn send(
    shared: &Shared,
    exchange: &Exchange,
    settlement: &mut Settlement,
    target: &Target,
    fallbacks: usize,
    kind: HeaderValue,
    pieces: Pieces,
) {
    settlement.bytes_response += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
    if settlement.status == 0 {
        settlement.status = StatusCode::OK.as_u16();
        let headers = headers(shared, settlement, target, fallbacks, kind);
        exchange.start(Head { status: StatusCode::OK, headers }, pieces);
    } else {
        exchange.push(pieces);
    }
}

fn kind_of(is_events: bool) -> HeaderValue {
    if is_events {
        EVENT_STREAM
    } else {
        HeaderValue::from_static("application/json")
    }
}

fn headers(
    shared: &Shared,
    settlement: &Settlement,
    target: &Target,
    fallbacks: usize,
    kind: HeaderValue,
) -> HeaderMap {
    let mut headers = plain::headers(shared, settlement, target, fallbacks);
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    headers.remove(headers::RESPONSE_LATENCY);
    if settlement.admission.wants_progress {
        headers.insert(headers::PROGRESS, HeaderValue::from_static("enabled"));
    }
    headers
}

/// What guardrails let out of these bytes; at the end, of all.
pub(crate) fn judged(
    filter: Option<&mut StreamFilter>,
    settlement: &mut Settlement,
    out: Pieces,
    is_end: bool,
) -> Result<Pieces, Error> {
    let Some(filter) = filter else { return Ok(out) };
    let passed = filter.push(&out).and_then(|mut passed| {
        if is_end {
            passed.extend(filter.finish()?);
        }
        Ok(passed)
    });
    settlement.note_answer_findings(filter.findings());
    passed
}

impl Finished {
    /// Reads the provider's body to its end, within bounds, so that the connection can be kept.
    pub async fn keep_connection(self) {
        let Some(mut body) = self.tail else { return };
        let drained = tokio::time::timeout(TAIL_DEADLINE, async { while let Some(Ok(_)) = body.frame().await {} });
        // Read to its end or not, nothing more is owed to anybody.
        let _late = drained.await;
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

/// Whether the caller is told of a fault inside its answer. Events that were read with the fault are told like those that were
/// read before it: where a provider's bytes were cut on their way must not decide what a caller gets.
pub(crate) fn is_begun(exchange: &Exchange, settlement: &Settlement, last: &Pieces) -> bool {
    exchange.is_headed() || (settlement.first_byte.is_some() && !last.is_empty())
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

pub(crate) fn is_event_stream(value: &HeaderValue) -> bool {
    value
        .as_bytes()
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii()
        .eq_ignore_ascii_case(b"text/event-stream")
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
