//! Google's generateContent dialect, plain and streamed. The model and whether to stream stand in the address, not in the
//! body.
//!
//! `request_in` and `request_out` read and write requests with their `part`s and `schema`s, `whole` answers in one piece, `stream_in` and
//! `stream_out` events, `usage` counts of tokens; `replay` says which answers may be given again.

mod part;
pub(crate) mod replay;
pub(crate) mod request_in;
pub(crate) mod request_out;
mod schema;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
pub(crate) mod whole;
