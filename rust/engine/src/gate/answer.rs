//! Responses that the engine creates: errors in the caller's format, health, readiness and model lists. Every response
//! of the gateway carries its version and the request's id.

use crate::exchange::{Exchange, Head};
use crate::gate::headers::{self, number, value};
use crate::gate::request::Admission;
use crate::models::listed::ListDialect;
use crate::models::{self, openai};
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::routes::Surface;
use fairlead_core::{Error, ErrorKind};
use fairlead_dialect::{error_body, ErrorText};
use http::header::{self, HeaderMap, HeaderValue};
use http::StatusCode;
use std::sync::Arc;

/// Model lists have different formats for Anthropic's and Google's clients.
pub const BY_CLIENT: HeaderValue = HeaderValue::from_static("anthropic-version, x-goog-api-client, x-goog-api-key");
/// The message to callers about an internal defect.
pub const DEFECT: &str = "This is a defect of the gateway; its log has more.";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The headers of every response.
pub fn base_headers(shared: &Shared, request_id: &str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    headers.insert(headers::VERSION, shared.version.clone());
    if !request_id.is_empty() {
        headers.insert(headers::REQUEST_ID, value(request_id));
    }
    headers
}

/// Builds an error in the format of an API.
pub fn error(shared: &Shared, surface: Surface, request_id: &str, error: &Error) -> (Head, Bytes) {
    let body = error_body(surface, &ErrorText::from(error), request_id);
    let mut headers = base_headers(shared, request_id);
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if error.kind == ErrorKind::UnsupportedMediaType && error.param.as_deref() == Some("Content-Encoding") {
        // Clients can send the body again in an accepted encoding (RFC 9110, 15.5.16).
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let Some(seconds) = error.retry_after_s {
        headers.insert(header::RETRY_AFTER, number(seconds));
    }
    let status = StatusCode::from_u16(error.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (Head { status, headers }, body)
}

/// Ends an exchange with an error.
pub fn refuse(shared: &Shared, exchange: &Exchange, surface: Surface, request_id: &str, fault: &Error) {
    let (head, body) = error(shared, surface, request_id, fault);
    exchange.answer(head, body);
}

/// Ends an exchange with an error that lists the allowed methods of its path.
pub fn refuse_method(
    shared: &Shared,
    exchange: &Exchange,
    surface: Surface,
    request_id: &str,
    (fault, methods): (&Error, &[&str]),
) {
    let (mut head, body) = error(shared, surface, request_id, fault);
    head.headers.insert(header::ALLOW, value(methods.join(", ")));
    if fault.kind == ErrorKind::UpgradeRefused {
        head.headers.insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    }
    exchange.answer(head, body);
}

/// A guard held by the task that serves a request. If the task ends without a response, because of a panic or a runtime
/// shutdown, the guard ends the exchange with an error. So no client waits forever, and a truncated response does not
/// look complete.
#[derive(Debug)]
pub struct EndGuard {
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    surface: Surface,
    request_id: String,
}

impl EndGuard {
    pub fn new(shared: &Arc<Shared>, exchange: &Arc<Exchange>, admission: &Admission) -> Self {
        Self {
            shared: Arc::clone(shared),
            exchange: Arc::clone(exchange),
            surface: admission.surface,
            request_id: admission.request_id.clone(),
        }
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if self.exchange.is_ended() {
            return;
        }
        if self.exchange.is_cancelled() {
            // The caller has already left.
            return self.exchange.end([]);
        }
        let fault = Error::gateway(ErrorKind::Internal, DEFECT);
        refuse(&self.shared, &self.exchange, self.surface, &self.request_id, &fault);
        self.exchange.abort();
    }
}

fn json(shared: &Shared, exchange: &Exchange, status: StatusCode, request_id: &str, body: String) {
    let mut headers = base_headers(shared, request_id);
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    exchange.answer(Head { status, headers }, Bytes::from(body));
}

/// `GET /healthz`: the process is running.
pub fn health(shared: &Shared, exchange: &Exchange) {
    json(shared, exchange, StatusCode::OK, "", r#"{"status":"ok"}"#.to_owned());
}

/// `GET /readyz`: 200 while a snapshot is loaded, no drain was announced and no thread is stuck. The states of control
/// and of the shared store are reported but do not affect the result.
pub fn ready(shared: &Shared, exchange: &Exchange) {
    let version = shared.active.load().snapshot.version;
    let stuck = shared.threads.stuck();
    let (status, word) = if shared.drain.is_announced() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if !stuck.is_empty() {
        (StatusCode::SERVICE_UNAVAILABLE, "stuck")
    } else if version == 0 {
        (StatusCode::SERVICE_UNAVAILABLE, "starting")
    } else {
        (StatusCode::OK, "ready")
    };
    let control = if shared.control_is_connected() { "connected" } else { "absent" };
    let store = shared.leases.as_ref().map_or(String::new(), |leases| {
        let state = if leases.terms.is_lost() { "absent" } else { "connected" };
        format!(r#","shared_store":{{"state":"{state}"}}"#)
    });
    // The names are our own and consist of letters, digits and hyphens.
    let stuck = stuck.iter().map(|name| format!(r#""{name}""#)).collect::<Vec<_>>().join(",");
    let body = format!(
        r#"{{"status":"{word}","worker":"{}","snapshot":{{"version":{version}}},"control":{{"state":"{control}"}}{store},"threads":{{"stuck":[{stuck}]}}}}"#,
        shared.worker_id
    );
    json(shared, exchange, status, "", body);
}

/// `GET /v1/models`.
pub fn models(
    shared: &Shared,
    exchange: &Exchange,
    admission: &Admission,
    if_none_match: Option<&[u8]>,
    query: &[u8],
) -> Result<(), Error> {
    let page = openai::range(query)?;
    shared.metrics.answered(admission.route.endpoint, 200);
    let active = shared.active.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let document = match page {
        None => active.lists.for_key(key),
        Some((cursor, limit)) => active.lists.page_for_key(key, &cursor, limit),
    };
    let mut headers = base_headers(shared, &admission.request_id);
    headers.insert(header::ETAG, value(document.etag.as_str()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.append(header::VARY, BY_CLIENT);
    if if_none_match.is_some_and(|sent| names(sent, &document.etag)) {
        exchange.answer(Head { status: StatusCode::NOT_MODIFIED, headers }, Bytes::new());
        return Ok(());
    }
    headers.insert(header::CONTENT_TYPE, JSON);
    let head = Head { status: StatusCode::OK, headers };
    match &*document.parts {
        [whole] => exchange.answer(head, whole.clone()),
        parts => {
            exchange.start(head, parts.iter().cloned());
            exchange.end([]);
        }
    }
    Ok(())
}

/// Whether an `If-None-Match` header contains the tag (RFC 9110, 13.1.2: weak comparison, lists, `*`).
fn names(sent: &[u8], etag: &str) -> bool {
    std::str::from_utf8(sent).is_ok_and(|sent| {
        sent.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
    })
}

/// `GET /v1/models/{id}`.
pub fn model(shared: &Shared, exchange: &Exchange, admission: &Admission) {
    let active = shared.active.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let Some(body) = models::one(&active, &admission.tail, key, ListDialect::OpenAi) else {
        let fault =
            Error::client(ErrorKind::ModelNotFound, format!("The model `{}` is not known here.", admission.tail))
                .about("model");
        shared.metrics.answered(admission.route.endpoint, fault.kind.status());
        refuse(shared, exchange, Surface::OpenAi, &admission.request_id, &fault);
        return;
    };
    shared.metrics.answered(admission.route.endpoint, 200);
    let mut headers = base_headers(shared, &admission.request_id);
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.append(header::VARY, BY_CLIENT);
    exchange.answer(Head { status: StatusCode::OK, headers }, body);
}
