//! OpenAI's responses dialect, complete and streamed.
//!
//! - `request_in` and `request_out` read and write requests; `item` writes the items of answers.
//! - `whole` reads and writes complete answers; `stream_in` and `stream_out` do so for events.
//! - `usage` reads token counts; `replay` decides which answers are cacheable.

mod item;
pub(crate) mod replay;
pub(crate) mod request_in;
pub(crate) mod request_out;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
pub(crate) mod whole;
