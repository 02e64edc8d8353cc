//! One model or combo as a list entry in Anthropic's and Google's formats.

use bytes::Bytes;
use fairlead_core::{Dialect, Model};
use serde::Serialize;

const CONVERSATION: &[&str] = &["generateContent", "streamGenerateContent", "countTokens"];
const EMBEDDING: &[&str] = &["embedContent", "batchEmbedContents"];
const VIDEO: &[&str] = &["predictLongRunning"];

#[derive(Serialize)]
struct AnthropicEntry<'a> {
    r#type: &'static str,
    id: &'a str,
    display_name: &'a str,
    /// The Unix epoch if the date is unknown, as in Anthropic's API.
    created_at: String,
    /// Every listed model is active.
    lifecycle: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
}

/// Writes a model or combo in Anthropic's format.
pub(crate) fn anthropic(model: &Model) -> Option<Bytes> {
    let entry = AnthropicEntry {
        r#type: "model",
        id: &model.id,
        display_name: model.name.as_deref().unwrap_or(&model.id),
        created_at: model.created_at(),
        lifecycle: "active",
        max_input_tokens: model.context_length,
        max_tokens: model.max_output_tokens,
    };
    serde_json::to_vec(&entry).ok().map(Bytes::from)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiEntry<'a> {
    name: String,
    display_name: &'a str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_token_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_token_limit: Option<u64>,
    supported_generation_methods: &'static [&'static str],
}

/// Writes a model or combo in Gemini's format. `dialect` is the dialect of the model's provider, `None` for a combo.
pub(crate) fn gemini(model: &Model, dialect: Option<Dialect>) -> Option<Bytes> {
    let entry = GeminiEntry {
        name: format!("models/{}", model.id),
        display_name: model.name.as_deref().unwrap_or(&model.id),
        version: "",
        input_token_limit: model.context_length,
        output_token_limit: model.max_output_tokens,
        supported_generation_methods: methods(model, dialect),
    };
    serde_json::to_vec(&entry).ok().map(Bytes::from)
}

/// The methods that the gateway supports for the model. A model that is not in the catalogue counts as a chat model.
fn methods(model: &Model, dialect: Option<Dialect>) -> &'static [&'static str] {
    let is_googles = dialect == Some(Dialect::Gemini);
    match &*model.mode {
        "" | "chat" => CONVERSATION,
        "embedding" if dialect != Some(Dialect::Anthropic) => EMBEDDING,
        "video" if is_googles => VIDEO,
        // Google's image models use `generateContent`, except the Imagen models, which support only `predict`.
        "image" if is_googles && !model.id.rsplit('/').next().is_some_and(|name| name.starts_with("imagen")) => {
            CONVERSATION
        }
        _ => &[],
    }
}

/// Returns whether the model answers conversations.
pub(crate) fn converses(model: &Model, dialect: Option<Dialect>) -> bool {
    methods(model, dialect) == CONVERSATION
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_of(model: serde_json::Value, dialect: Option<Dialect>) -> serde_json::Value {
        let model: Model = serde_json::from_value(model).expect("a model");
        serde_json::from_slice(&gemini(&model, dialect).expect("an entry")).expect("JSON")
    }

    #[test]
    fn an_entry_says_the_same_in_other_words() {
        let model = serde_json::json!({"id": "g/pro", "provider": "g", "context_length": 10, "max_output_tokens": 4});
        let entry = entry_of(model, Some(Dialect::Openai));
        assert_eq!(entry["name"], "models/g/pro");
        assert_eq!((&entry["inputTokenLimit"], &entry["outputTokenLimit"]), (&10.into(), &4.into()));
        assert_eq!(entry["supportedGenerationMethods"], serde_json::json!(CONVERSATION));
    }

    #[test]
    fn a_model_has_the_methods_by_which_it_is_served() {
        for (id, mode, dialect, methods) in [
            ("p/m", "", Some(Dialect::Openai), CONVERSATION),
            ("p/m", "chat", Some(Dialect::Anthropic), CONVERSATION),
            ("combo", "", None, CONVERSATION),
            ("p/e", "embedding", Some(Dialect::Openai), EMBEDDING),
            ("p/e", "embedding", Some(Dialect::Gemini), EMBEDDING),
            ("p/e", "embedding", Some(Dialect::Anthropic), &[]),
            ("g/veo", "video", Some(Dialect::Gemini), VIDEO),
            ("o/sora", "video", Some(Dialect::Openai), &[]),
            ("g/gemini-image", "image", Some(Dialect::Gemini), CONVERSATION),
            ("g/imagen-4", "image", Some(Dialect::Gemini), &[]),
            ("o/dall-e", "image", Some(Dialect::Openai), &[]),
            ("o/whisper", "transcription", Some(Dialect::Openai), &[]),
            ("o/omni-moderation", "moderation", Some(Dialect::Openai), &[]),
        ] {
            let model = serde_json::json!({"id": id, "provider": "p", "mode": mode});
            assert_eq!(
                entry_of(model, dialect)["supportedGenerationMethods"],
                serde_json::json!(methods),
                "{id} {mode}"
            );
        }
    }
}
