//! Which targets a combo tries, and in which order. Pure: the caller brings what it knows of each candidate ([`Facts`]), a
//! source of chance ([`Random`]) and what the combo remembers from request to request ([`Memory`]), and gets an order.
//!
//! ```text
//! snapshot: combos, models, prices --compile--> Book --expand(combo, ask, look)--> targets, first to last
//!                                                       |  facts of each candidate, hot
//!                                                       |  order by the combo's strategy
//!                                                       |  a nested combo stands as one candidate and is
//!                                                       v  put in its place by its own strategy
//! ```
//!
//! The same rules hold for every strategy: it orders the candidates that are able and have room; those without room come behind
//! them, then those that rest, the soonest to be able first; those that are closed are left out. A distribution is promised over
//! those that are able and have room.
//!
//! `combo` (a combo as the snapshot has it), `ready` (the same with its candidates), `book` (all of them compiled), `facts` (what is known of a candidate and
//! of a request), `expand` (a request's targets out of a combo), `order` (the strategies), `auto` with `pack` (the one that scores), `pool` (what its channels are filled with) and `family` (those of one family),
//! `memory` and `random`; `rules` (what the operator asks of a combo beyond its strategy); `accounts` (the connections of one
//! provider, for calls that name no combo).

mod accounts;
// Functions on a name: `auto::is_auto`, `auto::is_chat_model`.
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
pub use facts::{CandidateOrder, Demand, Facts, QuotaWindow, Standing};
pub use memory::Memory;
use order::move_to_front;
pub use order::order;
pub use pack::Pack;
pub use random::{mix, Random};
pub use ready::{Candidate, Ready, To};
pub use rules::{pattern_fault, Obstacle, QueueRule, Rules, Shadow, ToolFilter, Validation};

#[cfg(test)]
mod tests;

/// Nested combos deeper than this are not followed.
pub const MAX_DEPTH: usize = 10;

/// 64 bits of a text's identity: FNV-1a, then mixed so that near names lie far apart. Not for secrets.
pub fn identity(parts: &[&str]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    mix(hash)
}
