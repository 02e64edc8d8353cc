//! The snapshot: the whole routing configuration as one immutable document, compiled by control and swapped in whole.
//! Its JSON form is written down in `docs/explanation/contracts.md`.

use crate::chaos::Chaos;
use crate::clock::rfc3339;
use crate::context::ContextSettings;
use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
pub use crate::group::AccessMode;
use crate::group::{path_text, Group, GroupTree};
use crate::guardrail::Guardrails;
use crate::ip_filter::{AddressSet, IpFilter};
use crate::limit::{Limit, LimitScope};
use crate::model_name::{self, is_named, Case};
use crate::pace::AccountLimits;
use crate::price::Price;
use crate::resilience::Resilience;
use crate::schedule::Schedule;
use crate::secret::SecretHash;
use crate::session_lease::SessionLease;
use crate::strategy::auto::is_auto;
use crate::strategy::What;
use crate::strategy::{AccountStrategies, Combo};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A gateway API key, as far as the relay needs it.
#[derive(Debug, Clone, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a field of the key table")]
pub struct Key {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(deserialize_with = "hash_from_hex")]
    pub hash: SecretHash,
    pub is_active: bool,
    #[serde(default)]
    pub is_banned: bool,
    #[serde(default)]
    pub expires_at_ms: Option<u64>,
    #[serde(default)]
    pub model_access_mode: AccessMode,
    #[serde(default)]
    pub allowed_models: Vec<String>,
    #[serde(default)]
    pub blocked_models: Vec<String>,
    #[serde(default)]
    pub allowed_endpoints: Vec<String>,
    /// Empty allows every combo to a key that may call every model, and none to another.
    #[serde(default)]
    pub allowed_combos: Vec<String>,
    #[serde(default = "yes")]
    pub allow_auto_combos: bool,
    #[serde(default)]
    pub catalog_scope: CatalogScope,
    #[serde(default)]
    pub no_log: bool,
    /// What it asks and is answered is kept, unless it wants no log.
    #[serde(default)]
    pub capture_bodies: bool,
    #[serde(default)]
    pub scopes: Vec<String>,
    #[serde(default)]
    pub connection_access_mode: AccessMode,
    #[serde(default)]
    pub allowed_connections: Vec<String>,
    /// Takes the place of whatever model the caller asks for.
    #[serde(default)]
    pub forced_model: Option<String>,
    /// Models that the list does not show may not be called.
    #[serde(default)]
    pub disable_non_public_models: bool,
    #[serde(default)]
    pub throttle_delay_ms: u64,
    /// 0: any number.
    #[serde(default)]
    pub max_sessions: usize,
    /// The form of the answer to a request without `stream`.
    #[serde(default)]
    pub stream_default_mode: StreamDefaultMode,
    #[serde(default)]
    pub cache_default_mode: CacheDefaultMode,
    /// A model's name without its provider's prefix means the most preferred connection that has it.
    #[serde(default)]
    pub auto_resolve: bool,
    /// Guardrails that are not run for this key.
    #[serde(default)]
    pub disabled_guardrails: Vec<String>,
    /// Whether conversations of this key may be made shorter where the caller does not ask for it.
    #[serde(default = "yes")]
    pub compression_enabled: bool,
    /// Absent: as the settings say.
    #[serde(default)]
    pub unpriced_models: Option<UnpricedModels>,
    #[serde(default)]
    pub access_schedule: Option<Schedule>,
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// The addresses that it may be used from; empty for every one.
    #[serde(default)]
    pub ip_allowlist: AddressSet,
    /// The outbound proxy of this key's calls, which goes before every other: an id, or [`DIRECT`].
    #[serde(default)]
    pub proxy: Option<String>,
    /// The service tier that its conversations are asked for in, whatever they say.
    #[serde(default)]
    pub tool_service_mode: ServiceMode,
    /// May ask what is left of its limits, by a chat command too.
    #[serde(default)]
    pub allow_usage_command: bool,
    /// Faults that its calls are given in place of answers.
    #[serde(default)]
    pub chaos: Option<Chaos>,
    /// The group that it belongs to.
    #[serde(default)]
    pub group: Option<String>,
    /// That group and those above it, nearest first.
    #[serde(skip)]
    pub groups: Vec<Arc<Group>>,
    /// The ids of the key's groups from the topmost down, separated by `/`; absent for a key in no group.
    #[serde(skip)]
    pub group_path: Option<String>,
    /// The tags that the key's usage is found by, its groups' included: texts between commas.
    #[serde(default)]
    pub tags: Option<String>,
}

impl Key {
    /// The key's own limits, then those of its groups, nearest first.
    pub fn all_limits(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter().chain(self.groups.iter().flat_map(|group| &group.limits))
    }

    pub fn has_limits(&self) -> bool {
        self.all_limits().next().is_some()
    }

    /// Whether it, or one of its groups, may not call some model.
    pub fn has_blocks(&self) -> bool {
        !self.blocked_models.is_empty() || self.groups.iter().any(|group| !group.blocked_models.is_empty())
    }

    pub fn may_manage(&self) -> bool {
        self.scopes.iter().any(|scope| scope == "manage" || scope == "admin")
    }
}

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

/// What the model list shows to a key; says nothing of what the key may call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatalogScope {
    #[default]
    All,
    Combos,
    Models,
}

/// What a request that does not say `stream` gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamDefaultMode {
    /// A stream, where `Accept` names `text/event-stream` among what the caller takes.
    #[default]
    Legacy,
    /// A stream only where the caller takes nothing else.
    Json,
}

/// Whether a key's requests look into the response cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheDefaultMode {
    #[default]
    Legacy,
    /// Always asks the provider.
    Bypass,
}

/// The service tier that a key's conversations are asked for in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceMode {
    /// As the caller says.
    #[default]
    Inherit,
    Default,
    Priority,
    Flex,
}

/// The treatment of calls to models without a price, where a limit in dollars holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnpricedModels {
    #[default]
    Allow,
    Refuse,
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
    pub is_told_session: bool,
    /// The connection's state that outlives a worker.
    #[serde(default)]
    pub held: Option<PersistedState>,
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
    /// Percent that are kept back of its quota windows, by their names; goes before what is kept back of every window.
    #[serde(default)]
    pub quota_thresholds: HashMap<String, f32>,
}

impl Connection {
    pub fn is_templated(&self, upstream_model: &str) -> bool {
        self.chat_template_all || self.chat_template_models.iter().any(|model| model == upstream_model)
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

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn default_priority() -> u32 {
    50
}

/// One entry of the model list.
#[derive(Debug, Clone, Default, Deserialize)]
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
}

impl Model {
    /// `created` as RFC 3339 has it; the epoch where it is no time.
    #[must_use]
    pub fn created_at(&self) -> String {
        rfc3339(self.created.saturating_mul(1_000))
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub require_login: bool,
    /// Origins whose pages may call where a key is shown, as browsers send them.
    pub cors_origins: Vec<String>,
    pub unpriced_models: UnpricedModels,
}

/// The response cache, as the operator wants it.
#[expect(clippy::struct_excessive_bools, reason = "settings that an operator switches one by one")]
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct CacheSettings {
    pub is_enabled: bool,
    pub ttl_ms: u64,
    pub memory_bytes: usize,
    /// 0: nothing goes to disk.
    pub disk_bytes: u64,
    pub wants_vectors: bool,
    pub threshold: f32,
    /// Partitions learn thresholds of their own.
    pub learns: bool,
    /// Whether questions that were nearly answered are noted, with their texts.
    pub notes_near_misses: bool,
}

/// Which bodies of requests and answers are kept, and how much of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CaptureSettings {
    /// Of every key and caller; else of keys that say so.
    pub is_for_all: bool,
    /// As much of each body.
    pub body_bytes: usize,
}

impl Default for CaptureSettings {
    fn default() -> Self {
        Self { is_for_all: false, body_bytes: 256 * 1024 }
    }
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            is_enabled: true,
            ttl_ms: 30 * 60 * 1_000,
            memory_bytes: 64 * 1024 * 1024,
            disk_bytes: 256 * 1024 * 1024,
            wants_vectors: false,
            threshold: 0.8,
            learns: false,
            notes_near_misses: false,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { require_login: true, cors_origins: Vec::new(), unpriced_models: UnpricedModels::Allow }
    }
}

#[derive(Deserialize)]
struct Session {
    #[serde(deserialize_with = "hash_from_hex")]
    hash: SecretHash,
    user_id: String,
    expires_at_ms: u64,
    /// Before there were roles, every session was the operator's.
    #[serde(default = "yes")]
    manages: bool,
}

/// What an access token may do; each scope has what those before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    Read,
    Write,
    Admin,
}

impl TokenScope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// A management access token, `flm_...`.
#[derive(Debug, Clone, Deserialize)]
pub struct ManagementToken {
    pub id: String,
    #[serde(deserialize_with = "hash_from_hex")]
    pub hash: SecretHash,
    pub scope: TokenScope,
    #[serde(default)]
    pub expires_at_ms: Option<u64>,
}

#[derive(Deserialize)]
struct ModelPrice {
    model: String,
    #[serde(flatten)]
    price: Price,
}

#[derive(Deserialize)]
struct Document {
    version: u64,
    #[serde(default)]
    settings: Settings,
    #[serde(default)]
    resilience: Resilience,
    #[serde(default)]
    cache: CacheSettings,
    #[serde(default)]
    capture: CaptureSettings,
    #[serde(default)]
    guardrails: Guardrails,
    #[serde(default)]
    context: ContextSettings,
    #[serde(default, deserialize_with = "optional_hash")]
    local_token_hash: Option<SecretHash>,
    #[serde(default)]
    keys: Vec<Key>,
    #[serde(default)]
    groups: Vec<Group>,
    #[serde(default)]
    sessions: Vec<Session>,
    #[serde(default)]
    tokens: Vec<ManagementToken>,
    #[serde(default)]
    connections: Vec<Connection>,
    #[serde(default)]
    account_strategies: AccountStrategies,
    #[serde(default)]
    models: Vec<Model>,
    #[serde(default)]
    prices: Vec<ModelPrice>,
    #[serde(default)]
    combos: Vec<Combo>,
    #[serde(default)]
    aliases: HashMap<String, String>,
    #[serde(default)]
    mappings: Vec<Mapping>,
    #[serde(default)]
    search_usd_micros: u64,
    #[serde(default)]
    proxies: Vec<ProxyRecord>,
    #[serde(default)]
    ip_filter: IpFilter,
}

/// Models that a combo serves in their place.
#[derive(Debug, Deserialize)]
struct Mapping {
    pattern: String,
    combo: String,
}

/// The configuration, indexed for the questions that a request asks.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub version: u64,
    pub settings: Settings,
    pub resilience: Arc<Resilience>,
    pub cache: CacheSettings,
    pub capture: CaptureSettings,
    pub guardrails: Guardrails,
    pub context: ContextSettings,
    pub local_token_hash: Option<SecretHash>,
    /// By priority, then by id.
    pub connections: Vec<Arc<Connection>>,
    pub account_strategies: AccountStrategies,
    pub models: Vec<Model>,
    pub combos: Vec<Combo>,
    /// What a search costs at the dearest of the providers that may be asked, micro-dollars.
    pub search_usd_micros: u64,
    pub proxies: Vec<ProxyRecord>,
    pub ip_filter: IpFilter,
    aliases: HashMap<String, String>,
    /// The one that holds first.
    mappings: Vec<Mapping>,
    keys: HashMap<SecretHash, Arc<Key>>,
    groups: GroupTree,
    sessions: HashMap<SecretHash, (Arc<str>, bool, u64)>,
    tokens: HashMap<SecretHash, Arc<ManagementToken>>,
    by_prefix: HashMap<String, Vec<usize>>,
    prices: HashMap<String, Price>,
    /// Of names with capitals, by the same in lower case: a provider may take another spelling all the same.
    prices_any_case: HashMap<String, Price>,
    model_index: HashMap<String, usize>,
    /// How providers spell models whose names have another spelling here.
    spellings: HashMap<String, String>,
    /// Models by their names without the prefix.
    by_bare: HashMap<String, Vec<usize>>,
}

/// The document is not a snapshot.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot cannot be read: {0}")]
pub struct Unreadable(#[from] serde_json::Error);

impl Snapshot {
    pub fn parse(json: &[u8]) -> Result<Self, Unreadable> {
        let mut document: Document = serde_json::from_slice(json)?;
        let spellings = name_once(&mut document);
        let mut connections: Vec<Arc<Connection>> = document.connections.into_iter().map(Arc::new).collect();
        connections.sort_by(|a, b| (a.priority, &a.id).cmp(&(b.priority, &b.id)));
        let mut by_prefix: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, connection) in connections.iter().enumerate() {
            for prefix in &connection.prefixes {
                by_prefix.entry(prefix.clone()).or_default().push(index);
            }
        }
        let model_index = document.models.iter().enumerate().map(|(index, model)| (model.id.clone(), index)).collect();
        let mut by_bare: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, model) in document.models.iter().enumerate() {
            if let Some((_, bare)) = model.id.split_once('/') {
                by_bare.entry(bare.to_owned()).or_default().push(index);
            }
        }
        let mut prices: HashMap<String, Price> = HashMap::with_capacity(document.prices.len());
        let mut prices_any_case: HashMap<String, Price> = HashMap::new();
        for entry in document.prices {
            if has_capitals(&entry.model) {
                let any_case =
                    prices_any_case.entry(entry.model.to_ascii_lowercase()).or_insert_with(|| entry.price.clone());
                // Which of two was meant is unknown: the dearer one is never too little.
                if (entry.price.output, entry.price.input) > (any_case.output, any_case.input) {
                    any_case.clone_from(&entry.price);
                }
            }
            prices.insert(entry.model, entry.price);
        }
        let groups = GroupTree::new(document.groups);
        for key in &mut document.keys {
            key.groups = groups.path(key.group.as_deref());
            key.group_path = path_text(&key.groups);
        }
        Ok(Self {
            groups,
            spellings,
            prices,
            prices_any_case,
            model_index,
            by_bare,
            version: document.version,
            resilience: Arc::new(document.resilience),
            settings: document.settings,
            cache: document.cache,
            capture: document.capture,
            guardrails: document.guardrails,
            context: document.context,
            local_token_hash: document.local_token_hash,
            connections,
            account_strategies: document.account_strategies,
            models: document.models,
            combos: document.combos,
            search_usd_micros: document.search_usd_micros,
            proxies: document.proxies,
            ip_filter: document.ip_filter,
            aliases: document.aliases,
            mappings: document.mappings,
            keys: document.keys.into_iter().map(|key| (key.hash, Arc::new(key))).collect(),
            sessions: document
                .sessions
                .into_iter()
                .map(|session| (session.hash, (Arc::from(session.user_id), session.manages, session.expires_at_ms)))
                .collect(),
            tokens: document.tokens.into_iter().map(|token| (token.hash, Arc::new(token))).collect(),
            by_prefix,
        })
    }

    /// Looked up by the hash of a 256-bit random secret: what time a miss takes tells nothing of any other key.
    pub fn key(&self, hash: &SecretHash) -> Option<&Arc<Key>> {
        self.keys.get(hash)
    }

    pub fn has_group(&self, id: &str) -> bool {
        self.groups.contains(id)
    }

    /// Whose session it is, and whether that person may manage the gateway.
    pub fn session(&self, hash: &SecretHash, now_ms: u64) -> Option<(Arc<str>, bool)> {
        let (user_id, manages, expires_at_ms) = self.sessions.get(hash)?;
        (*expires_at_ms > now_ms).then(|| (Arc::clone(user_id), *manages))
    }

    pub fn token(&self, hash: &SecretHash) -> Option<&Arc<ManagementToken>> {
        self.tokens.get(hash)
    }

    /// By id; a walk over all keys, for the few calls that control makes for one.
    pub fn key_of(&self, id: &str) -> Option<&Arc<Key>> {
        self.keys.values().find(|key| key.id == id)
    }

    /// The connections that a prefix addresses, most preferred first, as indices into `connections`.
    pub fn candidates(&self, prefix: &str) -> &[usize] {
        self.by_prefix.get(prefix).map_or(&[], Vec::as_slice)
    }

    pub fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.values()
    }

    /// An entry of the model list. `id` with its prefix.
    pub fn model(&self, id: &str) -> Option<&Model> {
        self.model_index.get(id).and_then(|&index| self.models.get(index))
    }

    /// Models of this name without their prefix.
    pub fn models_named(&self, bare: &str) -> impl Iterator<Item = &Model> {
        self.by_bare.get(bare).into_iter().flatten().filter_map(|&index| self.models.get(index))
    }

    /// `model` with its prefix.
    pub fn price(&self, model: &str) -> Option<&Price> {
        self.prices.get(model).or_else(|| {
            if self.prices_any_case.is_empty() && !has_capitals(model) {
                return None;
            }
            let any_case = model.to_ascii_lowercase();
            self.prices.get(&any_case).or_else(|| self.prices_any_case.get(&any_case))
        })
    }

    /// The one name of what a caller asks for: a model's, an alias's or a combo's. A name that an operator or a provider wrote
    /// down is that name however it looks.
    pub fn name<'n>(&self, asked: &'n str) -> Result<Cow<'n, str>, Error> {
        let fault = match model_name::canonical(asked) {
            Ok(Cow::Borrowed(name)) => return Ok(Cow::Borrowed(name)),
            Ok(Cow::Owned(name)) if !self.is_written_down(asked) => return Ok(Cow::Owned(name)),
            Err(fault) if !self.is_written_down(asked) && !self.model_index.contains_key(asked) => fault,
            _ => return Ok(Cow::Borrowed(asked)),
        };
        Err(Error::client(ErrorKind::InvalidRequest, format!("`model` {fault}.")).about("model"))
    }

    fn is_written_down(&self, name: &str) -> bool {
        let combo = name.strip_prefix("combo/").unwrap_or(name);
        self.aliases.contains_key(name) || self.combos.iter().any(|one| one.name == name || one.name == combo)
    }

    /// A model as its provider spells it, by its one name with the prefix.
    pub fn spelling(&self, name: &str) -> Option<&str> {
        self.spellings.get(name).map(String::as_str)
    }

    /// Every alias with what it stands for.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, target)| (alias.as_str(), target.as_str()))
    }

    /// What a name stands for where it is an alias, of a model or a combo, or a model that is mapped to a combo. An alias and a
    /// combo of a name go before a pattern that matches it.
    pub fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.get(name).map(String::as_str).or_else(|| self.mapped(name))
    }

    fn mapped(&self, name: &str) -> Option<&str> {
        if self.mappings.is_empty() || is_auto(name) || name.starts_with("combo/") {
            return None;
        }
        let mapping = self.mappings.iter().find(|mapping| is_named(&mapping.pattern, name, Case::Told))?;
        self.combos.iter().all(|combo| combo.name != name).then_some(mapping.combo.as_str())
    }
}

/// Gives every model of the document its one name, and tells how providers spell those that were named otherwise.
fn name_once(document: &mut Document) -> HashMap<String, String> {
    let own = |name: &str| match model_name::canonical(name) {
        Ok(Cow::Owned(own)) if !name.contains('*') => Some(own),
        // What cannot be named otherwise is named as it is; patterns know every spelling.
        _ => None,
    };
    let mut spellings = HashMap::new();
    let is_other = |id: &str| own(id).is_some();
    let ids = document.models.iter().map(|model| &model.id);
    let listed: HashSet<String> =
        if ids.clone().any(|id| is_other(id)) { ids.cloned().collect() } else { HashSet::new() };
    document.models.retain_mut(|model| {
        let Some(name) = own(&model.id) else { return true };
        if listed.contains(&name) {
            return false;
        }
        if let Some((_, spelled)) = model.id.split_once('/') {
            if spellings.insert(name.clone(), spelled.to_owned()).is_some() {
                return false;
            }
        }
        model.id = name;
        true
    });
    // A price by the name itself goes before one by another spelling of it.
    let ids = document.prices.iter().map(|entry| &entry.model);
    let priced: HashSet<String> =
        if ids.clone().any(|id| is_other(id)) { ids.cloned().collect() } else { HashSet::new() };
    document.prices.retain_mut(|entry| {
        let Some(name) = own(&entry.model) else { return true };
        if priced.contains(&name) {
            return false;
        }
        entry.model = name;
        true
    });
    let rename = |name: &mut String| {
        if let Some(name_once) = own(name) {
            *name = name_once;
        }
    };
    for key in &mut document.keys {
        key.forced_model.iter_mut().for_each(rename);
        for limit in &mut key.limits {
            if let LimitScope::Model(name) = &mut limit.scope {
                rename(name);
            }
        }
    }
    document.aliases.values_mut().for_each(rename);
    for step in document.combos.iter_mut().flat_map(|combo| &mut combo.steps) {
        if let What::Model { model, .. } = &mut step.what {
            rename(model);
        }
    }
    spellings
}

fn has_capitals(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn hash_from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretHash, D::Error> {
    let text = String::deserialize(deserializer)?;
    SecretHash::from_hex(&text).ok_or_else(|| serde::de::Error::custom("a hash is 64 hex digits"))
}

fn optional_hash<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretHash>, D::Error> {
    match Option::<String>::deserialize(deserializer)? {
        None => Ok(None),
        Some(text) => {
            SecretHash::from_hex(&text).map(Some).ok_or_else(|| serde::de::Error::custom("a hash is 64 hex digits"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{
        "version": 3, "compiled_at_ms": 1, "settings": {"require_login": true, "added_later": 1},
        "local_token_hash": null,
        "keys": [{"id": "k", "hash": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", "is_active": true}],
        "connections": [
            {"id": "b", "provider": "n1", "prefixes": ["lab", "n1"], "dialect": "openai", "base_url": "http://x", "auth": "none", "priority": 9},
            {"id": "a", "provider": "n1", "prefixes": ["lab"], "dialect": "openai", "base_url": "http://y", "auth": "bearer", "priority": 1}
        ],
        "prices": [{"model": "lab/m", "input": 5, "output": 7}]
    }"#;

    #[test]
    fn a_document_is_indexed_and_unknown_fields_are_let_be() {
        let snapshot = Snapshot::parse(DOCUMENT.as_bytes()).expect("a snapshot");
        assert_eq!(snapshot.version, 3);
        assert_eq!(snapshot.key(&SecretHash::of(b"x")).map(|key| key.id.as_str()), Some("k"));
        let ids: Vec<_> =
            snapshot.candidates("lab").iter().map(|&index| snapshot.connections[index].id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(snapshot.candidates("none"), [] as [usize; 0]);
        assert_eq!(snapshot.price("lab/m").map(|price| price.output), Some(7));
    }

    #[test]
    fn every_spelling_of_a_model_is_one_name() {
        let json = r#"{"version": 1,
            "models": [{"id": "g/models/pro", "provider": "g", "context_length": 7}, {"id": "v//srv/llama", "provider": "v"}],
            "prices": [{"model": "g/models/pro", "output": 3}, {"model": "v/Qwen/Big", "output": 5}],
            "aliases": {"best": "g/models/pro", "odd//one": "g/pro"}}"#;
        let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
        let name = |asked: &str| snapshot.name(asked).map(Cow::into_owned).map_err(|error| error.kind);
        for asked in ["g/pro", "g/models/pro", "g/models/Models/pro"] {
            assert_eq!(name(asked), Ok("g/pro".to_owned()), "{asked}");
        }
        assert_eq!(snapshot.model("g/pro").and_then(|model| model.context_length), Some(7));
        assert_eq!((snapshot.spelling("g/pro"), snapshot.alias("best")), (Some("models/pro"), Some("g/pro")));
        assert_eq!(snapshot.price("g/pro").map(|price| price.output), Some(3));
        assert_eq!(snapshot.price("v/qwen/big").map(|price| price.output), Some(5), "free in no spelling");
        // What somebody wrote down is a name, however it looks; nothing else of that look is.
        assert_eq!(name("v//srv/llama"), Ok("v//srv/llama".to_owned()));
        assert_eq!(name("odd//one"), Ok("odd//one".to_owned()));
        assert_eq!(name("v//srv/other"), Err(ErrorKind::InvalidRequest));
    }

    #[test]
    fn a_model_that_is_mapped_stands_for_its_combo() {
        let json = r#"{"version": 1, "aliases": {"lab/nick": "lab/m"},
            "combos": [{"id": "c", "name": "fast", "steps": []}, {"id": "d", "name": "lab/own", "steps": []}],
            "mappings": [{"pattern": "lab/gpt-*", "combo": "fast"}, {"pattern": "lab/*", "combo": "lab/own"}]}"#;
        let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
        let told = ["lab/gpt-5", "lab/x", "lab/nick", "lab/own", "other/gpt-5", "combo/fast", "auto"];
        let stands_for = told.map(|name| snapshot.alias(name));
        assert_eq!(stands_for, [Some("fast"), Some("lab/own"), Some("lab/m"), None, None, None, None]);
    }

    #[test]
    fn a_broken_document_is_an_error() {
        assert!(Snapshot::parse(b"{}").is_err());
        assert!(
            Snapshot::parse(b"{\"version\":1,\"keys\":[{\"id\":\"k\",\"hash\":\"zz\",\"is_active\":true}]}").is_err()
        );
    }
}
