//! The response cache: which requests are equal, which questions mean the same, and where answers are stored.
//!
//! Read the modules in this order: [`key`] (the exact key and the partition), [`entry`] (a cached answer), [`envelope`]
//! (its form for other workers), [`cache`] (the interface for the engine), `store` (both tiers, and the writer thread),
//! [`reasoning`] (the reasoning of models, stored for their next turn), `memory_tier` (the memory tier), `disk` (the disk
//! tier). Then [`vectors`] (the embedding of a question), [`guard`] (the details that embeddings blur) and [`near`] (the
//! nearest question).
//!
//! The crate uses no async runtime and no sockets. Its only files are those of the cache and the vectors.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod cache;
mod disk;
mod entry;
// Functions are qualified with the module name: `envelope::seal`, `envelope::open`.
pub mod envelope;
mod guard;
mod key;
mod memory_tier;
mod near;
// A separate cache with its own `Origin`, `Now` and limits.
pub mod reasoning;
mod store;
mod vectors;

pub use cache::{Bounds, Cache, EntryFilter, Found, Opening, VectorState};
pub use entry::{CachedAnswer, Delivery, Meta, MAX_BODY_BYTES};
pub use guard::Reading;
pub use key::{digest, fingerprint, Digest, KeyScope, Question, Turns};
pub use memory_tier::{EntrySummary, MAX_ENTRIES};
pub use near::{Near, Probe};
pub use vectors::{similarity, VectorFiles, Vectors};
