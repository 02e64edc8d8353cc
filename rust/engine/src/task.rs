//! Spawns tasks on the engine's runtime. All tasks start here.

use std::future::Future;
use tokio::task::JoinHandle;

/// Spawns a task. The caller is responsible for it. Must be called on the runtime's thread.
#[allow(clippy::disallowed_methods, reason = "the one place")]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}
