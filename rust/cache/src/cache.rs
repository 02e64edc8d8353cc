//! The cache as the engine uses it: look, keep, forget, tell.
//!
//! Nothing here waits for the disk but [`Cache::fetch`] and [`Cache::sync`], which say so. One thread of its own writes, reads what
//! was kept before a restart, and loads the vectors. Answers wait for it up to a bound; beyond it they stay in memory only.

use crate::disk::{Disk, Place};
use crate::entry::{CachedAnswer, Meta, MAX_BODY_BYTES};
use crate::key::{Digest, Question};
use crate::near_miss::{self, Asker, NearMiss};
use crate::shelf::{probe, EntrySummary, Lookup, Shelf, MAX_ENTRIES};
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

/// Answers that wait for the disk.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// Where the cache is and what it needs.
#[derive(Debug)]
pub struct Opening {
    pub data_dir: PathBuf,
    pub worker_id: String,
    pub sealer: Sealer,
    pub vector_files: Option<VectorFiles>,
    /// Unix milliseconds.
    pub now_ms: fn() -> u64,
}

/// The figures that the cache gives of itself.
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

/// Which entries are meant; all that is named must fit.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(default)]
pub struct EntryFilter {
    pub model: Option<String>,
    pub provider: Option<String>,
    pub key_id: Option<String>,
    /// The key in hex.
    pub signature: Option<String>,
    /// Kept longer ago than this.
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
    /// On disk: [`Cache::fetch`] gets it.
    Stored(Stored),
    Nothing,
}

/// An answer on disk.
#[derive(Debug)]
pub struct Stored(Place);

/// The cache as the engine uses it: look, keep, forget, tell.
#[derive(Debug)]
pub struct Cache {
    inner: Arc<Inner>,
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Cache {
    /// Opens the cache and starts its thread. Nothing is kept until [`Cache::set`] was called.
    pub fn open(place: Opening) -> io::Result<Self> {
        let sealer = Arc::new(place.sealer);
        let disk = Disk::open(&place.data_dir, &place.worker_id, Arc::clone(&sealer))?;
        let inner = Arc::new(Inner {
            shelf: Mutex::new(Shelf::unbounded()),
            vectors: OnceLock::new(),
            vector_state: Mutex::new(VectorState::Off),
            vector_files: place.vector_files,
            bounds: Mutex::new(Bounds {
                memory_bytes: usize::MAX,
                disk_bytes: 0,
                wants_vectors: false,
                notes_near_misses: false,
            }),
            counts: Counts::default(),
            near_misses: Mutex::default(),
            epoch: AtomicU64::new(0),
            revision: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
            sealer,
            now_ms: place.now_ms,
        });
        let (jobs, queue) = mpsc::channel();
        let own = Arc::clone(&inner);
        let thread = std::thread::Builder::new().name("fairlead-cache".into()).spawn(move || own.run(disk, &queue))?;
        Ok(Self { inner, jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)) })
    }

    /// Puts bounds into force.
    pub fn set(&self, bounds: Bounds) {
        let before = std::mem::replace(&mut *self.inner.bounds.lock(), bounds);
        if before != bounds {
            self.inner.shelf.lock().hold_to(bounds.memory_bytes);
            if !bounds.notes_near_misses {
                self.inner.near_misses.lock().clear();
            }
            self.send(Job::Bounds(bounds));
        }
    }

    pub fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    /// What [`Cache::keep`] wants to know of the moment at which the answer was asked for.
    pub fn epoch(&self) -> u64 {
        self.inner.epoch.load(Ordering::Acquire)
    }

    /// Another number after anything was forgotten.
    pub fn revision(&self) -> u64 {
        self.inner.revision.load(Ordering::Acquire)
    }

    /// Looks for the answer to exactly this request.
    pub fn find(&self, key: &Digest) -> Found {
        match self.inner.shelf.lock().lookup(key, (self.inner.now_ms)()) {
            Lookup::Here(answer) => Found::Here(answer),
            Lookup::Stored(place) => Found::Stored(Stored(place)),
            Lookup::Nothing => Found::Nothing,
        }
    }

    /// Reads an answer from disk. Blocks. `None`: it is gone, or cannot be read and is forgotten.
    pub fn fetch(&self, key: &Digest, stored: &Stored) -> Option<CachedAnswer> {
        let epoch = self.epoch();
        let read = stored.0.read(&self.inner.sealer);
        let mut shelf = self.inner.shelf.lock();
        match read {
            Ok(answer) if answer.meta.key == *key && shelf.has(&answer.meta) && epoch == self.epoch() => {
                shelf.refill(&answer);
                Some(answer)
            }
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(%error, "a kept answer cannot be read and is forgotten");
                shelf.remove(key);
                None
            }
        }
    }

    /// The keys of answers to questions that ask the same, the nearest first. Empty while there are no vectors.
    pub fn near(&self, question: &Question, threshold: f32) -> Vec<(Digest, f32)> {
        if *self.inner.vector_state.lock() != VectorState::Ready {
            return Vec::new();
        }
        let Some(probe) = self.inner.vectors.get().and_then(|vectors| probe(vectors, &question.text)) else {
            return Vec::new();
        };
        self.inner.shelf.lock().near(&question.partition, &probe, threshold, (self.inner.now_ms)())
    }

    /// Notes a question that no kept answer was given for, with the kept one that came nearest, where that is wanted.
    pub fn note_near_miss(&self, question: &Question, threshold: f32, asker: Asker<'_>) {
        if !self.inner.bounds.lock().notes_near_misses {
            return;
        }
        let Some(probe) = self.inner.vectors.get().and_then(|vectors| probe(vectors, &question.text)) else { return };
        let at_ms = (self.inner.now_ms)();
        let found = self.inner.shelf.lock().nearest_miss(&question.partition, &probe, threshold, at_ms);
        let Some((signature, nearest, similarity)) = found else { return };
        let text = near_miss::cut(&question.text);
        let miss = NearMiss {
            at_ms,
            key_id: asker.key_id.map(str::to_owned),
            model: near_miss::cut(asker.model),
            cause: near_miss::cause(&text, &nearest),
            question: text,
            nearest,
            signature,
            similarity,
            threshold,
        };
        // Under the locks that forgetting takes: what was forgotten meanwhile is not told of.
        let shelf = self.inner.shelf.lock();
        let mut misses = self.inner.near_misses.lock();
        if shelf.has_key(&signature) && self.inner.bounds.lock().notes_near_misses {
            misses.add(miss);
        }
    }

    /// The latest questions that were nearly answered, the newest first.
    pub fn near_misses(&self) -> Vec<NearMiss> {
        self.inner.near_misses.lock().list()
    }

    /// Forgets them. How many it was.
    pub fn clear_near_misses(&self) -> usize {
        self.inner.near_misses.lock().clear()
    }

    pub fn count_hit(&self, key: &Digest) {
        self.inner.shelf.lock().count_hit(key);
    }

    /// Keeps an answer, unless everything was forgotten since `epoch`. `to_disk`: the other tier may have it, too. Whether it is kept.
    pub fn keep(&self, answer: &CachedAnswer, epoch: u64, to_disk: bool) -> bool {
        self.put(answer, to_disk, || epoch == self.epoch())
    }

    /// Keeps an answer that another worker made, unless anything was forgotten since `revision`: it might be that. Whether it is kept.
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
            let mut shelf = self.inner.shelf.lock();
            // Looked at under the lock that forgetting takes.
            if !is_wanted() {
                if to_disk {
                    self.inner.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
                }
                return false;
            }
            shelf.put(answer.clone(), to_disk, probe);
            // Queued under the lock as well, so that forgetting comes after it in the queue, too.
            if to_disk && !self.send(Job::Put(answer.clone())) {
                self.inner.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
                shelf.stored(&answer.meta, None);
            }
        }
        true
    }

    /// Forgets everything. How many it was.
    pub fn clear(&self) -> usize {
        let mut shelf = self.inner.shelf.lock();
        self.inner.epoch.fetch_add(1, Ordering::AcqRel);
        self.inner.revision.fetch_add(1, Ordering::AcqRel);
        let count = shelf.clear();
        self.send(Job::Clear);
        self.inner.near_misses.lock().clear();
        count
    }

    /// Forgets what fits. How many it was.
    pub fn forget(&self, filter: &EntryFilter) -> usize {
        let now_ms = (self.inner.now_ms)();
        let mut shelf = self.inner.shelf.lock();
        self.inner.revision.fetch_add(1, Ordering::AcqRel);
        let keys: Vec<Digest> = shelf
            .summaries()
            .filter(|summary| filter.fits(&summary.meta, now_ms))
            .map(|summary| summary.meta.key)
            .collect();
        for key in &keys {
            shelf.remove(key);
        }
        let count = keys.len();
        if count > 0 {
            self.inner.near_misses.lock().forget_unless(|key| shelf.has_key(key));
            self.send(Job::Forget(keys));
        }
        count
    }

    /// Waits until the disk has what was asked before. Blocks. `false`: it took too long, or the thread has ended.
    pub fn sync(&self, deadline: Duration) -> bool {
        let (done, waits) = mpsc::channel();
        self.send(Job::Sync(done)) && waits.recv_timeout(deadline).is_ok()
    }

    /// Fresh entries that fit, the newest first.
    pub fn list(&self, filter: &EntryFilter) -> Vec<EntrySummary> {
        let now_ms = (self.inner.now_ms)();
        let shelf = self.inner.shelf.lock();
        let mut entries: Vec<EntrySummary> =
            shelf.summaries().filter(|entry| entry.meta.is_fresh(now_ms) && filter.fits(&entry.meta, now_ms)).collect();
        entries.sort_by_key(|entry| Reverse((entry.meta.created_ms, entry.meta.key)));
        entries
    }

    pub fn stats(&self) -> CacheStats {
        let bounds = *self.inner.bounds.lock();
        let vector_state = *self.inner.vector_state.lock();
        let mut shelf = self.inner.shelf.lock();
        shelf.sweep((self.inner.now_ms)());
        let counts = &self.inner.counts;
        CacheStats {
            entries: shelf.entries(),
            memory_entries: shelf.memory_entries(),
            memory_max_entries: MAX_ENTRIES,
            memory_bytes: shelf.memory_bytes(),
            memory_max_bytes: bounds.memory_bytes,
            disk_entries: shelf.disk_entries(),
            disk_bytes: shelf.disk_bytes(),
            disk_max_bytes: bounds.disk_bytes,
            evictions: shelf.evictions,
            exact_hits: counts.exact_hits.load(Ordering::Relaxed),
            vector_hits: counts.vector_hits.load(Ordering::Relaxed),
            shared_hits: counts.shared_hits.load(Ordering::Relaxed),
            joined: counts.joined.load(Ordering::Relaxed),
            misses: counts.misses.load(Ordering::Relaxed),
            tokens_saved: counts.tokens_saved.load(Ordering::Relaxed),
            picos_saved: counts.picos_saved.load(Ordering::Relaxed),
            vector_state,
            vectors: shelf.vectors(),
        }
    }

    /// Ends the thread after what is queued.
    pub fn close(&self) {
        drop(self.jobs.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            if thread.join().is_err() {
                tracing::error!("the cache's thread ended with a panic");
            }
        }
    }

    /// Never waits. `false`: the thread has ended.
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
