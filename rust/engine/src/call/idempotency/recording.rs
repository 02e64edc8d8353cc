//! The idempotency window: a request that is sent twice under one key is performed once.
//!
//! The first request is the leader, and its work writes into a recording. The leader's caller and all followers read
//! the recording, each at its pace. A follower may join while the call is in progress, or within five seconds after it
//! succeeded. The slowest reader applies back-pressure to the provider. The work ends early only when all readers have
//! left. Waiting followers receive a failure; later requests do not.
//!
//! ```text
//! (first) -> in progress -> succeeded -> stored for 5 s -> removed
//!                       \-> failed, or too large -> removed at once
//! ```

use crate::call::idempotency::ticket::{Name, Ticket};
use crate::clock;
use crate::exchange::{Capacity, Exchange, Head, Wake, HIGH_WATER_BYTES};
use bytes::Bytes;
use fairlead_core::{Error, ErrorKind};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::{poll_fn, Future};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use tokio::sync::Notify;

/// How long the response of a successful call is available to repeats.
pub const WINDOW_MS: u64 = 5_000;
/// Longer responses are not available to later followers.
const MAX_RECORDING_BYTES: usize = 8 * 1024 * 1024;
/// The memory limit of all recordings together. Beyond it, responses are not available to later followers.
const MAX_TOTAL_BYTES: usize = 64 * 1024 * 1024;
const MAX_ENTRIES: usize = 20_000;

/// The role of a request among those with its name.
#[derive(Debug)]
pub enum Role {
    /// The first request: it performs the call and writes this recording.
    Leader(Arc<Recording>),
    /// The call is in progress or has just finished.
    Follower(Arc<Recording>),
}

#[derive(Debug)]
struct Entry {
    digest: [u8; 32],
    recording: Arc<Recording>,
}

/// All recordings of this worker.
#[derive(Debug)]
pub struct Recordings {
    entries: Mutex<HashMap<Name, Entry>>,
    total_bytes: Arc<AtomicUsize>,
    window_ms: u64,
}

impl Default for Recordings {
    fn default() -> Self {
        Self { entries: Mutex::default(), total_bytes: Arc::default(), window_ms: WINDOW_MS }
    }
}

impl Recordings {
    /// Creates recordings that can be joined only while their call is in progress.
    pub fn under_way() -> Self {
        Self { window_ms: 0, ..Self::default() }
    }

    /// `digest` covers the path and the body. A different body under a key in use is a conflict.
    pub fn enter(&self, name: Name, digest: [u8; 32], now_ms: u64) -> Result<Role, Error> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(&name).filter(|entry| entry.recording.is_given(now_ms, self.window_ms)) {
            if entry.digest != digest {
                return Err(other_request());
            }
            if !entry.recording.is_complete() {
                return Err(too_late());
            }
            return Ok(Role::Follower(Arc::clone(&entry.recording)));
        }
        let recording = Arc::new(Recording::new(Arc::clone(&self.total_bytes)));
        if entries.len() < MAX_ENTRIES {
            entries.insert(name, Entry { digest, recording: Arc::clone(&recording) });
        }
        Ok(Role::Leader(recording))
    }

    /// Removes expired recordings. Called about once a second.
    pub fn sweep(&self, now_ms: u64) {
        self.entries.lock().retain(|_, entry| entry.recording.is_given(now_ms, self.window_ms));
    }

    /// Removes all finished recordings. Calls in progress keep their followers.
    pub fn forget(&self) {
        self.entries.lock().retain(|_, entry| entry.recording.is_given(u64::MAX, 0));
    }

    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The error for a key that was used with a different request.
pub fn other_request() -> Error {
    conflict("This idempotency key was just used with another request; use a new key.")
}

/// The error for a request that another worker is serving.
pub fn under_way() -> Error {
    conflict("Another worker of the gateway is processing the same request; retry when it has ended.").after_s(1)
}

fn conflict(message: &'static str) -> Error {
    Error::client(ErrorKind::Conflict, message).about("Idempotency-Key")
}

#[derive(Debug, Default)]
struct State {
    head: Option<(StatusCode, HeaderMap)>,
    chunks: Vec<Bytes>,
    /// The number of chunks that were dropped because all readers have read them.
    dropped: usize,
    bytes: usize,
    ended_ms: Option<u64>,
    is_aborted: bool,
    has_failed: bool,
    /// The response is being written to a store where later requests will find it. Until that is done, followers
    /// receive it from here.
    is_being_kept: bool,
    /// The position of each reader, in chunks; `None` for a reader that has left.
    readers: Vec<Option<usize>>,
}

/// One response for any number of callers.
#[derive(Debug)]
pub struct Recording {
    state: Mutex<State>,
    total_bytes: Arc<AtomicUsize>,
    /// Notified by the writer for readers.
    grew: Notify,
    /// Notified by readers for the writer.
    was_read: Notify,
}

impl Recording {
    fn new(total_bytes: Arc<AtomicUsize>) -> Self {
        Self { state: Mutex::default(), total_bytes, grew: Notify::new(), was_read: Notify::new() }
    }

    /// Whether a new follower can still receive it.
    fn is_given(&self, now_ms: u64, window_ms: u64) -> bool {
        let state = self.state.lock();
        match state.ended_ms {
            None => true,
            Some(ended_ms) => !state.has_failed && (state.is_being_kept || now_ms.saturating_sub(ended_ms) < window_ms),
        }
    }

    fn is_complete(&self) -> bool {
        self.state.lock().dropped == 0
    }

    /// A successful response of which nothing was dropped.
    pub fn answer(&self) -> Option<(StatusCode, HeaderMap, Vec<Bytes>)> {
        let chunks = self.complete_chunks()?;
        let (status, headers) = self.state.lock().head.clone()?;
        Some((status, headers, chunks))
    }

    /// The body of a successful response of which nothing was dropped.
    pub fn complete_chunks(&self) -> Option<Vec<Bytes>> {
        let state = self.state.lock();
        let is_good = state.ended_ms.is_some() && !state.has_failed && state.dropped == 0;
        is_good.then(|| state.chunks.clone())
    }

    // --- writer

    fn begin(&self, head: Head) {
        let mut state = self.state.lock();
        state.has_failed |= !head.status.is_success();
        state.head = Some((head.status, head.headers));
        drop(state);
        self.grew.notify_waiters();
    }

    fn add(&self, chunks: Vec<Bytes>) {
        let added: usize = chunks.iter().map(Bytes::len).sum();
        let mut state = self.state.lock();
        state.bytes += added;
        state.chunks.extend(chunks);
        let total = self.total_bytes.fetch_add(added, Ordering::Relaxed) + added;
        if state.bytes > MAX_RECORDING_BYTES || total > MAX_TOTAL_BYTES || state.dropped > 0 {
            self.drop_read(&mut state);
        }
        drop(state);
        self.grew.notify_waiters();
    }

    fn end(&self, is_aborted: bool, has_failed: bool, now_ms: u64) {
        let mut state = self.state.lock();
        state.is_aborted = is_aborted;
        state.has_failed |= is_aborted || has_failed || state.dropped > 0;
        state.ended_ms = Some(now_ms);
        drop(state);
        self.grew.notify_waiters();
    }

    /// Frees the chunks that every reader has read. Afterwards nobody can join.
    fn drop_read(&self, state: &mut State) {
        let slowest = state.readers.iter().flatten().min().copied().unwrap_or(state.dropped);
        let count = slowest.saturating_sub(state.dropped).min(state.chunks.len());
        let freed: usize = state.chunks.drain(..count).map(|chunk| chunk.len()).sum();
        state.dropped += count;
        state.bytes -= freed;
        self.total_bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    /// Whether the slowest reader is so far behind that the provider must wait. Without readers there is no
    /// back-pressure.
    fn is_far_ahead(&self) -> bool {
        let state = self.state.lock();
        let Some(slowest) = state.readers.iter().flatten().min() else { return false };
        let unread = state.chunks.iter().skip(slowest.saturating_sub(state.dropped));
        unread.map(Bytes::len).sum::<usize>() > HIGH_WATER_BYTES
    }

    fn is_deserted(&self) -> bool {
        self.state.lock().readers.iter().all(Option::is_none)
    }

    // --- reader

    /// Opens a reader at the beginning; `None` if the beginning was dropped.
    fn open(self: &Arc<Self>) -> Option<Reader> {
        let mut state = self.state.lock();
        if state.dropped > 0 {
            return None;
        }
        Some(self.seat(&mut state))
    }

    fn seat(self: &Arc<Self>, state: &mut State) -> Reader {
        state.readers.push(Some(state.dropped));
        Reader { recording: Arc::clone(self), index: state.readers.len() - 1 }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.total_bytes.fetch_sub(self.state.get_mut().bytes, Ordering::Relaxed);
    }
}

/// A reader's position in a recording, given up on drop.
#[derive(Debug)]
struct Reader {
    recording: Arc<Recording>,
    index: usize,
}

/// The next part of a recording, for one reader.
struct NextPiece {
    chunks: Vec<Bytes>,
    is_ended: bool,
    is_aborted: bool,
}

impl Reader {
    fn head(&self) -> Option<(StatusCode, HeaderMap)> {
        self.recording.state.lock().head.clone()
    }

    /// Returns everything since the last call.
    fn take(&self) -> NextPiece {
        let mut state = self.recording.state.lock();
        let position = state.readers[self.index].unwrap_or(0);
        let chunks = state.chunks.get(position.saturating_sub(state.dropped)..).unwrap_or_default().to_vec();
        state.readers[self.index] = Some(position + chunks.len());
        let (is_ended, is_aborted) = (state.ended_ms.is_some(), state.is_aborted);
        drop(state);
        self.recording.was_read.notify_one();
        NextPiece { chunks, is_ended, is_aborted }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.recording.state.lock().readers[self.index] = None;
        self.recording.was_read.notify_one();
    }
}

/// Copies the response that the work writes into `source` to the recording, until it ends or all readers have left.
async fn write(source: Arc<Exchange>, bell: Arc<FollowerWake>, recording: Arc<Recording>) {
    let mut is_headed = false;
    loop {
        if recording.is_deserted() {
            source.cancel();
            return recording.end(true, true, clock::monotonic_ms());
        }
        let rung = bell.0.notified();
        if !is_headed {
            if let Some(head) = source.take_head() {
                recording.begin(head);
                is_headed = true;
            }
        }
        if is_headed {
            if let Some(taken) = source.take() {
                recording.add(taken.chunks);
                if taken.ended {
                    return recording.end(taken.aborted, source.has_failed(), clock::monotonic_ms());
                }
                while recording.is_far_ahead() {
                    let read = recording.was_read.notified();
                    if recording.is_far_ahead() {
                        read.await;
                    }
                }
                continue;
            }
        }
        tokio::select! {
            () = rung => {}
            () = recording.was_read.notified() => {}
        }
    }
}

/// Sends a recording to one caller. `adapt` changes the head for this caller. Returns `true` if the response was sent
/// in full.
async fn read(reader: Reader, exchange: &Exchange, adapt: impl FnOnce(&mut Head)) -> bool {
    let mut adapt = Some(adapt);
    loop {
        let grew = reader.recording.grew.notified();
        tokio::pin!(grew);
        // Registers before the check, so that no notification between the check and the wait is lost.
        grew.as_mut().enable();
        if adapt.is_some() {
            if let Some((status, headers)) = reader.head() {
                let mut head = Head { status, headers };
                if let Some(adapt) = adapt.take() {
                    adapt(&mut head);
                }
                exchange.start(head, []);
            }
        }
        if adapt.is_none() {
            if poll_fn(|cx| exchange.poll_capacity(cx)).await == Capacity::ClientGone {
                return false;
            }
            let news = reader.take();
            if news.is_aborted {
                exchange.push(news.chunks);
                exchange.abort();
                return false;
            }
            if news.is_ended {
                exchange.end(news.chunks);
                return true;
            }
            exchange.push(news.chunks);
        }
        tokio::select! {
            biased;
            () = exchange.gone() => return false,
            () = grew => {}
        }
    }
}

#[derive(Debug)]
struct FollowerWake(Notify);

impl Wake for FollowerWake {
    fn wake(&self, _: u64) {
        self.0.notify_one();
    }
}

/// The first request of a key.
#[derive(Debug)]
pub struct Leader {
    pub source: Arc<Exchange>,
    /// Set if other workers may receive the same request.
    pub ticket: Option<Box<Ticket>>,
    bell: Arc<FollowerWake>,
    reader: Reader,
}

/// While this value exists, the recording's response is about to be stored elsewhere.
struct StorageMark(Arc<Recording>);

impl StorageMark {
    fn new(recording: &Arc<Recording>) -> Self {
        recording.state.lock().is_being_kept = true;
        Self(Arc::clone(recording))
    }
}

impl Drop for StorageMark {
    fn drop(&mut self) {
        self.0.state.lock().is_being_kept = false;
    }
}

impl Leader {
    pub fn new(recording: &Arc<Recording>, id: u64) -> Self {
        let bell = Arc::new(FollowerWake(Notify::new()));
        let source = Exchange::new(id, Arc::clone(&bell) as Arc<dyn Wake>);
        // The leader registers as a reader before anything is written.
        let reader = recording.seat(&mut recording.state.lock());
        Self { source, ticket: None, bell, reader }
    }

    pub fn with(self, ticket: Option<Box<Ticket>>) -> Self {
        Self { ticket, ..self }
    }

    /// Starts the work, which responds to `source`, and sends the response to the leader's caller. If that caller
    /// leaves, the work continues for the followers.
    pub async fn lead(self, exchange: &Exchange, work: impl Future<Output = ()> + Send + 'static) {
        self.lead_then(exchange, work, |_| {}).await;
    }

    /// Like `lead`, and calls `then` when the response has ended, whatever the result.
    pub async fn lead_then(
        self,
        exchange: &Exchange,
        work: impl Future<Output = ()> + Send + 'static,
        then: impl FnOnce(&Recording) + Send + 'static,
    ) {
        let recording = Arc::clone(&self.reader.recording);
        let keeping = StorageMark::new(&recording);
        // Both tasks end without supervision: the work when its exchange ends or is cancelled, the writer in either
        // case.
        crate::task::spawn(work);
        crate::task::spawn(async move {
            write(self.source, self.bell, Arc::clone(&recording)).await;
            then(&recording);
            drop(keeping);
        });
        read(self.reader, exchange, |_| {}).await;
    }
}

/// How much of a response a follower received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    Complete,
    /// The leader's response failed, or the follower left.
    Cut,
    /// Nothing, because the beginning of a large response has been dropped.
    TooLate,
}

/// The error for a follower that cannot receive any response.
pub fn too_late() -> Error {
    conflict("The same request is in progress, and its answer is too large to share.")
}

/// Sends a follower the leader's response from its beginning, or nothing of it.
pub async fn follow(recording: Arc<Recording>, exchange: &Exchange, adapt: impl FnOnce(&mut Head)) -> Followed {
    let Some(reader) = recording.open() else { return Followed::TooLate };
    drop(recording);
    if read(reader, exchange, adapt).await {
        Followed::Complete
    } else {
        Followed::Cut
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
