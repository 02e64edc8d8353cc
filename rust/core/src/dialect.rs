//! The wire formats of model calls, for callers and for providers.

use serde::Deserialize;

/// A wire format of requests, answers and streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// OpenAI's chat completions.
    #[default]
    Openai,
    /// OpenAI's responses.
    #[serde(rename = "openai-responses")]
    OpenaiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
}

impl Dialect {
    pub const ALL: &'static [Self] = &[Self::Openai, Self::OpenaiResponses, Self::Anthropic, Self::Gemini];
}
