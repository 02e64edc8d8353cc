//! The response cache: what makes two requests the same, which questions mean the same, and where answers are kept.
//!
//! Read in this order: [`key`] (the exact key and the partition), [`entry`] (a kept answer), [`envelope`] (the same on its way between workers), [`cache`] (what the engine calls), `store` (both tiers, and the thread that writes),
//! [`reasoning`] (thoughts of models, kept for their next turn), `shelf` (the memory tier), `disk` (the tier that outlives a restart); then [`vectors`] (a question's direction), [`guard`]
//! (what a direction blurs), [`near`] (the nearest question), [`near_miss`] (questions that were nearly answered), [`learner`] (how near it must be, by partition).
//!
//! No runtime and no socket here; the only files are the cache's own and the vectors'.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod cache;
mod disk;
mod entry;
// `seal` and `open` say of what by the module's name.
pub mod envelope;
mod guard;
mod key;
mod learner;
mod near;
mod near_miss;
// A second cache beside `Cache`, with an `Origin`, a `Now` and limits of its own.
pub mod reasoning;
mod shelf;
mod store;
mod vectors;

pub use cache::{Bounds, Cache, EntryFilter, Found, Opening, VectorState};
pub use entry::{CachedAnswer, Delivery, Meta, MAX_BODY_BYTES};
pub use guard::Reading;
pub use key::{digest, fingerprint, Digest, KeyScope, Question, Turns};
pub use learner::{Comparison, Learner, LEAST};
pub use near::{Near, Probe};
pub use near_miss::Asker;
pub use shelf::{EntrySummary, MAX_ENTRIES};
pub use vectors::{similarity, VectorFiles, Vectors};
