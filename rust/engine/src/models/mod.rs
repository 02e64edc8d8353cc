//! Lists of models: [`openai`] prepares them for each snapshot, [`listed`] is one entry, [`entries`] and `ollama_entry` write it in the words of the other dialects,
//! [`anthropic`], [`gemini`] and [`ollama`] answer their clients; [`combos`] tells what stands behind names that are no model's.

use crate::active_config::Live;
use crate::route::bare;
use bytes::Bytes;
use fairlead_core::Key;
use listed::ListDialect;

pub mod anthropic;
pub mod combos;
pub mod entries;
pub mod gemini;
pub mod listed;
pub mod ollama;
mod ollama_entry;
pub mod openai;

/// One model or combo, if it exists for the caller; a name without a prefix means what it means in a call.
pub(crate) fn one(live: &Live, id: &str, key: Option<&Key>, wording: ListDialect) -> Option<Bytes> {
    live.lists.one(id, key, wording).or_else(|| live.lists.one(&bare::resolve(live, key, id)?, key, wording))
}
