//! One connection from its handshake to its end: TLS, then HTTP/1.1 or HTTP/2.

use crate::connection_state::{ConnectionState, Order};
use crate::http1;
use crate::io::{Io, Stream};
use crate::request::{self, Caller, Room};
use bytes::BytesMut;
use fairlead_engine::task;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// How a connection of HTTP/2 begins (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const STREAMS: u32 = 100;
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
const FRAME_BYTES: u32 = 16 * 1024;
/// Decoded: one byte of a packed list may stand for kilobytes.
const HEADER_LIST_BYTES: u32 = 64 * 1024;
/// What of an answer waits for a caller's window, beside what the exchange holds.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Streams that a caller opened and reset before they were looked at (CVE-2023-44487).
const PENDING_RESETS: usize = 20;
/// Resets that the caller made us send.
const LOCAL_RESETS: usize = 1024;
/// What is read at once of a connection whose protocol is not known yet.
const AHEAD_BYTES: usize = 4096;
/// A caller that is gone without a word is found out.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(20);

/// Serves a connection to its end. Dropping the future ends it at once.
pub async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, caller: Caller, room: Arc<Room>) {
    let caller = Arc::new(caller);
    let state = Arc::clone(&caller.state);
    let opened = tokio::select! {
        biased;
        // Nothing was asked yet, so there is nothing to finish.
        () = state.ordered(Order::Finish) => None,
        opened = open(stream, tls, &state) => opened,
    };
    let Some(Opened { mut io, ahead, is_http2 }) = opened else { return };
    if is_http2 {
        io.unread(ahead.freeze());
        serve_http2(io, caller, room).await;
    } else {
        // It looks itself at what it is told, whenever it is polled.
        let connection = pin!(http1::serve(io, ahead, caller, room));
        drive(&state, connection, |_| {}).await;
    }
}

/// A connection whose protocol is known.
struct Opened {
    io: Io,
    /// What was read to know it.
    ahead: BytesMut,
    is_http2: bool,
}

/// The handshake, and the first bytes as far as they tell the protocol. `None`: the connection ended inside.
async fn open(stream: TcpStream, tls: Option<TlsAcceptor>, state: &Arc<ConnectionState>) -> Option<Opened> {
    let Some(acceptor) = tls else {
        return sniff(Io::new(Stream::Tcp(stream), Arc::clone(state))).await;
    };
    // What a stranger gets wrong in a handshake is no news.
    let stream = acceptor.accept(stream).await.ok()?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Some(Opened { io: Io::new(Stream::Tls(Box::new(stream)), Arc::clone(state)), ahead: BytesMut::new(), is_http2 })
}

async fn sniff(mut io: Io) -> Option<Opened> {
    // Room for a whole ordinary head, in one read.
    let mut ahead = BytesMut::with_capacity(AHEAD_BYTES);
    loop {
        let known = ahead.len().min(PREFACE.len());
        let is_like_it = ahead[..known] == PREFACE[..known];
        if !is_like_it || known == PREFACE.len() {
            return Some(Opened { io, ahead, is_http2: is_like_it });
        }
        if io.read_buf(&mut ahead).await.ok()? == 0 {
            return None;
        }
    }
}

async fn serve_http2(io: Io, caller: Arc<Caller>, room: Arc<Room>) {
    caller.state.speak_http2();
    let own = Arc::clone(&caller);
    let service = service_fn(move |request| request::serve(Arc::clone(&room), Arc::clone(&own), request));
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

/// Polls a connection, and passes on what it is told. How it ended is for its requests to tell.
async fn drive<C: Future>(state: &ConnectionState, mut connection: Pin<&mut C>, mut finish: impl FnMut(Pin<&mut C>)) {
    let mut is_finishing = false;
    let mut is_watched = false;
    poll_fn(|cx: &mut Context<'_>| {
        if !std::mem::replace(&mut is_watched, true) {
            state.watch(cx);
        }
        match state.order() {
            Order::None => {}
            Order::Finish => {
                if !std::mem::replace(&mut is_finishing, true) {
                    finish(connection.as_mut());
                }
            }
            Order::End => return Poll::Ready(()),
        }
        connection.as_mut().poll(cx).map(drop)
    })
    .await;
}

/// Streams of HTTP/2 stay with their connection.
#[derive(Debug, Clone, Copy)]
struct OnThisThread;

impl<F> Executor<F> for OnThisThread
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        // It ends with its stream.
        drop(task::spawn(future));
    }
}
