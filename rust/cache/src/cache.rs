//! The cache as the engine uses it: find, store and delete answers, and report statistics.
//!
//! Only [`Cache::fetch`] and [`Cache::sync`] wait for the disk. A dedicated thread writes, reads the entries from
//! before a restart, and loads the vectors. Answers are queued for it up to a size limit. Beyond that they are stored
//! only in memory.

use crate::disk::{Disk, DiskPosition};
use crate::entry::{CachedAnswer, Meta, MAX_BODY_BYTES};
use crate::key::{Digest, Question};
use crate::memory_tier::{probe, EntrySummary, Lookup, MemoryTier, MAX_ENTRIES};
pub use crate::store::{Bounds, Counts, VectorState};
use crate::store::{Inner, Job, QUEUED_BYTES};
use crate::vectors::VectorFiles;
use fairlead_core::Sealer;
use parking_lot::Mutex;
use serde::Serialize;
use std::cmp::Reverse;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// The size limit of answers that are queued for the disk.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// The location and the dependencies of the cache.
#[derive(Debug)]
pub struct Opening {
    pub data_dir: PathBuf,
    pub worker_id: String,
    pub sealer: Sealer,
    pub vector_files: Option<VectorFiles>,
    /// Returns Unix milliseconds.
    pub now_ms: fn() -> u64,
}

/// The statistics of the cache.
#[derive(Debug, Serialize)]
pub struct CacheStats {
    pub entries: usize,
    pub memory_entries: usize,
    pub memory_max_entries: usize,
    pub memory_bytes: usize,
    pub memory_max_bytes: usize,
    pub disk_entries: usize,
    pub disk_bytes: u64,
    pub disk_max_bytes: u64,
    pub evictions: u64,
    pub exact_hits: u64,
    pub vector_hits: u64,
    pub shared_hits: u64,
    pub joined: u64,
    pub misses: u64,
    pub tokens_saved: u64,
    pub picos_saved: u64,
    pub vector_state: VectorState,
    pub vectors: usize,
}

/// Selects entries. All given fields must match.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(default)]
pub struct EntryFilter {
    pub model: Option<String>,
    pub provider: Option<String>,
    pub key_id: Option<String>,
    /// The key in hexadecimal.
    pub signature: Option<String>,
    /// Selects entries older than this.
    pub older_than_ms: Option<u64>,
}

impl EntryFilter {
    pub fn fits(&self, meta: &Meta, now_ms: u64) -> bool {
        let is = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        is(&self.model, &meta.model)
            && is(&self.provider, &meta.provider)
            && self.key_id.as_deref().is_none_or(|wanted| meta.key_id.as_deref() == Some(wanted))
            && self.signature.as_deref().is_none_or(|wanted| fairlead_core::hex(&meta.key) == wanted)
            && self.older_than_ms.is_none_or(|age_ms| meta.created_ms.saturating_add(age_ms) <= now_ms)
    }
}

/// The outcome of a lookup.
#[derive(Debug)]
pub enum Found {
    Here(CachedAnswer),
    /// The answer is on disk. [`Cache::fetch`] reads it.
    Stored(Stored),
    Nothing,
}

/// The position of an answer on disk.
#[derive(Debug)]
pub struct Stored(DiskPosition);

/// The cache as the engine uses it.
#[derive(Debug)]
pub struct Cache {
    inner: Arc<Inner>,
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Cache {
    /// Opens the cache and starts its thread. Stores nothing before [`Cache::set`] is called.
    pub fn open(position: Opening) -> io::Result<Self> {
        let sealer = Arc::new(position.sealer);
        let disk = Disk::open(&position.data_dir, &position.worker_id, Arc::clone(&sealer))?;
        let inner = Arc::new(Inner {
            memory: Mutex::new(MemoryTier::unbounded()),
            vectors: OnceLock::new(),
            vector_state: Mutex::new(VectorState::Off),
            vector_files: position.vector_files,
            bounds: Mutex::new(Bounds { memory_bytes: usize::MAX, disk_bytes: 0, wants_vectors: false }),
            counts: Counts::default(),
            epoch: AtomicU64::new(0),
            revision: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
            sealer,
            now_ms: position.now_ms,
        });
        let (jobs, queue) = mpsc::channel();
        let own = Arc::clone(&inner);
        let thread = std::thread::Builder::new().name("fairlead-cache".into()).spawn(move || own.run(disk, &queue))?;
        Ok(Self { inner, jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)) })
    }

    /// Applies the operator's settings.
    pub fn set(&self, bounds: Bounds) {
        let before = std::mem::replace(&mut *self.inner.bounds.lock(), bounds);
        if before != bounds {
            self.inner.memory.lock().hold_to(bounds.memory_bytes);
            self.send(Job::Bounds(bounds));
        }
    }

    pub fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    /// The value to pass to [`Cache::keep`], read when the request was sent.
    pub fn epoch(&self) -> u64 {
        self.inner.epoch.load(Ordering::Acquire)
    }

    /// A counter that changes whenever an entry is deleted.
    pub fn revision(&self) -> u64 {
        self.inner.revision.load(Ordering::Acquire)
    }

    /// Finds the answer to exactly this request.
    pub fn find(&self, key: &Digest) -> Found {
        match self.inner.memory.lock().lookup(key, (self.inner.now_ms)()) {
            Lookup::Here(answer) => Found::Here(answer),
            Lookup::Stored(position) => Found::Stored(Stored(position)),
            Lookup::Nothing => Found::Nothing,
        }
    }

    /// Reads an answer from disk. Blocks. Returns `None` if it was deleted or cannot be read; an unreadable answer is
    /// deleted.
    pub fn fetch(&self, key: &Digest, stored: &Stored) -> Option<CachedAnswer> {
        let epoch = self.epoch();
        let read = stored.0.read(&self.inner.sealer);
        let mut memory = self.inner.memory.lock();
        match read {
            Ok(answer) if answer.meta.key == *key && memory.has(&answer.meta) && epoch == self.epoch() => {
                memory.refill(&answer);
                Some(answer)
            }
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(%error, "a kept answer cannot be read and is forgotten");
                memory.remove(key);
                None
            }
        }
    }

    /// The keys of answers to equivalent questions, nearest first. Empty while no vectors are loaded.
    pub fn near(&self, question: &Question, threshold: f32) -> Vec<(Digest, f32)> {
        if *self.inner.vector_state.lock() != VectorState::Ready {
            return Vec::new();
        }
        let Some(probe) = self.inner.vectors.get().and_then(|vectors| probe(vectors, &question.text)) else {
            return Vec::new();
        };
        self.inner.memory.lock().near(&question.partition, &probe, threshold, (self.inner.now_ms)())
    }

    pub fn count_hit(&self, key: &Digest) {
        self.inner.memory.lock().count_hit(key);
    }

    /// Stores an answer, unless the cache was cleared since `epoch`. With `to_disk` it may also be stored on disk.
    /// Returns whether it was stored.
    pub fn keep(&self, answer: &CachedAnswer, epoch: u64, to_disk: bool) -> bool {
        self.put(answer, to_disk, || epoch == self.epoch())
    }

    /// Stores an answer of another worker, unless an entry was deleted since `revision`, because it might be the same
    /// one. Returns whether it was stored.
    pub fn adopt(&self, answer: &CachedAnswer, revision: u64) -> bool {
        self.put(answer, true, || revision == self.revision())
    }

    fn put(&self, answer: &CachedAnswer, to_disk: bool, is_wanted: impl FnOnce() -> bool) -> bool {
        if answer.body.len() > MAX_BODY_BYTES {
            return false;
        }
        let bytes = answer.body.len() + QUEUED_BYTES;
        let bounds = *self.inner.bounds.lock();
        let to_disk = to_disk && bounds.disk_bytes > 0 && {
            let queued = self.inner.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
            queued + bytes <= QUEUE_BYTES || {
                self.inner.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
                false
            }
        };
        let vectors = self.inner.vectors.get().filter(|_| bounds.wants_vectors);
        let probe = answer.meta.question.as_ref().and_then(|question| probe(vectors?, &question.text));
        {
            let mut memory = self.inner.memory.lock();
            // Checked under the lock that a deletion takes.
            if !is_wanted() {
                if to_disk {
                    self.inner.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
                }
                return false;
            }
            memory.put(answer.clone(), to_disk, probe);
            // Also queued under the lock, so that a deletion comes later in the queue.
            if to_disk && !self.send(Job::Put(answer.clone())) {
                self.inner.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
                memory.stored(&answer.meta, None);
            }
        }
        true
    }

    /// Deletes everything. Returns the number of entries.
    pub fn clear(&self) -> usize {
        let mut memory = self.inner.memory.lock();
        self.inner.epoch.fetch_add(1, Ordering::AcqRel);
        self.inner.revision.fetch_add(1, Ordering::AcqRel);
        let count = memory.clear();
        self.send(Job::Clear);
        count
    }

    /// Deletes the entries that match. Returns their number.
    pub fn forget(&self, filter: &EntryFilter) -> usize {
        let now_ms = (self.inner.now_ms)();
        let mut memory = self.inner.memory.lock();
        self.inner.revision.fetch_add(1, Ordering::AcqRel);
        let keys: Vec<Digest> = memory
            .summaries()
            .filter(|summary| filter.fits(&summary.meta, now_ms))
            .map(|summary| summary.meta.key)
            .collect();
        for key in &keys {
            memory.remove(key);
        }
        let count = keys.len();
        if count > 0 {
            self.send(Job::Forget(keys));
        }
        count
    }

    /// Waits until the disk has processed all earlier jobs. Blocks. Returns `false` after the deadline, or if the
    /// thread has ended.
    pub fn sync(&self, deadline: Duration) -> bool {
        let (done, waits) = mpsc::channel();
        self.send(Job::Sync(done)) && waits.recv_timeout(deadline).is_ok()
    }

    /// The fresh entries that match, newest first.
    pub fn list(&self, filter: &EntryFilter) -> Vec<EntrySummary> {
        let now_ms = (self.inner.now_ms)();
        let memory = self.inner.memory.lock();
        let mut entries: Vec<EntrySummary> = memory
            .summaries()
            .filter(|entry| entry.meta.is_fresh(now_ms) && filter.fits(&entry.meta, now_ms))
            .collect();
        entries.sort_by_key(|entry| Reverse((entry.meta.created_ms, entry.meta.key)));
        entries
    }

    pub fn stats(&self) -> CacheStats {
        let bounds = *self.inner.bounds.lock();
        let vector_state = *self.inner.vector_state.lock();
        let mut memory = self.inner.memory.lock();
        memory.sweep((self.inner.now_ms)());
        let counts = &self.inner.counts;
        CacheStats {
            entries: memory.entries(),
            memory_entries: memory.memory_entries(),
            memory_max_entries: MAX_ENTRIES,
            memory_bytes: memory.memory_bytes(),
            memory_max_bytes: bounds.memory_bytes,
            disk_entries: memory.disk_entries(),
            disk_bytes: memory.disk_bytes(),
            disk_max_bytes: bounds.disk_bytes,
            evictions: memory.evictions,
            exact_hits: counts.exact_hits.load(Ordering::Relaxed),
            vector_hits: counts.vector_hits.load(Ordering::Relaxed),
            shared_hits: counts.shared_hits.load(Ordering::Relaxed),
            joined: counts.joined.load(Ordering::Relaxed),
            misses: counts.misses.load(Ordering::Relaxed),
            tokens_saved: counts.tokens_saved.load(Ordering::Relaxed),
            picos_saved: counts.picos_saved.load(Ordering::Relaxed),
            vector_state,
            vectors: memory.vectors(),
        }
    }

    /// Ends the thread after the queued jobs.
    pub fn close(&self) {
        drop(self.jobs.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            if thread.join().is_err() {
                tracing::error!("the cache's thread ended with a panic");
            }
        }
    }

    /// Queues a job without waiting. Returns `false` if the thread has ended.
    fn send(&self, job: Job) -> bool {
        let is_sent = self.jobs.lock().as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !is_sent {
            tracing::error!("the cache's thread has ended; its disk is as it was");
        }
        is_sent
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.close();
    }
}
