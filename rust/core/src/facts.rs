//! The request members and values that a provider's models accept, as recorded in the catalogue. The request writers
//! read these facts instead of checking the names of models and providers.
//!
//! Every value is optional. Without a value, a writer uses the standard form of its dialect.

use crate::model_name::{self, Case};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The facts of one model at one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// The API of OpenAI by which the model is called, at providers of OpenAI's dialect. Snapshots of earlier versions call
    /// it `api`.
    #[serde(alias = "api")]
    pub api_type: Option<ApiType>,
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
    /// The members in `refused` are removed from every body, also from one that passes through in the caller's own
    /// dialect.
    pub strips_refused: Option<bool>,
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
pub enum ApiType {
    /// Chat completions.
    Chat,
    /// The responses API.
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
    /// The members that are removed from every body, also from one that passes through.
    pub fn stripped(&self) -> &[String] {
        if self.strips_refused == Some(true) {
            &self.refused
        } else {
            &[]
        }
    }

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
/// otherwise the provider's. `*` in a pattern matches any text. The operator's facts override both.
#[derive(Debug, Clone, Default)]
pub struct FactTable {
    own: Arc<ModelFacts>,
    families: Vec<Family>,
    /// The models for which the operator set facts, by their names at the provider.
    models: HashMap<String, Arc<ModelFacts>>,
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
        if let Some(facts) = self.models.get(model) {
            return facts;
        }
        self.families.iter().find(|family| fits(&family.patterns, model)).map_or(&self.own, |family| &family.facts)
    }
}

fn fits(patterns: &[String], model: &str) -> bool {
    patterns.iter().any(|pattern| model_name::matches(pattern.as_bytes(), model.as_bytes(), Case::Ignored))
}

type Members = Map<String, Value>;

/// A table as the snapshot has it, before the facts of its levels are merged.
#[derive(Deserialize)]
struct TableDocument {
    #[serde(default)]
    families: Vec<FamilyDocument>,
    #[serde(default)]
    overrides: Overrides,
    #[serde(flatten)]
    own: Members,
}

#[derive(Deserialize)]
struct FamilyDocument {
    models: Vec<String>,
    #[serde(flatten)]
    own: Members,
}

/// The operator's facts: for all models of the provider, and for single models.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Overrides {
    all: Members,
    models: BTreeMap<String, Members>,
}

/// Merges the members of several levels. A later level overrides an earlier one. `source` is for readers of the
/// catalogue only.
fn merged(levels: &[&Members]) -> Result<Arc<ModelFacts>, serde_json::Error> {
    let mut members = Members::new();
    for level in levels {
        let stated = level.iter().filter(|(name, _)| *name != "source");
        members.extend(stated.map(|(name, value)| (name.clone(), value.clone())));
    }
    serde_json::from_value(Value::Object(members)).map(Arc::new)
}

impl TableDocument {
    fn table(self) -> Result<FactTable, serde_json::Error> {
        let Self { families, overrides: Overrides { all, models }, own } = self;
        let nothing = Members::new();
        let of_family = |model: &str| families.iter().find(|family| fits(&family.models, model));
        let models = models.iter().map(|(model, stated)| {
            let family = of_family(model).map_or(&nothing, |family| &family.own);
            Ok((model.clone(), merged(&[&own, family, &all, stated])?))
        });
        let models = models.collect::<Result<_, serde_json::Error>>()?;
        let families = families
            .iter()
            .map(|family| Ok(Family { patterns: family.models.clone(), facts: merged(&[&own, &family.own, &all])? }));
        let families = families.collect::<Result<_, serde_json::Error>>()?;
        Ok(FactTable { own: merged(&[&own, &all])?, families, models })
    }
}

impl<'de> Deserialize<'de> for FactTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TableDocument::deserialize(deserializer)?.table().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
