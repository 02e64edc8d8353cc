//! Protocols that carry the messages dialect, or translate to it, at Amazon Bedrock and Google's Vertex AI.
//!
//! Reading order: [`messages`] (bodies of Claude's models on both clouds), [`frames`] (Amazon's event stream),
//! [`events`] (its events as server-sent events), then the functions here, which the engine calls.
//! [`crate::converse`] writes and reads the bodies of Bedrock's `Converse`.

mod events;
mod frames;
mod messages;

pub(crate) use events::push_event;
pub use events::EventReader;

use bytes::Bytes;
use fairlead_core::{Error, Protocol};

use crate::converse;
use crate::fit::Destination;
use crate::openai::request::ChatRequest;
use crate::translate::{self, NoAnswer, Pair, SentRequest};

/// The values of a call, apart from its body, that a protocol needs.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'s> {
    pub protocol: Protocol,
    pub pair: Pair,
    /// The caller's `anthropic-beta` header.
    pub betas: Option<&'s str>,
}

/// Writes a request for its destination. An error names the member that cannot be expressed.
pub fn request_for(
    sending: Sending<'_>,
    body: &Bytes,
    read: &ChatRequest,
    to: Destination<'_>,
) -> Result<SentRequest, Error> {
    let Sending { protocol, pair, betas } = sending;
    match protocol {
        Protocol::Own => translate::request_for(pair, body, read, to),
        Protocol::VertexRawPredict => {
            let sent = translate::request_for(pair, body, read, to)?;
            Ok(messages::at_vertex(sent))
        }
        Protocol::BedrockInvoke => {
            let sent = translate::request_for(pair, body, read, to)?;
            Ok(messages::at_bedrock(sent, betas))
        }
        Protocol::BedrockConverse => translate::written(pair, body, read, to, converse::write_request),
    }
}

/// Returns a complete answer in the dialect of the protocol's API; `None` if it is in that dialect already. `id` is the
/// id of an answer that has none.
pub fn answer(protocol: Protocol, body: &[u8], model: &str, id: &str) -> Result<Option<Bytes>, NoAnswer> {
    match protocol {
        Protocol::Own | Protocol::VertexRawPredict | Protocol::BedrockInvoke => Ok(None),
        Protocol::BedrockConverse => converse::read_answer(body, model, id).map(Some),
    }
}
