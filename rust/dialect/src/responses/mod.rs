//! OpenAI's responses dialect, plain and streamed.
//!
//! `request_in` and `request_out` read and write requests with their `item`s, `whole` answers in one piece, `stream_in` and `stream_out`
//! events, `usage` counts of tokens; `replay` says which answers may be given again.

mod item;
pub(crate) mod replay;
pub(crate) mod request_in;
pub(crate) mod request_out;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
pub(crate) mod whole;
