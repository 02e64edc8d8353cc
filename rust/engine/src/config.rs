//! Settings from the supervisor, as JSON in `FAIRLEAD_RELAY_CONFIG` (`docs/explanation/contracts.md`).

use crate::observe::trace::Sampling;
use crate::shared_store::StoreConfig;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_cache::VectorFiles;
use fairlead_core::{Sealer, Secret};
use serde::Deserialize;
use std::path::PathBuf;

/// The JSON document.
#[derive(Deserialize)]
struct Document {
    data_dir: PathBuf,
    control_socket: PathBuf,
    link_token: String,
    secret_key: String,
    other_secret_key: Option<String>,
    #[serde(default)]
    require_api_key: bool,
    #[serde(default = "default_streams")]
    max_open_streams: usize,
    #[serde(default = "default_streams")]
    max_in_flight: usize,
    #[serde(default = "default_heartbeat_ms")]
    heartbeat_ms: u64,
    #[serde(default = "default_drain_ms")]
    drain_ms: u64,
    #[serde(default)]
    drain_delay_ms: u64,
    #[serde(default = "default_body_idle_ms")]
    body_idle_ms: u64,
    #[serde(default = "default_socket_life_ms")]
    socket_life_ms: u64,
    #[serde(default)]
    host_names: Vec<String>,
    #[serde(default)]
    trusted_proxies: usize,
    #[serde(default)]
    version: String,
    #[serde(default)]
    tracing: Option<Sampling>,
    vectors: Option<VectorFiles>,
    shared_store: Option<StoreConfig>,
    #[serde(default)]
    keeps_snapshot: bool,
}

fn default_streams() -> usize {
    10_000
}
fn default_heartbeat_ms() -> u64 {
    15_000
}
fn default_drain_ms() -> u64 {
    30_000
}
fn default_body_idle_ms() -> u64 {
    30_000
}
fn default_socket_life_ms() -> u64 {
    7_200_000
}

/// The engine's configuration.
#[derive(Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub control_socket: PathBuf,
    pub link_token: Secret,
    pub sealer: Sealer,
    pub require_api_key: bool,
    pub max_open_streams: usize,
    pub max_in_flight: usize,
    pub heartbeat_ms: u64,
    pub drain_ms: u64,
    /// How long a worker continues to serve after a request to stop.
    pub drain_delay_ms: u64,
    pub body_idle_ms: u64,
    /// The maximum lifetime of a WebSocket.
    pub socket_life_ms: u64,
    /// Host names of the gateway, in addition to `localhost` and addresses.
    pub host_names: Vec<String>,
    /// The number of the operator's proxies in front of the gateway. With 0, forwarded addresses are ignored.
    pub trusted_proxies: usize,
    pub version: String,
    /// `None`: trace headers are forwarded and no spans are recorded.
    pub tracing: Option<Sampling>,
    /// The files of the word vectors, if they are installed.
    pub vectors: Option<VectorFiles>,
    /// `None`: this worker enforces limits alone.
    pub shared_store: Option<StoreConfig>,
    /// Control runs on another machine, so this worker writes `snapshot.json` itself.
    pub keeps_snapshot: bool,
}

/// The configuration is invalid. The supervisor wrote it, so this is a defect rather than a user's mistake.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the relay configuration is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`secret_key` and `other_secret_key` must be base64 of 32 bytes")]
    SecretKey,
}

impl Config {
    pub fn parse(json: &[u8]) -> Result<Self, ConfigError> {
        let document: Document = serde_json::from_slice(json)?;
        let sealer =
            sealer(&document.secret_key, document.other_secret_key.as_deref()).ok_or(ConfigError::SecretKey)?;
        Ok(Self {
            data_dir: document.data_dir,
            control_socket: document.control_socket,
            link_token: document.link_token.into(),
            sealer,
            require_api_key: document.require_api_key,
            max_open_streams: document.max_open_streams,
            max_in_flight: document.max_in_flight,
            heartbeat_ms: document.heartbeat_ms,
            drain_ms: document.drain_ms,
            drain_delay_ms: document.drain_delay_ms,
            body_idle_ms: document.body_idle_ms,
            socket_life_ms: document.socket_life_ms,
            host_names: document.host_names,
            trusted_proxies: document.trusted_proxies,
            version: document.version,
            tracing: document.tracing,
            vectors: document.vectors,
            shared_store: document.shared_store,
            keeps_snapshot: document.keeps_snapshot,
        })
    }
}

fn sealer(key: &str, other: Option<&str>) -> Option<Sealer> {
    let sealer = Sealer::new(&STANDARD.decode(key).ok()?)?;
    match other {
        Some(other) => sealer.with_other(&STANDARD.decode(other).ok()?),
        None => Some(sealer),
    }
}
