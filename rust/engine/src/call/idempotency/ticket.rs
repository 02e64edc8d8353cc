//! The names of requests that must run once: among the workers of one store, and within one worker.

use fairlead_core::hex;

/// The prefix carries a version: versions with different formats use different prefixes.
const STORE_PREFIX: &str = "fairlead:1:once:";

/// An idempotency key and its principal. Keys of different principals are independent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// The kind and the id of the principal.
    pub principal: String,
    pub key: String,
}

/// A request as it is looked up in the shared store.
#[derive(Debug)]
pub struct Ticket {
    /// The key in the store. It is a hash, so the store contains neither the caller nor the idempotency key.
    pub key: String,
    pub digest: [u8; 32],
}

impl Ticket {
    /// `digest` distinguishes the request from others under its key.
    pub fn new(name: &Name, digest: [u8; 32]) -> Self {
        let hidden = fairlead_cache::digest(&[name.principal.as_bytes(), name.key.as_bytes()]);
        Self { key: format!("{STORE_PREFIX}{}", hex(&hidden)), digest }
    }
}
