//! The targets of one request, in the order in which they are tried.

use crate::upstream::limiter::Entrant;
use crate::upstream::target::Target;
use crate::upstream::target_cap::TargetCap;
use fairlead_core::strategy::{identity, Memory, Obstacle, Params, QueueRule, Random, Rules, Strategy, ToolFilter};
use fairlead_core::{Inexpressible, Served};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// An error names so many targets.
pub const TOLD_AT_MOST: usize = 12;

/// The memory of a combo's target, and its own source of chance.
pub type Remembered = Arc<Mutex<(Memory, Random)>>;

/// The order in which connections are tried.
#[derive(Debug, Default)]
pub struct Choice {
    pub targets: SmallVec<[Arc<Target>; 4]>,
    /// The model as the provider of the first target knows it: the name without its prefix.
    pub upstream_model: String,
    /// The model of the first target with its prefix, as prices know it; not always the name that the caller used.
    pub model: String,
    /// How a combo chose; absent for a single model.
    pub combo: Option<Box<ComboChoice>>,
    /// The most that the answer may have, tokens, where its key has no room for a longer one.
    pub output_cap: Option<u64>,
    /// What the caller or its key says of members that a provider does not accept.
    pub inexpressible: Option<Inexpressible>,
    /// The gateway wrote the body, for a caller of Ollama's dialect.
    pub is_rewritten: bool,
}

/// The part of a choice that only combos have.
#[derive(Debug, Clone)]
pub struct ComboChoice {
    pub name: String,
    pub strategy: Strategy,
    pub params: Params,
    pub rules: Arc<Rules>,
    /// Which tools are sent.
    pub tools: Option<ToolFilter>,
    /// The instructions of each step.
    pub prompts: Vec<Option<String>>,
    /// One for each target, at the same place.
    pub legs: Vec<ComboTarget>,
    /// The identity of the target that served the caller's session last.
    pub last_target: Option<u64>,
    /// The conversation that stays with its target, because the combo protects the provider's cache of it.
    pub protected: Option<u64>,
    /// Models that may not be tried now, with the milliseconds until they may.
    pub closed: Vec<(Arc<str>, u64)>,
    /// Models that the combo's rules leave out.
    pub barred: Vec<(Arc<str>, Obstacle)>,
}

/// A target as the combo knows it.
#[derive(Debug, Clone)]
pub struct ComboTarget {
    pub model: Arc<str>,
    pub upstream_model: Arc<str>,
    pub id: u64,
    /// Which step of the combo it comes from.
    pub step: usize,
    pub memory: Remembered,
}

impl ComboChoice {
    /// Whether the session leaves its target with this call, and its combo has it take a note along.
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

    /// The names by which a limit knows this target.
    pub fn served(&self, at: usize) -> Served<'_> {
        let connection = &self.targets[at].connection;
        let upstream_model = self.upstream_model(at);
        Served { provider: &connection.provider, prefixes: &connection.prefixes, upstream_model }
    }

    pub fn upstream_model(&self, at: usize) -> &str {
        self.leg(at).map_or(self.upstream_model.as_str(), |leg| &leg.upstream_model)
    }

    /// A request of so many tokens, as it asks this target's connection for room.
    pub fn entrant(&self, at: usize, tokens: u64) -> Entrant<'_> {
        Entrant { model: self.upstream_model(at), tokens, queue: self.queue(), cap: self.cap(at) }
    }

    /// What the combo says of waiting.
    pub fn queue(&self) -> QueueRule {
        self.combo.as_ref().map(|combo| combo.rules.queue()).unwrap_or_default()
    }

    /// How many requests the combo has this target serve at once. `fill-first` only orders by it.
    pub fn cap(&self, at: usize) -> Option<TargetCap> {
        let combo = self.combo.as_ref().filter(|combo| combo.strategy == Strategy::RoundRobin)?;
        let at_once = combo.params.concurrency_per_model?;
        let leg = combo.legs.get(at)?;
        Some(TargetCap { id: identity(&[&combo.name, &self.targets.get(at)?.connection.id, &leg.model]), at_once })
    }

    /// Tells a target from all others, over snapshots.
    pub fn identity(&self, at: usize) -> Option<u64> {
        match self.leg(at) {
            Some(leg) => Some(leg.id),
            None => Some(identity(&[&self.targets.get(at)?.connection.id, &self.upstream_model])),
        }
    }

    /// This choice with only the targets at these places, in this order.
    #[must_use]
    pub fn narrowed(&self, places: &[usize]) -> Self {
        let mut combo = self.combo.as_ref().map(|combo| {
            let legs = places.iter().filter_map(|&at| combo.legs.get(at).cloned()).collect();
            Box::new(ComboChoice { legs, ..(**combo).clone() })
        });
        if let Some(combo) = &mut combo {
            combo.closed.clear();
            combo.barred.clear();
        }
        Self {
            targets: places.iter().filter_map(|&at| self.targets.get(at).cloned()).collect(),
            upstream_model: places.first().map_or_else(String::new, |&at| self.upstream_model(at).to_owned()),
            model: places.first().map_or_else(String::new, |&at| self.model(at).to_owned()),
            combo,
            output_cap: self.output_cap,
            inexpressible: self.inexpressible,
            is_rewritten: self.is_rewritten,
        }
    }

    pub fn strategy(&self) -> &'static str {
        self.combo.as_ref().map_or("single", |combo| combo.strategy.name())
    }
}
