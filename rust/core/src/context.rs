//! The operator's settings for what of a conversation is sent: compression, thinking, the system prompt, a model's window.

use serde::Deserialize;
use std::collections::HashMap;

/// Everything that may change a conversation between the caller and its provider. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContextSettings {
    pub compression: Compression,
    pub thinking: ThinkingBudget,
    pub system_prompt: SystemPrompt,
    pub window: WindowPolicy,
}

/// Which pipeline makes a conversation shorter, where the caller does not say.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Compression {
    /// A mode, or the name of one of `pipelines`; empty is `off`.
    pub mode: String,
    /// From so many tokens on, `automatic_mode` is taken in place of `mode`; 0: never.
    pub automatic_tokens: u64,
    pub automatic_mode: String,
    pub pipelines: Vec<Pipeline>,
    /// Pipelines and modes by the names of the routing combos that they are assigned to.
    pub assignments: HashMap<String, String>,
    /// Languages in which caveman shortens; empty: all.
    pub languages: Vec<String>,
    /// The level of the engine rtk, whatever the mode says; empty: as the mode says.
    pub rtk_level: String,
    /// The operator's own filters for outputs of commands, TOML, as they were trusted.
    pub filters: Vec<OwnFilters>,
    pub raw_outputs: RawOutputs,
}

/// How long outputs are kept as they were before filters made them shorter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RawOutputs {
    /// What all of them may take; 0: none is kept.
    pub limit_bytes: u64,
    pub hours: u64,
}

/// Engines in the order in which they run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Pipeline {
    pub name: String,
    pub stages: Vec<PipelineStage>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct PipelineStage {
    pub engine: String,
    /// `minimal`, `standard` or `aggressive`.
    pub level: String,
}

/// Filters as TOML, with the SHA-256 in hex that somebody trusted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct OwnFilters {
    pub toml: String,
    pub sha256: String,
}

/// How requests that say how to think are rewritten. Requests that say nothing of it, or that switch it off, stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum ThinkingBudget {
    #[default]
    Passthrough,
    /// A request's own words on thinking are taken out, and the provider decides.
    AutoStrip,
    /// Every request that thinks has this budget, tokens; 0 switches thinking off.
    Custom { budget_tokens: u64 },
    /// The budget grows with what is asked, up to so many tokens.
    Adaptive { budget_tokens: u64 },
}

/// Text before and after what callers say to the model about its part. Empty texts add nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SystemPrompt {
    pub prefix: String,
    pub suffix: String,
}

impl SystemPrompt {
    pub fn is_empty(&self) -> bool {
        self.prefix.is_empty() && self.suffix.is_empty()
    }
}

/// The treatment of a request that is longer than its model's window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowPolicy {
    /// Sent as it is: the provider says what it thinks of it.
    #[default]
    Pass,
    /// Targets whose windows are too small are left out; where none is left the caller is told count and window.
    Refuse,
    /// As `refuse`, but where no target is left the oldest messages are left out until the rest fits.
    Trim,
}
