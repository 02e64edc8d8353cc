//! Tests of both tiers together, on real files and with a clock that the test advances.

use bytes::Bytes;
use fairlead_cache::envelope;
use fairlead_cache::{
    digest, Bounds, Cache, CachedAnswer, Delivery, Digest, EntryFilter, Found, Meta, Opening, VectorState,
};
use fairlead_core::Sealer;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

const TTL_MS: u64 = 60_000;
const ROOM: Bounds = Bounds { memory_bytes: 8 << 20, disk_bytes: 64 << 20, wants_vectors: false };

static FOLDERS: AtomicU64 = AtomicU64::new(0);

/// A separate folder for each test, deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("fairlead-cache-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(self.0.join("cache"))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the folder goes");
    }
}

fn open(dir: &Path, worker_id: &str, now_ms: fn() -> u64) -> Cache {
    let sealer = Sealer::new(&[7; 32]).expect("a key");
    let position =
        Opening { data_dir: dir.to_owned(), worker_id: worker_id.to_owned(), sealer, vector_files: None, now_ms };
    let cache = Cache::open(position).expect("opens");
    cache.set(ROOM);
    assert!(cache.sync(Duration::from_secs(20)));
    cache
}

fn noon() -> u64 {
    1_000_000
}

fn key(name: &str) -> Digest {
    digest(&[name.as_bytes()])
}

fn cached_answer(name: &str, body: &[u8], now_ms: u64) -> CachedAnswer {
    let meta = Meta {
        key: key(name),
        question: None,
        key_id: Some("the key of a caller".into()),
        route: "/v1/chat/completions".into(),
        model: "openai/m".into(),
        provider: "openai".into(),
        upstream_model: None,
        strategy: "single".into(),
        delivery: Delivery::Plain,
        tokens_input: 3,
        tokens_output: 2,
        cost_picos: 5,
        created_ms: now_ms,
        expires_ms: now_ms + TTL_MS,
    };
    CachedAnswer { meta: Arc::new(meta), body: Bytes::copy_from_slice(body) }
}

fn keep(cache: &Cache, name: &str, body: &[u8]) {
    cache.keep(&cached_answer(name, body, noon()), cache.epoch(), true);
}

fn synced(cache: &Cache) {
    assert!(cache.sync(Duration::from_secs(20)));
}

/// The answer that is returned for a name, from either tier.
fn given(cache: &Cache, name: &str) -> Option<Bytes> {
    match cache.find(&key(name)) {
        Found::Here(answer) => Some(answer.body),
        Found::Stored(stored) => cache.fetch(&key(name), &stored).map(|answer| answer.body),
        Found::Nothing => None,
    }
}

#[test]
fn what_was_kept_is_given_and_told() {
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    keep(&cache, "one", b"1");
    assert_eq!(given(&cache, "one").as_deref(), Some(&b"1"[..]));
    assert_eq!(given(&cache, "two"), None);
    synced(&cache);
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.memory_entries, stats.disk_entries), (1, 1, 1));
    assert_eq!(stats.vector_state, VectorState::Off);
    let entries = cache.list(&EntryFilter::default());
    assert_eq!((entries.len(), entries[0].in_memory, entries[0].on_disk), (1, true, true));
}

#[test]
fn an_answer_is_given_until_it_expires() {
    static NOW: AtomicU64 = AtomicU64::new(1_000_000);
    fn now_ms() -> u64 {
        NOW.load(Ordering::SeqCst)
    }
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", now_ms);
    keep(&cache, "one", b"1");
    NOW.store(1_000_000 + TTL_MS - 1, Ordering::SeqCst);
    assert!(given(&cache, "one").is_some());
    NOW.store(1_000_000 + TTL_MS, Ordering::SeqCst);
    assert_eq!(given(&cache, "one"), None);
    keep(&cache, "two", b"2");
    NOW.store(500_000, Ordering::SeqCst);
    assert_eq!(given(&cache, "two"), None, "a clock that was set back far gives nothing of the future");
    assert_eq!(cache.stats().entries, 0);
}

#[test]
fn what_was_kept_survives_the_worker_and_what_was_forgotten_does_not_come_back() {
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    for name in ["one", "two", "three"] {
        keep(&cache, name, name.as_bytes());
    }
    let filter = EntryFilter { signature: Some(fairlead_core::hex(&key("two"))), ..EntryFilter::default() };
    assert_eq!(cache.forget(&filter), 1);
    synced(&cache);
    // As after kill -9: nothing is closed in order, and the file locks are released.
    cache.close();
    drop(cache);
    let again = open(&folder.0, "b2", noon);
    assert_eq!(given(&again, "one").as_deref(), Some(&b"one"[..]));
    assert_eq!(given(&again, "two"), None);
    assert_eq!(given(&again, "three").as_deref(), Some(&b"three"[..]));
    assert_eq!(again.clear(), 2);
    assert_eq!(given(&again, "one"), None);
    synced(&again);
    drop(again);
    assert_eq!(folder.files(), [] as [PathBuf; 0]);
}

#[test]
fn a_file_that_was_cut_anywhere_gives_what_is_whole_and_nothing_wrong() {
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    keep(&cache, "one", b"first");
    keep(&cache, "two", b"second");
    synced(&cache);
    drop(cache);
    let file = folder.files().pop().expect("a file");
    let content = fs::read(&file).expect("readable");
    for cut in (0..content.len()).step_by(41) {
        fs::write(&file, &content[..cut]).expect("writable");
        let again = open(&folder.0, "b2", noon);
        assert!(given(&again, "one").is_none_or(|body| body == b"first"[..]), "cut at {cut}");
        assert_eq!(given(&again, "two"), None, "cut at {cut}");
    }
    for flip in (0..content.len()).step_by(97) {
        let mut changed = content.clone();
        changed[flip] ^= 1;
        fs::write(&file, &changed).expect("writable");
        let again = open(&folder.0, "b2", noon);
        assert!(given(&again, "one").is_none_or(|body| body == b"first"[..]), "changed at {flip}");
        assert!(given(&again, "two").is_none_or(|body| body == b"second"[..]), "changed at {flip}");
    }
}

#[test]
fn the_files_tell_nothing_and_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    keep(&cache, "one", b"a secret answer");
    synced(&cache);
    let file = folder.files().pop().expect("a file");
    let content = fs::read(&file).expect("readable");
    for secret in [&b"secret"[..], b"openai", b"the key of a caller"] {
        assert!(!content.windows(secret.len()).any(|part| part == secret));
    }
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(folder.0.join("cache")).expect("there").permissions().mode() & 0o777, 0o700);
}

#[test]
fn files_of_a_living_worker_are_its_own() {
    let folder = Folder::new();
    let first = open(&folder.0, "a1", noon);
    keep(&first, "one", b"1");
    synced(&first);
    let second = open(&folder.0, "b2", noon);
    assert_eq!(given(&second, "one"), None);
    assert_eq!(second.clear(), 0);
    synced(&second);
    assert!(given(&first, "one").is_some());
    drop((first, second));
    assert!(given(&open(&folder.0, "c3", noon), "one").is_some());
}

#[test]
fn memory_holds_its_bound_and_the_disk_has_the_rest() {
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    cache.set(Bounds { memory_bytes: 512 * 1024, ..ROOM });
    let body = vec![b'x'; 100 * 1024];
    for at in 0..20 {
        keep(&cache, &at.to_string(), &body);
        synced(&cache);
        assert!(cache.stats().memory_bytes <= 512 * 1024);
    }
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.disk_entries), (20, 20));
    assert!(stats.memory_entries < 6 && stats.evictions > 0);
    for at in 0..20 {
        assert_eq!(given(&cache, &at.to_string()).map(|body| body.len()), Some(body.len()));
    }
}

#[test]
fn the_disk_holds_its_bound() {
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    cache.set(Bounds { disk_bytes: 4 << 20, memory_bytes: 1 << 20, ..ROOM });
    let body = vec![b'x'; 300 * 1024];
    for at in 0..40 {
        keep(&cache, &at.to_string(), &body);
        synced(&cache);
        let bytes: u64 = folder.files().iter().map(|file| fs::metadata(file).expect("there").len()).sum();
        assert!(bytes <= 4 << 20, "{bytes}");
    }
    assert!(given(&cache, "39").is_some());
    assert_eq!(given(&cache, "0"), None, "the oldest went first");
    let known = cache.stats().entries;
    let readable = (0..40).filter(|at| given(&cache, &at.to_string()).is_some()).count();
    assert_eq!(readable, known, "nothing is known that is not there");
    cache.set(Bounds { disk_bytes: 0, ..ROOM });
    synced(&cache);
    assert_eq!(folder.files(), [] as [PathBuf; 0]);
}

#[test]
fn an_answer_that_was_asked_for_before_everything_was_forgotten_is_not_kept() {
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    let epoch = cache.epoch();
    cache.clear();
    cache.keep(&cached_answer("late", b"late", noon()), epoch, true);
    assert_eq!(given(&cache, "late"), None);
    synced(&cache);
    drop(cache);
    assert_eq!(given(&open(&folder.0, "b2", noon), "late"), None);
}

#[test]
fn what_must_not_lie_on_a_disk_does_not() {
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    cache.keep(&cached_answer("quiet", b"q", noon()), cache.epoch(), false);
    assert!(given(&cache, "quiet").is_some());
    synced(&cache);
    drop(cache);
    assert_eq!(given(&open(&folder.0, "b2", noon), "quiet"), None);
}

#[test]
fn a_filter_means_everything_that_it_names() {
    let folder = Folder::new();
    let cache = open(&folder.0, "a1", noon);
    keep(&cache, "one", b"1");
    let named = |field: &str, value: &str| {
        serde_json::from_value::<EntryFilter>(serde_json::json!({ (field): value })).expect("a filter")
    };
    for (field, right) in [("model", "openai/m"), ("provider", "openai"), ("key_id", "the key of a caller")] {
        assert_eq!(cache.list(&named(field, right)).len(), 1, "{field}");
        assert_eq!(cache.list(&named(field, "other")).len(), 0, "{field}");
    }
    let old = |age_ms| EntryFilter { older_than_ms: Some(age_ms), ..EntryFilter::default() };
    assert_eq!((cache.list(&old(0)).len(), cache.list(&old(1)).len()), (1, 0));
    assert_eq!(cache.forget(&named("model", "other")), 0);
    assert_eq!(cache.forget(&named("model", "openai/m")), 1);
    assert_eq!(given(&cache, "one"), None);
}

#[test]
fn forgetting_while_others_read_and_write_leaves_nothing_dangling() {
    let folder = Folder::new();
    let cache = Arc::new(open(&folder.0, "a1", noon));
    let writers: Vec<_> = (0..2)
        .map(|own| {
            let cache = Arc::clone(&cache);
            std::thread::spawn(move || {
                for at in 0..400 {
                    let name = format!("{own}-{}", at % 50);
                    keep(&cache, &name, name.as_bytes());
                    if let Some(body) = given(&cache, &name) {
                        assert_eq!(body, name.as_bytes());
                    }
                }
            })
        })
        .collect();
    for _ in 0..40 {
        cache.clear();
        std::thread::yield_now();
    }
    for writer in writers {
        writer.join().expect("no panic");
    }
    cache.clear();
    synced(&cache);
    assert_eq!((cache.stats().entries, cache.stats().disk_entries), (0, 0));
    drop(cache);
    assert_eq!(folder.files(), [] as [PathBuf; 0]);
}

#[test]
fn what_another_worker_left_is_not_adopted_after_something_was_forgotten() {
    let folder = Folder::new();
    let cache = open(&folder.0, "w", noon);
    let found = cached_answer("a", b"body", noon());
    let before = cache.revision();
    assert!(cache.adopt(&found, before));
    assert_eq!(cache.forget(&EntryFilter { model: Some("another".into()), ..EntryFilter::default() }), 0);
    assert!(!cache.adopt(&found, before), "it might have been that");
    let now = cache.revision();
    cache.clear();
    assert!(!cache.adopt(&found, now));
    assert!(matches!(cache.find(&key("a")), Found::Nothing));
}

#[test]
fn an_answer_between_workers_is_opened_under_its_own_name_only() {
    let (sealer, other) = (Sealer::new(&[7; 32]).expect("a key"), Sealer::new(&[8; 32]).expect("a key"));
    let answer = cached_answer("a", b"body", noon());
    let sealed = envelope::seal(&answer, "name", &sealer).expect("sealed");
    let opened = envelope::open(&sealed, "name", &sealer).expect("opened");
    assert_eq!((&opened.meta, &opened.body), (&answer.meta, &answer.body));
    let head = &sealed[..sealed.len().min(envelope::HEAD_BYTES)];
    assert_eq!(envelope::open_head(head, "name", &sealer).as_ref(), Some(&*answer.meta));
    assert!(envelope::open(&sealed, "another", &sealer).is_none());
    assert!(envelope::open(&sealed, "name", &other).is_none());
    for cut in 0..sealed.len() {
        assert!(envelope::open(&sealed[..cut], "name", &sealer).is_none(), "{cut}");
        let mut changed = sealed.clone();
        changed[cut] ^= 1;
        assert!(envelope::open(&changed, "name", &sealer).is_none(), "{cut}");
    }
    let large = cached_answer("a", &vec![0; envelope::MAX_SHARED_BYTES + 1], noon());
    assert!(envelope::seal(&large, "name", &sealer).is_none());
}
