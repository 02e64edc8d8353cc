//! A running request: its exchange and its work, polled by the task of its connection.
//!
//! Work that is not finished when its answer ends or the caller leaves continues as a separate task: it returns its
//! upstream connection, or it detects that nobody is listening and settles.

use crate::connection_state::RequestGuard;
use fairlead_engine::{task, Exchange, Head, Piece, Work};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// From this many buffered bytes on, an answer is sent without waiting for more.
const GATHER_BYTES: usize = 16 * 1024;
/// The maximum number of consecutive polls that gather bytes before they are sent.
const MAX_LOOKS: u32 = 64;

/// A running request.
pub struct Flight {
    exchange: Arc<Exchange>,
    work: Option<Work>,
    is_ended: bool,
    /// The number of consecutive polls in which the work returned more bytes.
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

    /// The head of the answer. `None` means that the answer was aborted before it.
    pub async fn head(&mut self) -> Option<Head> {
        std::future::poll_fn(|cx| self.poll_head(cx)).await
    }

    /// Polls the work for the head of the answer. `None` means that the answer was aborted before it.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Option<Head>> {
        self.poll_work(cx);
        self.exchange.poll_head(cx)
    }

    /// The next piece of the answer's body. While each poll of the work returns more bytes, it is polled again after
    /// the other ready tasks of this thread. One read from a provider contains many events, and writing each of them
    /// separately would cost a system call.
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

    /// Records that the answer was taken to its end.
    pub fn land(mut self) {
        self.is_ended = true;
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) {
        let Some(work) = &mut self.work else { return };
        // The exchange is checked right after the poll, so it need not wake this task.
        self.exchange.forget_waker();
        // A panic ends only this request. Its guards have informed the caller when this returns.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) => self.work = None,
            Err(_) => {
                tracing::error!(exchange_id = self.exchange.id(), "a request's work ended with a panic");
                // Dropping the work runs its guards, whose panics are caught too.
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
            // Outside a runtime the work is dropped, which also settles it.
            if Handle::try_current().is_ok() {
                task::spawn(work);
            }
        }
    }
}
