//! The response cache of one worker, shared by all of its requests.

use crate::call::idempotency::recording::Recordings;
use fairlead_cache::{Bounds, Cache};
use fairlead_core::CacheSettings;
use std::sync::Arc;

/// The cache of this worker.
#[derive(Debug)]
pub struct Answers {
    pub store: Arc<Cache>,
    /// Calls in progress that other requests may join.
    pub calls_under_way: Recordings,
}

impl Answers {
    pub fn new(cache: Cache) -> Self {
        Self { store: Arc::new(cache), calls_under_way: Recordings::under_way() }
    }

    /// Applies the operator's settings.
    pub fn set(&self, settings: &CacheSettings) {
        self.store.set(Bounds {
            memory_bytes: if settings.is_enabled { settings.memory_bytes } else { 0 },
            disk_bytes: if settings.is_enabled { settings.disk_bytes } else { 0 },
            wants_vectors: settings.is_enabled && settings.wants_vectors,
        });
    }
}
