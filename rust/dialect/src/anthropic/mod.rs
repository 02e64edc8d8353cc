//! Anthropic's messages dialect, complete and streamed.
//!
//! - `request_in` and `request_out` read and write requests; `tools_in` reads tools, `schema` closes JSON schemas.
//! - `complete` reads and writes complete answers; `stream_in` and `stream_out` do so for events.
//! - `usage` reads token counts.

pub(crate) mod complete;
pub(crate) mod request_in;
pub(crate) mod request_out;
mod schema;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
mod tools_in;
pub(crate) mod usage;
