//! The OpenAI chat dialect.
//!
//! For bodies that are forwarded:
//! - `request`: reads what a body asks for, and edits the body that is sent
//! - `named`: bodies of calls other than chat
//! - `answer`, `stream`, `error`, `reasoning`: answers and their reasoning
//! - `unfinished`: streams without a finish reason
//! - `metered`: streams of typed events and their usage
//!
//! For bodies that are translated:
//! - `members` and `part`: what both of OpenAI's dialects read alike
//! - `request_in` and `request_out`, with `members_out` and `reasoning_out` for members by the facts of a model
//! - `thought_in`: reasoning in an assistant's message
//! - `message`: the message of an answer, complete or in pieces
//! - `call_order`: parallel calls of a stream, one after another
//! - `whole`, `stream_in`, `stream_out`: answers
//! - `strict`: schemas that strict mode accepts
//! - `usage`: token counts

// These are public, since each has a `read`, `inspect` or `rewrite` of its own, which is read with its file's name.
pub mod answer;
pub mod metered;
pub mod named;
pub mod reasoning;
pub mod request;
pub mod stream;

mod call_order;
pub(crate) mod error;
pub(crate) mod members;
pub(crate) mod members_out;
mod message;
pub(crate) mod part;
pub(crate) mod reasoning_out;
pub(crate) mod request_in;
pub(crate) mod request_out;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
mod strict;
mod thought_in;
mod unfinished;
pub(crate) mod usage;
pub(crate) mod whole;
