//! One entry of the model lists, serialized in the format of each kind of client, and the keys that it is visible to.

use crate::models::{entries, ollama_entry};
use bytes::Bytes;
use fairlead_core::policy::{admit_combo, sees_model, PrefixSight};
use fairlead_core::{CatalogScope, Dialect, Key, Model};
use serde::Serialize;
use std::ops::Range;
use std::sync::OnceLock;

/// The format of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListDialect {
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
}

/// The kind of object that a listed name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedKind {
    Model,
    Combo,
    /// A channel of `auto`, which the gateway generates.
    Auto,
}

#[derive(Debug)]
pub(super) struct Listed {
    pub id: String,
    kind: ListedKind,
    /// The model answers conversations.
    converses: bool,
    /// The entry in OpenAI's format: a slice of the whole list's document once that is built.
    json: Bytes,
    /// The entry's offset in that document.
    at: usize,
    anthropic: Bytes,
    gemini: Bytes,
    /// Built when an Ollama client first requests the list of this snapshot.
    ollama: OnceLock<Bytes>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'a str,
    /// The model's use: `chat`, `embedding`, `image`, ...
    r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    input_modalities: &'a [&'static str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    output_modalities: &'a [&'static str],
    /// Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<&'a [String]>,
    /// Other names for the model.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    aliases: &'a [&'a str],
}

impl Listed {
    /// Builds the entry. `dialect` is the dialect of the model's provider. Returns `None` if the entry cannot be
    /// serialized.
    pub fn new(model: &Model, kind: ListedKind, dialect: Option<Dialect>, aliases: &[&str]) -> Option<Self> {
        let owned_by = if model.owned_by.is_empty() { &model.provider } else { &model.owned_by };
        // A combo's modalities depend on its targets.
        let (input, output) = if kind == ListedKind::Model { modalities(model) } else { (Vec::new(), Vec::new()) };
        let entry = Entry {
            id: &model.id,
            object: "model",
            created: model.created,
            owned_by,
            r#type: use_of(model),
            context_length: model.context_length,
            max_output_tokens: model.max_output_tokens,
            input_modalities: &input,
            output_modalities: &output,
            capabilities: model.capabilities.as_deref(),
            aliases,
        };
        Some(Self {
            id: model.id.clone(),
            kind,
            converses: entries::converses(model, dialect),
            json: Bytes::from(serde_json::to_vec(&entry).ok()?),
            at: 0,
            anthropic: entries::anthropic(model)?,
            gemini: entries::gemini(model, dialect)?,
            ollama: OnceLock::new(),
        })
    }

    pub fn in_words(&self, wording: ListDialect) -> &Bytes {
        match wording {
            ListDialect::OpenAi => &self.json,
            ListDialect::Anthropic => &self.anthropic,
            ListDialect::Gemini => &self.gemini,
            ListDialect::Ollama => self.ollama.get_or_init(|| ollama_entry::entry(&self.json)),
        }
    }

    /// Replaces the entry's own copy of its JSON by a slice of this document.
    pub fn set_span(&mut self, whole: &Bytes, at: usize) {
        self.json = whole.slice(at..at + self.json.len());
        self.at = at;
    }

    /// The entry's range in the document of the whole list.
    pub fn span(&self) -> Range<usize> {
        self.at..self.at + self.json.len()
    }

    /// The model's prefix including the slash. `None` for combos and channels.
    pub fn prefix(&self) -> Option<&str> {
        let slash = self.id.find('/').filter(|_| self.kind == ListedKind::Model)?;
        self.id.get(..=slash)
    }

    /// Returns whether the key may call the model, combo or channel.
    pub fn is_for(&self, key: &Key) -> bool {
        match self.kind {
            ListedKind::Model => sees_model(key, &self.id),
            ListedKind::Combo => admit_combo(key, &self.id, false).is_ok(),
            ListedKind::Auto => admit_combo(key, &self.id, true).is_ok(),
        }
    }

    /// Returns whether a list in this format contains the entry. Anthropic's clients hold conversations only.
    pub fn is_listed_in(&self, wording: ListDialect) -> bool {
        self.converses || wording != ListDialect::Anthropic
    }

    /// Returns whether the key's list contains the entry.
    pub fn is_shown_to(&self, key: &Key) -> bool {
        self.is_in_scope(key) && self.is_for(key)
    }

    fn is_in_scope(&self, key: &Key) -> bool {
        match key.catalog_scope {
            CatalogScope::All => true,
            CatalogScope::Combos => self.kind != ListedKind::Model,
            CatalogScope::Models => self.kind == ListedKind::Model,
        }
    }
}

/// Decides entry by entry what a key's list contains. The key's rules are evaluated once for each run of models with
/// the same prefix.
#[derive(Debug)]
pub(super) struct ListView<'k> {
    key: &'k Key,
    prefix: String,
    sight: Option<PrefixSight<'k>>,
}

impl<'k> ListView<'k> {
    pub fn new(key: &'k Key) -> Self {
        Self { key, prefix: String::new(), sight: None }
    }

    pub fn has(&mut self, entry: &Listed) -> bool {
        let Some(prefix) = entry.prefix() else { return entry.is_shown_to(self.key) };
        if self.sight.is_none() || self.prefix != prefix {
            prefix.clone_into(&mut self.prefix);
            self.sight = Some(PrefixSight::new(self.key, prefix));
        }
        entry.is_in_scope(self.key) && self.sight.as_ref().is_some_and(|sight| sight.sees(&entry.id))
    }
}

/// The model's use. A model that is not in the catalogue counts as a chat model.
fn use_of(model: &Model) -> &str {
    if model.mode.is_empty() {
        "chat"
    } else {
        &model.mode
    }
}

/// The input and output modalities of a model, derived from its use and its capabilities.
fn modalities(model: &Model) -> (Vec<&'static str>, Vec<&'static str>) {
    let can = |capability: &str| model.capabilities.iter().flatten().any(|known| known == capability);
    let (mut input, mut output): (Vec<&'static str>, Vec<&'static str>) = match use_of(model) {
        "embedding" => (vec!["text"], vec!["embedding"]),
        "image" => (vec!["text"], vec!["image"]),
        "video" => (vec!["text"], vec!["video"]),
        "speech" => (vec!["text"], vec!["audio"]),
        "transcription" => (vec!["audio"], vec!["text"]),
        "realtime" => (vec!["text", "audio"], vec!["text", "audio"]),
        "ocr" => (vec!["image", "file"], vec!["text"]),
        _ => (vec!["text"], vec!["text"]),
    };
    for (capability, kind) in
        [("vision", "image"), ("audio_input", "audio"), ("video_input", "video"), ("documents", "file")]
    {
        if can(capability) && !input.contains(&kind) {
            input.push(kind);
        }
    }
    if can("audio_output") && !output.contains(&"audio") {
        output.push("audio");
    }
    (input, output)
}
