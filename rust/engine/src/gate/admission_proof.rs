//! The proof that a caller gave during admission, so that it can be checked again while its connection or stream
//! lasts.

use crate::gate::address::admit_address;
use crate::shared::Shared;
use fairlead_core::routes::{scopes, Route, Tier};
use fairlead_core::{policy, Error, ErrorKind, Principal, SecretHash, Snapshot};
use std::net::IpAddr;
use std::time::Duration;

/// How often the caller of a long connection or stream is checked again.
pub const REVIEW_EVERY: Duration = Duration::from_secs(2);

/// The facts on which an admission depended. They are small and copied for each request.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionProof {
    /// `None` on a Unix socket.
    pub address: Option<IpAddr>,
    /// The hash of the key, cookie or token.
    pub credential: Option<SecretHash>,
    /// The tier of the route for this request.
    pub tier: Tier,
    /// The method changes nothing.
    pub is_read: bool,
    /// Control acts for the key, which had to pass admission itself.
    pub is_on_behalf: bool,
}

impl Default for AdmissionProof {
    fn default() -> Self {
        Self { address: None, credential: None, tier: Tier::Public, is_read: false, is_on_behalf: false }
    }
}

/// The hash of the credential from which the principal was determined.
pub fn credential_of(principal: &Principal, cookie: Option<&str>, snapshot: &Snapshot) -> Option<SecretHash> {
    match principal {
        Principal::Key(key) => Some(key.hash),
        Principal::Token(token) => Some(token.hash),
        Principal::Session { .. } => cookie.map(|cookie| SecretHash::of(cookie.as_bytes())),
        Principal::Local => snapshot.local_token_hash,
        Principal::Anonymous => None,
    }
}

impl AdmissionProof {
    /// Returns the caller as currently configured; an error if its credential, address or permissions would no longer
    /// be admitted.
    pub fn renew(
        &self,
        shared: &Shared,
        route: &Route,
        principal: &Principal,
        now_ms: u64,
    ) -> Result<Principal, Error> {
        admit_address(shared, self.address)?;
        let active = shared.active.load();
        let snapshot = &active.snapshot;
        let principal = self.find(snapshot, principal, now_ms)?;
        if !principal.key().is_some_and(|key| scopes::opens(&key.scopes, route)) {
            principal.admit(self.tier, self.is_read, snapshot, shared.config.require_api_key)?;
        }
        if let Some(key) = principal.key().filter(|_| !self.is_on_behalf) {
            policy::admit_address(key, self.address)?;
        }
        Ok(principal)
    }

    fn find(&self, snapshot: &Snapshot, principal: &Principal, now_ms: u64) -> Result<Principal, Error> {
        let Some(hash) = self.credential else { return Ok(Principal::Anonymous) };
        match principal {
            Principal::Key(key) if self.is_on_behalf => Principal::on_behalf(snapshot, &key.id, now_ms),
            Principal::Key(_) => Principal::of_key(snapshot, &hash, now_ms),
            Principal::Token(_) => Principal::of_token(snapshot, &hash, now_ms),
            Principal::Session { .. } => snapshot
                .session(&hash, now_ms)
                .map(|(user_id, manages)| Principal::Session { user_id, manages })
                .ok_or_else(|| ended("The session has ended: sign in again.")),
            Principal::Local if snapshot.local_token_hash.is_some_and(|known| known.same_as(&hash)) => {
                Ok(Principal::Local)
            }
            Principal::Local => Err(ended("The local token was replaced: read it again.")),
            Principal::Anonymous => Ok(Principal::Anonymous),
        }
    }
}

fn ended(message: &'static str) -> Error {
    Error::client(ErrorKind::Unauthenticated, message)
}
