//! The names of requests that are to be done once: for the workers of one store, and within one worker.

use fairlead_core::hex;

/// Two versions that keep other values in the store use other names.
const STORE_PREFIX: &str = "fairlead:1:once:";

/// Who sent which key: a key means nothing to anybody else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// The kind and the id of the principal.
    pub principal: String,
    pub key: String,
}

/// A request as the store that workers share is asked about it.
#[derive(Debug)]
pub struct Ticket {
    /// The store's key: a hash, so that neither the caller nor the idempotency key stands in the store.
    pub key: String,
    pub digest: [u8; 32],
}

impl Ticket {
    /// `digest` tells the request from others under its key.
    pub fn new(name: &Name, digest: [u8; 32]) -> Self {
        let hidden = fairlead_cache::digest(&[name.principal.as_bytes(), name.key.as_bytes()]);
        Self { key: format!("{STORE_PREFIX}{}", hex(&hidden)), digest }
    }
}
