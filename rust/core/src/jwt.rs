//! JSON Web Tokens signed with RS256 (RFC 7515, RFC 7519). The caller passes the key and the claims.

use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use base64::Engine as _;
use ring::rand::SystemRandom;
use ring::signature::{RsaKeyPair, RSA_PKCS1_SHA256};
use serde_json::{json, Value};

use crate::secret::Secret;

/// Why a token could not be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("`private_key` is not an RSA key in PKCS #8 PEM")]
    Key,
    #[error("the system gave no random numbers")]
    Random,
}

/// Signs a compact token with these claims. `key` is a PKCS #8 PEM. `key_id` tells a verifier which public key to use.
pub fn sign_rs256(key: &Secret, key_id: Option<&str>, claims: &Value) -> Result<String, Broken> {
    let head = json!({"alg": "RS256", "typ": "JWT", "kid": key_id});
    let signed = format!("{}.{}", encode(head.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
    let key = read_key(key)?;
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).map_err(|_| Broken::Random)?;
    Ok(format!("{signed}.{}", encode(&signature)))
}

fn read_key(pem: &Secret) -> Result<RsaKeyPair, Broken> {
    let base64: String = pem.expose().lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(base64.trim()).map_err(|_| Broken::Key)?;
    RsaKeyPair::from_pkcs8(&der).map_err(|_| Broken::Key)
}

/// Base64url without padding, the encoding of every part of a token.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
