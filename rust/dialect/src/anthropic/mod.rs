//! Anthropic's dialect: messages, plain and streamed.

pub(crate) mod request_in;
pub(crate) mod request_out;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
pub(crate) mod usage;
pub(crate) mod whole;

pub use request_out::DEFAULT_MAX_TOKENS;
