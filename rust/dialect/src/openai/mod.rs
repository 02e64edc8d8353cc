//! The OpenAI chat dialect.
//!
//! For bodies that are forwarded:
//!
//! - `request`: reads the routing data of a body, and edits the body that is sent
//! - `named`: bodies of calls other than chat
//! - `answer`, `stream`, `error`, `reasoning`: answers and their reasoning
//! - `unfinished`: streams without a finish reason
//! - `metered`: streams of typed events and their usage
//!
//! For bodies that are translated:
//!
//! - `members` and `part`: what both OpenAI dialects share
//! - `request_in` and `request_out`, with `members_out` and `reasoning_out` for members that depend on a model's facts
//! - `tools_in`: tools and the choice among them; `reasoning_in`: reasoning in an assistant message
//! - `message`: the message of an answer, complete or in pieces
//! - `call_order`: the order of parallel calls in a stream
//! - `complete`, `stream_in`, `stream_out`: answers
//! - `strict`: schemas that strict mode accepts
//! - `usage`: token counts

// Public modules, because their `read`, `inspect` or `rewrite` is called with the module's name.
pub mod answer;
pub mod metered;
pub mod named;
pub mod reasoning;
pub mod request;
pub mod stream;

mod call_order;
pub(crate) mod complete;
pub(crate) mod error;
pub(crate) mod members;
pub(crate) mod members_out;
mod message;
pub(crate) mod part;
mod reasoning_in;
pub(crate) mod reasoning_out;
pub(crate) mod request_in;
pub(crate) mod request_out;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod strict;
pub(crate) mod tools_in;
mod unfinished;
pub(crate) mod usage;
