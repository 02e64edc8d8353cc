//! The APIs of a provider that serves its models by several: Claude, Gemini and others on one cloud account.

use crate::aws::SigningScope;
use crate::dialect::Dialect;
use crate::facts::FactTable;
use crate::model_name::{matches, Case};
use serde::Deserialize;
use std::sync::Arc;

/// How requests in a dialect are sent, if not by the dialect's own API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The dialect's own paths and bodies.
    #[default]
    Own,
    /// Messages at Vertex AI: `:rawPredict` and `:streamRawPredict`.
    VertexRawPredict,
    /// Messages at Amazon Bedrock: `InvokeModel` and `InvokeModelWithResponseStream`.
    BedrockInvoke,
    /// Amazon Bedrock's `Converse` and `ConverseStream`. Answers are read as messages.
    BedrockConverse,
    /// Cohere's chat, version 2. Answers are read as messages.
    CohereChat,
    /// Amazon Titan's embeddings by `InvokeModel`.
    BedrockTitanEmbed,
    /// Cohere's embeddings by `InvokeModel`.
    BedrockCohereEmbed,
    /// Reranking by `InvokeModel`.
    BedrockRerank,
    /// Images of Amazon Nova Canvas and Titan by `InvokeModel`.
    BedrockCanvas,
    /// Images of Stability AI's models by `InvokeModel`.
    BedrockStability,
    /// Embeddings at Vertex AI by `:predict`.
    VertexPredictEmbed,
}

impl Protocol {
    /// Whether the gateway writes every conversation for it, because no caller's dialect has its form.
    pub fn is_always_written(self) -> bool {
        matches!(self, Self::BedrockConverse | Self::CohereChat)
    }

    /// Whether its streams are Amazon's frames and not events.
    pub fn streams_frames(self) -> bool {
        matches!(self, Self::BedrockInvoke | Self::BedrockConverse)
    }
}

/// An API of the provider for some of its models.
#[derive(Debug, Clone, Deserialize)]
pub struct ModelApi {
    /// Patterns of the provider's model names. `*` matches any text.
    pub models: Vec<String>,
    /// Patterns of models that another API serves, although `models` matches them.
    #[serde(default)]
    pub except: Vec<String>,
    pub dialect: Dialect,
    #[serde(default)]
    pub protocol: Protocol,
    pub base_url: String,
    /// A prefix of model names that URLs do not contain.
    #[serde(default)]
    pub strip: Option<String>,
    /// The region and service that requests are signed for, if not those of the connection.
    #[serde(default)]
    pub aws: Option<SigningScope>,
    /// The id of the fact table for these models. Empty if there is none.
    #[serde(default, rename = "facts")]
    pub facts_name: String,
    /// The table with that id.
    #[serde(skip)]
    pub facts: Arc<FactTable>,
}

impl ModelApi {
    /// Whether this API serves the model, by its name at the provider.
    pub fn serves(&self, upstream_model: &str) -> bool {
        let name = upstream_model.as_bytes();
        let fits = |patterns: &[String]| patterns.iter().any(|one| matches(one.as_bytes(), name, Case::Exact));
        fits(&self.models) && !fits(&self.except)
    }
}
