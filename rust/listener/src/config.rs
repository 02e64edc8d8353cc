//! The listener's configuration, which the supervisor hands over as JSON beside the engine's own configuration (`docs/explanation/contracts.md`).

use serde::Deserialize;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long a head may take, from its first byte or, for the first one, from the connection's beginning with its handshake.
pub const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection may stay open with nothing asked.
pub const IDLE: Duration = Duration::from_secs(75);
/// After so many requests a connection is closed, so that callers spread over threads and instances.
pub const MAX_REQUESTS: u32 = 10_000;
/// How long after the drain's deadline a caller that still holds its connection up is waited for.
pub const DRAIN_GRACE: Duration = Duration::from_millis(500);
/// The largest head that is read, in bytes. The engine refuses smaller ones, in words.
pub const MAX_HEAD_BYTES: usize = 128 * 1024;

/// The listener's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A numeric address.
    pub host: IpAddr,
    pub port: u16,
    pub threads: usize,
    /// Open connections at once; a caller above it is answered 503. Half of the descriptors that the process may have is the limit
    /// where that is less: an open stream holds two.
    pub max_connections: usize,
    /// Open connections of one address (in IPv6: of one /64 network) at once; 0 for no limit of its own.
    #[serde(default)]
    pub max_connections_per_address: usize,
    #[serde(default)]
    pub tls_certificate: Option<PathBuf>,
    #[serde(default)]
    pub tls_key: Option<PathBuf>,
}
