//! Captured bodies, stored for people to read. A [`Capture`] is attached to an exchange and copies what is sent to the
//! caller, up to a limit. When the exchange ends, its capture enters the worker's [`CaptureQueue`], and the writer
//! thread stores it.
//!
//! Requests never wait for a capture. A body over the limit is truncated, and a capture that finds the queue full is
//! dropped.

use crate::observe::kept_headers::{of_answer, HeaderLines};
use bytes::Bytes;
use fairlead_core::CaptureSettings;
use http::header::{HeaderMap, HeaderValue, CONTENT_TYPE};
use http::StatusCode;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;

/// The total size of captured bodies in memory, in open exchanges and in the queue.
const MAX_HELD_BYTES: usize = 128 * 1024 * 1024;
/// The capacity of the queue.
const MAX_WAITING: usize = 1024;

/// A message to the writer thread.
#[derive(Debug)]
pub enum Message {
    Kept(Box<CapturedExchange>),
    /// No more captures will follow.
    End,
}

/// The queue of captures between exchanges and the writer thread.
#[derive(Debug)]
pub struct CaptureQueue {
    sender: SyncSender<Message>,
    receiver: Mutex<Option<Receiver<Message>>>,
    held_bytes: AtomicUsize,
    lost: AtomicU64,
}

impl Default for CaptureQueue {
    fn default() -> Self {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        Self { sender, receiver: Mutex::new(Some(receiver)), held_bytes: AtomicUsize::new(0), lost: AtomicU64::new(0) }
    }
}

impl CaptureQueue {
    /// Returns the receiving end for the writer thread. Only the first call returns it.
    pub fn take_receiver(&self) -> Option<Receiver<Message>> {
        self.receiver.lock().take()
    }

    /// Signals the writer thread that no more captures will follow.
    pub fn finish(&self) {
        // Sending fails only if the thread has already ended.
        let _sent = self.sender.send(Message::End);
    }

    /// Releases the memory accounted for a capture, after it was written or discarded.
    pub fn release(&self, one: &CapturedExchange) {
        self.held_bytes.fetch_sub(one.held_bytes(), Ordering::AcqRel);
    }

    /// The number of captures that were dropped.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub fn count_lost(&self) -> u64 {
        self.lost.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn offer(&self, one: Box<CapturedExchange>) {
        let held_bytes = one.held_bytes();
        if self.sender.try_send(Message::Kept(one)).is_err() {
            self.held_bytes.fetch_sub(held_bytes, Ordering::AcqRel);
            self.count_lost();
        }
    }

    fn has_capacity(&self, bytes: usize) -> bool {
        let fits = self.held_bytes.fetch_add(bytes, Ordering::AcqRel) + bytes <= MAX_HELD_BYTES;
        if !fits {
            self.held_bytes.fetch_sub(bytes, Ordering::AcqRel);
        }
        fits
    }
}

/// Identifies the captured exchange.
#[derive(Debug, Clone, Default)]
pub struct CaptureSubject {
    pub request_id: String,
    pub key_id: Option<String>,
    /// Time of admission, UTC.
    pub ts_ms: u64,
    /// The caller's headers that influenced how the request was handled.
    pub headers: HeaderLines,
}

/// A captured body, possibly truncated, and its original length.
#[derive(Debug, Default)]
pub struct KeptBody {
    pub bytes: Vec<u8>,
    pub total_bytes: u64,
    pub content_type: Option<HeaderValue>,
}

impl KeptBody {
    pub fn is_cut(&self) -> bool {
        (self.bytes.len() as u64) < self.total_bytes
    }

    fn add(&mut self, piece: &[u8], limit: usize, queue: &CaptureQueue) {
        // Nothing is added after a gap, because the text would read as if it were continuous.
        if !self.is_cut() {
            let wanted = piece.len().min(limit.saturating_sub(self.bytes.len()));
            if wanted > 0 && queue.has_capacity(wanted) {
                self.bytes.extend_from_slice(&piece[..wanted]);
            }
        }
        self.total_bytes += piece.len() as u64;
    }
}

/// A captured request and its response.
#[derive(Debug, Default)]
pub struct CapturedExchange {
    pub subject: CaptureSubject,
    pub request: KeptBody,
    pub answer: KeptBody,
    /// The gateway's own headers of the response.
    pub answer_headers: HeaderLines,
    /// 0 if no response head was sent to the caller.
    pub status: u16,
    /// Whether the response was complete.
    pub is_complete: bool,
}

impl CapturedExchange {
    fn held_bytes(&self) -> usize {
        self.request.bytes.len() + self.answer.bytes.len()
    }
}

/// Copies the response of an exchange. Dropping it puts the capture into the queue.
#[derive(Debug)]
pub struct Capture {
    queue: Arc<CaptureQueue>,
    limit_bytes: usize,
    captured: Box<CapturedExchange>,
}

impl Capture {
    /// `request` is the request body if it is JSON.
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "an exchange has one pointer for it, null where nothing is kept"
    )]
    pub fn begin(
        queue: &Arc<CaptureQueue>,
        settings: CaptureSettings,
        subject: CaptureSubject,
        request: Option<&Bytes>,
    ) -> Box<Self> {
        let mut captured = Box::new(CapturedExchange { subject, ..CapturedExchange::default() });
        if let Some(body) = request {
            captured.request.content_type = Some(HeaderValue::from_static("application/json"));
            captured.request.add(body, settings.body_bytes, queue);
        }
        Box::new(Self { queue: Arc::clone(queue), limit_bytes: settings.body_bytes, captured })
    }

    pub fn head(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.captured.status = status.as_u16();
        self.captured.answer.content_type = headers.get(CONTENT_TYPE).cloned();
        self.captured.answer_headers = of_answer(headers);
    }

    pub fn record(&mut self, piece: &[u8]) {
        self.captured.answer.add(piece, self.limit_bytes, &self.queue);
    }

    /// Marks the response as complete and queues the capture.
    #[expect(clippy::boxed_local, reason = "it comes in the box that its exchange had")]
    pub fn end(mut self: Box<Self>) {
        self.captured.is_complete = true;
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.queue.offer(std::mem::take(&mut self.captured));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_box_returns, reason = "as `Capture::begin` gives it")]
    fn begin(queue: &Arc<CaptureQueue>, body_bytes: usize) -> Box<Capture> {
        let settings = CaptureSettings { is_for_all: true, body_bytes };
        Capture::begin(queue, settings, CaptureSubject::default(), Some(&Bytes::from_static(b"{\"a\":1}")))
    }

    fn taken(receiver: &Receiver<Message>) -> Box<CapturedExchange> {
        match receiver.try_recv() {
            Ok(Message::Kept(one)) => one,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bodies_are_cut_at_their_bound_and_say_so() {
        let queue = Arc::new(CaptureQueue::default());
        let receiver = queue.take_receiver().expect("the first to ask");
        let mut capture = begin(&queue, 7);
        capture.head(StatusCode::OK, &HeaderMap::new());
        for piece in [&b"abcd"[..], b"efgh", b"i"] {
            capture.record(piece);
        }
        capture.end();
        let one = taken(&receiver);
        assert_eq!((one.request.bytes.as_slice(), one.request.is_cut()), (&b"{\"a\":1}"[..], false));
        assert_eq!((one.answer.bytes.as_slice(), one.answer.is_cut()), (&b"abcdefg"[..], true));
        assert_eq!((one.answer.total_bytes, one.status, one.is_complete), (9, 200, true));
        assert_eq!(queue.held_bytes.load(Ordering::Relaxed), 14);
        queue.release(&one);
        assert_eq!(queue.held_bytes.load(Ordering::Relaxed), 0);
        drop(begin(&queue, 7));
        assert!(!taken(&receiver).is_complete, "the caller left");
    }

    #[test]
    fn a_queue_that_is_full_loses_and_counts() {
        let queue = Arc::new(CaptureQueue::default());
        for _ in 0..=MAX_WAITING {
            drop(begin(&queue, 7));
        }
        assert_eq!((queue.lost(), queue.held_bytes.load(Ordering::Relaxed)), (1, 7 * MAX_WAITING));
        queue.held_bytes.store(MAX_HELD_BYTES, Ordering::Relaxed);
        let capture = begin(&queue, 7);
        assert!(capture.captured.request.is_cut() && capture.captured.request.bytes.is_empty());
    }
}
