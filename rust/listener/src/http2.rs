//! The HTTP/2 server (RFC 9113), based on hyper: each stream is a request that is passed to the engine.

use crate::caller::{exchange_of, Caller, EngineHandle};
use crate::connection_state::{drive, CloseMode};
use crate::flight::Flight;
use crate::io::Io;
use crate::reply::Reply;
use crate::request_body;
use bytes::Bytes;
use fairlead_engine::{task, Admitted, Head, Inbound, Piece, PolledBodyState};
use http::{Method, Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use smallvec::SmallVec;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

const STREAMS: u32 = 100;
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
const FRAME_BYTES: u32 = 16 * 1024;
/// The maximum size of a decoded header list. One byte of a compressed list may stand for kilobytes.
const HEADER_LIST_BYTES: u32 = 64 * 1024;
/// The bytes of an answer that wait for the caller's flow-control window, in addition to those in the exchange.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// The maximum number of streams that a caller opened and reset before they were processed (CVE-2023-44487).
const PENDING_RESETS: usize = 20;
/// The maximum number of resets that the caller made the server send.
const LOCAL_RESETS: usize = 1024;
/// The interval of pings, which detect a caller that has disappeared.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(20);

/// Serves a connection to its end. Dropping the future ends it immediately.
pub async fn serve(io: Io, caller: Arc<Caller>, engine: Arc<EngineHandle>) {
    caller.state.enter_http2();
    let own = Arc::clone(&caller);
    let service = service_fn(move |request| answer(Arc::clone(&engine), Arc::clone(&own), request));
    let connection = http2::Builder::new(OnThisThread)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_header_list_size(HEADER_LIST_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(LOCAL_RESETS)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = pin!(connection);
    drive(&caller.state, connection.as_mut(), http2::Connection::graceful_shutdown).await;
}

/// Runs the tasks of streams on the thread of their connection.
#[derive(Debug, Clone, Copy)]
struct OnThisThread;

impl<F> Executor<F> for OnThisThread
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        // The task ends with its stream.
        drop(task::spawn(future));
    }
}

/// There is nobody to answer, or no answer, so the connection closes.
#[derive(Debug, thiserror::Error)]
#[error("the request has no answer")]
pub struct NoAnswer;

/// Answers one request. Dropping the future means that the caller has left.
async fn answer(
    engine: Arc<EngineHandle>,
    caller: Arc<Caller>,
    request: Request<Incoming>,
) -> Result<Response<Reply>, NoAnswer> {
    let (serving, is_last) = caller.state.begin_request();
    let is_head = request.method() == Method::HEAD;
    let (parts, mut body) = request.into_parts();
    let admitted = with_inbound(&parts, &caller, |inbound| engine.admit(inbound));
    drop(parts);
    let mut flight = Flight::new(exchange_of(&admitted), serving);
    if let Admitted::Pending(mut pending) = admitted {
        if pending.wants_body() {
            let read = request_body::read(&engine.engine, &mut pending, &mut flight, |cx| {
                request_body::poll_incoming(&mut body, cx)
            });
            read.await.map_err(|_| NoAnswer)?;
        } else if let PolledBodyState::Work(work) = engine.engine.feed_here(&mut pending, &Bytes::new(), false) {
            flight.begin(work);
        }
    }
    if !body.is_end_stream() {
        request_body::linger(body);
    }
    let answer = respond(flight, is_head).await?;
    if is_last {
        caller.state.close(CloseMode::Graceful);
    }
    Ok(answer)
}

async fn respond(mut flight: Flight, is_head: bool) -> Result<Response<Reply>, NoAnswer> {
    let head = flight.head().await.ok_or(NoAnswer)?;
    if is_head {
        // hyper would drop the body of an answer to HEAD, and with it the work.
        while let Piece::Bytes(_) = poll_fn(|cx| flight.poll_piece(cx)).await {}
        return Ok(response(head, Reply::Ended));
    }
    let whole = flight.exchange().take_complete();
    let body = match whole {
        Some(body) => {
            flight.land();
            Reply::whole(body)
        }
        None => Reply::Pieces(Box::new(flight)),
    };
    Ok(response(head, body))
}

fn response(head: Head, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// Calls `work` with a head in the form that the engine reads, borrowed from hyper's.
fn with_inbound<T>(parts: &http::request::Parts, caller: &Caller, work: impl FnOnce(&Inbound<'_>) -> T) -> T {
    let headers: SmallVec<[(&[u8], &[u8]); 32]> =
        parts.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())).collect();
    work(&Inbound {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default().as_bytes(),
        headers: &headers,
        authority: parts.uri.authority().map(http::uri::Authority::as_str),
        peer: Some(caller.peer),
        is_tls: caller.is_tls,
        is_http2: true,
    })
}
