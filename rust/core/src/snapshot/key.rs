//! Who may call, and what a key says of its calls: gateway keys and management tokens.

use super::settings::UnpricedModels;
use crate::access::Access;
use crate::chaos::Chaos;
use crate::group::Group;
use crate::ip_filter::AddressSet;
use crate::limit::Limit;
use crate::schedule::Schedule;
use crate::secret::{hash_from_hex, SecretHash};
use serde::Deserialize;
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
    #[serde(flatten)]
    pub access: Access,
    #[serde(default)]
    pub allowed_endpoints: Vec<String>,
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
    /// The outbound proxy of this key's calls, which goes before every other: an id, or [`crate::snapshot::DIRECT`].
    #[serde(default)]
    pub proxy: Option<String>,
    /// The service tier that its conversations are asked for in, whatever they say.
    #[serde(default)]
    pub tool_service_mode: ServiceMode,
    /// The choice for members that a provider does not accept; absent: the connection's.
    #[serde(default)]
    pub inexpressible: Option<Inexpressible>,
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

    /// What it may call, and what each of its groups may, nearest first.
    pub fn levels(&self) -> impl Iterator<Item = &Access> {
        std::iter::once(&self.access).chain(self.groups.iter().map(|group| &group.access))
    }

    /// Whether it, or one of its groups, may not call some model.
    pub fn has_blocks(&self) -> bool {
        self.levels().any(|access| !access.blocked_models.is_empty())
    }

    pub fn may_manage(&self) -> bool {
        self.scopes.iter().any(|scope| scope == "manage" || scope == "admin")
    }
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

/// The choice for members that a provider does not accept, where leaving them out changes the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inexpressible {
    /// The request is refused.
    Refuse,
    /// The members are left out.
    Drop,
}

impl Inexpressible {
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Drop => "drop",
        }
    }
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

fn yes() -> bool {
    true
}
