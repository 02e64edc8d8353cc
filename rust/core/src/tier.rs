//! What a route asks of its caller.

use crate::error::{Error, ErrorKind};

/// Who may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Anybody.
    Public,
    /// A gateway key, or anybody while keys are not required.
    Inference,
    /// A session, the local token, an access token (`read` to read, `write` to change), or a key with the scope `manage`.
    Management,
    /// As `Management`, and an access token needs `admin`.
    Admin,
    /// A session or the local token.
    Session,
    /// A session of any role, or the local token: what people do with their own account.
    Account,
    /// A gateway key, always: the scraping API knows no other caller.
    Key,
    /// Anybody whom control finds in the credential, which is none of the relay's: it goes along as it was sent, and so does
    /// the body. The relay tells a session only; control holds it to the gateway's own pages.
    Delegated,
}

impl Tier {
    /// A refused credential, as this tier's callers are told of it: where a key is the only credential, one that does
    /// not count is an invalid key (401), whatever the reason.
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
