//! Messages of relay workers of several nodes to each other over the shared store, beside limits: [`once`] (answers of idempotency
//! keys), [`rests`] (connections, models and providers that rest), [`places`] (who served a session last), [`listener`] (the task that keeps the connections to the store).
//!
//! No request waits for a connection: without the store each worker goes by what it knows itself.

pub mod listener;
pub mod once;
mod places;
pub mod rests;

use crate::leases::StoreConfig;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use std::time::Duration;
use tokio::sync::Notify;

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
