//! Watches the relay threads. Each thread records a heartbeat four times a second. A thread without a recent heartbeat
//! is stuck, and is reported in `GET /readyz`, in `GET /metrics` and in the log.

use crate::clock;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// The longest time without a heartbeat. On a busy machine a thread may be delayed for some hundred milliseconds.
pub const STUCK_AFTER_MS: u64 = 2_000;

/// The heartbeat of one thread.
#[derive(Debug)]
pub struct Heartbeat {
    pub name: String,
    seen_ms: AtomicU64,
    is_reported: AtomicBool,
}

impl Heartbeat {
    /// Records a heartbeat.
    pub fn record(&self) {
        self.seen_ms.store(clock::monotonic_ms(), Ordering::Relaxed);
    }

    /// The time since the last heartbeat.
    pub fn silent_ms(&self) -> u64 {
        clock::monotonic_ms().saturating_sub(self.seen_ms.load(Ordering::Relaxed))
    }

    pub fn is_stuck(&self) -> bool {
        self.silent_ms() > STUCK_AFTER_MS
    }
}

/// All threads of a worker process. Ended threads are removed.
#[derive(Debug, Default)]
pub struct Threads(Mutex<Vec<Arc<Heartbeat>>>);

impl Threads {
    /// Registers a thread. It stays registered while the caller holds the returned heartbeat.
    pub fn register(&self, name: impl Into<String>) -> Arc<Heartbeat> {
        let heartbeat = Arc::new(Heartbeat {
            name: name.into(),
            seen_ms: AtomicU64::new(clock::monotonic_ms()),
            is_reported: AtomicBool::new(false),
        });
        self.0.lock().push(Arc::clone(&heartbeat));
        heartbeat
    }

    /// Returns the heartbeats of all threads.
    pub fn all(&self) -> Vec<Arc<Heartbeat>> {
        let mut heartbeats = self.0.lock();
        heartbeats.retain(|heartbeat| Arc::strong_count(heartbeat) > 1);
        heartbeats.clone()
    }

    /// Returns the names of the stuck threads.
    pub fn stuck(&self) -> Vec<String> {
        self.all().iter().filter(|heartbeat| heartbeat.is_stuck()).map(|heartbeat| heartbeat.name.clone()).collect()
    }

    /// Logs changes. Called about once a second, from a thread without other work.
    pub fn watch(&self) {
        for heartbeat in self.all() {
            let is_stuck = heartbeat.is_stuck();
            if is_stuck != heartbeat.is_reported.swap(is_stuck, Ordering::Relaxed) {
                if is_stuck {
                    tracing::error!(thread = %heartbeat.name, silent_ms = heartbeat.silent_ms(), "a thread is stuck");
                } else {
                    tracing::warn!(thread = %heartbeat.name, "a stuck thread continues");
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
        let (one, two) = (threads.register("one"), threads.register("two"));
        assert!(threads.stuck().is_empty());
        one.seen_ms.store(0, Ordering::Relaxed);
        // The clock of a process that has just started may be below the limit.
        let is_late = clock::monotonic_ms() > STUCK_AFTER_MS;
        assert_eq!(threads.stuck().len(), usize::from(is_late));
        one.record();
        assert!(threads.stuck().is_empty());
        drop(two);
        assert_eq!(threads.all().len(), 1);
    }
}
