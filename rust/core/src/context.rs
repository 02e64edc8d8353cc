//! The operator's settings for the conversation that is sent: compression, reasoning, the system prompt and the model's
//! context window.

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

/// The pipeline that shortens a conversation when the caller does not choose one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Compression {
    /// A mode, or the name of one of `pipelines`. Empty means `off`.
    pub mode: String,
    /// From this many tokens on, `automatic_mode` replaces `mode`. 0 means never.
    pub automatic_tokens: u64,
    pub automatic_mode: String,
    pub pipelines: Vec<Pipeline>,
    /// Pipelines and modes, by the name of the routing combo they are assigned to.
    pub assignments: HashMap<String, String>,
    /// The languages that caveman shortens. Empty means all.
    pub languages: Vec<String>,
    /// The level of the rtk engine in every mode. Empty leaves it to the mode.
    pub rtk_level: String,
    /// The operator's own filters for command output, as TOML. Each is used only as it was trusted.
    pub filters: Vec<OwnFilters>,
    pub raw_outputs: RawOutputs,
}

/// How long unfiltered command output is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RawOutputs {
    /// The total size limit. 0 stores nothing.
    pub limit_bytes: u64,
    pub hours: u64,
}

/// A named list of engines, in the order in which they run.
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

/// Filters as TOML, with the hexadecimal SHA-256 that somebody trusted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct OwnFilters {
    pub toml: String,
    pub sha256: String,
}

/// How requests with reasoning settings are rewritten. Requests that set nothing, or that switch reasoning off, are
/// unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum ThinkingBudget {
    #[default]
    Passthrough,
    /// Removes the request's reasoning settings, so that the provider decides.
    AutoStrip,
    /// Sets this token budget on every request that uses reasoning. 0 switches reasoning off.
    Custom { budget_tokens: u64 },
    /// Scales the budget with the size of the request, up to this many tokens.
    Adaptive { budget_tokens: u64 },
}

/// Text that is added before and after the caller's system prompt. Empty text adds nothing.
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

/// How a request that exceeds its model's context window is handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowPolicy {
    /// Sent unchanged; the provider decides.
    #[default]
    Pass,
    /// Targets with too small a window are skipped. If none is left, the error reports the token count and the window.
    Refuse,
    /// Targets with too small a window are skipped. If none is left, the oldest messages are removed until the request
    /// fits.
    Trim,
}
