//! Google service accounts: creates the signed assertion that is exchanged for an access token (RFC 7523, and Google's
//! "OAuth 2.0 for server to server applications"). The caller passes the time and makes the exchange, so the module has
//! no side effects.

use crate::jwt;
use crate::secret::Secret;
use serde::Deserialize;
use serde_json::json;

/// The scope of the requested tokens.
pub const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The lifetime of an assertion, in seconds. Google accepts no longer one.
const LIFETIME_S: i64 = 3_600;

/// The required members of a service account's key file.
#[derive(Debug, Clone, Deserialize)]
pub struct ServiceAccount {
    client_email: String,
    private_key: Secret,
    #[serde(default)]
    private_key_id: Option<String>,
    pub token_uri: String,
}

/// Why an assertion could not be created.
pub use crate::jwt::Broken;

impl ServiceAccount {
    /// Parses the JSON of a key file.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    pub fn secret(&self) -> &Secret {
        &self.private_key
    }

    /// Creates a signed JWT that requests an access token of [`SCOPE`].
    pub fn assertion(&self, unix_s: i64) -> Result<String, Broken> {
        let claims = json!({
            "iss": self.client_email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": unix_s,
            "exp": unix_s + LIFETIME_S,
        });
        jwt::sign_rs256(&self.private_key, self.private_key_id.as_deref(), &claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An OAuth library checks the signature in the integration test. These are the error cases.
    #[test]
    fn a_key_that_is_none_is_told() {
        for private_key in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "no base64!"] {
            let account = ServiceAccount {
                client_email: "a@b".into(),
                private_key: Secret::from(private_key.to_owned()),
                private_key_id: None,
                token_uri: "https://t".into(),
            };
            assert_eq!(account.assertion(0), Err(Broken::Key));
            assert!(!format!("{account:?}").contains("PRIVATE KEY"));
        }
    }
}
