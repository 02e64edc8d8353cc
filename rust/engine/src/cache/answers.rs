//! The response cache of one worker, shared by all of its requests.

use crate::blocking;
use crate::call::idempotency::recording::Recordings;
use crate::task;
use fairlead_cache::{Bounds, Cache, Learner};
use fairlead_core::CacheSettings;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const SAVE_EVERY_MS: u64 = 10_000;

/// The cache of this worker.
#[derive(Debug)]
pub struct Answers {
    pub store: Arc<Cache>,
    pub learner: Arc<Learner>,
    saved_ms: AtomicU64,
    /// Calls in progress that other requests may join.
    pub calls_under_way: Recordings,
}

impl Answers {
    pub fn new(cache: Cache, learner: Learner) -> Self {
        Self {
            store: Arc::new(cache),
            learner: Arc::new(learner),
            saved_ms: AtomicU64::new(0),
            calls_under_way: Recordings::under_way(),
        }
    }

    /// Saves the learned thresholds, about every ten seconds.
    pub fn save_in_time(&self, now_ms: u64) {
        if now_ms.saturating_sub(self.saved_ms.load(Ordering::Relaxed)) < SAVE_EVERY_MS {
            return;
        }
        self.saved_ms.store(now_ms, Ordering::Relaxed);
        let learner = Arc::clone(&self.learner);
        let work = blocking::disk(move || learner.save());
        let _unheard = task::spawn(async move {
            if let Ok(Err(reason)) | Err(reason) = work.await {
                tracing::warn!(%reason, "learnt thresholds of the cache are not written");
            }
        });
    }

    /// Applies the operator's settings.
    pub fn set(&self, settings: &CacheSettings) {
        self.store.set(Bounds {
            memory_bytes: if settings.is_enabled { settings.memory_bytes } else { 0 },
            disk_bytes: if settings.is_enabled { settings.disk_bytes } else { 0 },
            wants_vectors: settings.is_enabled && settings.wants_vectors,
            notes_near_misses: settings.is_enabled && settings.wants_vectors && settings.notes_near_misses,
        });
    }
}
