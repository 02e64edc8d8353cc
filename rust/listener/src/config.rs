//! The listener's configuration, which the supervisor passes as JSON together with the engine's configuration
//! (`docs/explanation/contracts.md`).

use serde::Deserialize;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long a head may take from its first byte. The time for the first head starts with the connection and includes
/// the handshake.
pub const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection may stay open without a request.
pub const IDLE: Duration = Duration::from_secs(75);
/// A connection is closed after this many requests, so that callers are distributed over threads and instances.
pub const MAX_REQUESTS: u32 = 10_000;
/// How long after the drain's deadline the listener waits for a caller that does not read its answer.
pub const DRAIN_GRACE: Duration = Duration::from_millis(500);
/// The largest head that is read, in bytes. The engine's limit is lower and is reported with a message.
pub const MAX_HEAD_BYTES: usize = 128 * 1024;

/// The listener's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A numeric address.
    pub host: IpAddr,
    pub port: u16,
    pub threads: usize,
    /// The maximum number of open connections. Further callers get a 503. The limit is at most half of the file
    /// descriptors that the process may have, because an open stream uses two.
    pub max_connections: usize,
    /// The maximum number of open connections per address (in IPv6, per /64 network); 0 means no limit.
    #[serde(default)]
    pub max_connections_per_address: usize,
    #[serde(default)]
    pub tls_certificate: Option<PathBuf>,
    #[serde(default)]
    pub tls_key: Option<PathBuf>,
}
