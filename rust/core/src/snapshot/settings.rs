//! Global settings of the relay, its cache and its body capture.

use serde::Deserialize;

/// How calls to models without a price are handled if a dollar limit applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnpricedModels {
    #[default]
    Allow,
    Refuse,
}

/// How a model name without a provider prefix is handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BareModels {
    /// Resolves to the model if exactly one provider that the caller may use has it.
    #[default]
    Resolve,
    Refuse,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub require_login: bool,
    /// Origins that may call with an API key, in the form that browsers send.
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

/// The settings of the response cache.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct CacheSettings {
    pub is_enabled: bool,
    pub ttl_ms: u64,
    pub memory_bytes: usize,
    /// 0 disables the disk cache.
    pub disk_bytes: u64,
    /// The size of the cache in the shared store, for all workers together. 0 disables it for reads and writes.
    pub shared_bytes: u64,
    pub wants_vectors: bool,
    pub threshold: f32,
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
        }
    }
}

/// Which request and response bodies are captured, and how much of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CaptureSettings {
    /// Captures all keys and callers. Otherwise only keys that enable capture.
    pub is_for_all: bool,
    /// The maximum number of bytes captured of each body.
    pub body_bytes: usize,
}

impl Default for CaptureSettings {
    fn default() -> Self {
        Self { is_for_all: false, body_bytes: 256 * 1024 }
    }
}
