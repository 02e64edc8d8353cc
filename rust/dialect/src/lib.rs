//! Provider wire formats as pure functions over bytes and events: no I/O, no clock, no runtime.
//!
//! Each folder holds one dialect: [`anthropic`], `gemini`, [`openai`] and `responses`. [`ollama`] is a dialect of callers only: its requests
//! become chat requests, and chat answers become its own.
//!
//! For bodies that are forwarded, read in this order:
//! - [`openai::request`]: what a chat body asks for, and the body that is sent
//! - [`openai::answer`], [`sse`] and [`openai::stream`]: complete answers, event streams, streamed answers
//! - [`shapes`]: errors in the format of each surface
//! - `rejection`: why a provider rejected a request
//! - [`fit`] and `foreign`: edits to a body for a model's limits, and for signatures of other makers
//! - `provider_members`: bounds of members that only a provider reads
//!
//! For a caller and a provider of different dialects:
//! - [`translate`]: requests and complete answers; [`stream`]: streamed answers, in `step`s of one event each
//! - `model` and `text`: the common form of a request; `place`: what a URL says of a request
//! - `accepted`, `left_out` and `tool_names`: what a model accepts, members that are left out, tools that are renamed
//! - `signature`, `portable_id` and `call_ids`: signatures of reasoning, and ids of tool calls
//! - `arguments`: arguments of calls in an answer
//! - `answer_context`: parts of an answer that depend on its request
//!
//! For answers of any kind:
//! - [`replay`]: answers that are returned again; `answer_text`: the text of a stream
//! - `ending`, `substance` and `diagnostics`: finish reasons, empty answers, and the error that ends a stream
//! - `lenient`: JSON that strict parsers refuse
//! - [`embeddings`] and [`count`]: calls other than chat
//!
//! docs/explanation/dialects.md lists what is translated and what is left out.
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
#[cfg(test)]
mod carried_tests;
mod count;
mod diagnostics;
mod ending;
// A call of its own with the verbs of `translate`: `embeddings::letter`, `embeddings::answer`.
pub mod embeddings;
#[cfg(test)]
mod facts_tests;
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
// A streamed answer has verbs that a complete one has too: `stream::heartbeat`, `stream::terminal_error`.
pub mod stream;
#[cfg(test)]
mod stream_fuzz;
mod substance;
mod text;
mod tool_names;
// Verbs: `translate::read`, `translate::request`, `translate::answer`.
pub mod translate;

pub use answer_context::AnswerContext;
pub use answer_text::AnswerText;
pub use count::{counted_bytes, estimate_tokens};
pub use diagnostics::add_diagnostics;
pub use fit::{Destination, Fit};
pub use place::Place;
pub use rejection::{reason_of, RejectionReason};
pub use shapes::{anthropic_type, error_body, ErrorText};
pub use substance::answer_text;
pub use tool_names::ToolNames;
pub use translate::SentRequest;

/// Consecutive byte slices that together are one message, or one part of it.
pub type Pieces = smallvec::SmallVec<[bytes::Bytes; 4]>;
