//! The cache of one worker as all of its requests share it.

use crate::call::coalesce::Recordings;
use fairlead_cache::cache::{Bounds, Cache};
use fairlead_core::snapshot::CacheSettings;
use std::sync::Arc;

/// The cache of this worker.
#[derive(Debug)]
pub struct Answers {
    pub store: Arc<Cache>,
    /// Calls under way that others may join.
    pub calls_under_way: Recordings,
}

impl Answers {
    pub fn new(cache: Cache) -> Self {
        Self { store: Arc::new(cache), calls_under_way: Recordings::under_way() }
    }

    /// Puts the operator's settings into force.
    pub fn set(&self, settings: &CacheSettings) {
        self.store.set(Bounds {
            memory_bytes: if settings.is_enabled { settings.memory_bytes } else { 0 },
            disk_bytes: if settings.is_enabled { settings.disk_bytes } else { 0 },
            wants_vectors: settings.is_enabled && settings.wants_vectors,
            notes_near_misses: settings.is_enabled && settings.wants_vectors && settings.notes_near_misses,
        });
    }
}
