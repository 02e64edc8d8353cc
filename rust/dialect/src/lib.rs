//! Provider wire formats as pure functions over bytes and events: no I/O, no clock, no runtime.
//!
//! Read in this order: the folders [`anthropic`], `gemini`, [`openai`] and `responses` hold one dialect each; [`openai::request`] (what a chat body asks for, and the body that goes upstream),
//! [`openai::answer`] (what came back in one piece), [`sse`] (a byte stream cut into events), [`openai::stream`] (what
//! came back in many pieces, and how such an answer ends), [`shapes`] (errors as each surface says them). Then, for a
//! caller and a provider that speak different dialects: [`translate`] (requests and whole answers), [`stream`] (streamed
//! answers, in `step`s of one event each), both by way of the model in `model` with its `text`; `place` (what a request says by its
//! address), [`fit`] (what a model's requests must fit), `signature` (proofs of thinking that travel between dialects), [`replay`]
//! (answers that may be given again), `substance` (whether an answer says anything), [`answer_text`] (what a stream says), `call_ids` (calls of tools that come without an id), [`embeddings`] and [`count`] (calls beside chat). [`ollama`] is a dialect of callers alone:
//! its requests become chat requests at the gateway's edge, and chat answers its own there. What is kept and what is left out is in docs/explanation/dialects.md.
//!
//! Bytes that need no change are never copied: a body or a chunk comes in as `Bytes` and leaves as slices of it.

#![forbid(unsafe_code)]

pub mod answer_text;
pub mod anthropic;
mod call_ids;
pub mod count;
pub mod embeddings;
pub mod fit;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
pub(crate) mod gemini;
mod model;
pub mod ollama;
pub mod openai;
pub mod place;
pub mod replay;
pub(crate) mod responses;
pub mod shapes;
mod signature;
pub mod sse;
pub(crate) mod step;
pub mod stream;
#[cfg(test)]
mod stream_fuzz;
pub mod substance;
mod text;
pub mod translate;

/// Consecutive byte slices that together are one message, or one part of it.
pub type Pieces = smallvec::SmallVec<[bytes::Bytes; 4]>;
