//! Cached responses shared between workers: the second tier of the response cache. Each worker stores the responses
//! that it caches in the shared store, and looks there when its own cache has no match.
//!
//! The key of an entry is the digest of its request, which includes the caller. Entries are sealed and expire when the
//! worker's own copy does. A lookup waits only briefly for the store; after a timeout or failure a breaker skips the
//! store for a while. Eviction scans the entries in the store and is published to the other workers.

use super::notice;
use super::Peers;
use crate::blocking;
use crate::clock;
use crate::observe::metrics::Sample;
use crate::shared::Shared;
use crate::shared_store::StoreConnection;
use fairlead_cache::envelope::{self, HEAD_BYTES};
use fairlead_cache::{CachedAnswer, Digest, EntryFilter};
use fairlead_core::{hex, Breaker, BreakerLimits, BreakerPhase, CacheSettings, Sealer, Snapshot};
use futures_util::{stream, StreamExt as _};
use parking_lot::Mutex;
use redis::{FromRedisValue as _, RedisError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The prefix carries a version: versions with different formats use different prefixes.
const NAME_PREFIX: &str = "fairlead:1:answer:";
const NAMES: &str = "fairlead:1:answer:*";

/// How long a lookup may take before the request goes to the provider instead.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(50);
/// How long an eviction may scan the store.
const EVICT_TIMEOUT: Duration = Duration::from_secs(3);
/// One timeout or failure opens the breaker, because the next lookups would most likely fail as well.
const LIMITS: BreakerLimits = BreakerLimits { degraded_after: 1, open_after: 1, reset_ms: 1_000, max_stretch: 16 };
/// Concurrent writes to the store. Further responses are not shared.
const MAX_WRITES: usize = 64;
/// Names examined by one `SCAN` call.
const SCAN_COUNT: usize = 512;
/// Concurrent commands during such a scan.
const SCAN_CONCURRENCY: usize = 64;
/// A scan that begins now finds every entry older than this.
const RECENT_MS: u64 = 5_000;

/// The responses that this worker shares with others, and the state of its access to the store.
#[derive(Debug, Default)]
pub struct SharedAnswers {
    breaker: Mutex<Breaker>,
    stored: Mutex<StoredAnswers>,
    writes: AtomicUsize,
    /// When the operator last disabled sharing. Older entries are not served, whether or not they are deleted yet.
    off_ms: AtomicU64,
    counts: AnswerCounts,
}

/// Results of lookups in the store and writes to it.
#[derive(Debug, Default)]
struct AnswerCounts {
    hits: AtomicU64,
    misses: AtomicU64,
    lookups_failed: AtomicU64,
    lookups_skipped: AtomicU64,
    stored: AtomicU64,
    writes_failed: AtomicU64,
    writes_skipped: AtomicU64,
}

impl SharedAnswers {
    /// Counters for `GET /metrics`.
    pub fn samples(&self) -> [Sample; 7] {
        const LOOKUPS: &str = "fairlead_shared_cache_lookups_total";
        const WRITES: &str = "fairlead_shared_cache_writes_total";
        let sample = |family, result: &str, counter: &AtomicU64| {
            (family, vec![("result", result.to_owned())], counter.load(Ordering::Relaxed) as f64)
        };
        let counts = &self.counts;
        [
            sample(LOOKUPS, "hit", &counts.hits),
            sample(LOOKUPS, "miss", &counts.misses),
            sample(LOOKUPS, "failed", &counts.lookups_failed),
            sample(LOOKUPS, "skipped", &counts.lookups_skipped),
            sample(WRITES, "stored", &counts.stored),
            sample(WRITES, "failed", &counts.writes_failed),
            sample(WRITES, "skipped", &counts.writes_skipped),
        ]
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The responses that this worker stored, oldest first. All workers together stay within the operator's size limit.
#[derive(Debug, Default)]
struct StoredAnswers {
    queue: VecDeque<StoredAnswer>,
    bytes: u64,
}

#[derive(Debug)]
struct StoredAnswer {
    key: Digest,
    bytes: u64,
    stored_ms: u64,
    expires_ms: u64,
}

impl StoredAnswers {
    /// Adds an entry and returns the keys that must be deleted to stay within the limit.
    fn add(&mut self, answer: StoredAnswer, max_bytes: u64) -> Vec<Digest> {
        let now_ms = answer.stored_ms;
        let key = answer.key;
        self.bytes += answer.bytes;
        self.queue.push_back(answer);
        let mut gone = Vec::new();
        while let Some(first) = self.queue.front() {
            let is_over = first.expires_ms <= now_ms;
            if !is_over && self.bytes <= max_bytes {
                break;
            }
            if !is_over && first.key != key {
                gone.push(first.key);
            }
            self.bytes -= first.bytes;
            self.queue.pop_front();
        }
        gone
    }

    fn since(&self, ms: u64) -> Vec<Digest> {
        self.queue.iter().rev().take_while(|stored| stored.stored_ms >= ms).map(|stored| stored.key).collect()
    }
}

/// A lookup in progress. If it is dropped before it ends, for example because the caller left, it returns the breaker's
/// probe.
struct Lookup<'a> {
    answers: &'a SharedAnswers,
    is_over: bool,
}

impl Lookup<'_> {
    fn end(mut self, has_succeeded: bool) {
        self.is_over = true;
        let mut breaker = self.answers.breaker.lock();
        if has_succeeded {
            breaker.succeed();
        } else {
            breaker.fail(&LIMITS, clock::monotonic_ms());
        }
    }
}

impl Drop for Lookup<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.answers.breaker.lock().give_up_probe();
        }
    }
}

fn name_of(key: &Digest) -> String {
    format!("{NAME_PREFIX}{}", hex(key))
}

/// The size limit for the stored responses of all workers together.
fn max_bytes(shared: &Shared) -> u64 {
    bytes_of(&shared.active.load().snapshot.cache)
}

fn bytes_of(settings: &CacheSettings) -> u64 {
    if settings.is_enabled {
        settings.shared_bytes
    } else {
        0
    }
}

/// Applies a new snapshot. If it disables sharing, the responses that workers stored are deleted; each worker clears
/// its own cache as well.
pub fn apply_settings(shared: &Arc<Shared>, before: &Snapshot) {
    let Some(peers) = shared.peers.as_ref() else { return };
    let was_on = before.version > 0 && bytes_of(&before.cache) > 0;
    if !was_on || max_bytes(shared) > 0 {
        return;
    }
    peers.answers.off_ms.store(clock::unix_ms(), Ordering::Relaxed);
    let own = Arc::clone(shared);
    // The eviction has its own deadline. Every worker runs it, so nothing is missed if one of them exits.
    drop(crate::task::spawn(async move {
        if let Err(reason) = evict(&own, &EntryFilter::default()).await {
            tracing::warn!(reason, "sharing was switched off, and some answers stay in the store until they expire");
        }
    }));
}

/// The other workers, if responses are shared with them.
fn sharing_peers(shared: &Shared) -> Option<&Peers> {
    shared.peers.as_ref().filter(|_| max_bytes(shared) > 0)
}

/// Looks up the response to exactly this request among those that workers stored.
pub async fn get(shared: &Shared, key: &Digest) -> Option<CachedAnswer> {
    let peers = sharing_peers(shared)?;
    let answers = &peers.answers;
    let connection = peers.connection();
    let may_ask = connection.is_some() && answers.breaker.lock().try_pass(&LIMITS, clock::monotonic_ms());
    let Some(mut connection) = connection.filter(|_| may_ask) else {
        count(&answers.counts.lookups_skipped);
        return None;
    };
    let lookup = Lookup { answers, is_over: false };
    let name = name_of(key);
    let mut command = redis::cmd("GET");
    command.arg(&name);
    let asking = command.query_async::<Option<Vec<u8>>>(&mut connection);
    let answer = tokio::time::timeout(LOOKUP_TIMEOUT.min(peers.config.deadline()), asking).await;
    lookup.end(matches!(answer, Ok(Ok(_))));
    let Ok(Ok(answer)) = answer else {
        count(&answers.counts.lookups_failed);
        // A timeout may be a brief delay; an error means that the connection failed.
        if answer.is_err() {
            peers.probe_connection();
        } else {
            peers.disconnect();
        }
        return None;
    };
    // An entry that this version or instance cannot open was not stored for it.
    let entry = answer.and_then(|bytes| envelope::open(&bytes, &name, &shared.config.sealer));
    let off_ms = answers.off_ms.load(Ordering::Relaxed);
    let entry = entry.filter(|CachedAnswer { meta, .. }| {
        meta.key == *key && meta.created_ms > off_ms && meta.is_fresh(clock::unix_ms())
    });
    count(if entry.is_some() { &answers.counts.hits } else { &answers.counts.misses });
    entry
}

/// Stores a response for the other workers, unless an eviction happens meanwhile (`Cache::revision`). The caller does
/// not wait.
pub fn put(shared: &Arc<Shared>, entry: CachedAnswer, revision: u64) {
    let Some(peers) = sharing_peers(shared) else { return };
    let answers = &peers.answers;
    let is_closed = answers.breaker.lock().phase(&LIMITS, clock::monotonic_ms()) == BreakerPhase::Closed;
    let is_small = entry.body.len() <= envelope::MAX_SHARED_BYTES;
    let (Some(connection), Some(runtime), true) = (peers.connection(), shared.runtime(), is_closed && is_small) else {
        count(&answers.counts.writes_skipped);
        return;
    };
    if answers.writes.fetch_add(1, Ordering::AcqRel) >= MAX_WRITES {
        answers.writes.fetch_sub(1, Ordering::AcqRel);
        count(&answers.counts.writes_skipped);
        return;
    }
    // The write has its own deadline.
    let own = Arc::clone(shared);
    drop(runtime.spawn(async move {
        let Some(peers) = own.peers.as_ref() else { return };
        write(&own, peers, connection, &entry, revision).await;
        peers.answers.writes.fetch_sub(1, Ordering::AcqRel);
    }));
}

async fn write(shared: &Shared, peers: &Peers, connection: StoreConnection, entry: &CachedAnswer, revision: u64) {
    let (answers, now_ms) = (&peers.answers, clock::unix_ms());
    let (key, expires_ms, name) = (entry.meta.key, entry.meta.expires_ms, name_of(&entry.meta.key));
    let own_bytes = max_bytes(shared) / shared.leases.as_ref().map_or(1, |leases| leases.terms.nodes().max(1));
    let sealed = envelope::seal(entry, &name, &shared.config.sealer);
    let sealed = sealed.filter(|sealed| sealed.len() as u64 <= own_bytes && expires_ms > now_ms);
    let Some(sealed) = sealed else { return count(&answers.counts.writes_skipped) };
    let stored = StoredAnswer { key, bytes: (sealed.len() + name.len()) as u64, stored_ms: now_ms, expires_ms };
    let gone = answers.stored.lock().add(stored, own_bytes);
    let mut command = redis::cmd("SET");
    command.arg(&name).arg(&sealed).arg("PX").arg(expires_ms - now_ms);
    let mut own = connection.clone();
    let written = tokio::time::timeout(peers.config.deadline(), command.query_async::<()>(&mut own)).await;
    if !matches!(written, Ok(Ok(()))) {
        count(&answers.counts.writes_failed);
        answers.breaker.lock().fail(&LIMITS, clock::monotonic_ms());
        return if written.is_err() { peers.probe_connection() } else { peers.disconnect() };
    }
    count(&answers.counts.stored);
    delete(&connection, gone).await;
    // A concurrent eviction may have scanned past this key before the entry was written.
    if shared.cache.store.revision() != revision {
        delete(&connection, vec![key]).await;
    }
}

/// Deletes entries from the store and returns how many existed. Each key is a separate command, because a cluster may
/// place keys on different nodes.
async fn delete(connection: &StoreConnection, keys: Vec<Digest>) -> u64 {
    let deleting = stream::iter(keys).map(|key| {
        let mut connection = connection.clone();
        async move { redis::cmd("UNLINK").arg(name_of(&key)).query_async::<u64>(&mut connection).await }
    });
    let count = |sum: u64, deleted: Result<u64, RedisError>| async move {
        // An entry that could not be deleted still expires.
        sum + deleted.unwrap_or_default()
    };
    deleting.buffer_unordered(SCAN_CONCURRENCY).fold(0, count).await
}

/// The filter of an eviction, as workers exchange it.
#[derive(Debug, Serialize, Deserialize)]
struct EvictionNotice {
    filter: EntryFilter,
}

/// The error when the store does not respond to an eviction.
const STORE_UNAVAILABLE: &str = "the shared store does not answer, and may still have the entries";

/// Deletes the matching entries from the store and returns their number. Call this before this worker evicts from its
/// own cache, and call [`broadcast_eviction`] after that.
pub async fn evict(shared: &Shared, filter: &EntryFilter) -> Result<u64, &'static str> {
    let Some(peers) = shared.peers.as_ref() else { return Ok(0) };
    let Some(mut connection) = peers.connection() else {
        return if sharing_peers(shared).is_some() { Err(STORE_UNAVAILABLE) } else { Ok(0) };
    };
    let scan = scan_and_delete(&mut connection, &shared.config.sealer, filter);
    match tokio::time::timeout(EVICT_TIMEOUT, scan).await {
        Ok(Ok(count)) => Ok(count),
        _ => Err(STORE_UNAVAILABLE),
    }
}

/// Deletes the matching entries that this worker stored during the scan, and asks the other workers to evict the same
/// entries.
pub async fn broadcast_eviction(shared: &Shared, filter: &EntryFilter) -> Result<(), &'static str> {
    let Some(peers) = shared.peers.as_ref() else { return Ok(()) };
    evict_latest(shared, filter).await;
    let Some(connection) = peers.connection() else { return Ok(()) };
    let message = notice::write(&peers.worker, &EvictionNotice { filter: filter.clone() }).ok_or(STORE_UNAVAILABLE)?;
    if peers.publish(connection, super::EVICTIONS, message).await {
        Ok(())
    } else {
        Err(STORE_UNAVAILABLE)
    }
}

/// Scans all entries in the store and deletes those that match.
async fn scan_and_delete(
    connection: &mut StoreConnection,
    sealer: &Sealer,
    filter: &EntryFilter,
) -> Result<u64, RedisError> {
    let mut count = 0;
    for primary in connection.primaries().await? {
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(NAMES).arg("COUNT").arg(SCAN_COUNT);
            let page = connection.query_primary(primary, scan).await?;
            let (next, names) = <(u64, Vec<String>)>::from_redis_value(page)?;
            let matching: Vec<Digest> = heads(connection, sealer, names, filter).await?;
            count += delete(connection, matching).await;
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
    }
    Ok(count)
}

/// Returns the keys of the entries that match, among the given names.
async fn heads(
    connection: &StoreConnection,
    sealer: &Sealer,
    names: Vec<String>,
    filter: &EntryFilter,
) -> Result<Vec<Digest>, RedisError> {
    let asking = stream::iter(names).map(|name| {
        let mut connection = connection.clone();
        async move {
            let mut command = redis::cmd("GETRANGE");
            command.arg(&name).arg(0).arg(HEAD_BYTES - 1);
            let head: Vec<u8> = command.query_async(&mut connection).await?;
            Ok::<_, RedisError>((name, head))
        }
    });
    let replies: Vec<Result<_, RedisError>> = asking.buffer_unordered(SCAN_CONCURRENCY).collect().await;
    let now_ms = clock::unix_ms();
    let mut matching = Vec::new();
    for read in replies {
        let (name, head) = read?;
        // An entry that cannot be opened belongs to another instance and is served to nobody here.
        let meta = envelope::open_head(&head, &name, sealer);
        matching.extend(meta.filter(|meta| filter.fits(meta, now_ms)).map(|meta| meta.key));
    }
    Ok(matching)
}

/// Deletes the matching entries that this worker stored recently: a scan may have passed their keys before they were
/// written.
async fn evict_latest(shared: &Shared, filter: &EntryFilter) {
    let Some(peers) = shared.peers.as_ref() else { return };
    let Some(connection) = peers.connection() else { return };
    let latest = peers.answers.stored.lock().since(clock::unix_ms().saturating_sub(RECENT_MS));
    let names = latest.iter().map(name_of).collect();
    let deleting = async {
        let matching = heads(&connection, &shared.config.sealer, names, filter).await?;
        Ok::<_, RedisError>(delete(&connection, matching).await)
    };
    if !matches!(tokio::time::timeout(peers.config.deadline(), deleting).await, Ok(Ok(_))) {
        peers.probe_connection();
    }
}

/// Evicts the entries that another worker evicted.
pub(super) fn on_notice(shared: &Arc<Shared>, peers: &Peers, payload: &[u8]) {
    let Some(EvictionNotice { filter }) = notice::read(&peers.worker, payload) else { return };
    let own = Arc::clone(shared);
    // The task ends without supervision: each of its steps is bounded.
    drop(crate::task::spawn(async move {
        let is_all = filter == EntryFilter::default();
        if is_all {
            own.forget_for_repeats();
        }
        let store = Arc::clone(&own.cache.store);
        let copy = filter.clone();
        let forgetting = blocking::disk(move || if is_all { store.clear() } else { store.forget(&copy) });
        if let Err(fault) = forgetting.await {
            tracing::error!(%fault, "entries that another worker evicted are still cached here");
        }
        evict_latest(&own, &filter).await;
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(key: u8, bytes: u64, stored_ms: u64) -> StoredAnswer {
        StoredAnswer { key: [key; 32], bytes, stored_ms, expires_ms: stored_ms + 100 }
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let mut answers = StoredAnswers::default();
        assert!(answers.add(stored(1, 40, 0), 100).is_empty());
        assert!(answers.add(stored(2, 40, 10), 100).is_empty());
        assert_eq!(answers.add(stored(3, 60, 20), 100), [[1; 32]]);
        assert_eq!(answers.bytes, 100);
        assert_eq!(answers.since(15), [[3; 32]]);
        // An expired entry is removed without being returned.
        assert!(answers.add(stored(4, 100, 120), 100).is_empty());
        assert_eq!((answers.bytes, answers.queue.len()), (100, 1));
        // The same key again is overwritten in the store, so it is not deleted.
        assert!(answers.add(stored(4, 100, 130), 100).is_empty());
        assert_eq!((answers.bytes, answers.queue.len()), (100, 1));
    }
}
