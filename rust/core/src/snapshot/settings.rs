//! Settings that hold for the whole gateway: of the relay, of its cache and of the capture of bodies.

use serde::Deserialize;

/// The treatment of calls to models without a price, where a limit in dollars holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnpricedModels {
    #[default]
    Allow,
    Refuse,
}

/// The treatment of a model's name without a provider's prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BareModels {
    /// The model of the one provider that the caller may use and that lists it.
    #[default]
    Resolve,
    Refuse,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub require_login: bool,
    /// Origins whose pages may call where a key is shown, as browsers send them.
    pub cors_origins: Vec<String>,
    pub unpriced_models: UnpricedModels,
    pub bare_models: BareModels,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            require_login: true,
            cors_origins: Vec::new(),
            unpriced_models: UnpricedModels::Allow,
            bare_models: BareModels::Resolve,
        }
    }
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
    /// In the store that workers share, of all of them together; 0: nothing is left there, and nothing looked for.
    pub shared_bytes: u64,
    pub wants_vectors: bool,
    pub threshold: f32,
    /// Partitions learn thresholds of their own.
    pub learns: bool,
    /// Whether questions that were nearly answered are noted, with their texts.
    pub notes_near_misses: bool,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            is_enabled: true,
            ttl_ms: 30 * 60 * 1_000,
            memory_bytes: 64 * 1024 * 1024,
            disk_bytes: 256 * 1024 * 1024,
            shared_bytes: 64 * 1024 * 1024,
            wants_vectors: false,
            threshold: 0.8,
            learns: false,
            notes_near_misses: false,
        }
    }
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
