//! Google's generateContent dialect, complete and streamed. The URL names the model and selects streaming.
//!
//! - `request_in` and `request_out` read and write requests with their `part`s and `schema`s; `part_out`
//!   writes parts.
//! - `complete` reads and writes complete answers; `stream_in` and `stream_out` do so for events.
//! - `usage` reads token counts; `replay` decides which answers are cacheable.
//! - `moved_calls` adapts earlier calls in a request that passes through to another generation of models.

pub(crate) mod complete;
pub(crate) mod moved_calls;
mod part;
mod part_out;
pub(crate) mod replay;
pub(crate) mod request_in;
pub(crate) mod request_out;
mod schema;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
