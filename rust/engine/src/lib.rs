//! The relay: from an admitted head to a settled record.
//!
//! Read in this order: [`engine`] (what a front calls), [`exchange`] (one request's answer between a front and the task that makes
//! it), [`gate`] (head, caller, limits, body), [`call`] (admit, choose, attempt, relay, settle), [`route`] (models to targets),
//! [`upstream`] (providers), [`cache`] (answers that are given again), [`socket`] (connections of frames), [`control`] (the other
//! plane), [`models`] (lists of them), [`observe`] (records, metrics, traces).
//!
//! They stand on [`shared`] (what requests share), [`active_config`] (the snapshot in force), [`config`] (settings of the worker),
//! [`front`] (work begun where a request came in), [`task`] and [`blocking`] (where work runs), [`clock`], [`patience`] (how long
//! callers are waited for); tests on `testing` and `fuzz`.
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
