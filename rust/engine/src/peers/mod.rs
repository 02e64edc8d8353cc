//! Messages between relay workers of several nodes, sent over the shared store.
//!
//! - [`once`]: responses of requests with an idempotency key
//! - [`shared_answers`]: cached responses
//! - [`cooldowns`]: cooldowns of connections, models and providers
//! - [`session_targets`]: session targets
//! - [`reasoning`]: reasoning that models returned with tool calls
//! - [`notice`]: the encoding of notices
//! - [`listener`]: the task that maintains the store connections
//!
//! Requests never wait for a connection. Without the store each worker uses its own state only.

pub mod cooldowns;
pub mod listener;
mod notice;
pub mod once;
pub mod reasoning;
mod session_targets;
pub mod shared_answers;

use self::shared_answers::SharedAnswers;
use crate::shared_store::{StoreConfig, StoreConnection};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Channels of notices. The name carries a version: versions with different formats use different channels.
const COOLDOWNS: &str = "fairlead:1:rests";
const SESSION_TARGETS: &str = "fairlead:1:places";
const EVICTIONS: &str = "fairlead:1:forgotten";
const REASONING: &str = "fairlead:1:thoughts";

/// The connection to the other workers, through the store.
pub struct Peers {
    config: StoreConfig,
    worker: String,
    /// `None` while the store is unavailable.
    connection: Mutex<Option<StoreConnection>>,
    disconnected: Notify,
    probe_requested: Notify,
    pub answers: SharedAnswers,
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peers({})", self.worker)
    }
}

impl Peers {
    #[must_use]
    pub fn new(config: StoreConfig, worker: String) -> Self {
        Self {
            config,
            worker,
            connection: Mutex::default(),
            disconnected: Notify::new(),
            probe_requested: Notify::new(),
            answers: SharedAnswers::default(),
        }
    }

    fn connection(&self) -> Option<StoreConnection> {
        self.connection.lock().clone()
    }

    /// Publishes a message to the other workers and returns whether the store accepted it in time.
    async fn publish(&self, mut connection: StoreConnection, channel: &str, message: Vec<u8>) -> bool {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(channel).arg(message);
        let publishing = publish.query_async::<()>(&mut connection);
        matches!(tokio::time::timeout(self.config.deadline(), publishing).await, Ok(Ok(())))
    }

    /// Discards a failed connection and wakes the task that opens a new one.
    fn disconnect(&self) {
        *self.connection.lock() = None;
        self.disconnected.notify_one();
    }

    /// Asks for a check of the connection, after a command exceeded a deadline that is shorter than the connection's
    /// own.
    fn probe_connection(&self) {
        self.probe_requested.notify_one();
    }
}
