//! What the models of a provider accept, as the catalogue records it. The writers of requests read these values in place of the names of
//! models and providers.
//!
//! Every value is optional. Where the catalogue says nothing, a writer uses the plain form of its dialect.

use crate::model_name::{self, Case};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The facts of one model at one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// The member of a chat completion that limits the output.
    pub cap_member: Option<CapMember>,
    /// The member of a chat completion that holds the seed.
    pub seed_member: Option<String>,
    /// The most characters of `user`.
    pub user_most: Option<usize>,
    /// The names that tools may have.
    pub tool_names: Option<NameRule>,
    /// The ids that tool calls may have in a request.
    pub call_ids: Option<NameRule>,
    /// Members that the provider refuses, by the names of its dialect.
    pub refused: Vec<String>,
    /// How a request controls reasoning.
    pub thinking: Option<Thinking>,
    /// The reasoning levels, from the least to the most. An empty list: the member is refused.
    pub efforts: Option<Vec<Level>>,
    /// The least number of tokens in a reasoning budget.
    pub budget_least: Option<u64>,
    /// The greatest number of tokens in a reasoning budget.
    pub budget_most: Option<u64>,
    /// The model reasons where the request does not say whether it should.
    pub thinks_by_default: Option<bool>,
    /// Chat completions with tools are accepted only with reasoning switched off explicitly.
    pub tools_need_thinking_off: Option<bool>,
    /// When `temperature`, `top_p` and `top_k` are accepted.
    pub samplers: Option<Samplers>,
    /// When a request can force the call of a tool.
    pub forced_tools: Option<ForcedTools>,
    /// Whether the model continues a last message of the assistant.
    pub prefill: Option<Prefill>,
    /// Whether texts without a visible character are accepted.
    pub blank_texts: Option<BlankTexts>,
    /// The JSON schemas that an answer can be held to.
    pub schemas: Option<Schemas>,
    /// The most `cache_control` marks in a request.
    pub cache_marks: Option<usize>,
    /// The most characters of `prompt_cache_key`. 0: the member is refused.
    pub prompt_cache_key_most: Option<usize>,
    /// The values of `service_tier`. An empty list: the member is refused.
    pub service_tiers: Option<Vec<String>>,
    /// Whether a stream reports its usage only on request.
    pub streaming_usage: Option<StreamingUsage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapMember {
    MaxTokens,
    MaxCompletionTokens,
}

/// The names or ids that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRule {
    /// The most characters.
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
    /// ASCII letters, digits, `_`, `-`, `.` and `:`; the first is a letter or `_`.
    Identifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The model does not reason and refuses every member about it.
    Never,
    /// The model always reasons and refuses to be told whether.
    Always,
    /// A number of tokens.
    Budget,
    /// Messages: `thinking.type` is `adaptive`.
    Adaptive,
    /// A level alone: `reasoning_effort`, `reasoning.effort`, `thinkingLevel`.
    Effort,
    /// Chat: `thinking.type` is `enabled` or `disabled`.
    Switch,
    /// Chat: `enable_thinking` is a boolean.
    EnableThinking,
}

/// A level of reasoning.
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
    /// Either `temperature` or `top_p`. While the model reasons, only `top_p` of at least 0.95.
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
    /// Every object is closed, and only a subset of the keywords is accepted.
    Closed,
    /// None: an answer can only be held to be a JSON object.
    JsonObject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamingUsage {
    /// With `stream_options.include_usage`.
    OnRequest,
    /// Always; `stream_options` is refused.
    Always,
}

impl ModelFacts {
    /// Whether the provider refuses this member.
    pub fn refuses(&self, member: &str) -> bool {
        self.refused.iter().any(|name| name == member)
    }

    /// Whether `service_tier` may have this value.
    pub fn has_service_tier(&self, tier: &str) -> bool {
        self.service_tiers.as_ref().is_none_or(|tiers| tiers.iter().any(|one| one == tier))
    }
}

/// The facts of a provider's models: those of the first family whose pattern fits the name, else the provider's own.
/// `*` in a pattern is any text.
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

/// The tables of a snapshot, by the id that connections name.
pub type FactTables = BTreeMap<String, FactTable>;

impl FactTable {
    /// The facts of a model, by the name that the provider knows.
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
