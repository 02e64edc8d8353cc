//! The APIs of a provider that serves its models by several: Claude, Gemini and others on one cloud account.

use super::connection::Connection;
use crate::aws::SigningScope;
use crate::dialect::Dialect;
use crate::facts::FactTable;
use crate::model_name::{matches, Case};
use serde::Deserialize;
use std::collections::HashMap;
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

impl Connection {
    /// Returns the index of the API that serves a model, by the model's name at the provider. `None`: the connection's
    /// own dialect and address.
    pub fn api_of(&self, upstream_model: &str) -> Option<usize> {
        self.apis.iter().position(|api| api.serves(upstream_model))
    }

    /// Returns the dialect in which a model is called, by the model's name at the provider.
    pub fn dialect_of(&self, upstream_model: &str) -> Dialect {
        let api = self.api_of(upstream_model).and_then(|at| self.apis.get(at));
        api.map_or(self.dialect, |api| api.dialect)
    }

    /// Returns this connection as it uses one of its APIs.
    #[must_use]
    pub fn by_api(&self, api: &ModelApi) -> Self {
        Self {
            dialect: api.dialect,
            protocol: api.protocol,
            base_url: api.base_url.clone(),
            strip: api.strip.clone(),
            chat_path: None,
            aws: api.aws.clone().or_else(|| self.aws.clone()),
            paths: HashMap::new(),
            facts_name: api.facts_name.clone(),
            facts: Arc::clone(&api.facts),
            apis: Vec::new(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_api_that_serves_a_model_has_it() {
        let connection: Connection = serde_json::from_value(serde_json::json!({
            "id": "c", "provider": "bedrock", "prefixes": ["bedrock"], "dialect": "openai", "base_url": "http://h/openai/v1",
            "auth": "none", "apis": [
                {"models": ["*anthropic.claude*"], "dialect": "anthropic", "protocol": "bedrock-invoke", "base_url": "http://h"},
                {"models": ["*"], "except": ["openai.*"], "dialect": "anthropic", "protocol": "bedrock-converse",
                 "base_url": "http://h"},
            ],
        }))
        .expect("a connection");
        for (model, api, dialect) in [
            ("us.anthropic.claude-opus-5-5", Some(0), Dialect::Anthropic),
            ("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-5", Some(0), Dialect::Anthropic),
            ("amazon.nova-pro-v1:0", Some(1), Dialect::Anthropic),
            ("openai.gpt-oss-120b-1:0", None, Dialect::Openai),
        ] {
            assert_eq!((connection.api_of(model), connection.dialect_of(model)), (api, dialect), "{model}");
        }
        let claude = connection.by_api(&connection.apis[0]);
        assert_eq!((claude.protocol, claude.base_url.as_str()), (Protocol::BedrockInvoke, "http://h"));
        assert_eq!((claude.id.as_str(), claude.apis.len()), ("c", 0));
    }
}
