//! Hashes of a prompt's segments in a record. Two records of one conversation tell where their prompts differ first, and
//! so why the provider could not read the second one from its cache. The prompt itself is not stored.

use crate::gate::request::Admission;
use crate::route::conversation::caller;
use crate::route::segments::Segments;
use fairlead_core::strategy::identity;
use std::fmt::Write as _;

/// The newest turns whose hashes are stored. A conversation rarely grows by more between two calls.
const MAX_TURNS: usize = 16;

/// The hashes as stored: the conversation, and `tools.system.turns.hash.hash...`. The hash of a turn includes all turns
/// before it; the newest is the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptHashes {
    pub conversation: String,
    pub segments: String,
}

impl PromptHashes {
    /// Returns the hashes of the caller's conversation; `None` if it has no turns.
    pub fn of(admission: &Admission, segments: &Segments) -> Option<Self> {
        let session = admission.session_id.as_deref().or(admission.session_tag.as_deref());
        let conversation = identity(&[caller(admission), session.unwrap_or_default()]) ^ segments.first?;
        let (tools, system) = (short(segments.tools.value()), short(segments.system.value()));
        let mut text = format!("{tools:08x}.{system:08x}.{}", segments.turns.len());
        for turn in segments.turns.iter().rev().take(MAX_TURNS) {
            // Writing to a string cannot fail.
            let _written = write!(text, ".{:08x}", short(*turn));
        }
        Some(Self { conversation: format!("{conversation:016x}"), segments: text })
    }
}

fn short(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}
