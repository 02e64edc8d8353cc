//! Dialects over whole bodies and streams, in one program, because each further one is compiled and linked for itself.
//!
//! - `golden`: chat completions with their expected output
//! - `dialects`: every dialect translated into every other
//! - `ollama`: Ollama's requests, answers and streams
//! - `odd_answers`: answers that deviate from their protocol
//! - `properties`: generated streams and conversations

mod dialects;
mod golden;
mod odd_answers;
mod ollama;
mod properties;
