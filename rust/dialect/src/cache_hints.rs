//! The additions to a request for a provider's prompt cache. They depend on the facts of the model and on the size of
//! the request.

use fairlead_core::{Dialect, ModelFacts};

/// How the conversation of a call uses prompt caches. The default changes nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheHints {
    /// Identifies the caller's conversation, for providers with `prompt_cache_key`.
    pub key: Option<u64>,
    /// Reading the prompt from the cache costs less than sending it again.
    pub pays: bool,
}

pub(crate) const KEY: &str = "prompt_cache_key";
pub(crate) const MARK: &str = r#"{"type":"ephemeral"}"#;
/// The tokens of the shortest prompt that most providers cache.
const USUAL_LEAST: u64 = 1_024;
const BYTES_PER_TOKEN: u64 = 4;
/// The most marks of a request, if the facts do not say.
pub(crate) const USUAL_MARKS: usize = 4;

impl CacheHints {
    /// Returns the key to add to a request of this size, as JSON. `None`: the provider does not accept one, or the
    /// request is too short to be cached.
    pub(crate) fn key_for(self, provider: Dialect, facts: &ModelFacts, bytes: usize) -> Option<String> {
        let is_accepted = matches!(provider, Dialect::Openai | Dialect::OpenaiResponses)
            && facts.prompt_cache_key_most.is_some_and(|most| most > 0)
            && !facts.refuses(KEY);
        let key = self.key.filter(|_| is_accepted && reaches_least(facts, bytes))?;
        Some(format!("\"fl-{key:016x}\""))
    }

    /// Returns the number of marks that a request of this size may get.
    pub(crate) fn marks_for(self, provider: Dialect, facts: &ModelFacts, bytes: usize) -> usize {
        let most = match provider {
            Dialect::Anthropic => facts.cache_marks.unwrap_or(USUAL_MARKS),
            Dialect::Openai => facts.cache_marks.unwrap_or(0),
            _ => 0,
        };
        if self.pays && reaches_least(facts, bytes) {
            most.min(USUAL_MARKS)
        } else {
            0
        }
    }
}

/// Returns whether a text of this size is long enough to be cached.
fn reaches_least(facts: &ModelFacts, bytes: usize) -> bool {
    bytes as u64 / BYTES_PER_TOKEN >= facts.cache_least.unwrap_or(USUAL_LEAST)
}
