//! Protocols that carry the messages dialect, or translate to it: at Amazon Bedrock, Google's Vertex AI and Cohere.
//!
//! Reading order: [`messages`] (bodies of Claude's models on both clouds), [`frames`] (Amazon's event stream),
//! [`events`] (streams as server-sent events, written by [`message_events`]), then the functions here, which the engine
//! calls. [`crate::converse`] writes and reads the bodies of Bedrock's `Converse`, [`crate::cohere`] those of Cohere's
//! chat.

mod events;
mod frames;
mod message_events;
mod messages;

pub use events::EventReader;
pub(crate) use message_events::{push_error, DeltaKind, EmptyBlock, MessageEvents};

use bytes::Bytes;
use fairlead_core::{Error, Protocol};

use crate::answer_context::AnswerContext;
use crate::fit::Destination;
use crate::model::wrong;
use crate::openai::request::ChatRequest;
use crate::translate::{self, NoAnswer, Pair, SentRequest};
use crate::{cohere, converse};

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
        Protocol::BedrockConverse => translate::rewritten(pair, body, read, to, converse::write_request),
        Protocol::CohereChat => translate::rewritten(pair, body, read, to, cohere::write_request),
        Protocol::BedrockTitanEmbed
        | Protocol::BedrockCohereEmbed
        | Protocol::BedrockRerank
        | Protocol::BedrockCanvas
        | Protocol::BedrockStability
        | Protocol::VertexPredictEmbed => Err(wrong("model", "is not a model of conversations")),
    }
}

/// Returns a complete answer in the dialect of the protocol's API; `None` if it is in that dialect already. The context
/// has the id of an answer that has none.
pub fn answer(
    protocol: Protocol,
    body: &[u8],
    model: &str,
    context: &AnswerContext,
) -> Result<Option<Bytes>, NoAnswer> {
    match protocol {
        Protocol::Own | Protocol::VertexRawPredict | Protocol::BedrockInvoke => Ok(None),
        Protocol::BedrockConverse => converse::read_answer(body, model, context).map(Some),
        Protocol::CohereChat => cohere::read_answer(body, model, context).map(Some),
        // Their requests are refused, so there are no answers.
        Protocol::BedrockTitanEmbed
        | Protocol::BedrockCohereEmbed
        | Protocol::BedrockRerank
        | Protocol::BedrockCanvas
        | Protocol::BedrockStability
        | Protocol::VertexPredictEmbed => Err(NoAnswer::Strange),
    }
}
