//! Orders a provider's connections for calls that name a model and no combo. Priority comes first: connections of a
//! lower priority are used only when none of a higher priority can serve. A strategy distributes the calls over
//! connections of equal priority with the same algorithms as combos ([`order()`](super::order::order)).

use super::facts::{Availability, CandidateOrder, Demand, Facts};
use super::{move_to_front, order, Memory, Params, Random, Strategy};
use serde::Deserialize;
use std::collections::HashMap;

/// How calls are distributed over connections of one provider and equal priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccountStrategy {
    /// The first by id that has capacity.
    FillFirst,
    /// Each in turn.
    RoundRobin,
    /// At random, in proportion to the weights.
    Weighted,
    /// Fewest requests in flight, then fewest sent.
    LeastUsed,
    /// Two random choices: the one with fewer requests in flight and more of its limits left.
    #[default]
    P2c,
    /// Each session, or else each conversation, has a fixed connection. Sessions are spread evenly.
    Sticky,
}

impl AccountStrategy {
    /// Every strategy with its name.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::FillFirst, "fill-first"),
        (Self::RoundRobin, "round-robin"),
        (Self::Weighted, "weighted"),
        (Self::LeastUsed, "least-used"),
        (Self::P2c, "p2c"),
        (Self::Sticky, "sticky"),
    ];

    /// The combo strategy to apply to one call. A call without a session or conversation is distributed without
    /// affinity.
    fn rule(self, demand: &Demand) -> Strategy {
        match self {
            Self::FillFirst => Strategy::FillFirst,
            Self::RoundRobin => Strategy::RoundRobin,
            Self::Weighted => Strategy::Weighted,
            Self::LeastUsed => Strategy::LeastUsed,
            Self::Sticky if demand.affinity.is_some() => Strategy::CacheOptimized,
            Self::P2c | Self::Sticky => Strategy::P2c,
        }
    }
}

/// The account strategies that the operator set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AccountStrategies {
    /// Applies to providers without an entry.
    pub default: AccountStrategy,
    /// Keyed by the provider's id in the catalogue or by a custom node's id.
    pub providers: HashMap<String, AccountStrategy>,
}

impl AccountStrategies {
    pub fn of(&self, provider: &str) -> AccountStrategy {
        self.providers.get(provider).copied().unwrap_or(self.default)
    }

    /// Returns whether any provider's strategy needs the session of a call.
    pub fn wants_affinity(&self) -> bool {
        self.default == AccountStrategy::Sticky
            || self.providers.values().any(|&strategy| strategy == AccountStrategy::Sticky)
    }
}

/// The state of one provider's strategy between calls.
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

    /// Returns the indices of the connections in the order to try them: connections with capacity by priority, then
    /// connections without, then connections in cooldown, by the time left. Closed connections are excluded.
    ///
    /// `facts` are sorted by priority, and `priorities` holds the priority of each. The connection that served the
    /// session last (`demand.last_target`) comes before all others with capacity.
    pub fn order(
        &mut self,
        strategy: AccountStrategy,
        facts: &[Facts],
        priorities: &[u32],
        demand: &Demand,
    ) -> CandidateOrder {
        let rule = strategy.rule(demand);
        let mut all = CandidateOrder::new();
        let mut is_taken = false;
        let mut begin = 0;
        for tier in priorities.chunk_by(|a, b| a == b) {
            let equals = &facts[begin..begin + tier.len()];
            // A call advances the round-robin state once, even if it orders several priorities.
            let mut scratch = if is_taken { self.memory.clone() } else { Memory::default() };
            let memory = if is_taken { &mut scratch } else { &mut self.memory };
            let ordered = order(rule, &self.params, equals, demand, memory, &mut self.random);
            is_taken |= equals.iter().any(Facts::is_open);
            all.extend(ordered.into_iter().map(|index| index + begin as u16));
            begin += tier.len();
        }
        all.sort_by_key(|&index| {
            let one = &facts[usize::from(index)];
            let is_cooling = one.availability == Availability::Cooling;
            (is_cooling, one.is_shut, if is_cooling { one.cooldown_ms } else { 0 })
        });
        move_to_front(
            &mut all,
            facts,
            demand.last_target.filter(|&last| facts.iter().any(|one| one.id == last && one.is_open())),
        );
        all
    }
}

#[cfg(test)]
#[path = "accounts_tests.rs"]
mod tests;
