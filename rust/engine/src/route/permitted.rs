//! The part of a combo that a key may use, and the channels of `auto` for keys with restricted models.
//!
//! A channel holds only the best few of all models. A key that may call none of these would get nothing from the
//! channel. Such a key gets a channel filled with models that it may call. The channel is filled on the key's first
//! call, shared by all keys with the same permissions, and dropped with the snapshot.

use fairlead_core::strategy::{Book, Candidate, To};
use fairlead_core::{policy, Access, Key, Snapshot};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::Arc;

/// The most filled channels that are stored for one snapshot, each about 20 KiB. A channel that does not fit is filled
/// again on each call.
const MAX_BOOKS: usize = 256;

/// The filled channels, keyed by a hash of the channel and the permissions.
#[derive(Debug, Default)]
pub struct Permitted {
    books: Mutex<HashMap<u64, Filled>>,
    hashing: RandomState,
}

/// A channel filled for keys with certain permissions.
#[derive(Debug)]
struct Filled {
    channel: String,
    /// The levels of the key that can deny a target.
    levels: Vec<Access>,
    book: Arc<Book>,
}

impl Permitted {
    /// Returns the channel filled with the best candidates that the key may use. `is_usable` returns whether the
    /// connection at an index of the snapshot can be called.
    pub fn book(
        &self,
        snapshot: &Snapshot,
        channel: &str,
        key: &Key,
        is_usable: &dyn Fn(usize) -> bool,
    ) -> Option<Arc<Book>> {
        let mut hasher = self.hashing.build_hasher();
        channel.hash(&mut hasher);
        narrow_levels(key).for_each(|level| level.hash(&mut hasher));
        let hash = hasher.finish();
        let is_its = |filled: &&Filled| filled.channel == channel && filled.levels.iter().eq(narrow_levels(key));
        if let Some(filled) = self.books.lock().get(&hash).filter(is_its) {
            return Some(Arc::clone(&filled.book));
        }
        // Done outside the lock: filling takes milliseconds with tens of thousands of models.
        let admits = |candidate: &Candidate| may_use(key, true, candidate);
        let book = Arc::new(Book::of_channel(channel, snapshot, &|index, _| is_usable(index), &admits)?);
        let levels = narrow_levels(key).cloned().collect();
        let filled = Filled { channel: channel.to_owned(), levels, book: Arc::clone(&book) };
        let mut books = self.books.lock();
        if books.len() >= MAX_BOOKS && !books.contains_key(&hash) {
            let any = books.keys().next().copied();
            any.and_then(|any| books.remove(&any));
        }
        books.insert(hash, filled);
        Some(book)
    }
}

fn narrow_levels(key: &Key) -> impl Iterator<Item = &Access> {
    key.levels().filter(|level| level.closes_targets())
}

/// Returns whether the key can be denied some target.
pub fn is_restricted(key: &Key) -> bool {
    key.levels().any(Access::closes_targets)
}

/// Returns whether the key may use a candidate. An operator's combo decides itself which models it reaches. `auto`
/// reaches only models that the key may call. A blocked model is blocked under every prefix of its connection.
pub fn may_use(key: &Key, is_auto: bool, candidate: &Candidate) -> bool {
    let (Some(connection), To::Connection { model, .. }) = (&candidate.connection, &candidate.to) else { return true };
    policy::sees_connection(key, &connection.id)
        && (!is_auto || policy::sees_model(key, &candidate.name))
        && !(key.has_blocks() && is_blocked(key, &connection.prefixes, model))
}

fn is_blocked(key: &Key, prefixes: &[String], model: &str) -> bool {
    let mut name = String::new();
    prefixes.iter().any(|prefix| {
        name.clear();
        // Writing to a `String` does not fail.
        let _ = write!(name, "{prefix}/{model}");
        policy::admit_unblocked(key, &name).is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use fairlead_core::strategy::Demand;
    use fairlead_core::ErrorKind;
    use serde_json::{json, Value};

    const MODELS: usize = 200;

    fn key(id: &str, more: &Value) -> Value {
        let mut key = json!({"id": id, "hash": id.repeat(64), "is_active": true});
        let (Some(fields), Some(more)) = (key.as_object_mut(), more.as_object()) else { unreachable!("objects") };
        fields.extend(more.clone());
        key
    }

    /// Expensive models rank last in `auto/cheap`, so the last one is not among the channel's best.
    fn active() -> crate::active_config::ActiveConfig {
        let connection = |id: &str, priority: u32| {
            json!({"id": id, "provider": "a", "prefixes": ["a", "alias"], "dialect": "openai", "base_url": "http://a.example",
                "auth": "none", "priority": priority})
        };
        let name = |at: usize| format!("a/chat-{at:03}");
        let models: Vec<Value> = (0..MODELS).map(|at| json!({"id": name(at), "provider": "a"})).collect();
        let prices: Vec<Value> =
            (0..MODELS).map(|at| json!({"model": name(at), "input": at * 1000 + 1, "output": at * 1000 + 1})).collect();
        let dear = json!({"model_access_mode": "restricted", "allowed_models": ["a/chat-19*", "a/unlisted"]});
        testing::active(&json!({
            "version": 1, "connections": [connection("x", 1), connection("y", 90)], "models": models, "prices": prices,
            "combos": [{"id": "1", "name": "own", "steps": [{"kind": "model", "model": "a/chat-1*"}]}],
            "keys": [
                key("0", &json!({})),
                key("1", &dear),
                key("2", &dear),
                key("3", &json!({"model_access_mode": "restricted", "allowed_models": ["b/none"]})),
                key("4", &json!({"blocked_models": ["alias/chat-0*"]})),
                key("5", &json!({"connection_access_mode": "restricted", "allowed_connections": ["y"]})),
            ],
        }))
    }

    fn models(
        active: &crate::active_config::ActiveConfig,
        id: &str,
        name: &str,
    ) -> Result<Vec<String>, fairlead_core::Error> {
        let key = active.snapshot.key_of(id).expect("a key");
        let combo = active.combos.book.find(name).expect("a combo");
        let choice = active.combos.choose(active.reach(), combo, &Demand::default(), Some(key))?;
        assert_eq!(choice.targets.len(), choice.combo.as_ref().expect("a combo").legs.len());
        Ok(choice.combo.expect("a combo").legs.iter().map(|leg| leg.model.to_string()).collect())
    }

    #[test]
    fn a_key_gets_the_best_of_what_it_may_call() {
        let active = active();
        for channel in ["auto", "auto/cheap", "auto/chat"] {
            assert!(models(&active, "0", channel).expect("any").iter().any(|name| !name.starts_with("a/chat-19")));
            let own = models(&active, "1", channel).expect("its models");
            assert_eq!(own.len(), 20, "ten models over two connections: {own:?}");
            assert!(own.iter().all(|name| name.starts_with("a/chat-19")), "{own:?}");
            let refusal = models(&active, "3", channel).expect_err("none of it");
            assert_eq!(refusal.kind, ErrorKind::Forbidden, "{}", refusal.message);
            let unblocked = models(&active, "4", channel).expect("others");
            assert!(!unblocked.is_empty() && unblocked.iter().all(|name| !name.starts_with("a/chat-0")));
            let key = active.snapshot.key_of("5").expect("a key");
            let at = active.combos.book.find(channel).expect("a channel");
            let choice =
                active.combos.choose(active.reach(), at, &Demand::default(), Some(key)).expect("its connection");
            assert!(choice.targets.iter().all(|target| target.connection.id == "y"));
        }
    }

    #[test]
    fn what_a_key_may_not_use_takes_no_place_in_an_operators_combo() {
        let active = active();
        let key = active.snapshot.key_of("5").expect("a key");
        let at = active.combos.book.find("own").expect("a combo");
        let choice = active.combos.choose(active.reach(), at, &Demand::default(), Some(key)).expect("its connection");
        assert_eq!(choice.targets.len(), 32);
        assert!(choice.targets.iter().all(|target| target.connection.id == "y"));
        let verdicts = active.combos.try_out(active.reach(), at, &Demand::default(), Some(key));
        let refused = verdicts.iter().filter(|one| one.reason.as_deref() == Some("the API key may not use it"));
        assert_eq!((refused.count(), verdicts[0].reason.as_deref()), (100, None));
    }

    #[test]
    fn keys_with_the_same_permissions_share_what_is_filled() {
        let active = active();
        let permitted = Permitted::default();
        let book = |id: &str| {
            let key = active.snapshot.key_of(id).expect("a key");
            permitted.book(&active.snapshot, "auto/cheap", key, &|_| true).expect("a channel")
        };
        assert!(Arc::ptr_eq(&book("1"), &book("1")) && Arc::ptr_eq(&book("1"), &book("2")));
        assert!(!Arc::ptr_eq(&book("1"), &book("3")));
        let none =
            permitted.book(&active.snapshot, "auto/none", active.snapshot.key_of("1").expect("a key"), &|_| false);
        assert!(none.expect("a family").get(0).expect("ready").candidates.is_empty());
        assert_eq!(permitted.books.lock().len(), 3);
        assert!(
            !is_restricted(active.snapshot.key_of("0").expect("a key"))
                && is_restricted(active.snapshot.key_of("5").expect("a key"))
        );
    }

    #[test]
    fn filled_channels_are_bounded() {
        let active = active();
        let permitted = Permitted::default();
        let key = active.snapshot.key_of("1").expect("a key");
        for at in 0..MAX_BOOKS + 9 {
            permitted.book(&active.snapshot, &format!("auto/f{at}"), key, &|_| true).expect("a family");
        }
        assert_eq!(permitted.books.lock().len(), MAX_BOOKS);
    }
}
