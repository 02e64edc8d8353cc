//! Stores the reasoning of models before tool calls.
//!
//! Some providers reject a conversation whose tool calls lack the preceding reasoning, and most clients do not send it
//! back: their dialect has no member for it, or they omit it. The reasoning is therefore stored here under the id of
//! the tool call that followed, and inserted again for a provider that requires it.
//!
//! It is stored only in memory, limited in number, bytes and time; the oldest is evicted first. Each entry belongs to
//! one principal, and is returned only to the provider that created it.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub const MAX_ENTRIES: usize = 2_000;
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Longer reasoning is not stored.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;
/// A conversation that pauses for longer continues without its reasoning.
pub const TTL_MS: u64 = 2 * 60 * 60 * 1_000;
/// The approximate size of ids, names and maps per entry.
const OVERHEAD_BYTES: usize = 512;

/// The provider and model that created the reasoning, and the caller.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Kind and id of the principal.
    pub principal: &'a str,
    pub provider: &'a str,
    /// The model name that the caller used.
    pub model: &'a str,
    /// The reasoning was received by another worker, which lists it.
    pub is_elsewhere: bool,
}

/// The current time on both clocks: one for expiry, and one for display.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    pub monotonic_ms: u64,
    pub unix_ms: u64,
}

/// Selects entries. Absent fields match everything.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReasoningFilter {
    pub tool_call_id: Option<String>,
    pub provider: Option<String>,
}

/// An entry in lists, without the reasoning text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasoningSummary {
    pub tool_call_id: String,
    pub key_id: Option<String>,
    pub provider: String,
    pub model: String,
    pub bytes: usize,
    pub hits: u64,
    pub created_ms: u64,
    pub expires_ms: u64,
}

/// Counters since the worker started, and current sizes: the entries that this worker received itself, and the bytes of
/// all entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReasoningStats {
    pub entries: usize,
    pub max_entries: usize,
    pub bytes: usize,
    pub max_bytes: usize,
    pub ttl_ms: u64,
    /// Messages whose reasoning was found.
    pub hits: u64,
    /// Messages with a tool call whose reasoning was not found.
    pub misses: u64,
    pub evictions: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Name {
    principal: Box<str>,
    tool_call_id: Box<str>,
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    provider: Box<str>,
    model: Box<str>,
    /// The position of the entry in the order of age.
    number: u64,
    at: Now,
    hits: u64,
    is_elsewhere: bool,
}

impl Entry {
    fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at.monotonic_ms) < TTL_MS
    }

    /// The size as if no other entry shared its text. Parallel tool calls share it.
    fn bytes(&self) -> usize {
        self.text.len() + OVERHEAD_BYTES
    }
}

/// The stored reasoning of models before tool calls.
#[derive(Debug, Default)]
pub struct Reasoning(Mutex<EntryStore>);

#[derive(Debug, Default)]
struct EntryStore {
    entries: HashMap<Name, Entry>,
    by_age: BTreeMap<u64, Name>,
    next: u64,
    bytes: usize,
    hits: u64,
    misses: u64,
    evictions: u64,
}

impl EntryStore {
    fn remove(&mut self, name: &Name) -> bool {
        let Some(entry) = self.entries.remove(name) else { return false };
        self.by_age.remove(&entry.number);
        self.bytes -= entry.bytes();
        true
    }

    /// Removes expired entries, and then the oldest, until this many entries of this many bytes fit.
    fn make_space(&mut self, more: usize, bytes: usize, now_ms: u64) {
        while let Some((_, name)) = self.by_age.first_key_value() {
            let is_over = self.entries.get(name).is_none_or(|entry| !entry.is_fresh(now_ms));
            let is_full = self.entries.len() + more > MAX_ENTRIES || self.bytes + bytes > MAX_BYTES;
            if !is_over && !is_full {
                return;
            }
            let name = name.clone();
            self.evictions += u64::from(!is_over);
            if !self.remove(&name) {
                return;
            }
        }
    }
}

impl Reasoning {
    /// Stores the reasoning before these parallel tool calls.
    pub fn keep(&self, origin: Origin<'_>, call_ids: &[String], text: &str, now: Now) {
        if text.is_empty() || text.len() > MAX_TEXT_BYTES {
            return;
        }
        let text: Arc<str> = text.into();
        let mut store = self.0.lock();
        for id in call_ids.iter().filter(|id| !id.is_empty()) {
            let name = Name { principal: origin.principal.into(), tool_call_id: id.as_str().into() };
            store.remove(&name);
            store.make_space(1, text.len() + OVERHEAD_BYTES, now.monotonic_ms);
            let number = store.next;
            store.next += 1;
            let (provider, model) = (origin.provider.into(), origin.model.into());
            let is_elsewhere = origin.is_elsewhere;
            let entry = Entry { text: Arc::clone(&text), provider, model, number, at: now, hits: 0, is_elsewhere };
            store.bytes += entry.bytes();
            store.by_age.insert(number, name.clone());
            store.entries.insert(name, entry);
        }
    }

    /// The reasoning of this provider before one of these tool calls, for this principal.
    pub fn find(&self, principal: &str, provider: &str, call_ids: &[&str], now: Now) -> Option<Arc<str>> {
        let mut store = self.0.lock();
        for id in call_ids {
            let name = Name { principal: principal.into(), tool_call_id: (*id).into() };
            let Some(entry) = store.entries.get_mut(&name) else { continue };
            if &*entry.provider == provider && entry.is_fresh(now.monotonic_ms) {
                entry.hits += 1;
                let text = Arc::clone(&entry.text);
                store.hits += 1;
                return Some(text);
            }
        }
        store.misses += 1;
        None
    }

    /// The entries that this worker received itself, newest first.
    pub fn list(&self, filter: &ReasoningFilter, now: Now) -> Vec<ReasoningSummary> {
        let store = self.0.lock();
        let named = store.by_age.values().rev().filter_map(|name| Some((name, store.entries.get(name)?)));
        named
            .filter(|(name, entry)| {
                !entry.is_elsewhere && entry.is_fresh(now.monotonic_ms) && fits(filter, name, entry)
            })
            .map(summary_of)
            .collect()
    }

    /// Deletes the entries that match. Returns how many of them this worker had received itself.
    pub fn forget(&self, filter: &ReasoningFilter) -> usize {
        let mut store = self.0.lock();
        let gone: Vec<(Name, bool)> = store
            .entries
            .iter()
            .filter(|(name, entry)| fits(filter, name, entry))
            .map(|(name, entry)| (name.clone(), entry.is_elsewhere))
            .collect();
        gone.iter().filter(|(name, is_elsewhere)| store.remove(name) && !is_elsewhere).count()
    }

    pub fn stats(&self, now: Now) -> ReasoningStats {
        let mut store = self.0.lock();
        store.make_space(0, 0, now.monotonic_ms);
        ReasoningStats {
            entries: store.entries.values().filter(|entry| !entry.is_elsewhere).count(),
            max_entries: MAX_ENTRIES,
            bytes: store.bytes,
            max_bytes: MAX_BYTES,
            ttl_ms: TTL_MS,
            hits: store.hits,
            misses: store.misses,
            evictions: store.evictions,
        }
    }
}

fn fits(filter: &ReasoningFilter, name: &Name, entry: &Entry) -> bool {
    filter.tool_call_id.as_deref().is_none_or(|id| id == &*name.tool_call_id)
        && filter.provider.as_deref().is_none_or(|provider| provider == &*entry.provider)
}

fn summary_of((name, entry): (&Name, &Entry)) -> ReasoningSummary {
    ReasoningSummary {
        tool_call_id: name.tool_call_id.to_string(),
        key_id: name.principal.strip_prefix("key:").map(str::to_owned),
        provider: entry.provider.to_string(),
        model: entry.model.to_string(),
        bytes: entry.text.len(),
        hits: entry.hits,
        created_ms: entry.at.unix_ms,
        expires_ms: entry.at.unix_ms.saturating_add(TTL_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: Origin<'_> =
        Origin { principal: "key:1", provider: "deepseek", model: "deepseek/m", is_elsewhere: false };

    fn at(monotonic_ms: u64) -> Now {
        Now { monotonic_ms, unix_ms: 1_000_000 + monotonic_ms }
    }

    fn ids(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn thoughts_go_back_to_who_thought_them_and_for_whom() {
        let reasoning = Reasoning::default();
        reasoning.keep(ORIGIN, &ids(&["a", "b"]), "hm", at(0));
        let find =
            |principal, provider, id| reasoning.find(principal, provider, &[id], at(1)).as_deref().map(str::to_owned);
        assert_eq!(find("key:1", "deepseek", "a").as_deref(), Some("hm"));
        assert_eq!(find("key:1", "deepseek", "b").as_deref(), Some("hm"));
        assert_eq!(find("key:2", "deepseek", "a"), None);
        assert_eq!(find("key:1", "moonshot", "a"), None);
        assert_eq!(find("key:1", "deepseek", "c"), None);
        let stats = reasoning.stats(at(1));
        assert_eq!((stats.entries, stats.hits, stats.misses), (2, 2, 3));
        assert!(reasoning.find("key:1", "deepseek", &["x", "b"], at(1)).is_some(), "any of a message's calls will do");
    }

    #[test]
    fn what_another_worker_heard_goes_back_and_is_listed_there() {
        let reasoning = Reasoning::default();
        reasoning.keep(Origin { is_elsewhere: true, ..ORIGIN }, &ids(&["a"]), "hm", at(0));
        reasoning.keep(ORIGIN, &ids(&["b"]), "hm", at(0));
        assert!(reasoning.find("key:1", "deepseek", &["a"], at(1)).is_some());
        assert_eq!((reasoning.list(&ReasoningFilter::default(), at(1)).len(), reasoning.stats(at(1)).entries), (1, 1));
        assert_eq!(reasoning.forget(&ReasoningFilter::default()), 1);
        assert!(reasoning.find("key:1", "deepseek", &["a"], at(1)).is_none());
    }

    #[test]
    fn nothing_is_kept_of_nothing_or_of_too_much() {
        let reasoning = Reasoning::default();
        reasoning.keep(ORIGIN, &ids(&["a"]), "", at(0));
        reasoning.keep(ORIGIN, &ids(&[""]), "hm", at(0));
        reasoning.keep(ORIGIN, &ids(&["b"]), &"x".repeat(MAX_TEXT_BYTES + 1), at(0));
        assert_eq!(reasoning.stats(at(0)).entries, 0);
    }

    #[test]
    fn the_oldest_go_first_and_all_go_in_time() {
        let reasoning = Reasoning::default();
        for number in 0..=MAX_ENTRIES {
            reasoning.keep(ORIGIN, &[format!("call_{number}")], "hm", at(number as u64));
        }
        let now = at(MAX_ENTRIES as u64);
        assert_eq!((reasoning.stats(now).entries, reasoning.stats(now).evictions), (MAX_ENTRIES, 1));
        assert!(reasoning.find("key:1", "deepseek", &["call_0"], now).is_none());
        assert!(reasoning.find("key:1", "deepseek", &["call_1"], now).is_some());
        let late = at(TTL_MS + 10);
        assert!(reasoning.find("key:1", "deepseek", &["call_10"], late).is_none());
        assert_eq!(reasoning.list(&ReasoningFilter::default(), late).len(), MAX_ENTRIES - 10);
        assert_eq!(
            reasoning.stats(at(2 * TTL_MS)),
            ReasoningStats {
                max_entries: MAX_ENTRIES,
                max_bytes: MAX_BYTES,
                ttl_ms: TTL_MS,
                hits: 1,
                misses: 2,
                evictions: 1,
                ..ReasoningStats::default()
            }
        );
    }

    #[test]
    fn bytes_are_bounded() {
        let reasoning = Reasoning::default();
        let long = "x".repeat(MAX_TEXT_BYTES);
        for number in 0..100 {
            reasoning.keep(ORIGIN, &[format!("call_{number}")], &long, at(number));
        }
        let stats = reasoning.stats(at(100));
        assert!(
            stats.bytes <= MAX_BYTES && stats.entries == MAX_BYTES / (MAX_TEXT_BYTES + OVERHEAD_BYTES),
            "{stats:?}"
        );
        reasoning.keep(ORIGIN, &ids(&["call_99"]), "hm", at(101));
        assert_eq!(
            reasoning.stats(at(101)).entries,
            stats.entries,
            "an id that comes again takes the place of the first"
        );
    }

    #[test]
    fn entries_are_told_and_forgotten_by_call_or_provider() {
        let reasoning = Reasoning::default();
        reasoning.keep(ORIGIN, &ids(&["a", "b"]), "hm", at(0));
        reasoning.keep(Origin { provider: "moonshot", ..ORIGIN }, &ids(&["c"]), "hmm", at(5));
        let entries = reasoning.list(&ReasoningFilter::default(), at(6));
        assert_eq!(entries.iter().map(|one| one.tool_call_id.as_str()).collect::<Vec<_>>(), ["c", "b", "a"]);
        assert_eq!((entries[0].key_id.as_deref(), entries[0].bytes, entries[0].created_ms), (Some("1"), 3, 1_000_005));
        let call = |id: &str| ReasoningFilter { tool_call_id: Some(id.to_owned()), ..ReasoningFilter::default() };
        assert_eq!(reasoning.forget(&call("b")), 1);
        assert_eq!(reasoning.forget(&call("b")), 0);
        assert_eq!(
            reasoning.forget(&ReasoningFilter { provider: Some("moonshot".to_owned()), ..ReasoningFilter::default() }),
            1
        );
        assert_eq!(reasoning.forget(&ReasoningFilter::default()), 1);
        assert_eq!(reasoning.stats(at(6)).bytes, 0);
    }
}
