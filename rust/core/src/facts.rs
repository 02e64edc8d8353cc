//! The request members and values that a provider's models accept, as recorded in the catalogue. The request writers
//! read these facts instead of checking the names of models and providers.
//!
//! Every value is optional. Without a value, a writer uses the standard form of its dialect.

use crate::model_name::{self, Case};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The facts of one model at one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// The API that serves the model, at providers of OpenAI's dialects.
    pub api: Option<Api>,
    /// The member that limits the output of a chat completion.
    pub cap_member: Option<CapMember>,
    /// The minimum output limit of the responses API in tokens.
    pub output_least: Option<u64>,
    /// The member that holds the seed of a chat completion.
    pub seed_member: Option<String>,
    /// The maximum number of stop sequences.
    pub stop_most: Option<usize>,
    /// The maximum length of `user` in characters.
    pub user_most: Option<usize>,
    /// The tool names that are accepted.
    pub tool_names: Option<NameRule>,
    /// The tool call ids that are accepted in a request.
    pub call_ids: Option<NameRule>,
    /// Members that the provider rejects, named as in its dialect.
    pub refused: Vec<String>,
    /// Members that the provider rejects in the assistant's messages of a chat completion. `content.thinking`: content
    /// parts of the type `thinking`.
    pub refused_in_turns: Vec<String>,
    /// How a request controls reasoning.
    pub thinking: Option<Thinking>,
    /// The reasoning levels in ascending order. An empty list: the member is rejected.
    pub efforts: Option<Vec<Level>>,
    /// The minimum reasoning budget in tokens.
    pub budget_least: Option<u64>,
    /// The maximum reasoning budget in tokens.
    pub budget_most: Option<u64>,
    /// The model reasons unless the request disables it.
    pub thinks_by_default: Option<bool>,
    /// Chat completions with tools are accepted only if reasoning is explicitly disabled.
    pub tools_need_thinking_off: Option<bool>,
    /// A model that reasons accepts only streams.
    pub thinking_needs_stream: Option<bool>,
    /// When `temperature`, `top_p` and `top_k` are accepted.
    pub samplers: Option<Samplers>,
    /// Every function must have `parameters`.
    pub parameters_required: Option<bool>,
    /// When a request can force a tool call.
    pub forced_tools: Option<ForcedTools>,
    /// Whether the model continues a final assistant message.
    pub prefill: Option<Prefill>,
    /// Whether text without a visible character is accepted.
    pub blank_texts: Option<BlankTexts>,
    /// The JSON schemas that are accepted for structured output.
    pub schemas: Option<Schemas>,
    /// The form of `logprobs` in a chat completion.
    pub logprobs: Option<Logprobs>,
    /// Chat completions accept `metadata` only with `store: true`.
    pub metadata_needs_store: Option<bool>,
    /// The maximum number of `cache_control` marks in a request.
    pub cache_marks: Option<usize>,
    /// The tokens of the shortest prompt that the provider caches.
    pub cache_least: Option<u64>,
    /// The maximum length of `prompt_cache_key` in characters. 0: the member is rejected.
    pub prompt_cache_key_most: Option<usize>,
    /// The accepted values of `prompt_cache_retention`.
    pub cache_retentions: Option<Vec<String>>,
    /// The accepted values of `service_tier`. An empty list: the member is rejected.
    pub service_tiers: Option<Vec<String>>,
    /// Whether a stream reports usage only on request.
    pub streaming_usage: Option<StreamingUsage>,
    /// The media types of images, documents and audio that are accepted. `audio/*` means all of them.
    pub media: Option<Vec<String>>,
    /// Images and documents can be given by their address.
    pub media_urls: Option<bool>,
    /// The model accepts a system prompt. Otherwise it is part of the first turn.
    pub system: Option<bool>,
    /// A request can have tools and a JSON format.
    pub tools_with_schema: Option<bool>,
    /// The outputs that the model always generates. Without them in the request, it is refused.
    pub outputs: Option<Vec<Output>>,
    /// Reasoning is valid only behind the conversation that it was generated for.
    pub binds_thinking: Option<bool>,
}

/// A kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    Text,
    Image,
    Audio,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Chat completions.
    Chat,
    /// Only the responses API.
    Responses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapMember {
    MaxTokens,
    MaxCompletionTokens,
}

/// A rule for names or ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRule {
    /// The maximum length in characters.
    pub most: usize,
    pub letters: Letters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Letters {
    Any,
    /// ASCII letters and digits.
    Alphanumeric,
    /// ASCII letters, digits, `_` and `-`.
    Word,
    /// ASCII letters, digits, `_`, `-`, `.` and `:`, starting with a letter or `_`.
    Identifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The model does not reason and rejects every reasoning member.
    Never,
    /// The model always reasons and rejects members that enable or disable reasoning.
    Always,
    /// A budget in tokens.
    Budget,
    /// Messages: `thinking.type` is `adaptive`.
    Adaptive,
    /// A level only: `reasoning_effort`, `reasoning.effort` or `thinkingLevel`.
    Effort,
    /// Chat: `thinking.type` is `enabled` or `disabled`.
    Switch,
    /// Chat: `enable_thinking` is a boolean.
    EnableThinking,
}

/// A reasoning level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Samplers {
    Accepted,
    /// Either `temperature` or `top_p`. While the model reasons, only a `top_p` of at least 0.95.
    One,
    /// Only while the model does not reason.
    WithoutThinking,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForcedTools {
    Accepted,
    /// Only while the model does not reason.
    WithoutThinking,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prefill {
    Accepted,
    /// Accepted with `prefix: true` in that message.
    Prefix,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlankTexts {
    Accepted,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schemas {
    Any,
    /// Every object must be closed, and only some JSON Schema keywords are accepted.
    Closed,
    /// No schemas: output can only be restricted to a JSON object.
    JsonObject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logprobs {
    /// A boolean, with the number of alternatives in `top_logprobs`.
    Flag,
    /// The number of alternatives.
    Count,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamingUsage {
    /// Only with `stream_options.include_usage`.
    OnRequest,
    /// Always; `stream_options` is rejected.
    Always,
}

impl ModelFacts {
    /// Returns whether the provider rejects this member.
    pub fn refuses(&self, member: &str) -> bool {
        self.refused.iter().any(|name| name == member)
    }

    /// Returns whether the model accepts images, documents or audio of this type.
    pub fn takes_media(&self, media_type: &str) -> bool {
        let fits = |known: &str| match known.strip_suffix('*') {
            Some(kind) => media_type.starts_with(kind),
            None => media_type == known,
        };
        self.media.as_ref().is_none_or(|types| types.iter().any(|known| fits(known)))
    }

    /// Returns whether `service_tier` can have this value.
    pub fn has_service_tier(&self, tier: &str) -> bool {
        self.service_tiers.as_ref().is_none_or(|tiers| tiers.iter().any(|one| one == tier))
    }
}

/// The facts of a provider's models. A model has the facts of the first family whose pattern matches its name,
/// otherwise the provider's. `*` in a pattern matches any text.
#[derive(Debug, Clone, Default)]
pub struct FactTable {
    own: Arc<ModelFacts>,
    families: Vec<Family>,
}

#[derive(Debug, Clone)]
struct Family {
    patterns: Vec<String>,
    facts: Arc<ModelFacts>,
}

/// The tables of a snapshot, keyed by the id that connections refer to.
pub type FactTables = BTreeMap<String, FactTable>;

impl FactTable {
    /// Returns the facts of a model by its name at the provider.
    pub fn of(&self, model: &str) -> &Arc<ModelFacts> {
        let fits = |family: &&Family| {
            family
                .patterns
                .iter()
                .any(|pattern| model_name::matches(pattern.as_bytes(), model.as_bytes(), Case::Ignored))
        };
        self.families.iter().find(fits).map_or(&self.own, |family| &family.facts)
    }
}

impl<'de> Deserialize<'de> for FactTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let mut own = Map::deserialize(deserializer)?;
        own.remove("source");
        let families = own.remove("families").unwrap_or_else(|| Value::Array(Vec::new()));
        let families: Vec<Map<String, Value>> = serde_json::from_value(families).map_err(D::Error::custom)?;
        let facts = |members: Map<String, Value>| {
            serde_json::from_value::<ModelFacts>(Value::Object(members)).map(Arc::new).map_err(D::Error::custom)
        };
        let families = families.into_iter().map(|mut members| {
            members.remove("source");
            let patterns = members.remove("models").ok_or_else(|| D::Error::missing_field("models"))?;
            let patterns = serde_json::from_value(patterns).map_err(D::Error::custom)?;
            let mut merged = own.clone();
            merged.extend(members);
            Ok(Family { patterns, facts: facts(merged)? })
        });
        let families = families.collect::<Result<_, D::Error>>()?;
        Ok(Self { own: facts(own)?, families })
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
