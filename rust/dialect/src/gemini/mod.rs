//! Google's generateContent dialect, plain and streamed. The model and whether to stream stand in the address, not in the
//! body.

mod part;
pub(crate) mod replay;
pub(crate) mod request_in;
pub(crate) mod request_out;
mod schema;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
pub(crate) mod whole;
