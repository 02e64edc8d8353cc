//! `GET /v1/models`: models and combos, in documents built once per snapshot, with an `ETag`; a key that sees only some of them
//! gets a document of its own, built at its first question and kept for the snapshot's life. Each entry stands ready in the
//! words of every client that has a list of its own.

use crate::models::entries;
use bytes::Bytes;
use fairlead_core::dialect::Dialect;
use fairlead_core::policy::{admit_combo, sees_model};
use fairlead_core::secret::{hex, SecretHash};
use fairlead_core::snapshot::{AccessMode, CatalogScope, Connection, Key, Model};
use fairlead_core::strategy::Combo;
use parking_lot::Mutex;
use serde::Serialize;
use std::borrow::Borrow;
use std::collections::HashMap;

/// Documents of single keys that are kept; a large list is half a megabyte.
const MAX_KEPT: usize = 128;

/// One prepared answer.
#[derive(Debug, Clone, Default)]
pub struct Document {
    pub body: Bytes,
    /// Quoted, strong.
    pub etag: String,
}

/// The prepared answers of one snapshot.
#[derive(Debug, Default)]
pub struct Lists {
    all: Document,
    entries: Vec<Listed>,
    per_key: Mutex<HashMap<String, Document>>,
}

/// In whose words an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListDialect {
    OpenAi,
    Anthropic,
    Gemini,
}

#[derive(Debug)]
struct Listed {
    id: String,
    is_combo: bool,
    json: Bytes,
    anthropic: Bytes,
    gemini: Bytes,
}

impl Listed {
    fn new(model: &Model, is_combo: bool, dialect: Option<Dialect>) -> Option<Self> {
        let owned_by = if model.owned_by.is_empty() { &model.provider } else { &model.owned_by };
        let entry = Entry {
            id: &model.id,
            object: "model",
            created: model.created,
            owned_by,
            context_length: model.context_length,
            max_output_tokens: model.max_output_tokens,
        };
        Some(Self {
            id: model.id.clone(),
            is_combo,
            json: Bytes::from(serde_json::to_vec(&entry).ok()?),
            anthropic: entries::anthropic(model)?,
            gemini: entries::gemini(model, dialect)?,
        })
    }

    fn in_words(&self, wording: ListDialect) -> &Bytes {
        match wording {
            ListDialect::OpenAi => &self.json,
            ListDialect::Anthropic => &self.anthropic,
            ListDialect::Gemini => &self.gemini,
        }
    }
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
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

impl Lists {
    pub fn build<C: Borrow<Connection>>(models: &[Model], combos: &[Combo], connections: &[C]) -> Self {
        let dialect_of = |model: &Model| {
            let prefix = model.id.split('/').next().unwrap_or_default();
            let serves = |connection: &&C| {
                let connection: &Connection = (**connection).borrow();
                connection.provider == model.provider && connection.prefixes.iter().any(|name| name == prefix)
            };
            connections.iter().find(serves).map(|connection| connection.borrow().dialect)
        };
        // A combo of a model's name is what a call of that name gets.
        let combos = combos.iter().filter_map(|combo| {
            let name = combo.name.clone();
            let context_length = combo.rules.context_length;
            Listed::new(
                &Model { id: name, owned_by: "combo".to_owned(), context_length, ..Model::default() },
                true,
                None,
            )
        });
        let models = models.iter().filter_map(|model| Listed::new(model, false, dialect_of(model)));
        let mut entries: Vec<Listed> = combos.chain(models).collect();
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        entries.dedup_by(|a, b| a.id == b.id);
        Self { all: document(entries.iter()), entries, per_key: Mutex::default() }
    }

    /// The list that a caller sees; `None` for a caller without a key.
    pub fn for_key(&self, key: Option<&Key>) -> Document {
        let Some(key) = key.filter(|key| is_narrowed(key)) else {
            return self.all.clone();
        };
        if let Some(known) = self.per_key.lock().get(&key.id) {
            return known.clone();
        }
        let own = document(self.entries.iter().filter(|entry| entry.is_shown_to(key)));
        let mut per_key = self.per_key.lock();
        if per_key.len() >= MAX_KEPT {
            per_key.clear();
        }
        per_key.insert(key.id.clone(), own.clone());
        own
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
            Cursor::Start | Cursor::After(_) => {
                let start = match cursor {
                    Cursor::After(id) => self.entries.partition_point(|entry| entry.id <= *id),
                    _ => 0,
                };
                let there: Vec<_> = self.entries[start..].iter().filter(shown).take(limit.saturating_add(1)).collect();
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
    key.model_access_mode == AccessMode::Restricted
        || !key.blocked_models.is_empty()
        || !key.allowed_combos.is_empty()
        || key.catalog_scope != CatalogScope::All
}

impl Listed {
    /// Whether the key may call it.
    fn is_for(&self, key: &Key) -> bool {
        if self.is_combo {
            admit_combo(key, &self.id, false).is_ok()
        } else {
            sees_model(key, &self.id)
        }
    }

    /// Whether the key's list has it.
    fn is_shown_to(&self, key: &Key) -> bool {
        let is_in_scope = match key.catalog_scope {
            CatalogScope::All => true,
            CatalogScope::Combos => self.is_combo,
            CatalogScope::Models => !self.is_combo,
        };
        is_in_scope && self.is_for(key)
    }
}

fn document<'a>(entries: impl Iterator<Item = &'a Listed>) -> Document {
    let mut body = br#"{"object":"list","data":"#.to_vec();
    join(&mut body, entries.map(|entry| &entry.json));
    body.push(b'}');
    let etag = format!("\"{}\"", hex(&SecretHash::of(&body).0[..12]));
    Document { body: Bytes::from(body), etag }
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
mod tests {
    use super::*;

    const NONE: &[Connection] = &[];

    fn models() -> Vec<Model> {
        ["b/two", "a/one", "a/one"]
            .map(|id| serde_json::from_value(serde_json::json!({"id": id, "provider": "p"})).expect("a model"))
            .to_vec()
    }

    fn combos() -> Vec<Combo> {
        vec![serde_json::from_value(serde_json::json!({"id": "i", "name": "fast", "steps": []})).expect("a combo")]
    }

    fn key(fields: &serde_json::Value) -> Key {
        let mut record = serde_json::json!({"id": "k", "hash": "0".repeat(64), "is_active": true});
        record.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        serde_json::from_value(record).expect("a key")
    }

    #[test]
    fn a_list_is_sorted_and_each_model_stands_once() {
        let lists = Lists::build(&models(), &combos(), NONE);
        let document: serde_json::Value = serde_json::from_slice(&lists.for_key(None).body).expect("JSON");
        let ids: Vec<_> =
            document["data"].as_array().expect("a list").iter().map(|entry| entry["id"].clone()).collect();
        assert_eq!(ids, ["a/one", "b/two", "fast"]);
        assert_eq!(document["data"][2]["owned_by"], "combo");
    }

    #[test]
    fn a_key_sees_what_it_may_call_under_a_tag_of_its_own() {
        let lists = Lists::build(&models(), &combos(), NONE);
        let narrow = key(&serde_json::json!({"blocked_models": ["b/*"]}));
        let own = lists.for_key(Some(&narrow));
        assert!(!own.body.windows(5).any(|window| window == b"b/two"));
        assert_ne!(own.etag, lists.for_key(None).etag);
        assert_eq!(own.etag, lists.for_key(Some(&narrow)).etag);
        assert!(lists.one("b/two", Some(&narrow), ListDialect::OpenAi).is_none());
        assert!(lists.one("b/two", None, ListDialect::OpenAi).is_some());
        let ids = |scope: &str| {
            let key = key(&serde_json::json!({"id": scope, "catalog_scope": scope}));
            let document: serde_json::Value = serde_json::from_slice(&lists.for_key(Some(&key)).body).expect("JSON");
            let ids = document["data"].as_array().expect("a list").iter();
            ids.map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids("combos"), ["fast"]);
        assert_eq!(ids("models"), ["a/one", "b/two"]);
        assert!(lists.one("fast", Some(&narrow), ListDialect::OpenAi).is_some());
        assert!(lists
            .one("fast", Some(&key(&serde_json::json!({"allowed_combos": ["slow"]}))), ListDialect::OpenAi)
            .is_none());
    }

    #[test]
    fn pages_go_forth_and_back_over_what_a_key_sees() {
        let lists = Lists::build(&models(), &combos(), NONE);
        let ids = |key: Option<&Key>, cursor: &Cursor, limit| {
            let page = lists.page(key, ListDialect::Anthropic, cursor, limit);
            (page.entries.iter().map(|(id, _)| (*id).to_owned()).collect::<Vec<_>>().join(" "), page.has_more)
        };
        let told = |text: &str, has_more| (text.to_owned(), has_more);
        assert_eq!(ids(None, &Cursor::Start, 2), told("a/one b/two", true));
        assert_eq!(ids(None, &Cursor::After("b/two".to_owned()), 2), told("fast", false));
        assert_eq!(ids(None, &Cursor::After("b/tw".to_owned()), 1), told("b/two", true));
        assert_eq!(ids(None, &Cursor::Before("fast".to_owned()), 1), told("b/two", true));
        assert_eq!(ids(None, &Cursor::Before("b/two".to_owned()), 5), told("a/one", false));
        let narrow = key(&serde_json::json!({"blocked_models": ["b/*"]}));
        assert_eq!(ids(Some(&narrow), &Cursor::Start, 5), told("a/one fast", false));
        assert_eq!(ids(Some(&narrow), &Cursor::Before("fast".to_owned()), 1), told("a/one", false));
    }
}
