//! Where calls go: connections with their proxies and deadlines, and the models that they serve.

use super::key::Inexpressible;
use crate::clock::rfc3339;
use crate::dialect::Dialect;
use crate::facts::{FactTable, ModelFacts};
use crate::pace::AccountLimits;
use crate::session_lease::SessionLease;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;

/// Stands for a proxy's id where a level says that calls go through none.
pub const DIRECT: &str = "direct";

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyScheme {
    /// HTTP's CONNECT, whatever is spoken behind it.
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
    /// The proxy's level and what it is set for: `global:`, `key:<id>`.
    pub id: String,
    pub scheme: ProxyScheme,
    pub host: String,
    pub port: u16,
    /// Base64 of the sealed `{"username", "password"}`.
    #[serde(default)]
    pub credentials_sealed: Option<String>,
}

/// How a connection shows its credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Auth {
    #[serde(rename = "bearer")]
    Bearer,
    #[serde(rename = "x-api-key")]
    XApiKey,
    #[serde(rename = "x-goog-api-key")]
    XGoogApiKey,
    /// Azure's header of this name.
    #[serde(rename = "api-key")]
    ApiKey,
    /// Each request is signed with a key pair of Amazon's.
    #[serde(rename = "aws-sigv4")]
    AwsSigv4,
    /// A bearer token that a Google service account is given, for an hour at a time.
    #[serde(rename = "google-service-account")]
    GoogleServiceAccount,
    #[serde(rename = "none")]
    None,
}

/// Timers of one connection, milliseconds. None of them is a total on a stream.
#[expect(clippy::struct_field_names, reason = "the unit of each field, as everywhere")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Timeouts {
    /// Name, connect and TLS together.
    pub connect_ms: u64,
    /// Request sent to response headers, for streams.
    pub header_ms: u64,
    /// Response headers to the first byte of the stream.
    pub first_token_ms: u64,
    /// Silence inside a stream or between two reads of an answer.
    pub idle_ms: u64,
    /// Request sent to response headers, for plain answers: the model works meanwhile.
    pub answer_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_ms: 5_000, header_ms: 120_000, first_token_ms: 120_000, idle_ms: 300_000, answer_ms: 600_000 }
    }
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
    pub base_url: String,
    #[serde(default)]
    pub chat_path: Option<String>,
    pub auth: Auth,
    /// The region and service that a signature is for, with `aws-sigv4`.
    #[serde(default)]
    pub aws: Option<crate::aws::SigningScope>,
    /// Says that a credential is a newer one of the same account: what was learnt of the connection stays.
    #[serde(default)]
    pub account: Option<String>,
    /// Base64 of the sealed `{"api_key", "headers", "aws", "service_account"}`; absent for a connection without credential and headers.
    #[serde(default)]
    pub credentials_sealed: Option<String>,
    #[serde(default = "default_priority")]
    pub priority: u32,
    /// The connection's share of calls among those of one priority, where they are shared by weight.
    #[serde(default = "one")]
    pub weight: u32,
    #[serde(default)]
    pub timeouts: Timeouts,
    #[serde(default)]
    pub limits: AccountLimits,
    /// Tells one state of its record from the next: what workers say of it is said of this one.
    #[serde(default)]
    pub revision: u64,
    /// The provider refuses calls of tools without what was thought before them.
    #[serde(default)]
    pub replays_reasoning: bool,
    /// The gateway's own provider of coding tools, which act: it is told whose session a call is of, and no answer is kept.
    #[serde(default)]
    pub sends_session: bool,
    /// The connection's state that outlives a worker.
    #[serde(default, rename = "held")]
    pub stored_state: Option<PersistedState>,
    /// One session has it to itself.
    #[serde(default)]
    pub lease: Option<SessionLease>,
    /// The outbound proxy of its provider, or of all: an id, or [`DIRECT`].
    #[serde(default)]
    pub proxy: Option<String>,
    /// The connection's server switches thinking in the chat template, for every model.
    #[serde(default)]
    pub chat_template_all: bool,
    /// For these models it does.
    #[serde(default)]
    pub chat_template_models: Vec<String>,
    /// The operator's caps on what models may answer, tokens, by the names that the provider knows.
    #[serde(default)]
    pub output_caps: HashMap<String, u64>,
    /// Where the provider has a call at another path than the dialect's: the path on the host, by the dialect's path.
    #[serde(default)]
    pub paths: HashMap<String, String>,
    /// Percent that are kept back of its quota windows, by their names; goes before what is kept back of every window.
    #[serde(default)]
    pub quota_thresholds: HashMap<String, f32>,
    /// The choice for members that the provider does not accept, where neither the call nor its key makes one.
    #[serde(default)]
    pub inexpressible: Option<Inexpressible>,
    /// The table of the snapshot that holds the facts of its models; empty where there is none.
    #[serde(default, rename = "facts")]
    pub facts_name: String,
    /// That table.
    #[serde(skip)]
    pub facts: Arc<FactTable>,
}

impl Connection {
    pub fn is_templated(&self, upstream_model: &str) -> bool {
        self.chat_template_all || self.chat_template_models.iter().any(|model| model == upstream_model)
    }

    /// What the model accepts, by the name that the provider knows.
    pub fn facts_of(&self, upstream_model: &str) -> &Arc<ModelFacts> {
        self.facts.of(upstream_model)
    }

    pub fn output_cap(&self, upstream_model: &str) -> Option<u64> {
        self.output_caps.get(upstream_model).copied()
    }
}

/// A state that only an operator, a new credential or its own end lifts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PersistedState {
    /// `terminal` or `quota-exhausted`.
    pub state: String,
    #[serde(default)]
    pub reason: Option<String>,
    /// UTC; absent for what does not end by itself.
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
    /// How an operator's lists call it.
    #[serde(default)]
    pub name: Option<String>,
    /// The model's use, as the catalogue says it: `chat`, `embedding`, `image`, ...; empty where nobody said it.
    #[serde(default)]
    pub mode: String,
    /// The model's abilities beside answering, by the catalogue's names; absent where nobody said them.
    #[serde(default)]
    pub capabilities: Option<Vec<String>>,
    /// The calls that an operator says the model takes, by the names of `supportedEndpoints`; absent where nobody said them.
    #[serde(default)]
    pub endpoints: Option<Vec<String>>,
}

impl Model {
    /// `created` as RFC 3339 has it; the epoch where it is no time.
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
