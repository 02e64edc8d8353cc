//! The one place that starts tasks on the engine's runtime.

use std::future::Future;
use tokio::task::JoinHandle;

/// Starts a task that belongs to whoever called. Must be called from the runtime's thread.
#[allow(clippy::disallowed_methods, reason = "the one place")]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}
