//! Provider wire formats as pure functions over bytes and events: no I/O, no clock, no runtime.
//!
//! Read in this order: the folders [`anthropic`], `gemini`, [`openai`] and `responses` hold one dialect each; [`openai::request`] (what a chat body asks for, and the body that goes upstream),
//! [`openai::answer`] (what came back in one piece), [`sse`] (a byte stream cut into events), [`openai::stream`] (what
//! came back in many pieces, and how such an answer ends), [`shapes`] (errors as each surface says them), `rejection` (why a provider rejected a request). Then, for a
//! caller and a provider that speak different dialects: [`translate`] (requests and whole answers), [`stream`] (streamed
//! answers, in `step`s of one event each), both by way of the model in `model` with its `text`; `place` (what a request says by its
//! address), [`fit`] (what a model's requests must fit), `accepted` (what a model accepts), `left_out` (members that are not sent), `tool_names` (names of tools that are sent as others), `signature` (proofs of reasoning that travel between dialects) and `foreign` (those of other makers in a body that passes), [`replay`]
//! (answers that may be given again), `ending` (why a model stopped), `substance` (whether an answer says anything), `diagnostics` (what the targets of a combo came to, in the error that ends a stream), `answer_text` (what a stream says), `answer_context` (what an answer says that its provider does not know), `call_ids` (calls of tools that come without an id), `arguments` (of calls in an answer, as a caller's form holds them), `portable_id` (ids that another maker's form takes), `provider_members` (bounds of members that only a provider reads), `lenient` (JSON that strict parsers refuse), [`embeddings`] and [`count`] (calls beside chat). [`ollama`] is a dialect of callers alone:
//! its requests become chat requests at the gateway's edge, and chat answers its own there. What is kept and what is left out is in docs/explanation/dialects.md.
//!
//! Bytes that need no change are never copied: a body or a chunk comes in as `Bytes` and leaves as slices of it.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod accepted;
mod answer_context;
mod answer_text;
mod anthropic;
mod arguments;
mod call_ids;
mod count;
mod diagnostics;
mod ending;
// A call of its own with the verbs of `translate`: `embeddings::letter`, `embeddings::answer`.
pub mod embeddings;
mod fit;
mod foreign;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
mod gemini;
mod left_out;
mod lenient;
mod model;
// A dialect of callers with verbs of its own: `ollama::read`, `ollama::answer`.
pub mod ollama;
// A dialect whose parts the engine uses without translation: `openai::request::read`, `openai::stream`.
pub mod openai;
mod place;
mod portable_id;
mod provider_members;
mod rejection;
// Its verbs are read with it: `replay::is_fit`, `replay::as_stream`.
pub mod replay;
mod responses;
mod shapes;
mod signature;
mod sse;
mod step;
// A streamed answer has verbs that a whole one has too: `stream::heartbeat`, `stream::terminal_error`.
#[cfg(test)]
mod carried_tests;
#[cfg(test)]
mod facts_tests;
pub mod stream;
#[cfg(test)]
mod stream_fuzz;
mod substance;
mod text;
mod tool_names;
// Verbs: `translate::read`, `translate::request`, `translate::answer`.
pub mod translate;

pub use accepted::Destination;
pub use answer_context::AnswerContext;
pub use answer_text::AnswerText;
pub use count::{counted_bytes, estimate_tokens};
pub use diagnostics::add_diagnostics;
pub use fit::Fit;
pub use place::Place;
pub use rejection::{reason_of, RejectionReason};
pub use shapes::{anthropic_type, error_body, ErrorText};
pub use substance::answer_text;
pub use tool_names::ToolNames;
pub use translate::SentRequest;

/// Consecutive byte slices that together are one message, or one part of it.
pub type Pieces = smallvec::SmallVec<[bytes::Bytes; 4]>;
