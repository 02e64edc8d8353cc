//! `GET /v1/models`: models, combos and channels of `auto`, in documents built once and kept until something of them changes, with an `ETag`; a key that sees
//! only some of them gets a document of its own, made of parts of the whole at its first question and kept as long: one for all keys
//! of the same rules. Each entry stands ready in the words of every client that has a list of its own ([`crate::models::listed`]).

use crate::models::listed::{ListDialect, ListView, Listed, ListedKind};
use bytes::Bytes;
use fairlead_core::{hex, routes, CatalogScope, Error, ErrorKind, Key, Model, SecretHash, Snapshot};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

/// Documents for rules of keys that are kept.
const MAX_KEPT: usize = 128;
/// Keys whose document is known.
const MAX_KEYS: usize = 10_000;
/// The longest page.
const LIMIT_MAX: usize = 1_000;

/// What a list begins with, before the first entry.
const HEAD: &[u8] = br#"{"object":"list","data":["#;
const TAIL: &[u8] = b"]}";

/// One prepared answer.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The body, in order. What a key sees of the list is made of parts of the whole list's document, so that none of it is copied.
    pub parts: Arc<[Bytes]>,
    /// Quoted, strong.
    pub etag: String,
}

/// The prepared answers of one snapshot.
#[derive(Debug, Default)]
pub struct Lists {
    all: Document,
    entries: Arc<[Listed]>,
    /// The channels of `auto` among them.
    channels: Vec<String>,
    narrowed: Mutex<Narrowed>,
}

/// Documents of keys that see only some of the list.
#[derive(Debug, Default)]
struct Narrowed {
    by_key: HashMap<String, Document>,
    by_rules: HashMap<SecretHash, Document>,
}

/// Some of a list, in its order.
#[derive(Debug)]
pub struct Page<'a> {
    pub entries: Vec<(&'a str, &'a Bytes)>,
    /// There are others beyond it, in the direction that was gone.
    pub has_more: bool,
}

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    Start,
    After(String),
    /// The page that ends before this one.
    Before(String),
    /// Behind the first and before the second.
    Between(String, String),
}

impl Lists {
    /// The lists of a snapshot. Where nothing that they are made of has changed since the one `before`, they stay as they are, with
    /// what was made for rules of keys; `channels` are those of `auto` that lead to a model.
    pub fn follow<'a>(
        (before, lists): (&Snapshot, &Self),
        snapshot: &'a Snapshot,
        channels: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        if before.version == 0 || !channels.clone().eq(lists.channels.iter()) || !snapshot.lists_the_same(before) {
            return Self::build(snapshot, channels);
        }
        // A key may have other rules now; documents are known by their rules.
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
            let prefix = model.id.split('/').next().unwrap_or_default();
            let mut connections = snapshot.candidates(prefix).iter().filter_map(|&at| snapshot.connections.get(at));
            connections.find(|connection| connection.provider == model.provider).map(|connection| connection.dialect)
        };
        let made = |name: &str, owned_by: &str, context_length, kind| {
            let (id, owned_by) = (name.to_owned(), owned_by.to_owned());
            Listed::new(&Model { id, owned_by, context_length, ..Model::default() }, kind, None, named(name))
        };
        // A combo of a model's name is what a call of that name gets, and one of a channel's name goes before the channel.
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

    /// The list that a caller sees; `None` for a caller without a key.
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

    /// What the key sees, as parts of the whole document: entries that stand side by side are one.
    fn parts_for(&self, key: &Key) -> Arc<[Bytes]> {
        let Some(whole) = self.all.parts.first() else { return Arc::default() };
        let mut view = ListView::new(key);
        let mut runs: Vec<Range<usize>> = Vec::new();
        for place in self.entries.iter().filter(|entry| view.has(entry)).map(Listed::place) {
            match runs.last_mut() {
                // A comma stands between neighbours.
                Some(run) if run.end + 1 == place.start => run.end = place.end,
                last => {
                    // The comma behind a run is in the document too: there is an entry between it and the next.
                    if let Some(run) = last {
                        run.end += 1;
                    }
                    runs.push(place);
                }
            }
        }
        let head = std::iter::once(Bytes::from_static(HEAD));
        let tail = std::iter::once(Bytes::from_static(TAIL));
        head.chain(runs.into_iter().map(|run| whole.slice(run))).chain(tail).collect()
    }

    /// A page of the list that a caller sees. Its tag follows from that of the whole list.
    pub fn page_for_key(&self, key: Option<&Key>, cursor: &Cursor, limit: usize) -> Document {
        let whole = match key.filter(|key| is_narrowed(key)) {
            None => self.all.etag.clone(),
            Some(key) => format!("{} {}", self.all.etag, hex(&rules(key).0)),
        };
        let page = self.page(key, ListDialect::OpenAi, cursor, limit);
        Document { parts: Arc::new([page_body(&page)]), etag: tag(format!("{whole} {cursor:?} {limit}").as_bytes()) }
    }

    /// One model or combo, if it exists for the caller.
    pub fn one(&self, id: &str, key: Option<&Key>, wording: ListDialect) -> Option<Bytes> {
        let entry = &self.entries[self.entries.binary_search_by(|known| known.id.as_str().cmp(id)).ok()?];
        key.is_none_or(|key| entry.is_for(key)).then(|| entry.in_words(wording).clone())
    }

    /// At most `limit` of what the caller's list has. A name that is no longer listed keeps its place.
    pub fn page(&self, key: Option<&Key>, wording: ListDialect, cursor: &Cursor, limit: usize) -> Page<'_> {
        let key = key.filter(|key| is_narrowed(key));
        let shown = |entry: &&Listed| key.is_none_or(|key| entry.is_shown_to(key));
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

/// Tells keys apart that do not see the same list.
fn rules(key: &Key) -> SecretHash {
    let mut text = format!("{:?}", (key.allow_auto_combos, key.catalog_scope));
    for access in key.levels() {
        let lists = (&access.allowed_models, &access.blocked_models, &access.allowed_combos);
        // Writing to a string does not fail.
        let _ = write!(text, " {:?} {lists:?}", access.model_access_mode);
    }
    SecretHash::of(text.as_bytes())
}

/// `limit` and `after` of a query, as OpenAI's lists have them. `None`: the whole list is asked for.
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

/// The document of the whole list, of which each entry is a part from then on.
fn whole(entries: &mut [Listed]) -> Bytes {
    let mut body = HEAD[..HEAD.len() - 1].to_vec();
    join(&mut body, entries.iter().map(|entry| entry.in_words(ListDialect::OpenAi)));
    body.push(b'}');
    let whole = Bytes::from(body);
    let mut at = HEAD.len();
    for entry in entries {
        entry.place_in(&whole, at);
        at = entry.place().end + 1;
    }
    whole
}

fn page_body(page: &Page<'_>) -> Bytes {
    let mut body = br#"{"object":"list","data":"#.to_vec();
    join(&mut body, page.entries.iter().map(|(_, entry)| *entry));
    write_ends(&mut body, page);
    Bytes::from(body)
}

/// Says where a page ends, and closes its object.
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
    // Texts and a truth value are always JSON.
    if let Ok(ends) = serde_json::to_vec(&ends) {
        body.push(b',');
        body.extend_from_slice(ends.get(1..).unwrap_or_default());
    }
}

/// Writes a JSON list of what is JSON already.
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
