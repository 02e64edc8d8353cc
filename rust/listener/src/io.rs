//! The bytes of a connection, plain or TLS, including those that were read to detect the protocol, and the end of the
//! connection.
//!
//! If a request's body was not read completely, the connection closes in two steps: first the server's side, and then
//! the bytes that the caller still sends are read and discarded for a short time. If it closed immediately, the kernel
//! would send a reset for the unread bytes, and a caller that is still writing would lose the answer (RFC 9112, 9.6).

use crate::connection_state::ConnectionState;
use bytes::{Buf as _, Bytes};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;

/// How long bytes from the caller are read after the server's side has closed.
const LINGER: Duration = Duration::from_secs(3);
const LINGER_BYTES: usize = 8 * 1024 * 1024;

/// The socket of a connection, plain or TLS.
#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The bytes of one connection.
#[derive(Debug)]
pub struct Io {
    stream: Stream,
    /// Bytes that were read earlier and are returned first.
    ahead: Bytes,
    state: Arc<ConnectionState>,
    lingering: Option<Pin<Box<Sleep>>>,
    lingered_bytes: usize,
}

impl Io {
    pub fn new(stream: Stream, state: Arc<ConnectionState>) -> Self {
        Self { stream, ahead: Bytes::new(), state, lingering: None, lingered_bytes: 0 }
    }

    /// Returns bytes that were read, so that they are read again.
    pub fn unread(&mut self, ahead: Bytes) {
        self.ahead = ahead;
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = self.lingering.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        let mut space = [0_u8; 4096];
        while until.as_mut().poll(cx).is_pending() && self.lingered_bytes < LINGER_BYTES {
            let mut space = ReadBuf::new(&mut space);
            match ready!(self.stream.poll_read(cx, &mut space)) {
                Ok(()) if !space.filled().is_empty() => self.lingered_bytes += space.filled().len(),
                _ => return Poll::Ready(()),
            }
        }
        Poll::Ready(())
    }

    fn note<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(_) => self.state.note_write(),
            Poll::Pending => self.state.note_blocked_write(),
        }
        written
    }
}

impl Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.ahead.is_empty() {
            let amount = this.ahead.len().min(buf.remaining());
            buf.put_slice(&this.ahead[..amount]);
            this.ahead.advance(amount);
            if this.ahead.is_empty() {
                // An empty buffer would still hold its memory.
                this.ahead = Bytes::new();
            }
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = this.stream.poll_read(cx, buf);
        if buf.filled().len() > before {
            this.state.note_read();
        }
        read
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match &mut this.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        };
        this.note(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match &mut this.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        };
        this.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tcp(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match &mut this.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => {
                let flushed = Pin::new(stream).poll_flush(cx);
                this.note(flushed)
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            let ended = match &mut this.stream {
                Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
                Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            };
            let is_clean = ready!(ended).is_ok();
            if !is_clean || !this.state.has_unread_body() {
                return Poll::Ready(Ok(()));
            }
        }
        this.poll_linger(cx).map(Ok)
    }
}
