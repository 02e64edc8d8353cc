//! Ollama's dialect, for callers alone: `/api/chat` and `/api/generate`. A request is read into the model and written as a chat
//! completion, which is what the gateway works on; a chat answer is told in Ollama's form, in one piece or as lines of JSON.
//!
//! `request_in` reads requests, `image` tells the type of their pictures, `line` is what every line of an answer has, `whole` an answer in
//! one piece, `stream_out` events as lines; [`stream`] cuts a chat stream into events and makes those lines of them. What is kept and
//! what is left out stands in docs/explanation/dialects.md. `embed` has the two calls for embeddings.

mod embed;
mod image;
mod line;
mod request_in;
mod stream;
mod stream_out;
mod whole;

use bytes::Bytes;
use fairlead_core::{Error, ErrorKind, Retry};

use crate::arguments::{self, ArgumentsShape};
use crate::{lenient, openai};
pub use embed::{answer_embed, no_embeddings, read_embed, EmbedCall, EmbedForm, EmbedRequest};
pub use line::{AnswerForm, AnswerTime};
pub use request_in::{read, OllamaRequest};
pub use stream::Lines;

/// Which of the two calls is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OllamaCall {
    Chat,
    Generate,
}

/// A whole chat completion, told in Ollama's form.
pub fn answer(form: &AnswerForm, completion: &[u8], at: AnswerTime) -> Result<Bytes, Error> {
    let invalid = |_: Error| {
        let message = "The provider's answer cannot be told in Ollama's form.";
        Error::upstream(ErrorKind::UpstreamInvalid, Retry::Never, message)
    };
    let read = |json: &[u8]| {
        let mut answer = openai::whole::read(json)?;
        arguments::fit(&mut answer, ArgumentsShape::Object)?;
        Ok(Bytes::from(whole::write(form, &answer, at)))
    };
    lenient::read(completion, read).map_err(invalid)
}

/// The answer to a request without a message, by which clients ask to have a model loaded or unloaded: it is always there.
pub fn loaded(form: &AnswerForm, unloads: bool, at: AnswerTime) -> Bytes {
    Bytes::from(whole::write_loaded(form, unloads, at))
}
