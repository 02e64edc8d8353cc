//! Anthropic's dialect: messages, plain and streamed.
//!
//! `request_in` and `request_out` read and write requests, `family` has what Claude's families take, `schema` closes JSON schemas, `whole` answers in one piece, `stream_in` and `stream_out` events, `usage`
//! counts of tokens.

pub(crate) mod request_in;
pub(crate) mod request_out;
mod schema;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
pub(crate) mod whole;
