//! The response cache: what makes two requests the same, which questions mean the same, and where answers are kept.
//!
//! Read in this order: [`key`] (the exact key and the partition), [`entry`] (a kept answer), [`cache`] (what the engine calls),
//! [`reasoning`] (thoughts of models, kept for their next turn), `shelf` (the memory tier), `disk` (the tier that outlives a restart); then [`vectors`] (a question's direction), [`guard`]
//! (what a direction blurs), [`near`] (the nearest question), [`near_miss`] (questions that were nearly answered), [`learner`] (how near it must be, by partition).
//!
//! No runtime and no socket here; the only files are the cache's own and the vectors'.

#![forbid(unsafe_code)]

pub mod cache;
mod disk;
pub mod entry;
pub mod guard;
pub mod key;
pub mod learner;
pub mod near;
pub mod near_miss;
pub mod reasoning;
mod shelf;
pub mod vectors;

pub use shelf::{EntrySummary, MAX_ENTRIES};
