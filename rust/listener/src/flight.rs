//! A request under way: its exchange and the work for it, polled by whoever has its connection.
//!
//! Work that is not at its end when its answer is, or when the caller leaves, goes on as a task of its own: it has a
//! connection to give back, or it finds that nobody listens, and settles.

use crate::connection_state::RequestGuard;
use fairlead_engine::{task, Exchange, Head, Piece, Work};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Bytes of an answer that are sent at once rather than gathered further.
const GATHER_BYTES: usize = 16 * 1024;
/// Polls in a row that may gather bytes before they are sent.
const MAX_LOOKS: u32 = 64;

/// A request under way.
pub struct Flight {
    exchange: Arc<Exchange>,
    work: Option<Work>,
    is_ended: bool,
    /// Polls in a row in which the work brought more bytes.
    looks: u32,
    _serving: RequestGuard,
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Flight({})", self.exchange.id())
    }
}

impl Flight {
    pub fn new(exchange: Arc<Exchange>, serving: RequestGuard) -> Self {
        Self { exchange, work: None, is_ended: false, looks: 0, _serving: serving }
    }

    pub fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    pub fn begin(&mut self, work: Work) {
        self.work = Some(work);
    }

    /// The answer's head. `None`: the answer stops short before it.
    pub async fn head(&mut self) -> Option<Head> {
        std::future::poll_fn(|cx| self.poll_head(cx)).await
    }

    /// Polls the work for the answer's head. `None`: the answer stops short before it.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Option<Head>> {
        self.poll_work(cx);
        self.exchange.poll_head(cx)
    }

    /// The next piece of the answer's body. While the work brings more with each look, the look is repeated behind whatever
    /// else is ready on this thread: a provider's read holds many events, and each of them written alone costs a system call.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        let (before, _) = self.exchange.buffered();
        if before == 0 || self.looks > 0 {
            self.poll_work(cx);
            let (bytes, is_ended) = self.exchange.buffered();
            let may_grow = !is_ended && self.work.is_some() && self.looks < MAX_LOOKS && bytes < GATHER_BYTES;
            if bytes > before && may_grow {
                self.looks += 1;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.looks = 0;
        }
        let piece = self.exchange.poll_piece(cx);
        self.is_ended |= matches!(piece, Poll::Ready(Piece::End | Piece::Abort));
        piece
    }

    /// Notes that the answer was taken to its end.
    pub fn land(mut self) {
        self.is_ended = true;
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) {
        let Some(work) = &mut self.work else { return };
        // What the work tells is looked for right behind it.
        self.exchange.forget_waker();
        // A defect in one request ends that request: its guards have told the caller by the time that this returns.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) => self.work = None,
            Err(_) => {
                tracing::error!(exchange_id = self.exchange.id(), "a request's work ended with a panic");
                // Its guards run as it is dropped, and may panic no further.
                let work = self.work.take();
                drop(catch_unwind(AssertUnwindSafe(|| drop(work))));
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.is_ended {
            self.exchange.cancel();
        }
        if let Some(work) = self.work.take() {
            // Outside of a runtime the work is dropped, which settles it as well.
            if Handle::try_current().is_ok() {
                task::spawn(work);
            }
        }
    }
}
