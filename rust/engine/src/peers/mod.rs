//! What relay workers of several nodes tell each other over the shared store, beside limits: [`once`] (answers of idempotency keys),
//! [`rests`] (connections and providers that rest).
//!
//! One task keeps the connections, and no request waits for that: without the store each worker goes by what it knows itself.

pub mod once;
pub mod rests;

use crate::leases::StoreConfig;
use crate::shared::Shared;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Msg, RedisError};
use rests::Rests;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const RETRY: Duration = Duration::from_secs(1);
/// How often a worker looks at what rests.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Two versions that say other things use other names.
const CHANNEL: &str = "fairlead:1:rests";

/// The other workers, as far as the store connects to them.
pub struct Peers {
    config: StoreConfig,
    worker: String,
    /// Absent while the store does not answer.
    connection: Mutex<Option<MultiplexedConnection>>,
    lost: Notify,
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peers({})", self.worker)
    }
}

impl Peers {
    #[must_use]
    pub fn new(config: StoreConfig, worker: String) -> Self {
        Self { config, worker, connection: Mutex::default(), lost: Notify::new() }
    }

    fn deadline(&self) -> Duration {
        Duration::from_millis(self.config.timeout_ms)
    }

    fn connection(&self) -> Option<MultiplexedConnection> {
        self.connection.lock().clone()
    }

    /// The connection failed: another is made.
    fn lose(&self) {
        *self.connection.lock() = None;
        self.lost.notify_one();
    }
}

/// Keeps the connections, tells and hears, until the runtime ends.
pub async fn run(shared: Arc<Shared>) {
    let Some(peers) = shared.peers.as_ref() else { return };
    let mut rests = Rests::default();
    loop {
        if let Err(fault) = serve(&shared, peers, &mut rests).await {
            // That the store is away is told by those who keep limits in it. The fault's text may name what its address does.
            tracing::debug!(fault = fault.category(), "other workers are not heard");
        }
        *peers.connection.lock() = None;
        tokio::time::sleep(RETRY).await;
    }
}

async fn serve(shared: &Shared, peers: &Peers, rests: &mut Rests) -> Result<(), RedisError> {
    let deadline = peers.deadline();
    let late = |_| RedisError::from((redis::ErrorKind::Io, "late"));
    let client = Client::open(peers.config.url.expose())?;
    let options =
        AsyncConnectionConfig::new().set_connection_timeout(Some(deadline)).set_response_timeout(Some(deadline));
    let connecting = client.get_multiplexed_async_connection_with_config(&options);
    let mut connection = tokio::time::timeout(deadline, connecting).await.map_err(late)??;
    let mut subscription = tokio::time::timeout(deadline, client.get_async_pubsub()).await.map_err(late)??;
    tokio::time::timeout(deadline, subscription.subscribe(CHANNEL)).await.map_err(late)??;
    *peers.connection.lock() = Some(connection.clone());
    let mut heard = subscription.on_message();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = peers.lost.notified() => return Ok(()),
            message = heard.next() => match message {
                Some(message) => hear(shared, peers, rests, &message),
                None => return Ok(()),
            },
            _ = look.tick() => {
                if let Some(news) = rests.news(&shared.live.load(), &peers.worker, crate::clock::monotonic_ms()) {
                    let _heard_by: u64 =
                        redis::cmd("PUBLISH").arg(CHANNEL).arg(news).query_async(&mut connection).await?;
                }
            }
        }
    }
}

fn hear(shared: &Shared, peers: &Peers, rests: &mut Rests, message: &Msg) {
    rests.hear(&shared.live.load(), &peers.worker, message.get_payload_bytes(), crate::clock::monotonic_ms());
}
