//! Which of a provider's connections a call goes over, where it names a model and no combo. Connections are told apart by priority
//! first: a less preferred one is for when none of those before it serves. Among equals a strategy shares the calls, by the
//! rules that combos have ([`order()`](super::order::order)).

use super::facts::{CandidateOrder, Demand, Facts, Standing};
use super::{move_to_front, order, Memory, Params, Random, Strategy};
use serde::Deserialize;
use std::collections::HashMap;

/// How calls are shared among connections of one provider and one priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccountStrategy {
    /// The first by id that has room.
    FillFirst,
    /// Each in turn.
    RoundRobin,
    /// By chance, in proportion to the weights of the connections.
    Weighted,
    /// Fewest requests open, then fewest sent.
    LeastUsed,
    /// Of two that chance picks, the one with fewer requests open and more left of its limits.
    #[default]
    P2c,
    /// A session, or else a conversation, has its own connection; the sessions are spread evenly.
    Sticky,
}

impl AccountStrategy {
    /// Every strategy, as it is spelled.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::FillFirst, "fill-first"),
        (Self::RoundRobin, "round-robin"),
        (Self::Weighted, "weighted"),
        (Self::LeastUsed, "least-used"),
        (Self::P2c, "p2c"),
        (Self::Sticky, "sticky"),
    ];

    /// The rule for one call. A call without a session and a conversation is shared like any other.
    fn rule(self, ask: &Demand) -> Strategy {
        match self {
            Self::FillFirst => Strategy::FillFirst,
            Self::RoundRobin => Strategy::RoundRobin,
            Self::Weighted => Strategy::Weighted,
            Self::LeastUsed => Strategy::LeastUsed,
            Self::Sticky if ask.affinity.is_some() => Strategy::CacheOptimized,
            Self::P2c | Self::Sticky => Strategy::P2c,
        }
    }
}

/// The strategy of each provider, as the operator set them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AccountStrategies {
    /// Of providers that have none of their own.
    pub default: AccountStrategy,
    /// By a catalogue id or a node's.
    pub providers: HashMap<String, AccountStrategy>,
}

impl AccountStrategies {
    pub fn of(&self, provider: &str) -> AccountStrategy {
        self.providers.get(provider).copied().unwrap_or(self.default)
    }

    /// Whether any provider wants to know to which session a call belongs.
    pub fn wants_affinity(&self) -> bool {
        self.default == AccountStrategy::Sticky
            || self.providers.values().any(|&strategy| strategy == AccountStrategy::Sticky)
    }
}

/// The order of one provider's connections from call to call.
#[derive(Debug)]
pub struct AccountOrder {
    memory: Memory,
    random: Random,
    params: Params,
}

impl AccountOrder {
    pub fn seeded(seed: u64) -> Self {
        Self { memory: Memory::default(), random: Random::seeded(seed), params: Params::default() }
    }

    /// Places of the connections, first to be tried first: those with room by priority, then those without, then those that rest,
    /// the soonest to be back first. Those that are closed are left out.
    ///
    /// `facts` are sorted by priority, and `priorities` are theirs. The connection that served the session before (`ask.last_target`) goes
    /// before all that have room.
    pub fn order(
        &mut self,
        strategy: AccountStrategy,
        facts: &[Facts],
        priorities: &[u32],
        ask: &Demand,
    ) -> CandidateOrder {
        let rule = strategy.rule(ask);
        let mut all = CandidateOrder::new();
        let mut is_taken = false;
        let mut begin = 0;
        for tier in priorities.chunk_by(|a, b| a == b) {
            let equals = &facts[begin..begin + tier.len()];
            // One call takes one turn, however many tiers there are.
            let mut scratch = if is_taken { self.memory.clone() } else { Memory::default() };
            let memory = if is_taken { &mut scratch } else { &mut self.memory };
            let placed = order(rule, &self.params, equals, ask, memory, &mut self.random);
            is_taken |= equals.iter().any(Facts::is_open);
            all.extend(placed.into_iter().map(|place| place + begin as u16));
            begin += tier.len();
        }
        all.sort_by_key(|&place| {
            let one = &facts[usize::from(place)];
            let is_resting = one.standing == Standing::Resting;
            (is_resting, one.is_shut, if is_resting { one.rest_ms } else { 0 })
        });
        move_to_front(
            &mut all,
            facts,
            ask.last_target.filter(|&last| facts.iter().any(|one| one.id == last && one.is_open())),
        );
        all
    }
}

#[cfg(test)]
#[path = "accounts_tests.rs"]
mod tests;
