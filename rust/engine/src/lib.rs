//! The relay: from an admitted head to a settled record.
//!
//! Read in this order: [`engine`] (what a front calls), [`inbound`] and [`admission`] (the gate), [`exchange`] (how an
//! answer reaches the front), [`chat`] with [`choose`], [`attempt`], [`plain`] and [`stream`] (a completion's life),
//! [`wording`] (the same request in each provider's dialect), [`guardrails`] (what must not be said), [`count`] (its
//! tokens, without asking for an answer), [`cache`] (answers that are given again), [`surfaces`] and [`relayed`] (calls
//! that pass with only their model changed), [`upload`] (forms with files), [`cors`] (pages of other origins), [`socket`], [`realtime`], [`frames`] and
//! [`outbox`] (connections of frames), [`settle`] and [`spool`] (its record), [`metrics`] and [`trace`] (what is told of
//! it), [`progress`] (to its caller), [`commands`] (what control asks of a worker), [`control`] and [`link`] (the other
//! plane), [`connector`], [`resolver`], [`pool`], [`target`], [`proof`],
//! [`live`], [`models`], [`threads`], [`log`] (what they stand on).
//!
//! A front calls in from threads of its own, and never waits for a lock that is held across an await. The work of its
//! requests runs on the engine's one thread, or, for a front that polls it ([`engine::Engine::feed_here`]), where the front is.

#![forbid(unsafe_code)]

pub mod active_config;
pub mod blocking;
pub mod cache;
pub mod call;
pub mod clock;
pub mod config;
pub mod control;
pub mod engine;
pub mod exchange;
pub mod front;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
pub mod gate;
pub mod models;
pub mod observe;
pub mod patience;
pub mod route;
pub mod shared;
pub mod socket;
pub mod task;
#[cfg(test)]
mod testing;
pub mod upstream;
