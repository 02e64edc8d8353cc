//! Both tiers together, and the thread that writes the disk tier.

use crate::disk::{Disk, Record};
use crate::entry::CachedAnswer;
use crate::key::Digest;
use crate::memory_tier::{probe, MemoryTier};
use crate::vectors::{VectorFiles, Vectors};
use fairlead_core::Sealer;
use parking_lot::Mutex;
use serde::Serialize;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The size of a queued answer in addition to its body.
pub const QUEUED_BYTES: usize = 2 * 1024;

pub const SWEEP: Duration = Duration::from_secs(10);

/// The operator's settings of the cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub memory_bytes: usize,
    /// 0 means that nothing is stored on disk.
    pub disk_bytes: u64,
    pub wants_vectors: bool,
}

/// Counters since the worker started.
#[derive(Debug, Default)]
pub struct Counts {
    pub exact_hits: AtomicU64,
    pub vector_hits: AtomicU64,
    /// Hits in the shared store.
    pub shared_hits: AtomicU64,
    /// Requests that joined a running call.
    pub joined: AtomicU64,
    pub misses: AtomicU64,
    pub tokens_saved: AtomicU64,
    pub picos_saved: AtomicU64,
}

/// The state of the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VectorState {
    Off,
    /// The files are not installed.
    Missing,
    Loading,
    Ready,
    Failed,
}

pub enum Job {
    Put(CachedAnswer),
    Forget(Vec<Digest>),
    Clear,
    Bounds(Bounds),
    Sync(Sender<()>),
}

#[derive(Debug)]
pub struct Inner {
    pub memory: Mutex<MemoryTier>,
    pub vectors: OnceLock<Vectors>,
    pub vector_state: Mutex<VectorState>,
    pub vector_files: Option<VectorFiles>,
    pub bounds: Mutex<Bounds>,
    pub counts: Counts,
    /// Incremented when the cache is cleared. Answers to earlier requests are not stored after that.
    pub epoch: AtomicU64,
    /// Incremented when any entry is deleted.
    pub revision: AtomicU64,
    pub queued_bytes: AtomicUsize,
    pub sealer: Arc<Sealer>,
    pub now_ms: fn() -> u64,
}

impl Inner {
    pub fn run(&self, mut disk: Disk, queue: &Receiver<Job>) {
        self.adopt(&mut disk);
        loop {
            match queue.recv_timeout(SWEEP) {
                Ok(job) => self.run_job(&mut disk, job),
                Err(RecvTimeoutError::Timeout) => self.tidy(&mut disk),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Loads the entries from before the restart.
    fn adopt(&self, disk: &mut Disk) {
        let now_ms = (self.now_ms)();
        let adopted = disk.adopt(|record| {
            let mut memory = self.memory.lock();
            // The cache was cleared in the meantime, so the files are deleted as soon as they are read.
            if self.epoch.load(Ordering::Acquire) > 0 {
                return;
            }
            match record {
                Record::Answer(answer, position) if answer.meta.is_fresh(now_ms) => {
                    memory.put_stored(answer.meta, position);
                }
                Record::Answer(..) => {}
                Record::Gone(keys) => {
                    for key in keys {
                        memory.remove(&key);
                    }
                }
            }
        });
        if let Err(error) = adopted {
            tracing::error!(%error, "what the cache kept on disk cannot be read");
        }
    }

    fn run_job(&self, disk: &mut Disk, job: Job) {
        let (what, done) = match job {
            Job::Put(answer) => ("an answer is kept in memory only", self.put(disk, &answer)),
            Job::Forget(keys) => ("what was forgotten may come back with a restart", disk.forget(&keys)),
            Job::Clear => ("what was forgotten may come back with a restart", disk.clear()),
            Job::Bounds(bounds) => ("the cache's files may be larger than they should", self.bound(disk, bounds)),
            Job::Sync(done) => {
                // The waiting caller may have given up.
                let _sent = done.send(());
                return;
            }
        };
        if let Err(error) = done {
            tracing::error!(%error, "the cache's disk fails: {what}");
        }
    }

    fn put(&self, disk: &mut Disk, answer: &CachedAnswer) -> io::Result<()> {
        self.queued_bytes.fetch_sub(answer.body.len() + QUEUED_BYTES, Ordering::AcqRel);
        let is_wanted = self.memory.lock().has(&answer.meta);
        let position = if is_wanted { disk.put(answer).map(Some) } else { Ok(None) };
        let (position, fault) = match position {
            Ok(position) => (position, None),
            Err(error) => (None, Some(error)),
        };
        self.memory.lock().stored(&answer.meta, position);
        let max_bytes = self.bounds.lock().disk_bytes;
        let gone = disk.hold_to(max_bytes)?;
        if !gone.is_empty() {
            self.memory.lock().remove_segments(&gone);
        }
        fault.map_or(Ok(()), Err)
    }

    fn bound(&self, disk: &mut Disk, bounds: Bounds) -> io::Result<()> {
        self.memory.lock().hold_to(bounds.memory_bytes);
        let gone = disk.hold_to(bounds.disk_bytes)?;
        self.memory.lock().remove_segments(&gone);
        self.set_vectors(bounds.wants_vectors);
        Ok(())
    }

    fn set_vectors(&self, are_wanted: bool) {
        if !are_wanted {
            *self.vector_state.lock() = VectorState::Off;
            self.memory.lock().drop_vectors();
            return;
        }
        let Some(files) = &self.vector_files else {
            *self.vector_state.lock() = VectorState::Missing;
            tracing::error!(
                "vectorCacheEnabled needs the word vectors: `fairlead doctor` prints the command that installs them; then restart"
            );
            return;
        };
        if self.vectors.get().is_none() {
            *self.vector_state.lock() = VectorState::Loading;
            match Vectors::load(files) {
                Ok(vectors) => drop(self.vectors.set(vectors)),
                Err(error) => {
                    *self.vector_state.lock() = VectorState::Failed;
                    tracing::error!(%error, "the word vectors cannot be loaded");
                    return;
                }
            }
        }
        let Some(vectors) = self.vectors.get() else { return };
        let questions = self.memory.lock().questions();
        for (key, text) in questions {
            if let Some(probe) = probe(vectors, &text) {
                self.memory.lock().index(&key, probe);
            }
        }
        *self.vector_state.lock() = VectorState::Ready;
    }

    fn tidy(&self, disk: &mut Disk) {
        self.memory.lock().sweep((self.now_ms)());
        if let Err(error) = disk.drop_unused() {
            tracing::error!(%error, "an unused file of the cache cannot be deleted");
        }
    }
}
