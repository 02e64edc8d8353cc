//! The relay: from an admitted head to a settled record.
//!
//! Read in this order: [`engine`] (what a front calls), [`exchange`] (one request's answer between a front and the task that makes
//! it), [`gate`] (head, caller, limits, body), [`call`] (admit, choose, attempt, relay, settle), [`route`] (models to targets),
//! [`upstream`] (providers), [`context`] (pipelines that make conversations shorter), [`cache`] (answers that are given again), [`socket`] (connections of frames), [`control`] (the other
//! plane), [`models`] (lists of them), [`leases`] (limits that several nodes hold together), [`peers`] (what else they tell each other), [`observe`] (records, metrics, traces).
//!
//! They stand on [`shared`] (what requests share), [`active_config`] (the snapshot in force), [`config`] (settings of the worker), [`shared_store`] (connections to the Redis that workers share),
//! [`front`] (work begun where a request came in), [`task`] and [`blocking`] (where work runs), [`clock`], [`patience`] (how long
//! callers are waited for); tests on `testing` and `fuzz`.
//!
//! A front calls in from threads of its own, and never waits for a lock that is held across an await. The work of its
//! requests runs on the engine's one thread, or, for a front that polls it ([`engine::Engine::feed_here`]), where the front is.

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
// Times that both fronts and the engine hold callers to: `patience::SEND_PATIENCE`.
pub mod patience;
mod route;
mod shared;
mod shared_store;
mod socket;
// How work runs beside a request: `task::spawn`.
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
pub use observe::threads::Beat;
pub use shared::Shared;
pub use socket::assembly::CountedStream;
pub use socket::outbox::{Close, Handshake};
pub use socket::requests::FrameConnection;
pub use upstream::wire::framing::Chunks;
pub use upstream::wire::take_shelf;

/// The parts that the example `decisions` measures.
#[doc(hidden)]
pub mod decisions {
    pub use crate::active_config::Live;
    pub use crate::call::coalesce::Recordings;
    pub use crate::call::compression::PipelineChoice;
    pub use crate::call::ticket::Name;
    pub use fairlead_cache::digest;
}

/// The parts that the example `models` measures.
#[doc(hidden)]
pub mod lists {
    pub use crate::active_config::Live;
    pub use crate::models::openai::{Cursor, Document, Lists};
}
