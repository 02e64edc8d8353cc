//! The OpenAI chat dialect.

pub mod answer;
pub mod error;
pub mod request;
pub mod stream;
mod usage;
