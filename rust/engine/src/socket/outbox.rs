//! Frames for a socket's front, in order. Writers wait while the caller reads more slowly than they write.

use crate::exchange::{Wake, HIGH_WATER_BYTES};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// The maximum number of frames that a front takes at once.
const MAX_TAKE: usize = 64;
/// The buffer limit for a caller that does not read.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The maximum length of the reason in a close frame (RFC 6455, 5.5.1).
const MAX_REASON_BYTES: usize = 123;

/// Frames that a front has taken.
#[derive(Debug, Default)]
pub struct Drawn {
    pub frames: Vec<String>,
    /// The socket must be closed like this after these frames.
    pub close: Option<Close>,
}

/// How a socket is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    pub code: u16,
    /// A sentence or nothing, never longer than a close frame allows.
    pub reason: String,
}

impl Close {
    pub fn new(code: u16, reason: &str) -> Self {
        let mut end = reason.len().min(MAX_REASON_BYTES);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Self { code, reason: reason[..end].to_owned() }
    }
}

/// The state of the handshake with the caller.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// The handshake waits for the provider.
    Pending,
    #[default]
    Accepted,
    /// The caller receives an HTTP response instead of a WebSocket.
    Refused,
}

#[derive(Debug, Default)]
struct State {
    handshake: Handshake,
    frames: VecDeque<String>,
    bytes: usize,
    close: Option<Close>,
    front_waits: bool,
}

/// Frames that wait to be sent by the front, limited in bytes.
#[derive(Debug)]
pub struct Outbox {
    id: u64,
    wake: Arc<dyn Wake>,
    state: Mutex<State>,
    read: Notify,
}

impl Outbox {
    pub fn new(id: u64, wake: Arc<dyn Wake>) -> Arc<Self> {
        Arc::new(Self { id, wake, state: Mutex::default(), read: Notify::new() })
    }

    /// Creates an outbox whose handshake waits until it is accepted or refused.
    pub fn pending(id: u64, wake: Arc<dyn Wake>) -> Arc<Self> {
        let outbox = Self::new(id, wake);
        outbox.state.lock().handshake = Handshake::Pending;
        outbox
    }

    /// Returns the state of the handshake. While it is pending, the front is woken on a change.
    pub fn handshake(&self) -> Handshake {
        let mut state = self.state.lock();
        state.front_waits |= state.handshake == Handshake::Pending;
        state.handshake
    }

    /// Decides a pending handshake. A decided one does not change. Returns whether it was pending.
    pub fn decide(&self, handshake: Handshake) -> bool {
        let mut state = self.state.lock();
        let was_pending = state.handshake == Handshake::Pending;
        if was_pending {
            state.handshake = handshake;
            self.wake_front(state);
        }
        was_pending
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Takes the frames that are ready. `None` means that there are none yet and the front will be woken.
    pub fn take(&self) -> Option<Drawn> {
        let mut state = self.state.lock();
        if state.frames.is_empty() && state.close.is_none() {
            state.front_waits = true;
            return None;
        }
        let count = state.frames.len().min(MAX_TAKE);
        let frames: Vec<String> = state.frames.drain(..count).collect();
        state.bytes -= frames.iter().map(String::len).sum::<usize>();
        let close = state.close.clone().filter(|_| state.frames.is_empty());
        drop(state);
        self.read.notify_waiters();
        Some(Drawn { frames, close })
    }

    /// Adds a frame. The connection of a caller with too many unread frames is closed (RFC 6455, 7.4.1: 1008).
    pub fn push(&self, frame: String) {
        let mut state = self.state.lock();
        if state.close.is_some() {
            return;
        }
        if state.bytes + frame.len() > MAX_BYTES {
            state.frames.clear();
            state.bytes = 0;
            state.close = Some(Close::new(1008, "The caller does not read what it is sent."));
        } else {
            state.bytes += frame.len();
            state.frames.push_back(frame);
        }
        self.wake_front(state);
    }

    /// Ends the outbox, and the front closes the socket. An earlier close code is kept.
    pub fn close(&self, code: u16, reason: &str) {
        let mut state = self.state.lock();
        state.close.get_or_insert_with(|| Close::new(code, reason));
        self.wake_front(state);
        self.read.notify_waiters();
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().close.is_some()
    }

    /// Waits until the caller has read enough.
    pub async fn wait_for_capacity(&self) {
        loop {
            let read = self.read.notified();
            if self.state.lock().bytes <= HIGH_WATER_BYTES || self.is_closed() {
                return;
            }
            read.await;
        }
    }

    /// Completes when the socket is to be closed.
    pub async fn closed(&self) {
        loop {
            let mut read = std::pin::pin!(self.read.notified());
            // Registers before the check, so that a close in between is not missed.
            read.as_mut().enable();
            if self.is_closed() {
                return;
            }
            read.await;
        }
    }

    fn wake_front(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        let wake = std::mem::take(&mut state.front_waits);
        drop(state);
        if wake {
            self.wake.wake(self.id);
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

    #[test]
    fn frames_keep_their_order_and_the_end_comes_last() {
        let wake = Arc::new(Count::default());
        let outbox = Outbox::new(1, wake.clone());
        assert!(outbox.take().is_none());
        for number in 0..100 {
            outbox.push(number.to_string());
        }
        outbox.close(1000, "done");
        outbox.close(1008, "too late");
        outbox.push("late".into());
        assert_eq!(wake.0.load(Ordering::Relaxed), 1);
        let first = outbox.take().expect("frames");
        assert_eq!((first.frames.len(), first.close), (MAX_TAKE, None));
        let last = outbox.take().expect("frames");
        assert_eq!(last.frames.last().map(String::as_str), Some("99"));
        assert_eq!(last.close, Some(Close { code: 1000, reason: "done".to_owned() }));
    }

    #[test]
    fn a_reason_fits_into_a_close_frame() {
        let close = Close::new(1008, &"é".repeat(100));
        assert_eq!(close.reason, "é".repeat(61));
    }

    #[test]
    fn a_handshake_is_decided_once() {
        let wake = Arc::new(Count::default());
        let outbox = Outbox::pending(1, wake.clone());
        assert_eq!(outbox.handshake(), Handshake::Pending);
        assert!(outbox.decide(Handshake::Refused));
        assert_eq!(wake.0.load(Ordering::Relaxed), 1);
        assert!(!outbox.decide(Handshake::Accepted));
        assert_eq!(outbox.handshake(), Handshake::Refused);
        assert_eq!(Outbox::new(2, wake).handshake(), Handshake::Accepted);
    }

    #[test]
    fn a_caller_who_does_not_read_is_sent_away() {
        let outbox = Outbox::new(1, Arc::new(Count::default()));
        for _ in 0..5 {
            outbox.push("x".repeat(1024 * 1024));
        }
        let drawn = outbox.take().expect("an end");
        assert_eq!((drawn.frames.len(), drawn.close.map(|close| close.code)), (0, Some(1008)));
    }
}
