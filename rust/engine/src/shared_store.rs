//! The Redis or Valkey that relay workers share: its address, and connections to it.
//!
//! It is one server or a cluster. A cluster distributes keys over its servers, and all keys of one script must be in
//! one slot. Scripts for idempotency and for cached responses use one key each, and all limits are in one slot
//! (`leases::store`).

use fairlead_core::{Secret, StoreLoss};
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, Slot, SlotAddr};
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, Value};
use serde::Deserialize;
use std::time::Duration;

/// One server of a cluster may be down while the others report the current slots. Each connection attempt has this part
/// of the deadline.
const PART_OF_CONNECTING: u32 = 4;
/// A command to a cluster is retried if its key has moved or temporarily has no server, within the deadline.
const RETRIES: u32 = 6;
const RETRY_LEAST_MS: u64 = 10;
const RETRY_MOST_MS: u64 = 200;
/// The maximum number of commands that are written together.
const WRITTEN_TOGETHER: usize = 64;

/// How to reach the store, as configured by the supervisor.
#[derive(Debug, Clone, Deserialize)]
pub struct StoreConfig {
    pub url: Secret,
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    #[serde(default = "default_lease_ms")]
    pub lease_ms: u64,
    #[serde(default)]
    pub on_loss: OnLoss,
    /// The minimum number of nodes, whether or not the store knows them.
    #[serde(default = "one")]
    pub workers: u64,
}

fn one() -> u64 {
    1
}

fn default_timeout_ms() -> u64 {
    1_000
}
fn default_lease_ms() -> u64 {
    30_000
}

/// The rule for limits while the store is unavailable.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLoss {
    #[default]
    FairShare,
    Refuse,
}

impl From<OnLoss> for StoreLoss {
    fn from(on_loss: OnLoss) -> Self {
        match on_loss {
            OnLoss::FairShare => Self::FairShare,
            OnLoss::Refuse => Self::Refuse,
        }
    }
}

impl StoreConfig {
    /// The host and port, without credentials and query.
    pub fn address(&self) -> String {
        let url = self.url.expose();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
        format!("{scheme}://{hosts}")
    }

    /// The deadline of one command.
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Connects within the deadline.
    pub async fn connect(&self) -> Result<StoreConnection, RedisError> {
        let address = StoreAddress::parse(self.url.expose());
        let connecting = async {
            if address.is_cluster {
                self.connect_cluster(address.servers).await.map(StoreConnection::Cluster)
            } else {
                self.connect_server(&address.servers[0]).await.map(StoreConnection::Server)
            }
        };
        tokio::time::timeout(self.deadline(), connecting).await.map_err(late)?
    }

    async fn connect_server(&self, server: &str) -> Result<MultiplexedConnection, RedisError> {
        let options = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.deadline()))
            .set_response_timeout(Some(self.deadline()))
            .set_pipeline_buffer_size(WRITTEN_TOGETHER);
        Client::open(server)?.get_multiplexed_async_connection_with_config(&options).await
    }

    async fn connect_cluster(&self, servers: Vec<String>) -> Result<ClusterConnection, RedisError> {
        let client = ClusterClient::builder(servers)
            .connection_timeout(self.deadline() / PART_OF_CONNECTING)
            .response_timeout(self.deadline())
            .retries(RETRIES)
            .min_retry_wait(RETRY_LEAST_MS)
            .max_retry_wait(RETRY_MOST_MS)
            .build()?;
        client.get_async_connection().await
    }

    /// Subscribes to these channels within the deadline. In a cluster every server forwards published messages, so the
    /// first server that responds is sufficient. Each `turn` starts with a different server.
    pub async fn subscribe(&self, channels: &[&str], turn: usize) -> Result<PubSub, RedisError> {
        let mut servers = StoreAddress::parse(self.url.expose()).servers;
        let first = turn % servers.len();
        servers.rotate_left(first);
        let deadline = self.deadline() / u32::try_from(servers.len()).unwrap_or(u32::MAX);
        let mut fault = late(());
        for server in servers {
            let subscribing = async {
                let mut subscription = Client::open(server)?.get_async_pubsub().await?;
                subscription.subscribe(channels).await?;
                Ok(subscription)
            };
            match tokio::time::timeout(deadline, subscribing).await.unwrap_or_else(|_| Err(late(()))) {
                Ok(subscription) => return Ok(subscription),
                Err(failed) => fault = failed,
            }
        }
        Err(fault)
    }
}

fn late<T>(_: T) -> RedisError {
    RedisError::from((ErrorKind::Io, "no answer in time"))
}

/// The servers of an address, each with a separate address.
struct StoreAddress {
    servers: Vec<String>,
    is_cluster: bool,
}

impl StoreAddress {
    /// Parses `redis://user:password@host:port/number`. Several hosts separated by commas are servers of one cluster,
    /// which may have more servers. A single host is a cluster with `?cluster=true`. The supervisor has checked the
    /// address.
    fn parse(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, number) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), authority),
        };
        let servers: Vec<String> = hosts.split(',').map(|host| format!("{scheme}://{user}{host}/{number}")).collect();
        let is_cluster = servers.len() > 1 || query == "cluster=true";
        Self { servers, is_cluster }
    }
}

/// A connection for concurrent use.
#[derive(Clone)]
pub enum StoreConnection {
    Server(MultiplexedConnection),
    /// One connection to each server of a cluster.
    Cluster(ClusterConnection),
}

impl std::fmt::Debug for StoreConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_cluster() { "StoreConnection::Cluster" } else { "StoreConnection::Server" })
    }
}

impl StoreConnection {
    pub fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Sends a command without keys to one of the servers in `primaries`, for example to list its keys.
    pub async fn query_primary(&mut self, primary: Primary, command: Cmd) -> Result<Value, RedisError> {
        match (self, primary.slot) {
            (Self::Cluster(cluster), Some(slot)) => {
                let node = SingleNodeRoutingInfo::SpecificNode(Route::with_slot(slot, SlotAddr::Master));
                cluster.route_command(command, RoutingInfo::SingleNode(node)).await?.extract_error()
            }
            (connection, _) => command.query_async(connection).await,
        }
    }

    /// The servers that together hold all keys.
    pub async fn primaries(&mut self) -> Result<Vec<Primary>, RedisError> {
        if !self.is_cluster() {
            return Ok(vec![Primary { slot: None }]);
        }
        // Each range has its first slot, its last slot, the primary and the replicas.
        let ranges: Vec<Vec<Value>> = redis::cmd("CLUSTER").arg("SLOTS").query_async(self).await?;
        let mut known = Vec::new();
        let mut found = Vec::new();
        for range in ranges {
            let mut members = range.into_iter();
            let (Some(Value::Int(first)), Some(_), Some(primary)) = (members.next(), members.next(), members.next())
            else {
                continue;
            };
            let slot = u16::try_from(first).ok().and_then(Slot::new);
            if slot.is_some() && !known.contains(&primary) {
                known.push(primary);
                found.push(Primary { slot });
            }
        }
        Ok(found)
    }
}

/// A server that holds keys. In a cluster it is identified by one of its slots.
#[derive(Debug, Clone, Copy)]
pub struct Primary {
    slot: Option<Slot>,
}

impl ConnectionLike for StoreConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Server(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Server(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Server(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(url: &str) -> (Vec<String>, bool) {
        let StoreAddress { servers, is_cluster } = StoreAddress::parse(url);
        (servers, is_cluster)
    }

    #[test]
    fn one_host_is_a_server_and_several_are_a_cluster() {
        assert_eq!(servers("redis://h"), (vec!["redis://h/".to_owned()], false));
        assert_eq!(servers("valkeys://u:p%40@h:1/3"), (vec!["valkeys://u:p%40@h:1/3".to_owned()], false));
        assert_eq!(servers("redis://h:1?cluster=true"), (vec!["redis://h:1/".to_owned()], true));
        let both = vec!["rediss://:p@h:1/0".to_owned(), "rediss://:p@[::1]:2/0".to_owned()];
        assert_eq!(servers("rediss://:p@h:1,[::1]:2/0"), (both, true));
    }
}
