//! One model as an entry of Ollama's list, converted from its entry in OpenAI's list.

use bytes::Bytes;
use fairlead_core::{hex, rfc3339, SecretHash};
use serde::Deserialize;
use serde_json::{json, Value};

/// The members of an entry in OpenAI's list that Ollama's entry uses.
#[derive(Deserialize)]
pub(super) struct OllamaEntry<'a> {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) owned_by: String,
    r#type: &'a str,
    #[serde(default)]
    pub(super) context_length: Option<u64>,
    #[serde(default)]
    capabilities: Vec<String>,
}

impl OllamaEntry<'_> {
    pub(super) fn has_details(&self) -> bool {
        matches!(self.r#type, "chat" | "responses" | "completion" | "embedding")
    }

    /// Ollama's model details. Files, formats and sizes do not apply, because the model runs elsewhere.
    pub(super) fn details(&self) -> Value {
        json!({
            "parent_model": "", "format": "", "family": self.owned_by, "families": [self.owned_by],
            "parameter_size": "", "quantization_level": "",
        })
    }

    pub(super) fn abilities(&self) -> Vec<&'static str> {
        if self.r#type == "embedding" {
            return vec!["embedding"];
        }
        let can = |names: &[&str]| self.capabilities.iter().any(|known| names.contains(&known.as_str()));
        let mut abilities = vec!["completion"];
        for (ability, names) in [
            ("tools", &["tools", "function_calling"][..]),
            ("vision", &["vision", "image_input"][..]),
            ("thinking", &["reasoning", "thinking"][..]),
        ] {
            if can(names) {
                abilities.push(ability);
            }
        }
        abilities
    }
}

/// Converts an entry of OpenAI's list. Returns empty bytes for a model that Ollama's list does not contain.
pub(super) fn entry(listed: &[u8]) -> Bytes {
    let Some(entry) = serde_json::from_slice::<OllamaEntry<'_>>(listed).ok().filter(OllamaEntry::has_details) else {
        return Bytes::new();
    };
    let entry = json!({
        "name": entry.id, "model": entry.id, "modified_at": rfc3339(entry.created.saturating_mul(1_000)), "size": 0,
        "digest": hex(&SecretHash::of(entry.id.as_bytes()).0), "details": entry.details(),
    });
    Bytes::from(entry.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_the_same_in_other_words() {
        let listed = br#"{"id":"p/m","object":"model","created":1700000000,"owned_by":"p","type":"chat"}"#;
        let shown: Value = serde_json::from_slice(&entry(listed)).expect("an entry");
        assert_eq!((&shown["name"], &shown["modified_at"]), (&"p/m".into(), &"2023-11-14T22:13:20Z".into()));
        assert_eq!(shown["digest"].as_str().map(str::len), Some(64));
        assert!(entry(br#"{"id":"p/i","object":"model","created":0,"owned_by":"p","type":"image"}"#).is_empty());
    }
}
