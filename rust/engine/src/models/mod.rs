//! Model lists. [`openai`] prepares the lists for each snapshot, and [`listed`] is one entry. [`entries`] and
//! `ollama_entry` write an entry in the other dialects. [`anthropic`], [`gemini`] and [`ollama`] serve their clients.
//! [`combos`] lists the models behind combos and channels.

use crate::active_config::ActiveConfig;
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

/// Returns one model or combo if the caller may see it. A name without a prefix is resolved as in a call.
pub(crate) fn one(active: &ActiveConfig, id: &str, key: Option<&Key>, wording: ListDialect) -> Option<Bytes> {
    active.lists.one(id, key, wording).or_else(|| active.lists.one(&bare::resolve(active, key, id)?, key, wording))
}
