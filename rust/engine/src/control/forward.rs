//! Forwards requests to control unchanged, with the caller in internal headers that are valid on this socket only. The
//! response streams back with the same back-pressure as a provider's.

use crate::call::relay::is_event_stream;
use crate::clock;
use crate::control::restart_page::RestartPage;
use crate::exchange::{Capacity, Exchange, Head};
use crate::gate::admission_proof::REVIEW_EVERY;
use crate::gate::answer;
use crate::gate::answer::EndGuard;
use crate::gate::headers;
use crate::gate::request::{Admission, BufferedRequest, Forward};
use crate::gate::upload::Stored;
use crate::shared::Shared;
use crate::upstream::failure;
use crate::upstream::wire::{BodySlices, Chunk, Fault, Incoming, Lease, Unanswered};
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_core::routes::Route;
use fairlead_core::{json, Error, ErrorKind};
use fairlead_dialect::Pieces;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response};
use http_body::Body as _;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

pub const LINK: HeaderName = HeaderName::from_static("x-fairlead-link");
const PRINCIPAL: HeaderName = HeaderName::from_static("x-fairlead-principal");
const PEER: HeaderName = HeaderName::from_static("x-fairlead-peer");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-fairlead-request-id");
/// The fields of the form whose file is the body, as base64 of JSON.
const FORM: HeaderName = HeaderName::from_static("x-fairlead-form");
const WORKER: HeaderName = HeaderName::from_static("x-fairlead-worker");
/// The `Host` that the caller sent.
const CALLED_AS: HeaderName = HeaderName::from_static("x-fairlead-host");
const SCHEME: HeaderName = HeaderName::from_static("x-fairlead-scheme");
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// The slowest management request is a provider test, which has a shorter deadline.
const HEAD_DEADLINE: Duration = Duration::from_secs(60);
/// How long to wait for control's response head when a file is uploaded first.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(600);
/// The maximum size of a form's fields in the header.
const MAX_FIELDS_BYTES: usize = 8 * 1024;
/// The maximum silence within a response.
const IDLE_DEADLINE: Duration = Duration::from_secs(60);

/// Serves one forwarded request. Dropping the future ends the request.
pub fn serve(shared: Arc<Shared>, incoming: Box<BufferedRequest>) -> impl Future<Output = ()> {
    serve_noting(shared, incoming, || ())
}

/// Serves one forwarded request. `on_refusal` runs before the caller is answered, if control refused the request or did
/// not get it.
pub(crate) fn serve_noting(
    shared: Arc<Shared>,
    incoming: Box<BufferedRequest>,
    on_refusal: impl FnOnce() + Send,
) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &incoming.exchange, &incoming.admission);
    async move {
        run(&shared, incoming, on_refusal).await;
        drop(end);
    }
}

async fn run(shared: &Arc<Shared>, incoming: Box<BufferedRequest>, on_refusal: impl FnOnce() + Send) {
    let BufferedRequest { exchange, admission, forward, body, in_flight, buffered, upload } = *incoming;
    let _counted = (in_flight, buffered);
    let Some(mut forward) = forward else { return };
    let page = RestartPage::of(&forward);
    let refuse = |fault: &Error| {
        if !page.is_some_and(|page| page.answer(shared, &exchange, &admission.request_id, fault)) {
            answer::refuse(shared, &exchange, admission.surface, &admission.request_id, fault);
        }
    };
    // A form was parsed already.
    let checked = if forward.is_unread || upload.is_some() { Ok(()) } else { check_body(&body) };
    if let Err(fault) = checked {
        return refuse(&fault);
    }
    let is_upload = upload.is_some();
    let contents = match upload {
        None => BodySlices::new(Pieces::from_iter([body])),
        Some(upload) => {
            let stored = tokio::select! {
                biased;
                () = exchange.gone() => return,
                stored = upload.stored() => stored.map_err(|(_, fault)| fault),
            };
            match stored.and_then(|stored| the_file(&stored, file_part(admission.route), &mut forward.headers)) {
                Ok(file) => BodySlices::mixed([file]),
                Err(fault) => return refuse(&fault),
            }
        }
    };
    dress(shared, &admission, &mut forward);
    // Control does not implement HEAD: it receives a GET, and its body is dropped here.
    let is_head = forward.method == http::Method::HEAD;
    if is_head {
        forward.method = http::Method::GET;
    }
    let head_deadline = if is_upload { UPLOAD_DEADLINE } else { HEAD_DEADLINE };
    tokio::select! {
        biased;
        () = exchange.gone() => {}
        () = shared.drain.expired() => {
            answer::refuse(shared, &exchange, admission.surface, &admission.request_id, &shared.drain.error());
            exchange.abort();
        }
        answered = async {
            let answer = send_on(shared, forward, contents, head_deadline).await;
            let is_refused = answer.as_ref().map_or_else(|fault| !fault.is_sent, |it| it.status().is_client_error());
            if is_refused {
                on_refusal();
            }
            let response = answer.map_err(|unheard| unheard.error)?;
            relay(shared, &exchange, response, &admission, is_head).await;
            Ok::<(), Error>(())
        } => if let Err(fault) = answered {
            shared.metrics.answered(admission.route.endpoint, fault.kind.status());
            refuse(&fault);
        },
    }
}

/// Adds the internal headers: the caller, its address and the host name.
pub(crate) fn dress(shared: &Shared, admission: &Admission, forward: &mut Forward) {
    // The request may be about a response that this worker has just completed, so control must be able to store it now.
    shared.responses.seal();
    let headers = &mut forward.headers;
    headers.insert(LINK, headers::value(shared.config.link_token.expose()));
    headers.insert(PRINCIPAL, headers::value(admission.principal.to_header()));
    headers.insert(REQUEST_ID, headers::value(admission.request_id.as_str()));
    headers.insert(WORKER, headers::value(shared.worker_id.as_str()));
    headers.insert(SCHEME, HeaderValue::from_static(if forward.is_tls { "https" } else { "http" }));
    headers.insert(header::HOST, HeaderValue::from_static("control"));
    if let Some(host) = forward.host.take() {
        headers.insert(CALLED_AS, host);
    }
    if let Some(peer) = forward.peer {
        headers.insert(PEER, headers::value(peer.to_string()));
    }
}

/// Applies the same rules to a body as for inference: one JSON object of limited depth without duplicate members. So no
/// two parsers see different things.
pub(crate) fn check_body(body: &[u8]) -> Result<(), Error> {
    if body.is_empty() {
        return Ok(());
    }
    scan_body(body, &[]).map(drop)
}

/// Returns the wanted members of a body that follows the rules of [`check_body`].
pub(crate) fn scan_body<'w, const N: usize>(body: &[u8], wanted: &'w [&'w str; N]) -> Result<json::Scan<'w, N>, Error> {
    json::scan_object(body, wanted, json::MAX_DEPTH).map_err(|fault| {
        let error = Error::client(ErrorKind::InvalidRequest, format!("The body cannot be read: {fault}."));
        match fault.field.clone() {
            field if field.is_empty() => error,
            field => error.about(field),
        }
    })
}

/// The name of the form field that contains the file.
fn file_part(route: &Route) -> &'static str {
    if route.path.ends_with("/parts") {
        "data"
    } else {
        "file"
    }
}

/// Returns the file of a form and puts the other fields into a header. Control does not parse forms, because two
/// parsers might disagree.
fn the_file(stored: &Stored, name: &'static str, headers: &mut HeaderMap) -> Result<Chunk, Error> {
    let mut files = stored.form.files();
    let file = files.next().filter(|file| file.name == name);
    let file = file.ok_or_else(|| {
        let message = format!("`{name}` is required: send one part of this name with a file name.");
        Error::client(ErrorKind::InvalidRequest, message).about(name)
    })?;
    if files.next().is_some() {
        return Err(Error::client(ErrorKind::InvalidRequest, "Send one file at a time.").about(name));
    }
    let fields: serde_json::Map<String, serde_json::Value> =
        stored.form.parts.iter().filter_map(|part| Some((part.name.clone(), part.value.clone()?.into()))).collect();
    let description = serde_json::json!({
        "fields": fields,
        "file": {"name": file.file_name, "content_type": file.content_type, "bytes": file.end - file.start},
    });
    let description = STANDARD.encode(description.to_string());
    if description.len() > MAX_FIELDS_BYTES {
        return Err(Error::client(ErrorKind::InvalidRequest, "The form's fields are larger than this route takes."));
    }
    headers.insert(FORM, headers::value(description));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Ok(stored.part(file))
}

async fn relay(
    shared: &Shared,
    exchange: &Exchange,
    response: Response<Incoming>,
    admission: &Admission,
    is_head: bool,
) {
    let (parts, mut body) = response.into_parts();
    shared.metrics.answered(admission.route.endpoint, parts.status.as_u16());
    let mut headers = answer::base_headers(shared, &admission.request_id);
    pass_headers(&parts.headers, &mut headers);
    let is_events = headers.get(header::CONTENT_TYPE).is_some_and(is_event_stream);
    exchange.start(Head { status: parts.status, headers }, []);
    let is_complete = is_head
        || tokio::select! {
            biased;
            is_complete = copy(exchange, &mut body) => is_complete,
            // An event stream ends when the caller's access ends. Any other response, such as a download, is sent in
            // full.
            () = refused_later(shared, admission) => is_events,
        };
    if is_complete {
        exchange.end([]);
    } else {
        exchange.abort();
    }
}

/// Completes when the caller would no longer be admitted, or when its permissions changed.
async fn refused_later(shared: &Shared, admission: &Admission) {
    let Admission { proof, route, principal, .. } = admission;
    loop {
        tokio::time::sleep(REVIEW_EVERY).await;
        let reason = match proof.renew(shared, route, principal, clock::unix_ms()) {
            Ok(now) if now.to_header() == principal.to_header() => continue,
            Ok(_) => "the caller's rights have changed".into(),
            Err(fault) => fault.message,
        };
        tracing::info!(request_id = admission.request_id, %reason, "an answer was cut off");
        return;
    }
}

/// Why control did not respond.
#[derive(Debug)]
pub(crate) struct NoControlAnswer {
    pub error: Error,
    /// The request was sent, so control may have executed it.
    pub is_sent: bool,
}

impl NoControlAnswer {
    fn before(error: Error) -> Self {
        Self { error, is_sent: false }
    }

    fn after(error: Error) -> Self {
        Self { error, is_sent: true }
    }
}

/// Calls control and waits for the response head within the deadline.
pub(crate) async fn call(
    shared: &Shared,
    forward: Forward,
    contents: BodySlices,
) -> Result<Response<Incoming>, NoControlAnswer> {
    send_on(shared, forward, contents, HEAD_DEADLINE).await
}

async fn send_on(
    shared: &Shared,
    forward: Forward,
    contents: BodySlices,
    head_deadline: Duration,
) -> Result<Response<Incoming>, NoControlAnswer> {
    let head = head_of(forward).map_err(NoControlAnswer::before)?;
    call_control_once(shared, &head, contents, head_deadline).await
}

fn head_of(forward: Forward) -> Result<http::request::Parts, Error> {
    let mut request = Request::new(());
    *request.method_mut() = forward.method;
    *request.uri_mut() = forward
        .path_and_query
        .parse()
        .map_err(|_| Error::client(ErrorKind::InvalidRequest, "The request target is not a legal path and query."))?;
    *request.headers_mut() = forward.headers;
    Ok(request.into_parts().0)
}

/// Sends the request. If a pooled connection turns out to be closed before the request was written, it is replaced
/// once.
pub(crate) async fn call_control(
    shared: &Shared,
    head: &http::request::Parts,
    body: BodySlices,
    head_deadline: Duration,
) -> Result<Response<Incoming>, Error> {
    call_control_once(shared, head, body, head_deadline).await.map_err(|unheard| unheard.error)
}

async fn call_control_once(
    shared: &Shared,
    head: &http::request::Parts,
    mut body: BodySlices,
    head_deadline: Duration,
) -> Result<Response<Incoming>, NoControlAnswer> {
    if let Some(lease) = shared.pool.idle(&shared.control) {
        match send(lease, head, body, head_deadline).await.map_err(NoControlAnswer::after)? {
            Err(Unanswered { unsent: Some(unsent), .. }) => body = unsent,
            other => return other.map_err(|unanswered| NoControlAnswer::after(lost(&unanswered))),
        }
    }
    let fresh = tokio::time::timeout(CONNECT_DEADLINE, shared.pool.fresh(&shared.control));
    let lease = fresh.await.unwrap_or_else(|_| Err(absent())).map_err(NoControlAnswer::before)?;
    let answered = send(lease, head, body, head_deadline).await.map_err(NoControlAnswer::after)?;
    answered.map_err(|unanswered| {
        let error = lost(&unanswered);
        NoControlAnswer { error, is_sent: unanswered.unsent.is_none() }
    })
}

async fn send(
    lease: Lease,
    head: &http::request::Parts,
    body: BodySlices,
    head_deadline: Duration,
) -> Result<Result<Response<Incoming>, Unanswered>, Error> {
    tokio::time::timeout(head_deadline, lease.send(head, body)).await.map_err(|_| {
        Error::gateway(ErrorKind::ControlUnavailable, "The control plane did not answer in time.").after_s(5)
    })
}

/// Copies the body with back-pressure. Returns `false` if it is truncated or the caller left.
///
/// This is not a [`crate::call::relay::stream::StreamKind`]. A response of control has no target, no settlement and no
/// alternative connection, so only back-pressure and an idle deadline would remain of that loop. Each chunk is sent
/// separately, because control's responses are small.
pub(crate) async fn copy(exchange: &Exchange, body: &mut Incoming) -> bool {
    loop {
        let next = poll_fn(|cx| match exchange.poll_capacity(cx) {
            Poll::Ready(Capacity::Free) => Pin::new(&mut *body).poll_frame(cx).map(Some),
            Poll::Ready(Capacity::ClientGone) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        match tokio::time::timeout(IDLE_DEADLINE, next).await {
            Ok(Some(Some(Ok(frame)))) => {
                if let Ok(data) = frame.into_data() {
                    exchange.push([data]);
                }
            }
            Ok(Some(None)) => return true,
            Ok(None | Some(Some(Err(_)))) | Err(_) => return false,
        }
    }
}

fn lost(unanswered: &Unanswered) -> Error {
    match unanswered.fault {
        Fault::Body(_) => failure::unreadable(),
        _ => absent(),
    }
}

fn absent() -> Error {
    Error::gateway(
        ErrorKind::ControlUnavailable,
        "Management is starting or has stopped; model calls continue. Try again in a moment.",
    )
    .after_s(1)
}

pub(crate) fn pass_headers(from: &HeaderMap, to: &mut HeaderMap) {
    for (name, value) in from {
        let is_hop = matches!(
            name.as_str(),
            "connection" | "keep-alive" | "transfer-encoding" | "upgrade" | "trailer" | "server" | "date"
        );
        if !is_hop && !name.as_str().starts_with("x-fairlead-") {
            to.append(name.clone(), value.clone());
        }
    }
}
