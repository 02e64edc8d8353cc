//! The relay: from an admitted request head to a settled record.
//!
//! Read the modules in this order:
//! - [`engine`]: what a front calls
//! - [`exchange`]: a request's response, between a front and the task that creates it
//! - [`gate`]: admission: head, caller, limits, body
//! - [`call`]: admit, choose, attempt, relay, settle
//! - [`route`]: from models to targets
//! - [`upstream`]: calls to providers
//! - [`context`]: data for compression
//! - [`cache`]: the response cache
//! - [`socket`]: WebSocket connections of callers
//! - [`control`]: the connection to the control plane
//! - [`models`]: model lists
//! - [`leases`]: limits shared by several nodes, and [`peers`]: other state that nodes share
//! - [`observe`]: records, metrics, traces
//!
//! These modules use [`shared`] (the state that requests share), [`active_config`] (the snapshot in use), [`config`]
//! (settings of the worker), [`shared_store`] (connections to the shared Redis), [`front`] (work on the thread that
//! received the request), [`task`] and [`blocking`] (where work runs), [`clock`] and [`patience`] (how long to wait for
//! callers). `testing` and `fuzz` are for tests.
//!
//! A front calls the engine from separate threads, and never waits for a lock that is held across an await. The work of
//! its requests runs on the engine's only thread, or in the front itself if the front polls it
//! ([`engine::Engine::feed_here`]).

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod active_config;
mod blocking;
mod cache;
mod call;
mod clock;
mod config;
mod context;
mod control;
mod engine;
mod exchange;
mod front;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
mod gate;
mod leases;
mod models;
mod observe;
mod peers;
// Time limits for callers that both fronts and the engine use: `patience::SEND_PATIENCE`.
pub mod patience;
mod route;
mod shared;
mod shared_store;
mod socket;
// Spawns tasks that run beside a request: `task::spawn`.
pub mod task;
#[cfg(test)]
mod testing;
mod upstream;

pub use engine::{Engine, PolledBodyState, StartError, Work};
pub use exchange::{Exchange, Head, Piece, Wake};
pub use gate::admission::Admitted;
pub use gate::answer::error as refusal;
pub use gate::body::Pending;
pub use gate::inbound::Inbound;
pub use observe::threads::Heartbeat;
pub use shared::Shared;
pub use socket::assembly::CountedStream;
pub use socket::outbox::{Close, Handshake};
pub use socket::requests::FrameConnection;
pub use upstream::wire::framing::Chunks;
pub use upstream::wire::use_thread_pool_slot;

/// Internals for the example `decisions`.
#[doc(hidden)]
pub mod decisions {
    pub use crate::active_config::ActiveConfig;
    pub use crate::call::conversation::compression::PipelineChoice;
    pub use crate::call::idempotency::recording::Recordings;
    pub use crate::call::idempotency::ticket::Name;
    pub use fairlead_cache::digest;
}

/// Internals for the example `models`.
#[doc(hidden)]
pub mod lists {
    pub use crate::active_config::ActiveConfig;
    pub use crate::models::openai::{Cursor, Document, Lists};
}
