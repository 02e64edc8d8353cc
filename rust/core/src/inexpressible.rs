//! The choice between rejecting a request and dropping the members that its provider does not accept.

use serde::Deserialize;

/// How members that a provider does not accept are handled if dropping them changes the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inexpressible {
    /// The request is rejected.
    Refuse,
    /// The members are dropped.
    Drop,
}

impl Inexpressible {
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Drop => "drop",
        }
    }
}
