//! Exclusive leases of connections to one session: who holds a lease, and how a caller proves it.

use crate::secret::SecretHash;
use serde::Deserialize;

/// A lease of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SessionLease {
    pub key_id: String,
    /// SHA-256 of the owner's secret name, in hex.
    pub owner_hash: String,
    /// Increases with each lease. A caller with an earlier generation has lost its lease.
    pub generation: u64,
    /// The end of the lease, in milliseconds since 1970.
    pub until_ms: u64,
}

/// The caller's proof of its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClaim {
    pub owner_hash: String,
    pub generation: Option<u64>,
}

impl SessionClaim {
    /// Creates a claim from the owner's secret name.
    pub fn new(owner: &str, generation: Option<u64>) -> Self {
        Self { owner_hash: SecretHash::of(owner.as_bytes()).to_hex(), generation }
    }
}

impl SessionLease {
    pub fn is_live(&self, now_unix_ms: u64) -> bool {
        now_unix_ms < self.until_ms
    }

    pub fn is_held_by(&self, key_id: &str, claim: &SessionClaim, now_unix_ms: u64) -> bool {
        self.is_live(now_unix_ms)
            && self.key_id == key_id
            && self.owner_hash == claim.owner_hash
            && claim.generation == Some(self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_with_its_key_and_the_latest_generation_holds_it() {
        let claim = SessionClaim::new("vlo_x", Some(7));
        let lease =
            SessionLease { key_id: "k".into(), owner_hash: claim.owner_hash.clone(), generation: 7, until_ms: 100 };
        assert!(lease.is_held_by("k", &claim, 99));
        assert!(!lease.is_held_by("k", &claim, 100), "it is over");
        assert!(!lease.is_held_by("other", &claim, 0));
        for other in
            [SessionClaim::new("vlo_x", Some(6)), SessionClaim::new("vlo_x", None), SessionClaim::new("vlo_y", Some(7))]
        {
            assert!(!lease.is_held_by("k", &other, 0), "{other:?}");
        }
    }
}
