//! Gateway keys and management tokens: who may call, and the settings of their calls.

use super::settings::UnpricedModels;
use crate::access::{matches_pattern, Access};
use crate::chaos::Chaos;
use crate::group::Group;
use crate::inexpressible::Inexpressible;
use crate::ip_filter::AddressSet;
use crate::limit::Limit;
use crate::schedule::Schedule;
use crate::secret::{hash_from_hex, SecretHash};
use serde::Deserialize;
use std::sync::Arc;

/// The part of a gateway API key that the relay needs.
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
    /// Ids of objects in the provider's account that requests may name. `*` stands for any text.
    #[serde(default)]
    pub allowed_provider_objects: Vec<String>,
    #[serde(default)]
    pub allowed_endpoints: Vec<String>,
    #[serde(default = "yes")]
    pub allow_auto_combos: bool,
    #[serde(default)]
    pub catalog_scope: CatalogScope,
    #[serde(default)]
    pub no_log: bool,
    /// Requests and responses are captured, unless the key disables logging.
    #[serde(default)]
    pub capture_bodies: bool,
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Replaces the model in every request.
    #[serde(default)]
    pub forced_model: Option<String>,
    /// The key may not call models that are missing from the model list.
    #[serde(default)]
    pub disable_non_public_models: bool,
    #[serde(default)]
    pub throttle_delay_ms: u64,
    /// 0 means unlimited.
    #[serde(default)]
    pub max_sessions: usize,
    /// The response format for a request without `stream`.
    #[serde(default)]
    pub stream_default_mode: StreamDefaultMode,
    #[serde(default)]
    pub cache_default_mode: CacheDefaultMode,
    /// A model name without a prefix resolves to the most preferred connection that has the model.
    #[serde(default)]
    pub auto_resolve: bool,
    /// Guardrails that do not run for this key.
    #[serde(default)]
    pub disabled_guardrails: Vec<String>,
    /// Whether this key's conversations may be compressed when the request does not ask for it.
    #[serde(default = "yes")]
    pub compression_enabled: bool,
    /// Absent: the global setting applies.
    #[serde(default)]
    pub unpriced_models: Option<UnpricedModels>,
    #[serde(default)]
    pub access_schedule: Option<Schedule>,
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// The client addresses that are allowed. Empty allows all.
    #[serde(default)]
    pub ip_allowlist: AddressSet,
    /// The outbound proxy of this key's calls, which overrides all other levels: an id, or [`crate::snapshot::DIRECT`].
    #[serde(default)]
    pub proxy: Option<String>,
    /// The service tier that overrides the tier in the request.
    #[serde(default)]
    pub tool_service_mode: ServiceMode,
    /// How members that a provider does not accept are handled. Absent: the setting of the nearest group applies, or else
    /// the connection's.
    #[serde(default)]
    pub inexpressible: Option<Inexpressible>,
    /// The key may query the remaining quota of its limits, also through a chat command.
    #[serde(default)]
    pub allow_usage_command: bool,
    /// Faults injected into this key's calls.
    #[serde(default)]
    pub chaos: Option<Chaos>,
    /// The id of the key's group.
    #[serde(default)]
    pub group: Option<String>,
    /// The key's group and its ancestors, nearest first.
    #[serde(skip)]
    pub groups: Vec<Arc<Group>>,
    /// The ids of the key's groups from the root down, separated by `/`. Absent for a key without a group.
    #[serde(skip)]
    pub group_path: Option<String>,
    /// The tags for usage reports, including those of the groups, separated by commas and enclosed in commas.
    #[serde(default)]
    pub tags: Option<String>,
}

impl Key {
    /// Returns the key's own limits, followed by those of its groups, nearest first.
    pub fn all_limits(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter().chain(self.groups.iter().flat_map(|group| &group.limits))
    }

    pub fn has_limits(&self) -> bool {
        self.all_limits().next().is_some()
    }

    /// Returns the access rules of the key and of each of its groups, nearest first.
    pub fn levels(&self) -> impl Iterator<Item = &Access> {
        std::iter::once(&self.access).chain(self.groups.iter().map(|group| &group.access))
    }

    /// Returns whether the key or one of its groups blocks any model.
    pub fn has_blocks(&self) -> bool {
        self.levels().any(|access| !access.blocked_models.is_empty())
    }

    /// Returns whether requests may name this object of the provider's account.
    pub fn admits_object(&self, id: &str) -> bool {
        self.allowed_provider_objects.iter().any(|pattern| matches_pattern(pattern, id))
    }

    pub fn may_manage(&self) -> bool {
        self.scopes.iter().any(|scope| scope == "manage" || scope == "admin")
    }
}

/// The part of the model list that a key sees. Does not affect what the key may call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatalogScope {
    #[default]
    All,
    Combos,
    Models,
}

/// The response format for a request without `stream`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamDefaultMode {
    /// A stream if `Accept` includes `text/event-stream`.
    #[default]
    Legacy,
    /// A stream only if `Accept` allows nothing else.
    Json,
}

/// Whether a key's requests use the response cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheDefaultMode {
    #[default]
    Legacy,
    /// Every request goes to the provider.
    Bypass,
}

/// The service tier that is requested for a key's conversations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceMode {
    /// The tier in the request.
    #[default]
    Inherit,
    Default,
    Priority,
    Flex,
}

/// The permissions of an access token. Each scope includes the scopes before it.
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
