//! Forwarding to control: the request as it came, with who sent it in internal headers that only this socket may carry.
//! The answer streams back with the same back-pressure as a provider's.

use crate::admission::{Admission, Forward, Whole};
use crate::answer;
use crate::answer::EndGuard;
use crate::body::Sliced;
use crate::exchange::{Exchange, Head, Room};
use crate::pool::Lease;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::error::{Error, Kind};
use fairlead_core::json;
use fairlead_dialect::Pieces;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

pub const LINK: HeaderName = HeaderName::from_static("x-fairlead-link");
const PRINCIPAL: HeaderName = HeaderName::from_static("x-fairlead-principal");
const PEER: HeaderName = HeaderName::from_static("x-fairlead-peer");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-fairlead-request-id");
const WORKER: HeaderName = HeaderName::from_static("x-fairlead-worker");
/// The `Host` that the caller sent.
const CALLED_AS: HeaderName = HeaderName::from_static("x-fairlead-host");
const SCHEME: HeaderName = HeaderName::from_static("x-fairlead-scheme");
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// The slowest management answer: a provider test with its own deadline inside.
const HEAD_DEADLINE: Duration = Duration::from_secs(60);
/// Silence inside an answer.
const IDLE_DEADLINE: Duration = Duration::from_secs(60);

/// Serves one forwarded request. Dropping the future ends the call.
pub fn serve(shared: Arc<Shared>, whole: Box<Whole>) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &whole.exchange, &whole.admission);
    async move {
        run(&shared, whole).await;
        drop(end);
    }
}

async fn run(shared: &Shared, whole: Box<Whole>) {
    let Whole { exchange, admission, forward, body, in_flight, buffered } = *whole;
    let _counted = (in_flight, buffered);
    let Some(mut forward) = forward else { return };
    let checked = if forward.is_unread { Ok(()) } else { check_body(&body) };
    if let Err(fault) = checked {
        return answer::refuse(shared, &exchange, admission.route.surface, &admission.request_id, &fault);
    }
    let headers = &mut forward.headers;
    headers.insert(LINK, answer::value(shared.config.link_token.expose()));
    headers.insert(PRINCIPAL, answer::value(admission.principal.to_header()));
    headers.insert(REQUEST_ID, answer::value(admission.request_id.as_str()));
    headers.insert(WORKER, answer::value(shared.worker_id.as_str()));
    headers.insert(SCHEME, HeaderValue::from_static(if forward.is_tls { "https" } else { "http" }));
    headers.insert(header::HOST, HeaderValue::from_static("control"));
    if let Some(host) = forward.host.take() {
        headers.insert(CALLED_AS, host);
    }
    if let Some(peer) = forward.peer {
        headers.insert(PEER, answer::value(peer.to_string()));
    }
    // Control has no HEAD of its own: it is a GET whose body stays here.
    let is_head = forward.method == http::Method::HEAD;
    if is_head {
        forward.method = http::Method::GET;
    }
    tokio::select! {
        biased;
        () = exchange.gone() => {}
        () = shared.drain.expired() => {
            let fault = crate::chat::drained();
            answer::refuse(shared, &exchange, admission.route.surface, &admission.request_id, &fault);
            exchange.abort();
        }
        result = relay(shared, &exchange, forward, body, &admission, is_head) => if let Err(fault) = result {
            shared.metrics.answered(admission.route.endpoint, fault.kind.status());
            answer::refuse(shared, &exchange, admission.route.surface, &admission.request_id, &fault);
        },
    }
}

/// Holds a body to the same rules as inference bodies, so that no two readers of it see different things: one JSON object,
/// bounded in depth, no member twice.
fn check_body(body: &[u8]) -> Result<(), Error> {
    if body.is_empty() {
        return Ok(());
    }
    json::scan_object(body, &[], json::MAX_DEPTH).map(drop).map_err(|fault| {
        let error = Error::client(Kind::InvalidRequest, format!("The body cannot be read: {fault}."));
        match fault.field.clone() {
            field if field.is_empty() => error,
            field => error.about(field),
        }
    })
}

async fn relay(
    shared: &Shared,
    exchange: &Exchange,
    forward: Forward,
    body: Bytes,
    admission: &Admission,
    is_head: bool,
) -> Result<(), Error> {
    let mut request = Request::new(Sliced::new(Pieces::from_iter([body])));
    *request.method_mut() = forward.method;
    *request.uri_mut() = forward
        .path_and_query
        .parse()
        .map_err(|_| Error::client(Kind::InvalidRequest, "The request target is not a legal path and query."))?;
    *request.headers_mut() = forward.headers;
    let (response, lease) = ask(shared, request).await?;
    let (parts, mut body) = response.into_parts();
    shared.metrics.answered(admission.route.endpoint, parts.status.as_u16());
    let mut headers = answer::base_headers(shared, &admission.request_id);
    pass_headers(&parts.headers, &mut headers);
    exchange.start(Head { status: parts.status, headers }, []);
    if is_head {
        exchange.end([]);
    } else if copy(exchange, &mut body).await {
        exchange.end([]);
        shared.pool.give_back(lease);
    } else {
        exchange.abort();
    }
    Ok(())
}

/// Sends the request; a kept connection that turns out closed before the request was written is replaced once.
pub(crate) async fn ask(shared: &Shared, request: Request<Sliced>) -> Result<(Response<Incoming>, Lease), Error> {
    let mut request = request;
    if let Some(mut lease) = shared.pool.kept(&shared.control) {
        match send(&mut lease, request).await {
            Ok(response) => return Ok((response, lease)),
            Err((_, Some(unsent))) => request = *unsent,
            Err((error, None)) => return Err(error),
        }
    }
    let mut lease =
        tokio::time::timeout(CONNECT_DEADLINE, shared.pool.fresh(&shared.control)).await.map_err(|_| absent())??;
    match send(&mut lease, request).await {
        Ok(response) => Ok((response, lease)),
        Err((error, _)) => Err(error),
    }
}

async fn send(
    lease: &mut Lease,
    request: Request<Sliced>,
) -> Result<Response<Incoming>, (Error, Option<Box<Request<Sliced>>>)> {
    if !matches!(tokio::time::timeout(CONNECT_DEADLINE, lease.sender.ready()).await, Ok(Ok(()))) {
        return Err((absent(), Some(Box::new(request))));
    }
    match tokio::time::timeout(HEAD_DEADLINE, lease.sender.try_send_request(request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(mut failure)) => Err((absent(), failure.take_message().map(Box::new))),
        Err(_) => Err((
            Error::gateway(Kind::ControlUnavailable, "The control plane did not answer in time.").after_s(5),
            None,
        )),
    }
}

/// The body, with back-pressure; `false` when it did not come whole.
async fn copy(exchange: &Exchange, body: &mut Incoming) -> bool {
    loop {
        let next = poll_fn(|cx| match exchange.poll_room(cx) {
            Poll::Ready(Room::Free) => Pin::new(&mut *body).poll_frame(cx),
            _ => Poll::Pending,
        });
        match tokio::time::timeout(IDLE_DEADLINE, next).await {
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    exchange.push([data]);
                }
            }
            Ok(None) => return true,
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
}

fn absent() -> Error {
    Error::gateway(Kind::ControlUnavailable, "The control plane is not running; inference goes on.").after_s(1)
}

fn pass_headers(from: &HeaderMap, to: &mut HeaderMap) {
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
