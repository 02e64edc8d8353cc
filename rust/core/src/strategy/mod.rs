//! Decides which targets a combo tries and in which order. The code is pure: the caller supplies the facts about each
//! candidate ([`Facts`]), a random source ([`Random`]) and the strategy's state ([`Memory`]).
//!
//! ```text
//! snapshot: combos, models, prices --compile--> Book --expand(combo, ask, look)--> ordered targets
//!                                                       |  live facts of each candidate
//!                                                       |  order by the combo's strategy
//!                                                       |  a nested combo is ordered as one candidate,
//!                                                       v  then expanded by its own strategy
//! ```
//!
//! Every strategy follows the same rules. It orders the candidates that are able and have capacity. Candidates without
//! capacity follow, then candidates in cooldown, by the time left. Closed candidates are excluded. The distribution
//! that a strategy promises applies to candidates that are able and have capacity.
//!
//! The modules:
//!
//! - `combo` is a combo as the snapshot has it, `ready` the compiled combo with its candidates, and `book` all of them.
//! - `facts` describes candidates and requests; `expand` determines a request's targets.
//! - `order` has the strategies, and `auto` with `pack` the one that scores.
//! - `pool` fills the channels of `auto`, and `family` defines the channels of model families.
//! - `memory` and `random` are the state and the random source.
//! - `rules` has the operator's other rules for a combo.
//! - `accounts` orders the connections of one provider for calls without a combo.

mod accounts;
// Called by module path: `auto::is_auto`, `auto::is_chat_model`.
pub mod auto;
mod book;
mod combo;
mod expand;
mod facts;
mod family;
mod memory;
mod order;
mod pack;
mod pool;
mod random;
mod ready;
mod rules;

pub use accounts::{AccountOrder, AccountStrategies, AccountStrategy};
pub use book::Book;
pub use combo::{Combo, Params, Step, Strategy, What};
pub use expand::{expand, Look, Pick, Targets};
pub use facts::{Availability, CandidateOrder, Demand, Facts, QuotaWindow};
pub use memory::Memory;
use order::move_to_front;
pub use order::order;
pub use pack::Pack;
pub use random::{mix, Random};
pub use ready::{Candidate, Ready, To};
pub use rules::{pattern_fault, Obstacle, QueueRule, Rules, Shadow, ToolFilter, Validation};

#[cfg(test)]
mod tests;

/// The maximum nesting depth of combos. Deeper references are ignored.
pub const MAX_DEPTH: usize = 10;

/// Returns a 64-bit hash of the parts: FNV-1a, then mixed so that similar names differ widely. Not for secrets.
pub fn identity(parts: &[&str]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    mix(hash)
}
