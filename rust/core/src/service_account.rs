//! Google's service accounts: the signed assertion that is exchanged for an access token (RFC 7523, as Google's "OAuth 2.0
//! for server to server applications" describes it). Pure: the caller says what time it is and does the exchange.

use crate::secret::Secret;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use base64::Engine as _;
use ring::rand::SystemRandom;
use ring::signature::{RsaKeyPair, RSA_PKCS1_SHA256};
use serde::Deserialize;
use serde_json::json;

/// What a token of ours may do.
pub const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// How long an assertion counts; Google takes no longer one.
const LIFETIME_S: i64 = 3_600;

/// What is needed of a service account's key file.
#[derive(Debug, Clone, Deserialize)]
pub struct ServiceAccount {
    client_email: String,
    private_key: Secret,
    #[serde(default)]
    private_key_id: Option<String>,
    pub token_uri: String,
}

/// Why an account makes no assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("`private_key` is not an RSA key in PKCS #8 PEM")]
    Key,
    #[error("the system gave no random numbers")]
    Random,
}

impl ServiceAccount {
    /// Of the key file's JSON.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    pub fn secret(&self) -> &Secret {
        &self.private_key
    }

    /// A signed JWT that asks for an access token of [`SCOPE`].
    pub fn assertion(&self, unix_s: i64) -> Result<String, Broken> {
        let head = json!({"alg": "RS256", "typ": "JWT", "kid": self.private_key_id});
        let claims = json!({
            "iss": self.client_email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": unix_s,
            "exp": unix_s + LIFETIME_S,
        });
        let signed = format!("{}.{}", encode(head.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let key = self.key()?;
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| Broken::Random)?;
        Ok(format!("{signed}.{}", encode(&signature)))
    }

    fn key(&self) -> Result<RsaKeyPair, Broken> {
        let base64: String = self.private_key.expose().lines().filter(|line| !line.starts_with("-----")).collect();
        let der = STANDARD.decode(base64.trim()).map_err(|_| Broken::Key)?;
        RsaKeyPair::from_pkcs8(&der).map_err(|_| Broken::Key)
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signature itself is judged by an OAuth library in the integration test; here are the ways to be wrong.
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
