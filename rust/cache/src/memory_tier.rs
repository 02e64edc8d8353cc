//! The memory tier: answers by key within a size limit, and the positions of the others on disk.

use crate::disk::{DiskPosition, Segment};
use crate::entry::{CachedAnswer, Meta};
use crate::guard::Reading;
use crate::key::Digest;
use crate::near::{Near, Probe};
use crate::vectors::Vectors;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The maximum number of answers in both tiers.
pub const MAX_ENTRIES: usize = 500_000;

#[derive(Debug)]
struct Row {
    meta: Arc<Meta>,
    body: Option<Bytes>,
    position: Option<DiskPosition>,
    /// The entry is being written to disk, so it stays in the index even without a body.
    is_awaited: bool,
    /// When the entry was last used, as its position in the order.
    tick: u64,
    hits: u64,
}

impl Row {
    fn memory_bytes(&self) -> usize {
        self.meta.bytes() + self.body.as_ref().map_or(0, Bytes::len)
    }
}

/// The outcome of a lookup.
#[derive(Debug)]
pub(crate) enum Lookup {
    Here(CachedAnswer),
    Stored(DiskPosition),
    Nothing,
}

/// An entry for reports.
#[derive(Debug, Clone)]
pub struct EntrySummary {
    pub meta: Arc<Meta>,
    pub hits: u64,
    pub in_memory: bool,
    pub on_disk: bool,
    pub body_bytes: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct MemoryTier {
    rows: HashMap<Digest, Row>,
    /// Every row, least recently used first.
    order: BTreeMap<u64, Digest>,
    /// The rows whose body is in memory, least recently used first.
    bodies: BTreeMap<u64, Digest>,
    /// Every row by its expiry time.
    expiries: BTreeSet<(u64, Digest)>,
    partitions: HashMap<Digest, Near>,
    ticks: u64,
    memory_bytes: usize,
    max_memory_bytes: usize,
    disk_entries: usize,
    disk_bytes: u64,
    pub(crate) evictions: u64,
}

impl MemoryTier {
    /// A shelf without limits, until one is set.
    pub(crate) fn unbounded() -> Self {
        Self { max_memory_bytes: usize::MAX, ..Self::default() }
    }

    pub(crate) fn hold_to(&mut self, max_memory_bytes: usize) {
        self.max_memory_bytes = max_memory_bytes;
        self.evict();
    }

    /// Finds a fresh answer and marks it as used.
    pub(crate) fn lookup(&mut self, key: &Digest, now_ms: u64) -> Lookup {
        let Some(row) = self.rows.get(key) else { return Lookup::Nothing };
        if !row.meta.is_fresh(now_ms) {
            self.remove(key);
            return Lookup::Nothing;
        }
        self.touch(key);
        let Some(row) = self.rows.get_mut(key) else { return Lookup::Nothing };
        match (&row.body, &row.position) {
            (Some(body), _) => Lookup::Here(CachedAnswer { meta: Arc::clone(&row.meta), body: body.clone() }),
            (None, Some(position)) => Lookup::Stored(position.clone()),
            (None, None) => Lookup::Nothing,
        }
    }

    /// Counts a hit.
    pub(crate) fn count_hit(&mut self, key: &Digest) {
        if let Some(row) = self.rows.get_mut(key) {
            row.hits += 1;
        }
    }

    /// The nearest fresh equivalent questions of a partition.
    pub(crate) fn near(&self, partition: &Digest, probe: &Probe, threshold: f32, now_ms: u64) -> Vec<(Digest, f32)> {
        let Some(near) = self.partitions.get(partition) else { return Vec::new() };
        let is_fresh = |key: &Digest| self.rows.get(key).is_some_and(|row| row.meta.is_fresh(now_ms));
        near.find(probe, threshold).into_iter().filter(|(key, _)| is_fresh(key)).collect()
    }

    /// Stores an answer in memory.
    pub(crate) fn put(&mut self, answer: CachedAnswer, is_awaited: bool, probe: Option<Probe>) {
        let key = answer.meta.key;
        self.remove(&key);
        self.insert(
            key,
            Row { meta: answer.meta, body: Some(answer.body), position: None, is_awaited, tick: 0, hits: 0 },
        );
        if let Some(probe) = probe {
            self.index(&key, probe);
        }
        self.evict();
    }

    /// Adds an answer that was on disk before the restart.
    pub(crate) fn put_stored(&mut self, meta: Arc<Meta>, position: DiskPosition) {
        let key = meta.key;
        // An entry stored since then is newer.
        if self.rows.get(&key).is_some_and(|row| row.meta.created_ms > meta.created_ms) {
            return;
        }
        self.remove(&key);
        self.count_position(None, Some(&position));
        self.insert(key, Row { meta, body: None, position: Some(position), is_awaited: false, tick: 0, hits: 0 });
        self.evict();
    }

    /// Records the position of an answer that was written to disk, or that the write failed.
    pub(crate) fn stored(&mut self, meta: &Arc<Meta>, position: Option<DiskPosition>) {
        let Some(row) = self.rows.get_mut(&meta.key).filter(|row| Arc::ptr_eq(&row.meta, meta)) else { return };
        row.is_awaited = false;
        let is_lost = row.body.is_none() && position.is_none();
        let now = position.clone();
        let before = std::mem::replace(&mut row.position, position);
        self.count_position(before.as_ref(), now.as_ref());
        if is_lost {
            self.remove(&meta.key);
        }
    }

    fn count_position(&mut self, before: Option<&DiskPosition>, now: Option<&DiskPosition>) {
        self.disk_entries = self.disk_entries + usize::from(now.is_some()) - usize::from(before.is_some());
        self.disk_bytes = self.disk_bytes + now.map_or(0, DiskPosition::bytes) - before.map_or(0, DiskPosition::bytes);
    }

    /// Stores a body in memory again after it was read from disk.
    pub(crate) fn refill(&mut self, answer: &CachedAnswer) {
        let key = answer.meta.key;
        let Some(row) = self.rows.get_mut(&key).filter(|row| row.body.is_none() && *row.meta == *answer.meta) else {
            return;
        };
        row.body = Some(answer.body.clone());
        self.memory_bytes += answer.body.len();
        self.bodies.insert(row.tick, key);
        self.evict();
    }

    pub(crate) fn has(&self, meta: &Arc<Meta>) -> bool {
        self.rows.get(&meta.key).is_some_and(|row| Arc::ptr_eq(&row.meta, meta) || *row.meta == **meta)
    }

    pub(crate) fn index(&mut self, key: &Digest, probe: Probe) {
        let Some(row) = self.rows.get(key) else { return };
        if let Some(question) = &row.meta.question {
            self.partitions.entry(question.partition).or_default().add(*key, probe);
        }
    }

    /// The question texts of all entries, to be indexed.
    pub(crate) fn questions(&self) -> Vec<(Digest, String)> {
        self.rows
            .iter()
            .filter_map(|(key, row)| row.meta.question.as_ref().map(|question| (*key, question.text.clone())))
            .collect()
    }

    pub(crate) fn drop_vectors(&mut self) {
        self.partitions.clear();
    }

    pub(crate) fn remove(&mut self, key: &Digest) -> bool {
        let Some(row) = self.rows.remove(key) else { return false };
        self.memory_bytes -= row.memory_bytes();
        self.count_position(row.position.as_ref(), None);
        self.expiries.remove(&(row.meta.expires_ms, *key));
        self.order.remove(&row.tick);
        self.bodies.remove(&row.tick);
        if let Some(question) = &row.meta.question {
            if let Some(near) = self.partitions.get_mut(&question.partition) {
                near.remove(key);
                if near.is_empty() {
                    self.partitions.remove(&question.partition);
                }
            }
        }
        true
    }

    /// Removes the answers of deleted files that are not in memory.
    pub(crate) fn remove_segments(&mut self, gone: &[Arc<Segment>]) {
        let is_gone = |position: &DiskPosition| gone.iter().any(|segment| Arc::ptr_eq(segment, &position.segment));
        let lost: Vec<Digest> = self
            .rows
            .iter()
            .filter(|(_, row)| row.position.as_ref().is_some_and(is_gone))
            .map(|(key, _)| *key)
            .collect();
        for key in lost {
            let Some(row) = self.rows.get_mut(&key) else { continue };
            let (before, is_lost) = (row.position.take(), row.body.is_none());
            self.count_position(before.as_ref(), None);
            if is_lost {
                self.remove(&key);
            }
        }
    }

    /// Removes expired entries without scanning the others.
    pub(crate) fn sweep(&mut self, now_ms: u64) {
        while let Some((_, key)) = self.expiries.first().copied().filter(|(expires_ms, _)| *expires_ms <= now_ms) {
            self.remove(&key);
        }
    }

    pub(crate) fn clear(&mut self) -> usize {
        let count = self.rows.len();
        *self = Self {
            max_memory_bytes: self.max_memory_bytes,
            ticks: self.ticks,
            evictions: self.evictions,
            ..Self::default()
        };
        count
    }

    pub(crate) fn summaries(&self) -> impl Iterator<Item = EntrySummary> + '_ {
        self.rows.values().map(|row| EntrySummary {
            meta: Arc::clone(&row.meta),
            hits: row.hits,
            in_memory: row.body.is_some(),
            on_disk: row.position.is_some(),
            body_bytes: row.body.as_ref().map(Bytes::len),
        })
    }

    pub(crate) fn entries(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn memory_entries(&self) -> usize {
        self.bodies.len()
    }

    pub(crate) fn disk_entries(&self) -> usize {
        self.disk_entries
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    pub(crate) fn vectors(&self) -> usize {
        self.partitions.values().map(Near::len).sum()
    }

    fn insert(&mut self, key: Digest, mut row: Row) {
        self.ticks += 1;
        row.tick = self.ticks;
        self.order.insert(row.tick, key);
        self.expiries.insert((row.meta.expires_ms, key));
        if row.body.is_some() {
            self.bodies.insert(row.tick, key);
        }
        self.memory_bytes += row.memory_bytes();
        self.rows.insert(key, row);
    }

    fn touch(&mut self, key: &Digest) {
        let Some(row) = self.rows.get_mut(key) else { return };
        self.order.remove(&row.tick);
        self.bodies.remove(&row.tick);
        self.ticks += 1;
        row.tick = self.ticks;
        self.order.insert(row.tick, *key);
        if row.body.is_some() {
            self.bodies.insert(row.tick, *key);
        }
    }

    /// Enforces the memory limit. Bodies are evicted first, together with entries that are not on disk; then whole
    /// entries.
    fn evict(&mut self) {
        while self.memory_bytes > self.max_memory_bytes {
            let Some((tick, key)) = self.bodies.pop_first() else { break };
            self.evictions += 1;
            let Some(row) = self.rows.get_mut(&key) else { continue };
            if row.position.is_some() || row.is_awaited {
                self.memory_bytes -= row.body.take().map_or(0, |body| body.len());
            } else {
                self.bodies.insert(tick, key);
                self.remove(&key);
            }
        }
        while self.rows.len() > MAX_ENTRIES || self.memory_bytes > self.max_memory_bytes {
            let Some(key) = self.order.first_key_value().map(|(_, key)| *key) else { break };
            self.evictions += 1;
            self.remove(&key);
        }
    }
}

/// Prepares a question for the search.
pub(crate) fn probe(vectors: &Vectors, text: &str) -> Option<Probe> {
    Some(Probe { vector: vectors.embed(text)?, form: Reading::of(text).form()? })
}
