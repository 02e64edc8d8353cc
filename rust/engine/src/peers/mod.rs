//! Messages of relay workers of several nodes to each other over the shared store, beside limits: [`once`] (answers of idempotency
//! keys), [`shared_answers`] (kept answers of all), [`rests`] (connections, models and providers that rest), [`places`] (who served a
//! session last), [`thoughts`] (what models thought before they called tools), [`notice`] (the form of what they tell), [`listener`] (the task that keeps the connections to the store).
//!
//! No request waits for a connection: without the store each worker goes by what it knows itself.

pub mod listener;
mod notice;
pub mod once;
mod places;
pub mod rests;
pub mod shared_answers;
pub mod thoughts;

use self::shared_answers::SharedAnswers;
use crate::shared_store::{StoreConfig, StoreConnection};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Channels of notices. Two versions that say other things use other names.
const RESTS: &str = "fairlead:1:rests";
const PLACES: &str = "fairlead:1:places";
const FORGOTTEN: &str = "fairlead:1:forgotten";
const THOUGHTS: &str = "fairlead:1:thoughts";

/// The other workers, as far as the store connects to them.
pub struct Peers {
    config: StoreConfig,
    worker: String,
    /// Absent while the store does not answer.
    connection: Mutex<Option<StoreConnection>>,
    lost: Notify,
    doubted: Notify,
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
            lost: Notify::new(),
            doubted: Notify::new(),
            answers: SharedAnswers::default(),
        }
    }

    fn connection(&self) -> Option<StoreConnection> {
        self.connection.lock().clone()
    }

    /// Tells the other workers; whether the store took it in time.
    async fn publish(&self, mut connection: StoreConnection, channel: &str, message: Vec<u8>) -> bool {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(channel).arg(message);
        let publishing = publish.query_async::<()>(&mut connection);
        matches!(tokio::time::timeout(self.config.deadline(), publishing).await, Ok(Ok(())))
    }

    /// The connection failed: another is made.
    fn lose(&self) {
        *self.connection.lock() = None;
        self.lost.notify_one();
    }

    /// The connection was late for a caller who waits for less than a question may take: whether it lives is found out.
    fn doubt(&self) {
        self.doubted.notify_one();
    }
}
