//! The ordered targets of one request.

use crate::route::prompt_use::PromptUse;
use crate::upstream::limiter::SlotRequest;
use crate::upstream::target::Target;
use crate::upstream::target_cap::TargetCap;
use fairlead_core::strategy::{identity, Memory, Obstacle, Params, QueueRule, Random, Rules, Strategy, ToolFilter};
use fairlead_core::{ApiType, Inexpressible, Served};
use http::HeaderValue;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// The most targets that an error message lists.
pub const MAX_LISTED_TARGETS: usize = 12;

/// The state of a combo's strategy and its random source.
pub type Remembered = Arc<Mutex<(Memory, Random)>>;

/// The ordered targets of a request and the settings that apply to them.
#[derive(Debug, Default)]
pub struct Choice {
    pub targets: SmallVec<[Arc<Target>; 4]>,
    /// The model name of the first target without its prefix, as sent to the provider.
    pub upstream_model: String,
    /// The model name of the first target with its prefix, as used in prices. It can differ from the name in the
    /// request.
    pub model: String,
    /// The combo's decision. Absent for a single model.
    pub combo: Option<Box<ComboChoice>>,
    /// The maximum output in tokens, if the key's limits allow no more.
    pub output_cap: Option<u64>,
    /// How members that a provider does not accept are handled, if the caller or its key chooses.
    pub inexpressible: Option<Inexpressible>,
    /// The caller's `anthropic-beta` header, for providers that read it in the body.
    pub betas: Option<HeaderValue>,
    /// The gateway wrote the request body because the caller uses the Ollama dialect.
    pub is_rewritten: bool,
    /// The conversation was changed in a way that differs from turn to turn.
    pub is_edited: bool,
    /// How the request uses providers' prompt caches. Boxed, because waiting calls contain the choice several times.
    pub prompt: Option<Box<PromptUse>>,
}

/// The fields of a choice that only combos have.
#[derive(Debug, Clone)]
pub struct ComboChoice {
    pub name: String,
    pub strategy: Strategy,
    pub params: Params,
    pub rules: Arc<Rules>,
    /// Selects the tools that are sent.
    pub tools: Option<ToolFilter>,
    /// The instructions of each step, indexed by step.
    pub prompts: Vec<Option<String>>,
    /// One entry for each target, at the target's index.
    pub legs: Vec<ComboTarget>,
    /// The identity of the target that served the session last.
    pub last_target: Option<u64>,
    /// Models in cooldown, each with the milliseconds until it can be tried again.
    pub closed: Vec<(Arc<str>, u64)>,
    /// Models that the combo's rules exclude.
    pub barred: Vec<(Arc<str>, Obstacle)>,
}

/// A combo's data about one target.
#[derive(Debug, Clone)]
pub struct ComboTarget {
    pub model: Arc<str>,
    pub upstream_model: Arc<str>,
    pub id: u64,
    /// The index of the combo step that the target comes from.
    pub step: usize,
    pub memory: Remembered,
}

impl ComboChoice {
    /// Returns whether this call moves the session to another target and the combo wants a hand-over note.
    pub fn is_moving(&self) -> bool {
        let first = self.legs.first().map(|leg| leg.id);
        self.strategy == Strategy::ContextRelay
            && self.last_target.is_some_and(|last_target| first.is_some_and(|first| first != last_target))
    }
}

impl Choice {
    pub fn leg(&self, at: usize) -> Option<&ComboTarget> {
        self.combo.as_ref()?.legs.get(at)
    }

    /// The model at this target, with its prefix.
    pub fn model(&self, at: usize) -> &str {
        self.leg(at).map_or(self.model.as_str(), |leg| &leg.model)
    }

    /// The names under which limits count this target.
    pub fn served(&self, at: usize) -> Served<'_> {
        let connection = &self.targets[at].connection;
        let upstream_model = self.upstream_model(at);
        Served { provider: &connection.provider, prefixes: &connection.prefixes, upstream_model }
    }

    pub fn upstream_model(&self, at: usize) -> &str {
        self.leg(at).map_or(self.upstream_model.as_str(), |leg| &leg.upstream_model)
    }

    /// Returns whether only OpenAI's responses API serves the model at this target.
    pub fn needs_responses(&self, at: usize) -> bool {
        let facts = self.targets[at].connection.facts_of(self.upstream_model(at));
        facts.api_type == Some(ApiType::Responses)
    }

    /// Describes a request of this many tokens for the admission control of the target's connection.
    pub fn slot_request(&self, at: usize, tokens: u64) -> SlotRequest<'_> {
        SlotRequest { model: self.upstream_model(at), tokens, queue: self.queue(), cap: self.cap(at) }
    }

    /// The combo's queue settings.
    pub fn queue(&self) -> QueueRule {
        self.combo.as_ref().map(|combo| combo.rules.queue()).unwrap_or_default()
    }

    /// The most concurrent requests that the combo allows on this target. `fill-first` uses the number only for
    /// ordering.
    pub fn cap(&self, at: usize) -> Option<TargetCap> {
        let combo = self.combo.as_ref().filter(|combo| combo.strategy == Strategy::RoundRobin)?;
        let at_once = combo.params.concurrency_per_model?;
        let leg = combo.legs.get(at)?;
        Some(TargetCap { id: identity(&[&combo.name, &self.targets.get(at)?.connection.id, &leg.model]), at_once })
    }

    /// The target's identity. It is stable across snapshots.
    pub fn identity(&self, at: usize) -> Option<u64> {
        match self.leg(at) {
            Some(leg) => Some(leg.id),
            None => Some(identity(&[&self.targets.get(at)?.connection.id, &self.upstream_model])),
        }
    }

    /// Returns a copy with only the targets at these indices, in this order.
    #[must_use]
    pub fn narrowed(&self, indices: &[usize]) -> Self {
        let mut combo = self.combo.as_ref().map(|combo| {
            let legs = indices.iter().filter_map(|&at| combo.legs.get(at).cloned()).collect();
            Box::new(ComboChoice { legs, ..(**combo).clone() })
        });
        if let Some(combo) = &mut combo {
            combo.closed.clear();
            combo.barred.clear();
        }
        Self {
            targets: indices.iter().filter_map(|&at| self.targets.get(at).cloned()).collect(),
            upstream_model: indices.first().map_or_else(String::new, |&at| self.upstream_model(at).to_owned()),
            model: indices.first().map_or_else(String::new, |&at| self.model(at).to_owned()),
            combo,
            output_cap: self.output_cap,
            inexpressible: self.inexpressible,
            betas: self.betas.clone(),
            is_rewritten: self.is_rewritten,
            is_edited: self.is_edited,
            prompt: self.prompt.clone(),
        }
    }

    pub fn strategy(&self) -> &'static str {
        self.combo.as_ref().map_or("single", |combo| combo.strategy.name())
    }
}
