//! One connection from its handshake to its end: TLS, then HTTP/1.1 or HTTP/2.

use crate::caller::{Caller, EngineHandle};
use crate::connection_state::{drive, CloseMode, ConnectionState};
use crate::http1;
use crate::http2;
use crate::io::{Io, Stream};
use bytes::BytesMut;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// The first bytes of an HTTP/2 connection (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The most bytes that are read at once before the protocol is known.
const AHEAD_BYTES: usize = 4096;

/// Serves a connection to its end. Dropping the future ends it at once.
pub async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, caller: Caller, engine: Arc<EngineHandle>) {
    let caller = Arc::new(caller);
    let state = Arc::clone(&caller.state);
    let opened = tokio::select! {
        biased;
        // No request has been received, so there is nothing to finish.
        () = state.wait_for_close(CloseMode::Graceful) => None,
        opened = open(stream, tls, &state) => opened,
    };
    let Some(Opened { mut io, ahead, is_http2 }) = opened else { return };
    if is_http2 {
        io.unread(ahead.freeze());
        http2::serve(io, caller, engine).await;
    } else {
        // The connection checks the close mode itself whenever it is polled.
        let connection = pin!(http1::serve(io, ahead, caller, engine));
        drive(&state, connection, |_| {}).await;
    }
}

/// A connection whose protocol is known.
struct Opened {
    io: Io,
    /// The bytes that were read to detect the protocol.
    ahead: BytesMut,
    is_http2: bool,
}

/// Performs the handshake and reads enough bytes to detect the protocol. Returns `None` if the connection ended first.
async fn open(stream: TcpStream, tls: Option<TlsAcceptor>, state: &Arc<ConnectionState>) -> Option<Opened> {
    let Some(acceptor) = tls else {
        return sniff(Io::new(Stream::Tcp(stream), Arc::clone(state))).await;
    };
    // Failed handshakes of unknown callers are not logged.
    let stream = acceptor.accept(stream).await.ok()?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Some(Opened { io: Io::new(Stream::Tls(Box::new(stream)), Arc::clone(state)), ahead: BytesMut::new(), is_http2 })
}

async fn sniff(mut io: Io) -> Option<Opened> {
    // Large enough for a typical head in one read.
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
