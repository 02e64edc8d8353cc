//! The bodies of a passthrough call: the caller's, and the one for each provider. Some calls have the vendor's form at
//! clouds, and their answers are rewritten in OpenAI's.

use crate::call::conversation::plain;
use crate::clock;
use crate::gate::upload::Stored;
use crate::observe::settle::Settlement;
use crate::upstream::attempt::Contents;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::Target;
use crate::upstream::wire::Chunk;
use bytes::Bytes;
use fairlead_core::{Dialect, Error, ErrorKind};
use fairlead_dialect::cloud_call::{CallFacts, CloudCall, NoContent};
use fairlead_dialect::openai::request::{rewrite, ChatRequest};
use fairlead_dialect::{embeddings, Pieces};
use http::header::{HeaderMap, HeaderValue};

/// The body of the caller's request.
pub(super) enum CallerBody<'a> {
    Json(Bytes),
    /// A request for embeddings in a form that the provider may not support.
    Embedding {
        form: embeddings::EmbeddingCall,
        body: Bytes,
    },
    Form {
        stored: &'a Stored,
        content_type: HeaderValue,
    },
}

impl CallerBody<'_> {
    /// The text by which a target is chosen, and the number of bytes for the record.
    pub(super) fn text(&self) -> (&[u8], u64) {
        match self {
            Self::Json(body) | Self::Embedding { body, .. } => (body, body.len() as u64),
            Self::Form { stored, .. } => (b"", stored.bytes),
        }
    }

    /// Returns the body for a provider: the caller's bytes with the provider's name for the model.
    pub(super) fn towards(
        &self,
        request: &ChatRequest,
        target: &Target,
        upstream_model: &str,
    ) -> Result<UpstreamBody, Error> {
        let upstream_model = target.connection.called_name(upstream_model);
        let body = match self {
            Self::Json(body) => UpstreamBody::Json(rewrite(body, request, upstream_model)),
            Self::Embedding { form, body } => {
                let to_google = target.connection.dialect == Dialect::Gemini;
                let letter = embeddings::letter(*form, to_google, body, request, upstream_model)?;
                UpstreamBody::Embedding { caller: *form, letter, caller_body: body.clone() }
            }
            Self::Form { stored, content_type } => {
                let mut chunks = Vec::with_capacity(3);
                match stored.form.part("model") {
                    Some(model) => {
                        chunks.push(stored.chunk(0, model.start));
                        chunks.push(Chunk::Bytes(Bytes::copy_from_slice(upstream_model.as_bytes())));
                        chunks.push(stored.chunk(model.end, stored.bytes));
                    }
                    None => chunks.push(stored.chunk(0, stored.bytes)),
                }
                UpstreamBody::Form { content_type: content_type.clone(), chunks }
            }
        };
        match CloudCall::of(target.connection.protocol) {
            Some(call) => body.at_cloud(call, upstream_model),
            None => Ok(body),
        }
    }
}

/// The body of the request to one provider.
pub(super) enum UpstreamBody {
    Json(Pieces),
    Embedding {
        caller: embeddings::EmbeddingCall,
        letter: embeddings::ProviderRequest,
        caller_body: Bytes,
    },
    Form {
        content_type: HeaderValue,
        chunks: Vec<Chunk>,
    },
    /// A request in a vendor's own form, and the same request in OpenAI's.
    Cloud {
        call: CloudCall,
        body: Pieces,
        openai_body: Box<UpstreamBody>,
    },
}

impl UpstreamBody {
    /// Writes the request in the form of a cloud's call.
    fn at_cloud(self, call: CloudCall, model: &str) -> Result<Self, Error> {
        let body = match self.contents() {
            Contents::Json(pieces) => call.write(&pieces.concat(), model)?,
            Contents::Form { .. } => {
                let message = "The model's provider takes no forms for this model.";
                return Err(Error::client(ErrorKind::InvalidRequest, message).about("model"));
            }
        };
        Ok(Self::Cloud { call, body, openai_body: Box::new(self) })
    }

    /// The request in OpenAI's form.
    pub(super) fn in_openais_form(&self) -> &Self {
        match self {
            Self::Cloud { openai_body, .. } => openai_body,
            other => other,
        }
    }

    pub(super) fn contents(&self) -> Contents<'_> {
        match self {
            Self::Cloud { body, .. } => Contents::Json(body),
            Self::Json(pieces) | Self::Embedding { letter: embeddings::ProviderRequest { body: pieces, .. }, .. } => {
                Contents::Json(pieces)
            }
            Self::Form { content_type, chunks } => Contents::Form { content_type, chunks },
        }
    }
}

/// The header in which Bedrock reports the input of a call.
pub(super) fn input_tokens(headers: &HeaderMap) -> Option<u64> {
    headers.get("x-amzn-bedrock-input-token-count")?.to_str().ok()?.parse().ok()
}

/// Returns an answer of a cloud's call in OpenAI's form, and any other answer unchanged.
pub(super) fn in_openais_form(
    settlement: &Settlement,
    sent: &UpstreamBody,
    answer: Bytes,
    input_tokens: Option<u64>,
) -> Result<Bytes, AttemptFailure> {
    let UpstreamBody::Cloud { call, openai_body, .. } = sent else { return Ok(answer) };
    let Contents::Json(openai_body) = openai_body.contents() else { return Ok(answer) };
    let model = settlement.model.as_deref().unwrap_or_default();
    let facts = CallFacts { model, input_tokens, created_s: clock::unix_ms() / 1_000 };
    call.read(&answer, &openai_body.concat(), facts)
        .map_err(|NoContent| plain::invalid("The provider's answer lacks what such an answer must have.").into())
}
