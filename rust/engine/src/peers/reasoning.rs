//! Reasoning that models returned with tool calls, shared between workers. The next turn of a conversation may reach
//! any worker, and its provider rejects the turn without the reasoning.
//!
//! A worker publishes the reasoning once, sealed, together with its response. A worker that missed the notice continues
//! without it.

use super::{notice, Peers, REASONING};
use crate::clock;
use crate::shared::Shared;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_cache::reasoning::{Now, Origin, ReasoningFilter};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The purpose that separates this sealed data from other sealed data.
const SEAL_PURPOSE: &str = "fairlead:1:thought";
/// The error when the store does not respond to an eviction.
const STORE_UNAVAILABLE: &str = "the shared store does not answer, and other nodes may still have the reasoning";

/// Reasoning, and the tool calls that followed it.
#[derive(Debug, Serialize, Deserialize)]
pub struct SharedReasoning {
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
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forget: Option<ReasoningFilter>,
}

/// Publishes reasoning to the other workers. The caller does not wait.
pub fn publish_reasoning(shared: &Arc<Shared>, reasoning: &SharedReasoning) {
    let (Some(peers), Some(runtime)) = (shared.peers.as_ref(), shared.runtime()) else { return };
    let Ok(Ok(sealed)) = serde_json::to_vec(reasoning).map(|plain| shared.config.sealer.seal(SEAL_PURPOSE, &plain))
    else {
        return tracing::warn!("reasoning cannot be sealed and is stored in this worker only");
    };
    let message = Message { reasoning: Some(STANDARD.encode(sealed)), forget: None };
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
pub async fn forget_in_other_workers(shared: &Shared, filter: ReasoningFilter) -> Result<(), &'static str> {
    let Some(peers) = shared.peers.as_ref() else { return Ok(()) };
    let message = Message { reasoning: None, forget: Some(filter) };
    let message = notice::write(&peers.worker, &message).ok_or(STORE_UNAVAILABLE)?;
    if publish(peers, message).await {
        Ok(())
    } else {
        Err(STORE_UNAVAILABLE)
    }
}

/// Publishes a message and returns whether the store accepted it.
async fn publish(peers: &Peers, message: Vec<u8>) -> bool {
    let Some(connection) = peers.connection() else { return false };
    let is_published = peers.publish(connection, REASONING, message).await;
    if !is_published {
        peers.probe_connection();
    }
    is_published
}

/// Stores or deletes reasoning, as another worker's notice says.
pub(super) fn on_notice(shared: &Shared, worker: &str, payload: &[u8]) {
    let Some(Message { reasoning, forget }) = notice::read(worker, payload) else { return };
    if let Some(filter) = forget {
        shared.reasoning.forget(&filter);
    }
    let sealed = reasoning.and_then(|text| STANDARD.decode(text).ok());
    let plain = sealed.and_then(|sealed| shared.config.sealer.open(SEAL_PURPOSE, &sealed).ok());
    // Reasoning that another instance sealed cannot be opened here.
    let Some(reasoning) = plain.and_then(|plain| serde_json::from_slice::<SharedReasoning>(&plain).ok()) else {
        return;
    };
    let SharedReasoning { principal, provider, model, call_ids, text } = &reasoning;
    let origin = Origin { principal, provider, model, is_elsewhere: true };
    let now = Now { monotonic_ms: clock::monotonic_ms(), unix_ms: clock::unix_ms() };
    shared.reasoning.keep(origin, call_ids, text, now);
}
