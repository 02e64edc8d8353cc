//! The OpenAI chat dialect.

pub mod answer;
pub mod error;
pub mod metered;
pub mod named;
pub mod reasoning;
pub mod request;
pub(crate) mod request_in;
pub(crate) mod request_out;
pub mod stream;
pub(crate) mod stream_in;
pub(crate) mod stream_out;
mod usage;
pub(crate) mod whole;
