//! The identity of a conversation: the caller and its session, or else the beginning of the conversation. A provider
//! that has the conversation in its prompt cache is found by it.

use crate::active_config::ActiveConfig;
use crate::gate::request::Admission;
use crate::route::choice::Choice;
use crate::route::prompt_use::{HeldConversation, PromptUse};
use crate::route::segments::Segments;
use crate::upstream::target::Target;
use fairlead_core::strategy::identity;
use fairlead_core::Price;
use std::cell::OnceCell;

/// Providers cache prompts of 1,024 tokens and more. Shorter bodies are not read for it.
const LEAST_BYTES: usize = 4 * 1_024;

/// The prompt of a request. It is read once, when it is first needed.
pub struct Prompt<'a> {
    admission: &'a Admission,
    body: &'a [u8],
    segments: OnceCell<Option<Segments>>,
}

impl<'a> Prompt<'a> {
    pub fn new(admission: &'a Admission, body: &'a [u8]) -> Self {
        Self { admission, body, segments: OnceCell::new() }
    }

    fn segments(&self) -> Option<&Segments> {
        self.segments.get_or_init(|| Segments::of(self.body)).as_ref()
    }

    /// The identity of the conversation by its beginning.
    pub fn opening(&self) -> Option<u64> {
        Some(self.segments()?.opening(caller(self.admission)))
    }

    /// The identity of the conversation with any model.
    fn conversation(&self) -> Option<u64> {
        let named = self.admission.session_id.as_deref().or(self.admission.session_tag.as_deref());
        match named {
            Some(id) => Some(identity(&[caller(self.admission), id, "conversation"])),
            None => self.opening(),
        }
    }

    /// The identity of the conversation with this model.
    pub fn conversation_with(&self, model: &str) -> Option<u64> {
        self.conversation().map(|conversation| conversation ^ identity(&[model]))
    }

    /// Returns whether conversations with this model stay with one connection: there are several, and reading from the
    /// provider's cache is cheaper than sending.
    pub fn is_held(&self, active: &ActiveConfig, model: &str) -> bool {
        let prefix = model.split_once('/').map_or(model, |(prefix, _)| prefix);
        self.is_cacheable() && active.snapshot.candidates(prefix).len() > 1 && has_cheap_reads(active, model)
    }

    /// Adds what depends on the prompt to a choice: the hold, the key of the provider's cache, and the segments for the
    /// record.
    pub fn describe(self, active: &ActiveConfig, hold: Option<HeldConversation>, choice: &mut Choice) {
        let mut prompt = PromptUse { hold, ..PromptUse::default() };
        if self.is_cacheable() {
            let mut targets = choice.targets.iter().enumerate();
            if targets.any(|(at, target)| accepts_key(target, choice.upstream_model(at))) {
                prompt.conversation = self.conversation();
            }
            if has_cheap_reads(active, choice.model(0)) {
                let _segments = self.segments();
                prompt.segments = self.segments.into_inner().flatten();
            }
        }
        if prompt.hold.is_some() || prompt.conversation.is_some() || prompt.segments.is_some() {
            choice.prompt = Some(Box::new(prompt));
        }
    }

    fn is_cacheable(&self) -> bool {
        self.body.len() >= LEAST_BYTES
    }
}

/// The name of the caller in identities.
pub fn caller(admission: &Admission) -> &str {
    admission.principal.key().map_or_else(|| admission.principal.kind(), |key| key.id.as_str())
}

fn accepts_key(target: &Target, model: &str) -> bool {
    target.connection.facts_of(model).prompt_cache_key_most.is_some_and(|most| most > 0)
}

fn has_cheap_reads(active: &ActiveConfig, model: &str) -> bool {
    active.snapshot.price(model).is_some_and(Price::has_cheap_reads)
}
