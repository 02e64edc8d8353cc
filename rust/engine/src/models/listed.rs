//! One entry of the lists, ready in the words of every client that has a list of its own, and to whom it is shown.

use crate::models::{entries, ollama_entry};
use bytes::Bytes;
use fairlead_core::policy::{admit_combo, sees_model, PrefixSight};
use fairlead_core::{CatalogScope, Dialect, Key, Model};
use serde::Serialize;
use std::ops::Range;
use std::sync::OnceLock;

/// In whose words an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListDialect {
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedKind {
    Model,
    Combo,
    /// A channel of `auto`, which the gateway makes itself.
    Auto,
}

#[derive(Debug)]
pub(super) struct Listed {
    pub id: String,
    kind: ListedKind,
    /// A part of the whole list's document, once that is made.
    json: Bytes,
    /// Where that part begins.
    at: usize,
    anthropic: Bytes,
    gemini: Bytes,
    /// Made when the first of Ollama's clients asks for the list of this snapshot.
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
    /// Absent where nobody has told them.
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<&'a [String]>,
    /// Other names that lead to it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    aliases: &'a [&'a str],
}

impl Listed {
    /// `dialect` is that of the provider that serves a model. `None`: it cannot be written.
    pub fn new(model: &Model, kind: ListedKind, dialect: Option<Dialect>, aliases: &[&str]) -> Option<Self> {
        let owned_by = if model.owned_by.is_empty() { &model.provider } else { &model.owned_by };
        // A combo takes and gives what its targets do.
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

    /// Makes its text a part of this document.
    pub fn place_in(&mut self, whole: &Bytes, at: usize) {
        self.json = whole.slice(at..at + self.json.len());
        self.at = at;
    }

    /// Where it stands in the document of the whole list.
    pub fn place(&self) -> Range<usize> {
        self.at..self.at + self.json.len()
    }

    /// What tells its name apart: the prefix and its slash. `None` of what is no model of a provider.
    pub fn prefix(&self) -> Option<&str> {
        let slash = self.id.find('/').filter(|_| self.kind == ListedKind::Model)?;
        self.id.get(..=slash)
    }

    /// Whether the key may call it.
    pub fn is_for(&self, key: &Key) -> bool {
        match self.kind {
            ListedKind::Model => sees_model(key, &self.id),
            ListedKind::Combo => admit_combo(key, &self.id, false).is_ok(),
            ListedKind::Auto => admit_combo(key, &self.id, true).is_ok(),
        }
    }

    /// Whether the key's list has it.
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

/// What a key's list has, entry by entry in the order of the list: of models that stand together, one provider's, the key's rules are looked at once.
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

/// The model's use; one that is in no catalogue is taken for a model of conversations.
fn use_of(model: &Model) -> &str {
    if model.mode.is_empty() {
        "chat"
    } else {
        &model.mode
    }
}

/// The media that go into a model and come out of it, as its use and its capabilities say.
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
