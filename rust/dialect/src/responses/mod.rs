//! OpenAI's responses dialect, plain and streamed.

mod item;
pub(crate) mod replay;
pub(crate) mod request_in;
pub(crate) mod request_out;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
pub(crate) mod whole;
