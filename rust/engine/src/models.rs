//! `GET /v1/models`: documents built once per snapshot, with an `ETag`; a key that sees only some models gets a document
//! of its own, built at its first question and kept for the snapshot's life.

use bytes::Bytes;
use fairlead_core::policy::sees_model;
use fairlead_core::secret::{hex, SecretHash};
use fairlead_core::snapshot::{AccessMode, CatalogScope, Key, Model};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::HashMap;

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
        self.per_key.lock().insert(key.id.clone(), own.clone());
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
