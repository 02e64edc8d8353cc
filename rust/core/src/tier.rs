//! The authorization that a route requires.

use crate::error::{Error, ErrorKind};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Anybody.
    Public,
    /// A gateway key, or anybody while keys are not required.
    Inference,
    /// A session, the local token, an access token (`read` to read, `write` to change), or a key with the scope
    /// `manage`.
    Management,
    /// Like `Management`, but an access token needs `admin`.
    Admin,
    /// A session or the local token.
    Session,
    /// A session of any role, or the local token: what people do with their own account.
    Account,
    /// Always a gateway key. The scraping API has no other kind of caller.
    Key,
    /// Anybody whom the control plane recognizes by a credential unknown to the relay. The relay forwards the
    /// credential and the body unchanged and resolves only sessions. The control plane restricts those to the gateway's
    /// own pages.
    Delegated,
}

impl Tier {
    /// Adapts the error for a refused credential to the callers of this tier. If a key is the only credential, every
    /// refused one is reported as an invalid key (401).
    #[must_use]
    pub fn refusal_of(self, mut fault: Error) -> Error {
        if self == Self::Key && fault.kind == ErrorKind::Forbidden {
            fault.kind = ErrorKind::Unauthenticated;
        }
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_credential_is_an_invalid_key_where_only_keys_count() {
        let fault = || Error::client(ErrorKind::Forbidden, "The API key is banned.");
        assert_eq!(Tier::Key.refusal_of(fault()).kind, ErrorKind::Unauthenticated);
        assert_eq!(Tier::Inference.refusal_of(fault()).kind, ErrorKind::Forbidden);
    }
}
