//! Reasoning that models returned with tool calls, shared between workers. The next turn of a conversation may reach
//! any worker, and its provider rejects the turn without the reasoning.
//!
//! A worker publishes the reasoning once, sealed, together with its response. A worker that missed the notice continues
//! without it.

use super::{notice, Peers, THOUGHTS};
use crate::clock;
use crate::shared::Shared;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_cache::reasoning::{Now, Origin, ThoughtFilter};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The purpose that separates this sealed data from other sealed data.
const RECORD: &str = "fairlead:1:thought";
/// The error when the store does not respond to an eviction.
const AWAY: &str =
    "the store that workers share does not answer, and other nodes may still keep what was to be forgotten";

/// Reasoning, and the tool calls that followed it.
#[derive(Debug, Serialize, Deserialize)]
pub struct SharedThought {
    pub principal: String,
    pub provider: String,
    pub model: String,
    pub call_ids: Vec<String>,
    pub text: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Message {
    /// Reasoning, sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forget: Option<ThoughtFilter>,
}

/// Publishes reasoning to the other workers. The caller does not wait.
pub fn publish_thought(shared: &Arc<Shared>, thought: &SharedThought) {
    let (Some(peers), Some(runtime)) = (shared.peers.as_ref(), shared.runtime()) else { return };
    let Ok(Ok(sealed)) = serde_json::to_vec(thought).map(|plain| shared.config.sealer.seal(RECORD, &plain)) else {
        return tracing::warn!("a thought cannot be sealed, and is kept at this worker only");
    };
    let message = Message { thought: Some(STANDARD.encode(sealed)), forget: None };
    let Some(message) = notice::write(&peers.worker, &message) else { return };
    let own = Arc::clone(shared);
    // The publication has its own deadline.
    drop(runtime.spawn(async move {
        if let Some(peers) = own.peers.as_ref() {
            publish(peers, message).await;
        }
    }));
}

/// Asks the other workers to delete the matching reasoning.
pub async fn forget_elsewhere(shared: &Shared, filter: ThoughtFilter) -> Result<(), &'static str> {
    let Some(peers) = shared.peers.as_ref() else { return Ok(()) };
    let message = Message { thought: None, forget: Some(filter) };
    let message = notice::write(&peers.worker, &message).ok_or(AWAY)?;
    if publish(peers, message).await {
        Ok(())
    } else {
        Err(AWAY)
    }
}

/// Publishes a message and returns whether the store accepted it.
async fn publish(peers: &Peers, message: Vec<u8>) -> bool {
    let Some(connection) = peers.connection() else { return false };
    let is_published = peers.publish(connection, THOUGHTS, message).await;
    if !is_published {
        peers.doubt();
    }
    is_published
}

/// Stores or deletes reasoning, as another worker's notice says.
pub(super) fn hear(shared: &Shared, worker: &str, payload: &[u8]) {
    let Some(Message { thought, forget }) = notice::read(worker, payload) else { return };
    if let Some(filter) = forget {
        shared.reasoning.forget(&filter);
    }
    let sealed = thought.and_then(|text| STANDARD.decode(text).ok());
    let plain = sealed.and_then(|sealed| shared.config.sealer.open(RECORD, &sealed).ok());
    // Reasoning that another instance sealed cannot be opened here.
    let Some(thought) = plain.and_then(|plain| serde_json::from_slice::<SharedThought>(&plain).ok()) else { return };
    let SharedThought { principal, provider, model, call_ids, text } = &thought;
    let origin = Origin { principal, provider, model, is_elsewhere: true };
    let now = Now { monotonic_ms: clock::monotonic_ms(), unix_ms: clock::unix_ms() };
    shared.reasoning.keep(origin, call_ids, text, now);
}
