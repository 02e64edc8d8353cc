//! OpenAI's responses dialect, complete and streamed.
//!
//! - `request_in` and `request_out` read and write requests; `item_in` has their items, `tools_in` reads
//!   tools, `call_history` calls and results.
//! - `item` writes the items of answers, `call_item` those of calls.
//! - `complete` reads and writes complete answers; `stream_in` and `stream_out` do so for events.
//! - `usage` reads token counts; `replay` decides which answers are cacheable.

mod call_history;
mod call_item;
pub(crate) mod complete;
mod item;
mod item_in;
pub(crate) mod replay;
pub(crate) mod request_in;
pub(crate) mod request_out;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
mod tools_in;
pub(crate) mod usage;
