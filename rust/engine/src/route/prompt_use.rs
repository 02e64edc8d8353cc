//! The data about the request's prompt that a choice contains.

use crate::route::segments::Segments;

/// A conversation that stays with the target whose provider has it in its prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldConversation {
    pub id: u64,
    /// The target that served it last.
    pub last_target: Option<u64>,
}

/// How a request uses providers' prompt caches.
#[derive(Debug, Clone, Default)]
pub struct PromptUse {
    /// The conversation, if it stays with the target that has it cached.
    pub hold: Option<HeldConversation>,
    /// Identifies the caller's conversation for providers that accept a key of their prompt cache.
    pub conversation: Option<u64>,
    /// The prompt, for models that read cached input at a lower price.
    pub segments: Option<Segments>,
}
