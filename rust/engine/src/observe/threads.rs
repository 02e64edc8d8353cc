//! The threads that relay, each of which says four times a second that it moves on; one that does not is stuck, and is shown:
//! in `GET /readyz`, in `GET /metrics` and in the log.

use crate::clock;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// How long a thread may be silent. A full machine lets one wait for some hundred milliseconds.
pub const STUCK_AFTER_MS: u64 = 2_000;

/// One thread's sign of life.
#[derive(Debug)]
pub struct Beat {
    pub name: String,
    seen_ms: AtomicU64,
    is_reported: AtomicBool,
}

impl Beat {
    /// The thread moves on.
    pub fn record(&self) {
        self.seen_ms.store(clock::monotonic_ms(), Ordering::Relaxed);
    }

    /// For how long it has been silent.
    pub fn silent_ms(&self) -> u64 {
        clock::monotonic_ms().saturating_sub(self.seen_ms.load(Ordering::Relaxed))
    }

    pub fn is_stuck(&self) -> bool {
        self.silent_ms() > STUCK_AFTER_MS
    }
}

/// Every thread of a worker process. One that has ended is not known any more.
#[derive(Debug, Default)]
pub struct Threads(Mutex<Vec<Arc<Beat>>>);

impl Threads {
    /// A thread more; it is known as long as somebody else has its beat.
    pub fn enlist(&self, name: impl Into<String>) -> Arc<Beat> {
        let beat = Arc::new(Beat {
            name: name.into(),
            seen_ms: AtomicU64::new(clock::monotonic_ms()),
            is_reported: AtomicBool::new(false),
        });
        self.0.lock().push(Arc::clone(&beat));
        beat
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Beat>> {
        let mut beats = self.0.lock();
        beats.retain(|beat| Arc::strong_count(beat) > 1);
        beats.clone()
    }

    /// The names of those that are stuck.
    pub fn stuck(&self) -> Vec<String> {
        self.all().iter().filter(|beat| beat.is_stuck()).map(|beat| beat.name.clone()).collect()
    }

    /// Logs what changed. Called about once a second, from a thread that does nothing else.
    pub fn watch(&self) {
        for beat in self.all() {
            let is_stuck = beat.is_stuck();
            if is_stuck != beat.is_reported.swap(is_stuck, Ordering::Relaxed) {
                if is_stuck {
                    tracing::error!(thread = %beat.name, silent_ms = beat.silent_ms(), "a thread is stuck");
                } else {
                    tracing::warn!(thread = %beat.name, "a thread moves on again");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_thread_is_named_until_it_moves_on() {
        let threads = Threads::default();
        let (one, two) = (threads.enlist("one"), threads.enlist("two"));
        assert!(threads.stuck().is_empty());
        one.seen_ms.store(0, Ordering::Relaxed);
        // The clock of a process that has just begun may stand below the limit.
        let is_late = clock::monotonic_ms() > STUCK_AFTER_MS;
        assert_eq!(threads.stuck().len(), usize::from(is_late));
        one.record();
        assert!(threads.stuck().is_empty());
        drop(two);
        assert_eq!(threads.all().len(), 1);
    }
}
