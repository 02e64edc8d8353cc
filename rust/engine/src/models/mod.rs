//! Lists of models: [`openai`] prepares them for each snapshot, [`listed`] is one entry, [`entries`] writes it in the words of the other dialects,
//! [`anthropic`] and [`gemini`] answer their clients.

pub mod anthropic;
pub mod entries;
pub mod gemini;
pub mod listed;
pub mod openai;
