//! Anthropic's messages dialect, complete and streamed.
//!
//! - `request_in` and `request_out` read and write requests; `schema` closes JSON schemas.
//! - `whole` reads and writes complete answers; `stream_in` and `stream_out` do so for events.
//! - `usage` reads token counts.

pub(crate) mod request_in;
pub(crate) mod request_out;
mod schema;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
pub(crate) mod whole;
