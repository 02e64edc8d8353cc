//! Lists of models: [`openai`] prepares them for each snapshot, [`entries`] writes one model in the words of the other dialects,
//! [`anthropic`] and [`gemini`] answer their clients.

pub mod anthropic;
pub mod entries;
pub mod gemini;
pub mod openai;
