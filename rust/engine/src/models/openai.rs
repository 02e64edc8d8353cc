//! `GET /v1/models`: models, combos and channels of `auto`.
//!
//! The documents are built once, reused until their content changes, and served with an `ETag`. A key that sees only
//! part of the list gets a narrowed document, assembled from slices of the whole document on its first request. Keys
//! with the same rules share one document. Each entry is also stored in the formats of the other clients
//! ([`crate::models::listed`]).

use crate::models::listed::{ListDialect, ListView, Listed, ListedKind};
use bytes::Bytes;
use fairlead_core::{hex, routes, CatalogScope, Error, ErrorKind, Key, Model, SecretHash, Snapshot};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

/// The most narrowed documents that are stored.
const MAX_KEPT: usize = 128;
/// The most keys whose rules are cached.
const MAX_KEYS: usize = 10_000;
/// The largest page size.
const LIMIT_MAX: usize = 1_000;

/// The bytes of a list before its first entry.
const HEAD: &[u8] = br#"{"object":"list","data":["#;
const TAIL: &[u8] = b"]}";

/// A prepared response.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The body in order. A narrowed list consists of slices of the whole document, so nothing is copied.
    pub parts: Arc<[Bytes]>,
    /// A strong entity tag, quoted.
    pub etag: String,
}

/// The prepared responses of one snapshot.
#[derive(Debug, Default)]
pub struct Lists {
    all: Document,
    entries: Arc<[Listed]>,
    /// The channels of `auto` in the list.
    channels: Vec<String>,
    narrowed: Mutex<Narrowed>,
}

/// Documents for keys that see only part of the list.
#[derive(Debug, Default)]
struct Narrowed {
    by_key: HashMap<String, Document>,
    by_rules: HashMap<SecretHash, Document>,
}

/// A page of a list, in list order.
#[derive(Debug)]
pub struct Page<'a> {
    pub entries: Vec<(&'a str, &'a Bytes)>,
    /// More entries follow in the direction of paging.
    pub has_more: bool,
}

/// The position of a page in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    Start,
    After(String),
    /// Ends before this entry.
    Before(String),
    /// After the first entry and before the second.
    Between(String, String),
}

impl Lists {
    /// Builds the lists of a snapshot. If nothing in the lists has changed since `before`, its lists and narrowed
    /// documents are reused. `channels` are the channels of `auto` that have a model.
    pub fn follow<'a>(
        (before, lists): (&Snapshot, &Self),
        snapshot: &'a Snapshot,
        channels: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        if before.version == 0 || !channels.clone().eq(lists.channels.iter()) || !snapshot.lists_the_same(before) {
            return Self::build(snapshot, channels);
        }
        // Keys can have new rules, but narrowed documents are stored by rules and stay valid.
        let by_rules = lists.narrowed.lock().by_rules.clone();
        Self {
            all: lists.all.clone(),
            entries: Arc::clone(&lists.entries),
            channels: lists.channels.clone(),
            narrowed: Mutex::new(Narrowed { by_rules, by_key: HashMap::new() }),
        }
    }

    fn build<'a>(snapshot: &'a Snapshot, channels: impl Iterator<Item = &'a str>) -> Self {
        let channels: Vec<&str> = channels.collect();
        let mut aliases: HashMap<String, Vec<&str>> = HashMap::new();
        for (alias, target) in snapshot.aliases() {
            let target = snapshot.name(target.strip_prefix("combo/").unwrap_or(target));
            if let Ok(name) = target {
                aliases.entry(name.into_owned()).or_default().push(alias);
            }
        }
        for names in aliases.values_mut() {
            names.sort_unstable();
        }
        let named = |id: &str| aliases.get(id).map_or(&[][..], Vec::as_slice);
        let dialect_of = |model: &Model| {
            let (prefix, upstream_model) = model.id.split_once('/').unwrap_or((&model.id, ""));
            let mut connections = snapshot.candidates(prefix).iter().filter_map(|&at| snapshot.connections.get(at));
            let connection = connections.find(|connection| connection.provider == model.provider);
            connection.map(|connection| connection.dialect_of(upstream_model))
        };
        let made = |name: &str, owned_by: &str, context_length, kind| {
            let (id, owned_by) = (name.to_owned(), owned_by.to_owned());
            Listed::new(&Model { id, owned_by, context_length, ..Model::default() }, kind, None, named(name))
        };
        // A combo shadows a model or channel of the same name, as it does in a call.
        let combos = snapshot
            .combos
            .iter()
            .filter_map(|combo| made(&combo.name, "combo", combo.rules.context_length, ListedKind::Combo));
        let ways = channels.iter().filter_map(|name| made(name, "auto", None, ListedKind::Auto));
        let models = snapshot
            .models
            .iter()
            .filter_map(|model| Listed::new(model, ListedKind::Model, dialect_of(model), named(&model.id)));
        let mut entries: Vec<Listed> = combos.chain(ways).chain(models).collect();
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        entries.dedup_by(|a, b| a.id == b.id);
        let whole = whole(&mut entries);
        let etag = tag(&whole);
        let channels = channels.into_iter().map(str::to_owned).collect();
        let all = Document { parts: Arc::new([whole]), etag };
        Self { all, entries: entries.into(), channels, narrowed: Mutex::default() }
    }

    /// Returns the list that a caller sees. `key` is `None` for a caller without a key.
    pub fn for_key(&self, key: Option<&Key>) -> Document {
        let Some(key) = key.filter(|key| is_narrowed(key)) else {
            return self.all.clone();
        };
        if let Some(known) = self.narrowed.lock().by_key.get(&key.id) {
            return known.clone();
        }
        let rules = rules(key);
        let known = self.narrowed.lock().by_rules.get(&rules).cloned();
        let own = known.unwrap_or_else(|| Document {
            parts: self.parts_for(key),
            etag: tag(format!("{} {}", self.all.etag, hex(&rules.0)).as_bytes()),
        });
        let mut narrowed = self.narrowed.lock();
        if narrowed.by_rules.len() >= MAX_KEPT || narrowed.by_key.len() >= MAX_KEYS {
            *narrowed = Narrowed::default();
        }
        narrowed.by_rules.insert(rules, own.clone());
        narrowed.by_key.insert(key.id.clone(), own.clone());
        own
    }

    /// Assembles the key's list from slices of the whole document. Adjacent entries form one slice.
    fn parts_for(&self, key: &Key) -> Arc<[Bytes]> {
        let Some(whole) = self.all.parts.first() else { return Arc::default() };
        let mut view = ListView::new(key);
        let mut runs: Vec<Range<usize>> = Vec::new();
        for span in self.entries.iter().filter(|entry| view.has(entry)).map(Listed::span) {
            match runs.last_mut() {
                // One comma separates adjacent entries.
                Some(run) if run.end + 1 == span.start => run.end = span.end,
                last => {
                    // Includes the comma that follows the run in the document, because more entries follow.
                    if let Some(run) = last {
                        run.end += 1;
                    }
                    runs.push(span);
                }
            }
        }
        let head = std::iter::once(Bytes::from_static(HEAD));
        let tail = std::iter::once(Bytes::from_static(TAIL));
        head.chain(runs.into_iter().map(|run| whole.slice(run))).chain(tail).collect()
    }

    /// Returns a page of the list that a caller sees. The page's tag is derived from the whole list's tag.
    pub fn page_for_key(&self, key: Option<&Key>, cursor: &Cursor, limit: usize) -> Document {
        let whole = match key.filter(|key| is_narrowed(key)) {
            None => self.all.etag.clone(),
            Some(key) => format!("{} {}", self.all.etag, hex(&rules(key).0)),
        };
        let page = self.page(key, ListDialect::OpenAi, cursor, limit);
        Document { parts: Arc::new([page_body(&page)]), etag: tag(format!("{whole} {cursor:?} {limit}").as_bytes()) }
    }

    /// Returns one model or combo if the caller may see it.
    pub fn one(&self, id: &str, key: Option<&Key>, wording: ListDialect) -> Option<Bytes> {
        let entry = &self.entries[self.entries.binary_search_by(|known| known.id.as_str().cmp(id)).ok()?];
        key.is_none_or(|key| entry.is_for(key)).then(|| entry.in_words(wording).clone())
    }

    /// Returns at most `limit` entries of the caller's list. A cursor whose entry was removed keeps its position.
    pub fn page(&self, key: Option<&Key>, wording: ListDialect, cursor: &Cursor, limit: usize) -> Page<'_> {
        let key = key.filter(|key| is_narrowed(key));
        let shown = |entry: &&Listed| entry.is_listed_in(wording) && key.is_none_or(|key| entry.is_shown_to(key));
        let (mut entries, has_more): (Vec<&Listed>, bool) = match cursor {
            Cursor::Before(id) => {
                let end = self.entries.partition_point(|entry| entry.id < *id);
                let mut back: Vec<_> =
                    self.entries[..end].iter().rev().filter(shown).take(limit.saturating_add(1)).collect();
                let has_more = back.len() > limit;
                back.truncate(limit);
                back.reverse();
                (back, has_more)
            }
            Cursor::Start | Cursor::After(_) | Cursor::Between(..) => {
                let start = match cursor {
                    Cursor::After(id) | Cursor::Between(id, _) => self.entries.partition_point(|entry| entry.id <= *id),
                    _ => 0,
                };
                let end = match cursor {
                    Cursor::Between(_, id) => self.entries.partition_point(|entry| entry.id < *id).max(start),
                    _ => self.entries.len(),
                };
                let there: Vec<_> =
                    self.entries[start..end].iter().filter(shown).take(limit.saturating_add(1)).collect();
                let has_more = there.len() > limit;
                (there, has_more)
            }
        };
        entries.truncate(limit);
        let entries = entries.into_iter().map(|entry| (entry.id.as_str(), entry.in_words(wording))).collect();
        Page { entries, has_more }
    }
}

fn is_narrowed(key: &Key) -> bool {
    key.access.is_narrow() || !key.allow_auto_combos || key.catalog_scope != CatalogScope::All || !key.groups.is_empty()
}

/// Hashes a key's rules. Keys with equal hashes see the same list.
fn rules(key: &Key) -> SecretHash {
    let mut text = format!("{:?}", (key.allow_auto_combos, key.catalog_scope));
    for access in key.levels() {
        let lists = (&access.allowed_models, &access.blocked_models, &access.allowed_combos);
        // Writing to a `String` does not fail.
        let _ = write!(text, " {:?} {lists:?}", access.model_access_mode);
    }
    SecretHash::of(text.as_bytes())
}

/// Parses `limit` and `after`, as in OpenAI's lists. Returns `None` if the query selects the whole list.
pub fn range(query: &[u8]) -> Result<Option<(Cursor, usize)>, Error> {
    let invalid =
        |name: &'static str, message: &str| Error::client(ErrorKind::InvalidRequest, message.to_owned()).about(name);
    let query = std::str::from_utf8(query).map_err(|_| invalid("limit", "The query is not UTF-8."))?;
    let (mut cursor, mut limit) = (None, None);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "limit" => {
                let given = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                limit = Some(given.ok_or_else(|| invalid("limit", "`limit` must be an integer from 1 to 1000."))?);
            }
            "after" => {
                let id = routes::decode(value).filter(|value| !value.is_empty());
                let id = id.ok_or_else(|| {
                    invalid("after", "`after` must be the id of a model: send `last_id` of the page before.")
                })?;
                cursor = Some(Cursor::After(id.into_owned()));
            }
            _ => {}
        }
    }
    if cursor.is_none() && limit.is_none() {
        return Ok(None);
    }
    Ok(Some((cursor.unwrap_or(Cursor::Start), limit.unwrap_or(LIMIT_MAX))))
}

fn tag(text: &[u8]) -> String {
    format!("\"{}\"", hex(&SecretHash::of(text).0[..12]))
}

/// Builds the document of the whole list and makes each entry a slice of it.
fn whole(entries: &mut [Listed]) -> Bytes {
    let mut body = HEAD[..HEAD.len() - 1].to_vec();
    join(&mut body, entries.iter().map(|entry| entry.in_words(ListDialect::OpenAi)));
    body.push(b'}');
    let whole = Bytes::from(body);
    let mut at = HEAD.len();
    for entry in entries {
        entry.set_span(&whole, at);
        at = entry.span().end + 1;
    }
    whole
}

fn page_body(page: &Page<'_>) -> Bytes {
    let mut body = br#"{"object":"list","data":"#.to_vec();
    join(&mut body, page.entries.iter().map(|(_, entry)| *entry));
    write_ends(&mut body, page);
    Bytes::from(body)
}

/// Writes the ids of the page's first and last entries and closes the object.
pub(crate) fn write_ends(body: &mut Vec<u8>, page: &Page<'_>) {
    #[derive(Serialize)]
    struct Ends<'a> {
        has_more: bool,
        first_id: Option<&'a str>,
        last_id: Option<&'a str>,
    }
    let ends = Ends {
        has_more: page.has_more,
        first_id: page.entries.first().map(|(id, _)| *id),
        last_id: page.entries.last().map(|(id, _)| *id),
    };
    // Strings and booleans always serialize.
    if let Ok(ends) = serde_json::to_vec(&ends) {
        body.push(b',');
        body.extend_from_slice(ends.get(1..).unwrap_or_default());
    }
}

/// Writes a JSON array from serialized elements.
pub(crate) fn join<'a>(body: &mut Vec<u8>, entries: impl Iterator<Item = &'a Bytes>) {
    body.push(b'[');
    for (index, entry) in entries.enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(entry);
    }
    body.push(b']');
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
