//! Each provider's account strategy, taken from the current snapshot. The strategy distributes calls for a plain model
//! over the provider's connections.

use crate::clock;
use fairlead_core::strategy::{AccountOrder, AccountStrategies, AccountStrategy, CandidateOrder, Demand, Facts};
use fairlead_core::{random_bytes, Snapshot};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The strategies of all providers and their round-robin state.
#[derive(Debug, Default)]
pub struct Accounts {
    strategies: AccountStrategies,
    /// Keyed by provider. Only providers with several connections have an entry.
    orders: HashMap<String, Arc<Mutex<AccountOrder>>>,
    pub wants_affinity: bool,
}

impl Accounts {
    /// Builds the strategies. A provider keeps its round-robin state from `before` while it has several connections.
    pub fn build(snapshot: &Snapshot, before: &Accounts) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for connection in &snapshot.connections {
            *counts.entry(&connection.provider).or_default() += 1;
        }
        let orders = counts
            .into_iter()
            .filter(|(_, count)| *count > 1)
            .map(|(provider, _)| (provider.to_owned(), before.orders.get(provider).cloned().unwrap_or_else(fresh)))
            .collect();
        let strategies = snapshot.account_strategies.clone();
        let wants_affinity = strategies.wants_affinity();
        Self { strategies, orders, wants_affinity }
    }

    pub fn strategy(&self, provider: &str) -> AccountStrategy {
        self.strategies.of(provider)
    }

    /// Returns the indices into `facts` in the order to try them; see [`AccountOrder::order`].
    pub fn order(&self, provider: &str, facts: &[Facts], priorities: &[u32], demand: &Demand) -> CandidateOrder {
        let strategy = self.strategy(provider);
        match self.orders.get(provider) {
            Some(order) => order.lock().order(strategy, facts, priorities, demand),
            // The connections of several providers share one prefix.
            None => fresh().lock().order(strategy, facts, priorities, demand),
        }
    }
}

fn fresh() -> Arc<Mutex<AccountOrder>> {
    Arc::new(Mutex::new(AccountOrder::seeded(seed())))
}

/// Seeds a random source. Workers with equal seeds would all pick the same target.
pub fn seed() -> u64 {
    random_bytes::<8>().map_or_else(|_| clock::unix_ms(), u64::from_ne_bytes)
}
