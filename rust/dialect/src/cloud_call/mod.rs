//! Embeddings, images and reranking at clouds whose bodies have a vendor's own form: the provider's request from that of
//! OpenAI, and OpenAI's answer from that of the provider. Later steps read OpenAI's form only.
//!
//! Reading order: the calls here, then [`embedding`], [`image`] and [`rerank`]. docs/explanation/dialects.md lists what is
//! translated and refused.

mod embedding;
mod image;
mod rerank;

use bytes::Bytes;
use fairlead_core::{Error, Protocol};
use serde_json::value::RawValue;

use crate::model::{is_neutral, typed, unsupported, wrong, Members};
use crate::text::Writer;
use crate::Pieces;

/// A call in a vendor's own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudCall {
    TitanEmbed,
    CohereEmbed,
    VertexEmbed,
    CanvasImage,
    StabilityImage,
    Rerank,
}

/// The values of an answer that its body lacks.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'f> {
    /// The caller's name of the model.
    pub model: &'f str,
    /// The input in tokens, from the answer's head.
    pub input_tokens: Option<u64>,
    /// The creation time.
    pub created_s: u64,
}

/// An answer that is not one: it lacks its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoContent;

impl CloudCall {
    /// Returns the call of a protocol. `None`: the protocol is for conversations, or has OpenAI's calls.
    pub fn of(protocol: Protocol) -> Option<Self> {
        Some(match protocol {
            Protocol::BedrockTitanEmbed => Self::TitanEmbed,
            Protocol::BedrockCohereEmbed => Self::CohereEmbed,
            Protocol::VertexPredictEmbed => Self::VertexEmbed,
            Protocol::BedrockCanvas => Self::CanvasImage,
            Protocol::BedrockStability => Self::StabilityImage,
            Protocol::BedrockRerank => Self::Rerank,
            Protocol::Own
            | Protocol::VertexRawPredict
            | Protocol::BedrockInvoke
            | Protocol::BedrockConverse
            | Protocol::CohereChat => return None,
        })
    }

    /// Writes the provider's request from a request in OpenAI's form, for the provider's model. An error names the member
    /// that cannot be expressed.
    pub fn write(self, request_body: &[u8], model: &str) -> Result<Pieces, Error> {
        let members: Members<'_> =
            serde_json::from_slice(request_body).map_err(|_| wrong("body", "must be a JSON object"))?;
        let mut out = Writer::with_capacity(request_body.len() + 128);
        match self {
            Self::TitanEmbed => embedding::to_titan(&embedding::read(members)?, &mut out)?,
            Self::CohereEmbed => embedding::to_cohere(&embedding::read(members)?, &mut out),
            Self::VertexEmbed => embedding::to_vertex(&embedding::read(members)?, &mut out),
            Self::CanvasImage => image::to_canvas(&image::read(members)?, &mut out)?,
            Self::StabilityImage => image::to_stability(&image::read(members)?, &mut out)?,
            Self::Rerank => rerank::to_bedrock(&rerank::read(members)?, model, &mut out),
        }
        Ok(Pieces::from_iter([Bytes::from(out.take())]))
    }

    /// Writes OpenAI's answer from the provider's. `request_body` is the request in OpenAI's form.
    pub fn read(self, answer: &[u8], request_body: &[u8], facts: CallFacts<'_>) -> Result<Bytes, NoContent> {
        match self {
            Self::TitanEmbed | Self::CohereEmbed | Self::VertexEmbed => {
                embedding::answer(self, answer, request_body, facts)
            }
            Self::CanvasImage | Self::StabilityImage => image::answer(answer, facts),
            Self::Rerank => rerank::answer(answer, request_body, facts),
        }
    }
}

/// Returns an unknown member's error, unless its value has no effect.
fn other(name: &str, value: &RawValue) -> Result<(), Error> {
    if is_neutral(value.get()) {
        return Ok(());
    }
    Err(unsupported(name))
}

/// Parses a positive whole number.
fn count(value: &RawValue, name: &str) -> Result<u64, Error> {
    let number: u64 = typed(value, name)?;
    if number == 0 {
        return Err(wrong(name, "must be a whole number above 0"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests;
