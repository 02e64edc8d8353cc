//! Ollama's dialect, for callers only: `/api/chat` and `/api/generate`. A request is read into the model and written as
//! a chat completion, which the gateway processes. A chat answer is written in Ollama's format, complete or as JSON
//! lines.
//!
//! - `request_in` reads requests, and `image` detects the type of their images.
//! - `line` has the common members of lines, `complete` writes complete answers, and `stream_out` writes events as lines.
//! - [`stream`] splits a chat stream into events and converts them to lines.
//! - `embed` has the two calls for embeddings.
//!
//! docs/explanation/dialects.md lists what is translated and what is dropped.

mod complete;
mod embed;
mod image;
mod line;
mod request_in;
mod stream;
mod stream_out;

use bytes::Bytes;
use fairlead_core::{Error, ErrorKind, Retry};

use crate::arguments::{self, ArgumentsShape};
use crate::model::{Content, Source};
use crate::{lenient, media, openai};
pub use embed::{answer_embed, no_embeddings, read_embed, EmbedCall, EmbedForm, EmbedRequest};
pub use line::{AnswerForm, AnswerTime};
pub use request_in::{read, OllamaRequest};
pub use stream::Lines;

/// The two text calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OllamaCall {
    Chat,
    Generate,
}

/// Translates a complete chat completion to Ollama's format.
pub fn answer(form: &AnswerForm, completion: &[u8], at: AnswerTime) -> Result<Bytes, Error> {
    let invalid = |_: Error| {
        let message = "The provider's answer cannot be expressed in Ollama's format.";
        Error::upstream(ErrorKind::UpstreamInvalid, Retry::Never, message)
    };
    let read = |json: &[u8]| {
        let mut answer = openai::complete::read(json)?;
        arguments::fit(&mut answer, ArgumentsShape::Object)?;
        media::link_others(&mut answer, |content| matches!(content, Content::Image(Source::Base64 { .. })));
        Ok(Bytes::from(complete::write(form, &answer, at)))
    };
    lenient::read(completion, read).map_err(invalid)
}

/// The answer to a request without a message, which clients use to load or unload a model. The model is always reported
/// as loaded.
pub fn loaded(form: &AnswerForm, unloads: bool, at: AnswerTime) -> Bytes {
    Bytes::from(complete::write_loaded(form, unloads, at))
}
