//! Connections with their proxies and timeouts, and the models that they serve.

use super::api::{ModelApi, Protocol};
use crate::clock::rfc3339;
use crate::dialect::Dialect;
use crate::facts::{FactTable, ModelFacts};
use crate::inexpressible::Inexpressible;
use crate::pace::AccountLimits;
use crate::session_lease::SessionLease;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The proxy id that means no proxy.
pub const DIRECT: &str = "direct";

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyScheme {
    /// HTTP `CONNECT`, for any protocol inside the tunnel.
    Http,
    Socks5,
}

impl ProxyScheme {
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Socks5 => "socks5",
        }
    }
}

/// An outbound proxy.
#[derive(Debug, Clone, Deserialize)]
pub struct ProxyRecord {
    /// The proxy's level and its owner: `global:`, `key:<id>`.
    pub id: String,
    pub scheme: ProxyScheme,
    pub host: String,
    pub port: u16,
    /// The sealed `{"username", "password"}` in base64.
    #[serde(default)]
    pub credentials_sealed: Option<String>,
}

/// How a connection sends its credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Auth {
    #[serde(rename = "bearer")]
    Bearer,
    #[serde(rename = "x-api-key")]
    XApiKey,
    #[serde(rename = "x-goog-api-key")]
    XGoogApiKey,
    /// Azure's `api-key` header.
    #[serde(rename = "api-key")]
    ApiKey,
    /// AWS Signature Version 4 with an access key pair.
    #[serde(rename = "aws-sigv4")]
    AwsSigv4,
    /// A bearer token of a Google service account, valid for one hour.
    #[serde(rename = "google-service-account")]
    GoogleServiceAccount,
    #[serde(rename = "none")]
    None,
}

/// Timeouts of one connection in milliseconds. None of them limits the total time of a stream.
#[expect(clippy::struct_field_names, reason = "the unit of each field, as everywhere")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Timeouts {
    /// DNS lookup, TCP connect and TLS handshake together.
    pub connect_ms: u64,
    /// From the request to the response headers of a stream.
    pub header_ms: u64,
    /// From the response headers to the first byte of the stream.
    pub first_token_ms: u64,
    /// The maximum gap within a stream, or between two reads of a response.
    pub idle_ms: u64,
    /// From the request to the response headers without streaming; the model generates the whole response in that time.
    pub answer_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_ms: 5_000, header_ms: 120_000, first_token_ms: 120_000, idle_ms: 300_000, answer_ms: 600_000 }
    }
}

/// Whether the gateway adds cache keys and cache marks to requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptCacheMode {
    /// Adds them if the provider accepts them and cached input is cheaper.
    #[default]
    Auto,
    Off,
}

/// One active credential at one provider.
#[derive(Debug, Clone, Deserialize)]
pub struct Connection {
    pub id: String,
    #[serde(default)]
    pub name: String,
    pub provider: String,
    pub prefixes: Vec<String>,
    pub dialect: Dialect,
    /// How requests in the dialect are sent.
    #[serde(default)]
    pub protocol: Protocol,
    pub base_url: String,
    /// A prefix of model names that URLs do not contain.
    #[serde(default)]
    pub strip: Option<String>,
    /// APIs that serve some models in another dialect or at another address. The first that serves a model applies.
    #[serde(default)]
    pub apis: Vec<ModelApi>,
    #[serde(default)]
    pub chat_path: Option<String>,
    pub auth: Auth,
    /// The region and service that requests are signed for, with `aws-sigv4`.
    #[serde(default)]
    pub aws: Option<crate::aws::SigningScope>,
    /// Identifies the account. A newer credential of the same account keeps the connection's learned state.
    #[serde(default)]
    pub account: Option<String>,
    /// The sealed `{"api_key", "headers", "aws", "service_account"}` in base64. Absent for a connection without
    /// credential and headers.
    #[serde(default)]
    pub credentials_sealed: Option<String>,
    #[serde(default = "default_priority")]
    pub priority: u32,
    /// The weight of the connection among connections of equal priority, for strategies that use weights.
    #[serde(default = "one")]
    pub weight: u32,
    #[serde(default)]
    pub timeouts: Timeouts,
    #[serde(default)]
    pub limits: AccountLimits,
    /// The revision of the record. Workers report state for the revision that they have loaded.
    #[serde(default)]
    pub revision: u64,
    /// The provider rejects tool calls that are sent back without the reasoning before them.
    #[serde(default)]
    pub replays_reasoning: bool,
    /// The gateway's own provider of coding tools. It executes actions, so it receives the session of each call and its
    /// responses are not cached.
    #[serde(default)]
    pub sends_session: bool,
    /// State that outlives a worker process.
    #[serde(default, rename = "held")]
    pub stored_state: Option<PersistedState>,
    /// The lease, if one session has exclusive use of the connection.
    #[serde(default)]
    pub lease: Option<SessionLease>,
    /// The outbound proxy from the provider's or the global level: an id, or [`DIRECT`].
    #[serde(default)]
    pub proxy: Option<String>,
    /// The connection's server controls reasoning through the chat template for every model.
    #[serde(default)]
    pub chat_template_all: bool,
    /// The models for which it does, if not for all.
    #[serde(default)]
    pub chat_template_models: Vec<String>,
    /// The operator's maximum output in tokens, keyed by the model's name at the provider.
    #[serde(default)]
    pub output_caps: HashMap<String, u64>,
    /// The calls that models accept according to the operator, named as in `supportedEndpoints`, by the model's name at
    /// the provider.
    #[serde(default)]
    pub endpoints: HashMap<String, Vec<String>>,
    /// The calls that all other models accept according to the operator. Absent if not set.
    #[serde(default)]
    pub usual_endpoints: Option<Vec<String>>,
    /// Paths that differ from the dialect's, keyed by the dialect's path. Each value is the path on the host.
    #[serde(default)]
    pub paths: HashMap<String, String>,
    /// Azure: the version of the API whose paths contain the deployment. Absent for the API without versions.
    #[serde(default)]
    pub api_version: Option<String>,
    /// Azure: the operator's deployments, keyed by model. Requests name the deployment instead of the model.
    #[serde(default)]
    pub deployments: HashMap<String, String>,
    /// The reserved percentage of each quota window, by name. Overrides the reserve for all windows.
    #[serde(default)]
    pub quota_thresholds: HashMap<String, f32>,
    /// How members that the provider does not accept are handled, if neither the request nor its key chooses.
    #[serde(default)]
    pub inexpressible: Option<Inexpressible>,
    #[serde(default)]
    pub prompt_cache: PromptCacheMode,
    /// The id of the fact table for the connection's models. Empty if there is none.
    #[serde(default, rename = "facts")]
    pub facts_name: String,
    /// The table with that id.
    #[serde(skip)]
    pub facts: Arc<FactTable>,
}

impl Connection {
    pub fn is_templated(&self, upstream_model: &str) -> bool {
        self.chat_template_all || self.chat_template_models.iter().any(|model| model == upstream_model)
    }

    /// Returns what the model accepts, by its name at the provider.
    pub fn facts_of(&self, upstream_model: &str) -> &Arc<ModelFacts> {
        self.facts.of(upstream_model)
    }

    /// Returns the calls that a model accepts according to the operator. `None` if the operator did not say.
    pub fn endpoints_of(&self, upstream_model: &str) -> Option<&[String]> {
        self.endpoints.get(upstream_model).or(self.usual_endpoints.as_ref()).map(Vec::as_slice)
    }

    /// Returns the name under which requests call a model: that of its deployment, if it has one.
    pub fn called_name<'n>(&'n self, upstream_model: &'n str) -> &'n str {
        self.deployments.get(upstream_model).map_or(upstream_model, String::as_str)
    }

    pub fn output_cap(&self, upstream_model: &str) -> Option<u64> {
        self.output_caps.get(upstream_model).copied()
    }

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

/// A state that ends only through an operator, a new credential or its expiry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PersistedState {
    /// `terminal` or `quota-exhausted`.
    pub state: String,
    #[serde(default)]
    pub reason: Option<String>,
    /// UTC. Absent if the state does not expire.
    #[serde(default)]
    pub until_ms: Option<u64>,
}

/// One entry of the model list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Model {
    pub id: String,
    pub provider: String,
    #[serde(default)]
    pub created: u64,
    #[serde(default)]
    pub owned_by: String,
    #[serde(default)]
    pub context_length: Option<u64>,
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
    /// The display name set by an operator.
    #[serde(default)]
    pub name: Option<String>,
    /// The model's use in the catalogue: `chat`, `embedding`, `image`, ... Empty if unknown.
    #[serde(default)]
    pub mode: String,
    /// The model's capabilities, by the catalogue's names. Absent if unknown.
    #[serde(default)]
    pub capabilities: Option<Vec<String>>,
}

impl Model {
    /// Formats `created` as RFC 3339. An invalid time becomes the Unix epoch.
    #[must_use]
    pub fn created_at(&self) -> String {
        rfc3339(self.created.saturating_mul(1_000))
    }
}

fn one() -> u32 {
    1
}

fn default_priority() -> u32 {
    50
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
