//! `GET /v1/models`: models and combos, in documents built once per snapshot, with an `ETag`; a key that sees only some of them
//! gets a document of its own, built at its first question and kept for the snapshot's life.

use bytes::Bytes;
use fairlead_core::policy::{admit_combo, sees_model};
use fairlead_core::secret::{hex, SecretHash};
use fairlead_core::snapshot::{AccessMode, CatalogScope, Key, Model};
use fairlead_core::strategy::Combo;
use parking_lot::Mutex;
use serde::Serialize;
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

#[derive(Debug)]
struct Listed {
    id: String,
    is_combo: bool,
    json: Bytes,
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
    pub fn build(models: &[Model], combos: &[Combo]) -> Self {
        let model_entries = models.iter().map(|model| Entry {
            id: &model.id,
            object: "model",
            created: model.created,
            owned_by: if model.owned_by.is_empty() { &model.provider } else { &model.owned_by },
            context_length: model.context_length,
            max_output_tokens: model.max_output_tokens,
        });
        let combo_entries = combos.iter().map(|combo| Entry {
            id: &combo.name,
            object: "model",
            created: 0,
            owned_by: "combo",
            context_length: None,
            max_output_tokens: None,
        });
        // A combo of a model's name is what a call of that name gets.
        let all = combo_entries.map(|entry| (entry, true)).chain(model_entries.map(|entry| (entry, false)));
        let mut entries: Vec<Listed> = all
            .filter_map(|(entry, is_combo)| {
                let json = Bytes::from(serde_json::to_vec(&entry).ok()?);
                Some(Listed { id: entry.id.to_owned(), is_combo, json })
            })
            .collect();
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
    pub fn one(&self, id: &str, key: Option<&Key>) -> Option<Bytes> {
        let entry = &self.entries[self.entries.binary_search_by(|known| known.id.as_str().cmp(id)).ok()?];
        key.is_none_or(|key| entry.is_for(key)).then(|| entry.json.clone())
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
    let mut body = br#"{"object":"list","data":["#.to_vec();
    for (index, entry) in entries.enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&entry.json);
    }
    body.extend_from_slice(b"]}");
    let etag = format!("\"{}\"", hex(&SecretHash::of(&body).0[..12]));
    Document { body: Bytes::from(body), etag }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let lists = Lists::build(&models(), &combos());
        let document: serde_json::Value = serde_json::from_slice(&lists.for_key(None).body).expect("JSON");
        let ids: Vec<_> =
            document["data"].as_array().expect("a list").iter().map(|entry| entry["id"].clone()).collect();
        assert_eq!(ids, ["a/one", "b/two", "fast"]);
        assert_eq!(document["data"][2]["owned_by"], "combo");
    }

    #[test]
    fn a_key_sees_what_it_may_call_under_a_tag_of_its_own() {
        let lists = Lists::build(&models(), &combos());
        let narrow = key(&serde_json::json!({"blocked_models": ["b/*"]}));
        let own = lists.for_key(Some(&narrow));
        assert!(!own.body.windows(5).any(|window| window == b"b/two"));
        assert_ne!(own.etag, lists.for_key(None).etag);
        assert_eq!(own.etag, lists.for_key(Some(&narrow)).etag);
        assert!(lists.one("b/two", Some(&narrow)).is_none());
        assert!(lists.one("b/two", None).is_some());
        let ids = |scope: &str| {
            let key = key(&serde_json::json!({"id": scope, "catalog_scope": scope}));
            let document: serde_json::Value = serde_json::from_slice(&lists.for_key(Some(&key)).body).expect("JSON");
            let ids = document["data"].as_array().expect("a list").iter();
            ids.map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids("combos"), ["fast"]);
        assert_eq!(ids("models"), ["a/one", "b/two"]);
        assert!(lists.one("fast", Some(&narrow)).is_some());
        assert!(lists.one("fast", Some(&key(&serde_json::json!({"allowed_combos": ["slow"]})))).is_none());
    }
}
