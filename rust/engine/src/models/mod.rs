//! Lists of models, in the form of each dialect.

pub mod anthropic;
pub mod entries;
pub mod gemini;
pub mod openai;
