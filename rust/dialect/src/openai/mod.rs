//! The OpenAI chat dialect.
//!
//! As a dialect that is passed on: `request` (what a body asks for, and the body that goes upstream), `named` (bodies of calls beside chat),
//! `answer`, `stream`, `unfinished` (streams that never say why they ended), `error`, `reasoning`, `metered` (streams of typed events and their usage). As one that is translated:
//! `members` and `part` (what both of OpenAI's dialects read alike), `request_in`, `request_out`, `message` (of an answer, whole or in pieces), `call_order` (parallel calls of a stream, one after the other),
//! `whole`, `stream_in`, `stream_out`, `strict` (schemas that strict mode takes), `usage`.

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
mod reasoning_out;
pub(crate) mod request_in;
pub(crate) mod request_out;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
mod strict;
mod thought_in;
mod unfinished;
pub(crate) mod usage;
pub(crate) mod whole;
