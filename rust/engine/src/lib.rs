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

pub mod admission;
pub mod answer;
pub mod anthropic_models;
pub mod attempt;
pub mod background;
pub mod blocking;
pub mod cache;
pub mod chat;
pub mod choose;
pub mod clock;
pub mod combos;
pub mod commands;
pub mod condition;
pub mod config;
pub mod connector;
pub mod control;
pub mod cors;
pub mod count;
pub mod counters;
mod counting;
pub mod defaults;
pub mod engine;
pub mod exchange;
pub mod failover;
pub mod frames;
pub mod front;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
pub mod gemini_models;
pub mod guardrails;
pub mod hedge;
pub mod hedged_stream;
pub mod inbound;
pub mod limits;
pub mod link;
pub mod live;
pub mod load;
pub mod log;
pub mod metrics;
pub mod models;
pub mod outbox;
pub mod passing;
pub mod patience;
pub mod places;
pub mod plain;
pub mod probe;
pub mod progress;
pub mod proof;
pub mod realtime;
pub mod reasoning;
pub mod relayed;
pub mod resolver;
pub mod responses;
pub mod route;
mod searches;
pub mod settle;
pub mod shared;
pub mod socket;
pub mod spool;
pub mod stages;
pub mod stats;
pub mod stream;
pub mod surfaces;
pub mod target;
pub mod task;
pub mod threads;
pub mod trace;
pub mod twins;
pub mod upload;
mod videos;
pub mod wire;
pub mod wording;
