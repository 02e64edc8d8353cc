//! `/v1/ws`: requests as frames over one connection, several at a time.
//!
//! ```text
//! caller:  {"type":"request","id":"a","payload":{...}}   {"type":"cancel","id":"a"}   {"type":"ping"}
//! gateway: session.ready   response.start   response.chunk*  or  response.output
//!          response.completed | response.error | response.cancelled   pong   protocol.error
//! ```
//!
//! A payload is the body of a chat completion and is handled as one. It is admitted for the caller of the connection,
//! whose access is checked again for each request. Every front passes texts in and sends what the outbox contains.

use crate::call::admit;
use crate::clock;
use crate::exchange::{Exchange, Head, Wake};
use crate::gate::answer;
use crate::gate::body::too_many_bytes;
use crate::gate::headers;
use crate::gate::request::{Admission, BufferedRequest};
use crate::shared::{Gauge, GaugePermit, Shared, MAX_BUFFERED_BYTES};
use crate::socket::assembly::Assembly;
use crate::socket::outbox::{Drawn, Handshake, Outbox};
use crate::socket::review::{self, Reviewed, NOT_ALLOWED};
use bytes::{Bytes, BytesMut};
use fairlead_core::routes::{self, Match, Route, Surface};
use fairlead_core::{policy, Error, ErrorKind, Principal};
use fairlead_dialect::{error_body, ErrorText};
use http::header;
use http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// The maximum number of concurrent requests of one connection.
const MAX_REQUESTS: usize = 32;
const MAX_ID_CHARS: usize = 128;
/// The maximum size of a JSON response in one frame.
const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024 - 4096;
const PATH: &str = "/v1/chat/completions";

/// A connection that carries frames, as a front uses it.
pub trait FrameConnection: Send + Sync + std::fmt::Debug {
    fn id(&self) -> u64;

    /// Returns the state of the handshake. While it is pending, the front sends nothing to the caller and is woken on a
    /// change.
    fn handshake(&self) -> Handshake {
        Handshake::Accepted
    }

    /// The exchange with the response to a refused handshake.
    fn refusal(&self) -> Option<Arc<Exchange>> {
        None
    }

    /// Takes frames to send. `None` means that there are none yet and the front will be woken.
    fn take(&self) -> Option<Drawn>;

    /// Whether no request is in progress.
    fn is_idle(&self) -> bool;

    /// Whether the connection must be closed after its remaining frames.
    fn is_closed(&self) -> bool;

    /// Handles a received text; `None` for a message that is not text.
    fn receive(&self, text: Option<&str>);

    /// Reports that the caller has left.
    fn close(&self);

    /// The counter for incomplete messages, for a front that assembles messages.
    fn assembly(&self) -> Arc<Assembly>;
}

/// An open connection. Dropping it ends all of its requests.
#[derive(Debug)]
pub struct RequestSocket {
    shared: Arc<Shared>,
    admission: Arc<Admission>,
    route: &'static Route,
    outbox: Arc<Outbox>,
    running: Running,
    assembly: Arc<Assembly>,
    opened: Instant,
    /// Checks the caller again while the connection lasts.
    review: Option<tokio::task::AbortHandle>,
    _in_flight: GaugePermit,
    _open: GaugePermit,
}

type Running = Arc<Mutex<HashMap<String, Arc<Call>>>>;

/// One request over the connection.
#[derive(Debug)]
struct Call {
    exchange: Arc<Exchange>,
    bell: Arc<ExchangeWake>,
    is_cancelled: AtomicBool,
}

/// Notified by the request's exchange.
#[derive(Debug, Default)]
struct ExchangeWake(Notify);

impl Wake for ExchangeWake {
    fn wake(&self, _: u64) {
        self.0.notify_one();
    }
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

impl RequestSocket {
    /// Opens a connection for an admitted head; an error if there are too many.
    pub fn open(shared: &Arc<Shared>, incoming: BufferedRequest, wake: Arc<dyn Wake>) -> Result<Self, Error> {
        let Match::Found { route, .. } = routes::find("POST", PATH) else {
            return Err(Error::gateway(ErrorKind::Internal, "There is no chat route."));
        };
        let open = GaugePermit::for_stream(shared)?;
        let outbox = Outbox::new(incoming.exchange.id(), wake);
        let (admission, running) = (Arc::new(incoming.admission), Running::default());
        let opened = Instant::now();
        outbox.push(json!({"type": "session.ready", "id": admission.request_id}).to_string());
        let reviewed = Reviewed {
            shared: Arc::clone(shared),
            admission: Arc::clone(&admission),
            outbox: Arc::clone(&outbox),
            is_idle: {
                let running = Arc::clone(&running);
                Box::new(move || running.lock().is_empty())
            },
            opened,
        };
        // The socket aborts the task when it is dropped.
        let review = shared.runtime().map(|runtime| runtime.spawn(review::run(reviewed)).abort_handle());
        Ok(Self {
            shared: Arc::clone(shared),
            admission,
            route,
            outbox,
            running,
            assembly: Assembly::new(shared),
            opened,
            review,
            _in_flight: incoming.in_flight,
            _open: open,
        })
    }

    fn protocol_error(&self, code: &str, message: &str, id: Option<&str>) {
        let error = json!({"code": code, "message": message});
        self.outbox.push(json!({"type": "protocol.error", "id": id, "error": error}).to_string());
    }

    fn begin(&self, id: String, payload: Option<&RawValue>) {
        let Some(payload) = payload else {
            return self.protocol_error("no_payload", "A request has a `payload`.", Some(&id));
        };
        let mut running = self.running.lock();
        if running.contains_key(&id) {
            drop(running);
            return self.protocol_error("id_in_use", "A request with this id is in progress.", Some(&id));
        }
        if running.len() >= MAX_REQUESTS {
            drop(running);
            return self.protocol_error(
                "too_many_requests",
                "At most 32 requests may be in progress at once.",
                Some(&id),
            );
        }
        let bell = Arc::new(ExchangeWake::default());
        let exchange = Exchange::new(self.shared.next_id(), Arc::clone(&bell) as Arc<dyn Wake>);
        let principal = match self.check_caller() {
            Ok(principal) => principal,
            Err(fault) => {
                drop(running);
                self.outbox.push(refusal(&id, &fault));
                return self.outbox.close(NOT_ALLOWED, &fault.message);
            }
        };
        let incoming = match self.admit(&exchange, principal, payload) {
            Ok(incoming) => incoming,
            Err(fault) => {
                drop(running);
                return self.outbox.push(refusal(&id, &fault));
            }
        };
        let call = Arc::new(Call { exchange, bell, is_cancelled: AtomicBool::new(false) });
        running.insert(id.clone(), Arc::clone(&call));
        drop(running);
        let Some(runtime) = self.shared.runtime() else { return };
        drop(runtime.spawn(admit::serve(&self.shared, Box::new(incoming))));
        let (outbox, running) = (Arc::clone(&self.outbox), Arc::clone(&self.running));
        // The task ends with its request, whose timers limit it.
        drop(runtime.spawn(async move {
            send_answer(&outbox, &id, &call).await;
            running.lock().remove(&id);
        }));
    }

    /// Checks whether the caller may still use the connection: its key may have been revoked, its session ended or its
    /// address banned. An error ends the connection.
    fn check_caller(&self) -> Result<Principal, Error> {
        let Admission { proof, principal, .. } = &*self.admission;
        review::check_age(&self.shared, self.opened)?;
        proof.renew(&self.shared, self.admission.route, principal, clock::unix_ms())
    }

    /// Admits one request.
    fn admit(
        &self,
        exchange: &Arc<Exchange>,
        principal: Principal,
        payload: &RawValue,
    ) -> Result<BufferedRequest, Error> {
        let shared = &self.shared;
        if shared.drain.is_draining() {
            return Err(shared.drain.error());
        }
        let ts_ms = clock::unix_ms();
        principal.admit(self.route.tier, false, &shared.active.load().snapshot, shared.config.require_api_key)?;
        if let Some(key) = principal.key() {
            policy::admit_hour(key, ts_ms)?;
            policy::admit_endpoint(key, self.route.endpoint)?;
        }
        if payload.get().len() > self.route.body_limit_bytes() {
            return Err(Error::client(ErrorKind::TooLarge, "The payload is larger than the limit for requests."));
        }
        shared.counts.requests_total.fetch_add(1, Ordering::Relaxed);
        let buffered = GaugePermit::take(shared, Gauge::BodyBytes, payload.get().len(), MAX_BUFFERED_BYTES);
        let buffered = buffered.ok_or_else(|| {
            shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
            too_many_bytes()
        })?;
        let body = Bytes::copy_from_slice(payload.get().as_bytes());
        let in_flight = GaugePermit::for_request(shared, shared.config.max_in_flight).inspect_err(|_| {
            shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
        })?;
        let admission = self.admission_of(exchange, principal, ts_ms);
        let exchange = Arc::clone(exchange);
        Ok(BufferedRequest {
            exchange,
            admission,
            forward: None,
            body,
            in_flight,
            buffered: Some(buffered),
            upload: None,
        })
    }

    /// Returns the admission of one request, with the values of the handshake.
    fn admission_of(&self, exchange: &Arc<Exchange>, principal: Principal, ts_ms: u64) -> Admission {
        let (shared, of) = (&self.shared, &self.admission);
        Admission {
            route: self.route,
            surface: self.route.surface,
            dialect: self.route.dialect(),
            tail: String::new(),
            principal,
            proof: of.proof,
            request_id: format!("req_{}{:08x}", shared.worker_id, exchange.id()),
            session_tag: of.session_tag.clone(),
            session_id: of.session_id.clone(),
            pin: of.pin.clone(),
            lease: of.lease.clone(),
            route_model: of.route_model.clone(),
            idempotency_key: None,
            is_key_declared: false,
            disabled_guardrails: of.disabled_guardrails,
            accepts_events: of.accepts_events,
            compression: of.compression.clone(),
            cache: of.cache.clone(),
            routing: of.routing,
            reads_list: false,
            wants_progress: false,
            wants_cost: false,
            is_counted: false,
            trace: of.trace.clone(),
            anthropic_beta: None,
            started: Instant::now(),
            ts_ms,
        }
    }
}

impl FrameConnection for RequestSocket {
    fn id(&self) -> u64 {
        self.outbox.id()
    }

    fn take(&self) -> Option<Drawn> {
        self.outbox.take()
    }

    fn is_idle(&self) -> bool {
        self.running.lock().is_empty()
    }

    fn is_closed(&self) -> bool {
        self.outbox.is_closed()
    }

    fn receive(&self, text: Option<&str>) {
        let Some(text) = text else { return self.protocol_error("not_text", "Frames are texts.", None) };
        let Ok(frame) = serde_json::from_str::<Frame<'_>>(text) else {
            return self.protocol_error("invalid_json", "A frame must be a JSON object with a `type`.", None);
        };
        let id = frame.id.filter(|id| !id.is_empty() && id.chars().count() <= MAX_ID_CHARS);
        match (&*frame.kind, id) {
            ("ping", id) => self.outbox.push(json!({"type": "pong", "id": id}).to_string()),
            ("request" | "cancel", None) => {
                self.protocol_error("invalid_id", "`id` must be a text of 1 to 128 characters.", None);
            }
            ("request", Some(id)) => self.begin(id, frame.payload),
            ("cancel", Some(id)) => {
                let call = self.running.lock().get(&id).cloned();
                match call {
                    Some(call) => {
                        call.is_cancelled.store(true, Ordering::Release);
                        call.bell.0.notify_one();
                    }
                    None => self.protocol_error("unknown_id", "No request with this id is in progress.", Some(&id)),
                }
            }
            _ => self.protocol_error("unknown_type", "`type` is `request`, `cancel` or `ping`.", None),
        }
    }

    fn close(&self) {
        self.outbox.close(1000, "");
        for call in self.running.lock().values() {
            call.is_cancelled.store(true, Ordering::Release);
            call.exchange.cancel();
            call.bell.0.notify_one();
        }
    }

    fn assembly(&self) -> Arc<Assembly> {
        Arc::clone(&self.assembly)
    }
}

impl Drop for RequestSocket {
    fn drop(&mut self) {
        if let Some(review) = self.review.take() {
            review.abort();
        }
        self.close();
    }
}

/// The result of a wait.
enum WaitResult<T> {
    Here(T),
    Cancelled,
}

/// Checks repeatedly until there is a result, or until the caller cancels the request.
async fn wait<T>(call: &Call, mut look: impl FnMut(&Exchange) -> Option<T>) -> WaitResult<T> {
    loop {
        if call.is_cancelled.load(Ordering::Acquire) {
            call.exchange.cancel();
            return WaitResult::Cancelled;
        }
        if let Some(found) = look(&call.exchange) {
            return WaitResult::Here(found);
        }
        call.bell.0.notified().await;
    }
}

/// Sends one response, frame by frame.
async fn send_answer(outbox: &Outbox, id: &str, call: &Call) {
    let cancelled = || outbox.push(json!({"type": "response.cancelled", "id": id}).to_string());
    let WaitResult::Here(head) = wait(call, Exchange::take_head).await else { return cancelled() };
    let status = head.status.as_u16();
    let request_id = head.headers.get(headers::REQUEST_ID).and_then(|value| value.to_str().ok()).unwrap_or_default();
    outbox.push(json!({"type": "response.start", "id": id, "status": status, "request_id": request_id}).to_string());
    let is_stream = head.headers.get(header::CONTENT_TYPE).is_some_and(crate::call::relay::is_event_stream);
    let mut buffer = BytesMut::new();
    loop {
        outbox.wait_for_capacity().await;
        let WaitResult::Here(taken) = wait(call, Exchange::take).await else { return cancelled() };
        if taken.aborted {
            let error = json!({"code": "upstream_reset", "message": "The answer stops short."});
            return outbox.push(json!({"type": "response.error", "id": id, "status": 502, "error": error}).to_string());
        }
        for chunk in taken.chunks {
            buffer.extend_from_slice(&chunk);
        }
        if is_stream {
            let incoming = if taken.ended { buffer.len() } else { complete_texts(&buffer) };
            if incoming > 0 {
                let text = buffer.split_to(incoming);
                let chunk = String::from_utf8_lossy(&text);
                outbox.push(json!({"type": "response.chunk", "id": id, "chunk": chunk}).to_string());
            }
        } else if buffer.len() > MAX_OUTPUT_BYTES {
            call.exchange.cancel();
            let error =
                json!({"code": "too_large", "message": "The answer is too large for one frame: request a stream."});
            return outbox.push(json!({"type": "response.error", "id": id, "status": 502, "error": error}).to_string());
        }
        if taken.ended {
            break;
        }
    }
    if !is_stream {
        let body: Value = serde_json::from_slice(&buffer).unwrap_or_default();
        if !head.status.is_success() {
            let error = body.get("error").cloned().unwrap_or_default();
            return outbox
                .push(json!({"type": "response.error", "id": id, "status": status, "error": error}).to_string());
        }
        outbox.push(json!({"type": "response.output", "id": id, "status": status, "body": body}).to_string());
    }
    outbox.push(json!({"type": "response.completed", "id": id, "status": status}).to_string());
}

/// The length of the longest prefix that ends on a character boundary.
fn complete_texts(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

fn refusal(id: &str, fault: &Error) -> String {
    let text = ErrorText::from(fault);
    let body = error_body(Surface::OpenAi, &text, "");
    let error: Value = serde_json::from_slice(&body).unwrap_or_default();
    json!({"type": "response.error", "id": id, "status": text.status, "error": error["error"]}).to_string()
}

/// The response of `GET /v1/ws` to a request without a WebSocket upgrade.
pub fn describe(shared: &Shared, incoming: &BufferedRequest) {
    let principal = &incoming.admission.principal;
    let body = json!({
        "ok": true,
        "path": "/v1/ws",
        "wsAuth": shared.config.require_api_key,
        "authenticated": !matches!(principal, Principal::Anonymous),
        "authType": principal.kind(),
        "protocol": {
            "request": {"type": "request", "id": "<id>", "payload": {"model": "<prefix>/<model>", "messages": []}},
            "cancel": {"type": "cancel", "id": "<id>"},
            "ping": {"type": "ping"},
        },
    });
    let mut headers = answer::base_headers(shared, &incoming.admission.request_id);
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    incoming.exchange.answer(Head { status: StatusCode::OK, headers }, Bytes::from(body.to_string()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_cut() {
        let text = "aé".as_bytes();
        assert_eq!((complete_texts(text), complete_texts(&text[..2]), complete_texts(b"a\xffb")), (3, 1, 3));
    }
}
