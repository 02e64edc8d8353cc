//! `GET /v1/models`: documents built once per snapshot, with an `ETag`; a key that sees only some models gets a document
//! of its own, built at its first question and kept for the snapshot's life.

use bytes::Bytes;
use fairlead_core::policy::sees_model;
use fairlead_core::secret::{hex, SecretHash};
use fairlead_core::snapshot::{AccessMode, CatalogScope, Key, Model};
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
    entries: Vec<(String, Bytes)>,
    per_key: Mutex<HashMap<String, Document>>,
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
    pub fn build(models: &[Model]) -> Self {
        let mut entries: Vec<(String, Bytes)> = models
            .iter()
            .filter_map(|model| {
                let entry = Entry {
                    id: &model.id,
                    object: "model",
                    created: model.created,
                    owned_by: if model.owned_by.is_empty() { &model.provider } else { &model.owned_by },
                    context_length: model.context_length,
                    max_output_tokens: model.max_output_tokens,
                };
                serde_json::to_vec(&entry).ok().map(|json| (model.id.clone(), Bytes::from(json)))
            })
            .collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|a, b| a.0 == b.0);
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
        let own = document(self.entries.iter().filter(|(id, _)| lists(key, id)));
        let mut per_key = self.per_key.lock();
        if per_key.len() >= MAX_KEPT {
            per_key.clear();
        }
        per_key.insert(key.id.clone(), own.clone());
        own
    }

    /// One model, if it exists for the caller.
    pub fn one(&self, id: &str, key: Option<&Key>) -> Option<Bytes> {
        if key.is_some_and(|key| !sees_model(key, id)) {
            return None;
        }
        let index = self.entries.binary_search_by(|(known, _)| known.as_str().cmp(id)).ok()?;
        Some(self.entries[index].1.clone())
    }
}

fn is_narrowed(key: &Key) -> bool {
    key.model_access_mode == AccessMode::Restricted
        || !key.blocked_models.is_empty()
        || key.catalog_scope == CatalogScope::Combos
}

fn lists(key: &Key, id: &str) -> bool {
    // Combos are listed by their own scope; every entry here is a model.
    key.catalog_scope != CatalogScope::Combos && sees_model(key, id)
}

fn document<'a>(entries: impl Iterator<Item = &'a (String, Bytes)>) -> Document {
    let mut body = br#"{"object":"list","data":["#.to_vec();
    for (index, (_, json)) in entries.enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(json);
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

    fn key(fields: &serde_json::Value) -> Key {
        let mut record = serde_json::json!({"id": "k", "hash": "0".repeat(64), "is_active": true});
        record.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        serde_json::from_value(record).expect("a key")
    }

    #[test]
    fn a_list_is_sorted_and_each_model_stands_once() {
        let lists = Lists::build(&models());
        let document: serde_json::Value = serde_json::from_slice(&lists.for_key(None).body).expect("JSON");
        let ids: Vec<_> =
            document["data"].as_array().expect("a list").iter().map(|entry| entry["id"].clone()).collect();
        assert_eq!(ids, ["a/one", "b/two"]);
    }

    #[test]
    fn a_key_sees_what_it_may_call_under_a_tag_of_its_own() {
        let lists = Lists::build(&models());
        let narrow = key(&serde_json::json!({"blocked_models": ["b/*"]}));
        let own = lists.for_key(Some(&narrow));
        assert!(!own.body.windows(5).any(|window| window == b"b/two"));
        assert_ne!(own.etag, lists.for_key(None).etag);
        assert_eq!(own.etag, lists.for_key(Some(&narrow)).etag);
        assert!(lists.one("b/two", Some(&narrow)).is_none());
        assert!(lists.one("b/two", None).is_some());
        let combos = lists.for_key(Some(&key(&serde_json::json!({"id": "c", "catalog_scope": "combos"}))));
        assert_eq!(combos.body, r#"{"object":"list","data":[]}"#);
    }
}
