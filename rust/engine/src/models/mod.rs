//! Lists of models: [`openai`] prepares them for each snapshot, [`listed`] is one entry, [`entries`] and `ollama_entry` write it in the words of the other dialects,
//! [`anthropic`], [`gemini`] and [`ollama`] answer their clients; [`combos`] tells what stands behind names that are no model's.

pub mod anthropic;
pub mod combos;
pub mod entries;
pub mod gemini;
pub mod listed;
pub mod ollama;
mod ollama_entry;
pub mod openai;
