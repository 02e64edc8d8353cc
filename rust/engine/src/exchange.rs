//! One request and its answer, between the front that serves a client and the task that works for it.
//!
//! The front asks for what is ready and, when nothing is, is told once when something is. The task pushes a head, then
//! body bytes, then the end; it waits when the client reads slower than the provider writes. A front that has threads of its
//! own asks with [`Exchange::take_head`] and [`Exchange::take`] and is told through [`Wake`]; one that is a task of ours polls
//! ([`Exchange::poll_head`], [`Exchange::poll_piece`]).
//!
//! ```text
//! open -> headed -> (bytes)* -> ended|aborted  the task's side, in this order, each at most once
//!   \________________________/
//!            cancelled                         the front's side, at any time: the client is gone
//! ```

use crate::gate::cors::Cors;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Above this many unread bytes the task stops reading from the provider.
pub const HIGH_WATER_BYTES: usize = 256 * 1024;
/// Below this many it goes on.
const LOW_WATER_BYTES: usize = 64 * 1024;
/// What the front gets at once: servers bound what they hold by messages, so a message must be bounded too.
const MAX_TAKE_BYTES: usize = 32 * 1024;

/// How a front learns that an exchange has something for it. Called from the engine's thread; must not block.
pub trait Wake: Send + Sync + std::fmt::Debug {
    fn wake(&self, exchange_id: u64);
}

/// Status and headers of an answer.
#[derive(Debug)]
pub struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap<HeaderValue>,
}

/// What the front got from one look.
#[derive(Debug, Default)]
pub struct Taken {
    pub chunks: Vec<Bytes>,
    /// Nothing comes after these chunks.
    pub ended: bool,
    /// The answer stops short: the front must break the connection, so that nobody takes it for whole.
    pub aborted: bool,
}

/// What a front that polls got.
#[derive(Debug)]
pub enum Piece {
    Bytes(Bytes),
    /// Nothing comes any more.
    End,
    /// The answer stops short: the front must break the connection, so that nobody takes it for whole.
    Abort,
}

#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, each set by one side")]
struct State {
    head: Option<Head>,
    headed: bool,
    chunks: VecDeque<Bytes>,
    buffered_bytes: usize,
    ended: bool,
    /// It was answered at once. A stream that came to its end before anybody looked is still a stream.
    is_whole: bool,
    aborted: bool,
    cancelled: bool,
    /// The answer, whole as it may look, tells of a failure.
    failed: bool,
    /// The front looked, found nothing and wants to be woken.
    front_waits: bool,
    /// The waker of a front that is a task, looked for something and found nothing.
    front: Option<Waker>,
    /// The task waits for room or is watching for the client's going away.
    task: Option<Waker>,
    /// What the answer says of pages of other origins, whoever makes it.
    cors: Option<Cors>,
    /// What the front gave and the task has not dealt with.
    given_bytes: usize,
}

impl State {
    /// The one way out for a head, whichever front takes it.
    fn take_head(&mut self) -> Option<Head> {
        let mut head = self.head.take()?;
        if let Some(cors) = self.cors.take() {
            cors.mark(&mut head.headers);
        }
        Some(head)
    }
}

/// One request's answer on its way from the task that makes it to the front that sends it.
#[derive(Debug)]
pub struct Exchange {
    id: u64,
    wake: Arc<dyn Wake>,
    state: Mutex<State>,
}

impl Exchange {
    pub fn new(id: u64, wake: Arc<dyn Wake>) -> Arc<Self> {
        Arc::new(Self { id, wake, state: Mutex::new(State::default()) })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    // --- the front's side ---

    /// The answer's head, once. `None`: not yet; the front will be woken.
    pub fn take_head(&self) -> Option<Head> {
        let mut state = self.state.lock();
        let head = state.take_head();
        state.front_waits = head.is_none();
        head
    }

    /// What is ready, up to 32 KiB. `None`: nothing yet; the front will be woken.
    pub fn take(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        if state.chunks.is_empty() && !state.ended {
            state.front_waits = true;
            return None;
        }
        let was_full = state.buffered_bytes > LOW_WATER_BYTES;
        if state.aborted {
            return Some(Taken { aborted: true, ended: true, chunks: Vec::new() });
        }
        let mut taken = Taken::default();
        let mut room = MAX_TAKE_BYTES;
        while let Some(mut chunk) = state.chunks.pop_front() {
            if chunk.len() > room {
                taken.chunks.push(chunk.split_to(room));
                state.chunks.push_front(chunk);
                break;
            }
            room -= chunk.len();
            taken.chunks.push(chunk);
        }
        state.buffered_bytes = state.chunks.iter().map(Bytes::len).sum();
        taken.ended = state.ended && state.chunks.is_empty();
        if was_full && state.buffered_bytes <= LOW_WATER_BYTES {
            if let Some(task) = state.task.take() {
                task.wake();
            }
        }
        Some(taken)
    }

    /// Whether the front may give more of a body that goes to disk. `false`: not yet; the front will be woken.
    pub fn has_room(&self) -> bool {
        let mut state = self.state.lock();
        let has_room = state.given_bytes <= HIGH_WATER_BYTES || state.ended || state.cancelled;
        state.front_waits |= !has_room;
        has_room
    }

    /// The front gave so much.
    pub fn give(&self, bytes: usize) {
        self.state.lock().given_bytes += bytes;
    }

    /// The answer's head for a front that is a task. `None`: there is no head, because the answer stops short before it.
    pub fn poll_head(&self, cx: &Context<'_>) -> Poll<Option<Head>> {
        let mut state = self.state.lock();
        if state.head.is_some() || state.aborted {
            return Poll::Ready(state.take_head());
        }
        wait(&mut state.front, cx);
        Poll::Pending
    }

    /// The next piece of the answer's body for a front that is a task: everything that is there, up to 32 KiB, small chunks
    /// as one.
    pub fn poll_piece(&self, cx: &Context<'_>) -> Poll<Piece> {
        let mut state = self.state.lock();
        if state.aborted {
            return Poll::Ready(Piece::Abort);
        }
        let Some(first) = state.chunks.pop_front() else {
            if state.ended {
                return Poll::Ready(Piece::End);
            }
            wait(&mut state.front, cx);
            return Poll::Pending;
        };
        let was_full = state.buffered_bytes > LOW_WATER_BYTES;
        let piece = gather(first, &mut state.chunks);
        state.buffered_bytes -= piece.len();
        if was_full && state.buffered_bytes <= LOW_WATER_BYTES {
            if let Some(task) = state.task.take() {
                task.wake();
            }
        }
        Poll::Ready(Piece::Bytes(piece))
    }

    /// Bytes that the front may take now, and whether the answer is at its end.
    pub fn held(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.buffered_bytes, state.ended)
    }

    /// The body of an answer that was given whole. `None`: it is to be taken piece by piece.
    pub fn take_whole(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        if !state.is_whole {
            return None;
        }
        state.buffered_bytes = 0;
        Some(state.chunks.pop_front().unwrap_or_default())
    }

    /// Ready when the front may give more of a body that goes to disk.
    pub fn poll_room_to_give(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.given_bytes <= HIGH_WATER_BYTES || state.ended || state.cancelled {
            return Poll::Ready(());
        }
        wait(&mut state.front, cx);
        Poll::Pending
    }

    /// A front that is about to look by itself need not be told.
    pub fn forget_waker(&self) {
        self.state.lock().front = None;
    }

    /// The client is gone: the task stops and settles.
    pub fn cancel(&self) {
        let mut state = self.state.lock();
        state.cancelled = true;
        state.chunks.clear();
        if let Some(task) = state.task.take() {
            task.wake();
        }
    }

    // --- the gate's side, before anything is answered ---

    pub fn set_cors(&self, cors: Option<Cors>) {
        self.state.lock().cors = cors;
    }

    pub fn is_readable_elsewhere(&self) -> bool {
        matches!(self.state.lock().cors, Some(Cors::Readable(_)))
    }

    // --- the task's side ---

    /// The task has dealt with so much of what the front gave.
    pub fn accept(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.given_bytes = state.given_bytes.saturating_sub(bytes);
        if state.given_bytes <= HIGH_WATER_BYTES {
            self.wake_front(state);
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled
    }

    pub fn is_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Whether a head went to the front: from here on a failure is told in the body.
    pub fn is_headed(&self) -> bool {
        self.state.lock().headed
    }

    /// A whole answer at once: one wake-up.
    pub fn answer(&self, head: Head, body: Bytes) {
        let mut state = self.state.lock();
        if state.headed || state.ended {
            return;
        }
        state.headed = true;
        state.head = Some(head);
        if !body.is_empty() {
            state.buffered_bytes += body.len();
            state.chunks.push_back(body);
        }
        state.ended = true;
        state.is_whole = true;
        self.wake_front(state);
    }

    /// The head, and the first bytes with it.
    pub fn start(&self, head: Head, chunks: impl IntoIterator<Item = Bytes>) {
        let mut state = self.state.lock();
        if state.headed || state.ended {
            return;
        }
        state.headed = true;
        state.head = Some(head);
        append(&mut state, chunks);
        self.wake_front(state);
    }

    /// More bytes. Nothing is told to a front that has not asked.
    pub fn push(&self, chunks: impl IntoIterator<Item = Bytes>) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        append(&mut state, chunks);
        if !state.chunks.is_empty() {
            self.wake_front(state);
        }
    }

    /// The end, and the last bytes before it.
    pub fn end(&self, chunks: impl IntoIterator<Item = Bytes>) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        append(&mut state, chunks);
        state.ended = true;
        self.wake_front(state);
    }

    /// Stops short: what was sent is not whole and nothing more can be said. Without effect after the end.
    pub fn abort(&self) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        state.headed = true;
        state.ended = true;
        state.aborted = true;
        self.wake_front(state);
    }

    /// Notes that the request did not end well, before its answer ends.
    pub fn mark_failed(&self) {
        self.state.lock().failed = true;
    }

    pub fn has_failed(&self) -> bool {
        self.state.lock().failed
    }

    /// Ready when the client is gone, or when there is room again. Registers the caller for both, so the caller may poll
    /// other things beside it.
    pub fn poll_room(&self, cx: &Context<'_>) -> Poll<Room> {
        let mut state = self.state.lock();
        if state.cancelled {
            return Poll::Ready(Room::ClientGone);
        }
        wait(&mut state.task, cx);
        if state.buffered_bytes > HIGH_WATER_BYTES {
            Poll::Pending
        } else {
            Poll::Ready(Room::Free)
        }
    }

    /// Ends when the client has left. Shares its place with [`Exchange::poll_room`], so both are for one task.
    pub async fn gone(&self) {
        poll_fn(|cx| match self.poll_room(cx) {
            Poll::Ready(Room::ClientGone) => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
    }

    fn wake_front(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        let wake = std::mem::take(&mut state.front_waits);
        let front = state.front.take();
        drop(state);
        if wake {
            self.wake.wake(self.id);
        }
        if let Some(front) = front {
            front.wake();
        }
    }
}

/// The first chunk, and as many behind it as fit into one message: each message costs its framing and a place in a write.
fn gather(first: Bytes, rest: &mut VecDeque<Bytes>) -> Bytes {
    let mut bytes = first.len();
    let count = rest
        .iter()
        .take_while(|chunk| {
            bytes += chunk.len();
            bytes <= MAX_TAKE_BYTES
        })
        .count();
    if count == 0 {
        return first;
    }
    let mut piece = BytesMut::with_capacity(bytes.min(MAX_TAKE_BYTES));
    piece.extend_from_slice(&first);
    for chunk in rest.drain(..count) {
        piece.extend_from_slice(&chunk);
    }
    piece.freeze()
}

fn wait(place: &mut Option<Waker>, cx: &Context<'_>) {
    if place.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
        *place = Some(cx.waker().clone());
    }
}

/// What [`Exchange::poll_room`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Free,
    ClientGone,
}

fn append(state: &mut State, chunks: impl IntoIterator<Item = Bytes>) {
    if state.cancelled {
        return;
    }
    for chunk in chunks {
        if !chunk.is_empty() {
            state.buffered_bytes += chunk.len();
            state.chunks.push_back(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug, Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(&self, _: u64) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn head() -> Head {
        Head { status: StatusCode::OK, headers: HeaderMap::new() }
    }

    #[test]
    fn a_front_is_woken_once_and_only_when_it_asked() {
        let wake = Arc::new(Count::default());
        let exchange = Exchange::new(1, wake.clone());
        exchange.start(head(), []);
        assert_eq!(wake.0.load(Ordering::Relaxed), 0);
        assert!(exchange.take_head().is_some());
        assert!(exchange.take().is_none());
        exchange.push([Bytes::from_static(b"a")]);
        exchange.push([Bytes::from_static(b"b")]);
        exchange.end([]);
        assert_eq!(wake.0.load(Ordering::Relaxed), 1);
        let taken = exchange.take().expect("bytes");
        assert_eq!((taken.chunks.concat(), taken.ended), (b"ab".to_vec(), true));
    }

    #[test]
    fn a_full_buffer_holds_the_task_until_it_is_read() {
        let exchange = Exchange::new(1, Arc::new(Count::default()));
        let cx = &mut Context::from_waker(Waker::noop());
        exchange.start(head(), [Bytes::from(vec![0; HIGH_WATER_BYTES + 1])]);
        assert!(exchange.poll_room(cx).is_pending());
        assert_eq!(exchange.take().map(|taken| taken.chunks.concat().len()), Some(MAX_TAKE_BYTES));
        assert_eq!(exchange.poll_room(cx), Poll::Ready(Room::Free));
        while exchange.take().is_some() {}
        assert_eq!(exchange.poll_room(cx), Poll::Ready(Room::Free));
    }

    #[test]
    fn a_head_says_which_pages_may_read_it_whichever_front_takes_it() {
        let origin = HeaderValue::from_static("https://app.example");
        let marked = |take: fn(&Exchange) -> Option<Head>| {
            let exchange = Exchange::new(1, Arc::new(Count::default()));
            exchange.set_cors(Some(Cors::Readable(origin.clone())));
            exchange.answer(head(), Bytes::new());
            take(&exchange).expect("a head").headers.get(http::header::ACCESS_CONTROL_ALLOW_ORIGIN).cloned()
        };
        assert_eq!(marked(Exchange::take_head), Some(origin.clone()));
        let polled = marked(|exchange| match exchange.poll_head(&Context::from_waker(Waker::noop())) {
            Poll::Ready(head) => head,
            Poll::Pending => None,
        });
        assert_eq!(polled, Some(origin.clone()));
    }

    #[test]
    fn a_cancelled_exchange_keeps_nothing() {
        let exchange = Exchange::new(1, Arc::new(Count::default()));
        exchange.start(head(), [Bytes::from_static(b"a")]);
        exchange.cancel();
        exchange.push([Bytes::from_static(b"b")]);
        assert_eq!(exchange.poll_room(&Context::from_waker(Waker::noop())), Poll::Ready(Room::ClientGone));
        assert!(exchange.take().is_none());
    }

    #[test]
    fn an_aborted_answer_is_told_from_a_whole_one() {
        let exchange = Exchange::new(1, Arc::new(Count::default()));
        exchange.start(head(), [Bytes::from_static(b"half")]);
        exchange.abort();
        assert!(exchange.take_head().is_some());
        assert!(exchange.take().is_some_and(|taken| taken.aborted));
        let whole = Exchange::new(2, Arc::new(Count::default()));
        whole.answer(head(), Bytes::new());
        whole.abort();
        assert!(whole.take().is_some_and(|taken| taken.ended && !taken.aborted));
    }

    #[test]
    fn a_front_that_polls_gets_pieces_and_makes_room() {
        let exchange = Exchange::new(1, Arc::new(Count::default()));
        let cx = &Context::from_waker(Waker::noop());
        assert!(exchange.poll_head(cx).is_pending());
        exchange.start(head(), [Bytes::from(vec![0; HIGH_WATER_BYTES]), Bytes::from_static(b"b")]);
        assert!(matches!(exchange.poll_head(cx), Poll::Ready(Some(_))));
        assert!(exchange.poll_room(cx).is_pending());
        assert!(exchange.take_whole().is_none());
        assert!(matches!(exchange.poll_piece(cx), Poll::Ready(Piece::Bytes(piece)) if piece.len() == HIGH_WATER_BYTES));
        assert_eq!(exchange.poll_room(cx), Poll::Ready(Room::Free));
        exchange.end([]);
        assert!(exchange.take_whole().is_none(), "a stream, though all of it is there");
        assert!(matches!(exchange.poll_piece(cx), Poll::Ready(Piece::Bytes(piece)) if piece == "b"));
        assert!(matches!(exchange.poll_piece(cx), Poll::Ready(Piece::End)));
        let exchange = Exchange::new(2, Arc::new(Count::default()));
        exchange.answer(head(), Bytes::from_static(b"c"));
        assert_eq!(exchange.take_whole().as_deref(), Some(&b"c"[..]));
        assert!(matches!(exchange.poll_piece(cx), Poll::Ready(Piece::End)));
    }
}
