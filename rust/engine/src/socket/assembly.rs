//! Incomplete messages on either side of a WebSocket. Their bytes count in the gauge of buffered bodies.

use crate::shared::{Gauge, GaugePermit, Shared, MAX_BUFFERED_BYTES};
use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes of incomplete messages on one side of a WebSocket, which count as buffered body bytes.
#[derive(Debug)]
pub struct Assembly {
    shared: Arc<Shared>,
    state: Mutex<(usize, Option<GaugePermit>)>,
    is_over: AtomicBool,
}

impl Assembly {
    /// A message up to this size is buffered only briefly and is not counted.
    pub const UNCOUNTED_BYTES: usize = 64 * 1024;

    pub fn new(shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared: Arc::clone(shared), state: Mutex::default(), is_over: AtomicBool::new(false) })
    }

    /// The number of bytes of the incomplete message.
    pub fn held_bytes(&self) -> usize {
        self.state.lock().0
    }

    /// Counts more received bytes. Returns `false` if the limit is exceeded, in which case the connection must end.
    pub fn grow(&self, bytes: usize) -> bool {
        let so_far = self.state.lock().0;
        self.set(so_far + bytes)
    }

    /// Sets the number of buffered bytes.
    pub fn set(&self, bytes: usize) -> bool {
        let mut state = self.state.lock();
        state.0 = bytes;
        let counted = if bytes > Self::UNCOUNTED_BYTES { bytes } else { 0 };
        let fits = match &mut state.1 {
            _ if counted == 0 => {
                state.1 = None;
                true
            }
            Some(permit) => permit.set(counted, MAX_BUFFERED_BYTES),
            None => {
                state.1 = GaugePermit::take(&self.shared, Gauge::BodyBytes, counted, MAX_BUFFERED_BYTES);
                state.1.is_some()
            }
        };
        if !fits {
            self.is_over.store(true, Ordering::Release);
        }
        fits
    }

    /// Whether the limit was exceeded before.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// Counts the bytes of a WebSocket as they arrive until their message is complete. The WebSocket library does not
/// report them before that.
#[derive(Debug)]
pub struct CountedStream<S> {
    stream: S,
    assembly: Arc<Assembly>,
}

impl<S> CountedStream<S> {
    pub fn new(stream: S, assembly: Arc<Assembly>) -> Self {
        Self { stream, assembly }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if self.assembly.grow(buffer.filled().len() - before) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(Err(io::Error::other("there is no room for another body")))
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
