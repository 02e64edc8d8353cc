//! Recall: the earlier response that a request goes on from, which the gateway keeps and not the provider.

use crate::active_config::Live;
use crate::call::guardrails;
use crate::control::responses;
use crate::observe::settle::Settlement;
use bytes::Bytes;
use fairlead_core::Error;
use fairlead_dialect::openai::request::ChatRequest;
use std::sync::Arc;

/// The outcome of looking for an earlier response.
#[derive(Debug)]
pub enum Recall {
    /// The request goes on from nothing.
    Nothing,
    /// The whole conversation, as a body of the request's dialect.
    Body(Bytes),
    CallerLeft,
}

/// Puts what the request goes on from in its place.
pub async fn recall(
    live: &Live,
    settlement: &mut Settlement,
    body: &Bytes,
    request: &ChatRequest,
) -> Result<Recall, Error> {
    let (shared, exchange) = (Arc::clone(&settlement.shared), Arc::clone(&settlement.exchange));
    let recalled = tokio::select! {
        biased;
        () = exchange.gone() => return Ok(Recall::CallerLeft),
        recalled = responses::recall(&shared, &settlement.admission, body, request) => recalled?,
    };
    match recalled {
        // It may be of a day when less was redacted.
        Some(recalled) => guardrails::admit(live, settlement, &recalled).map(Recall::Body),
        None => Ok(Recall::Nothing),
    }
}
