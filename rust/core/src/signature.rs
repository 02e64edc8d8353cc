//! Standard Webhooks 1.0: how a delivery is signed, and how a receiver verifies it.
//!
//! The signature is the HMAC-SHA256 of `id.timestamp.body`, exactly as sent. A header holds one signature for each
//! valid secret, so that a secret can be rotated without an interruption.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use ring::{digest, hmac};
use serde_json::json;

use crate::jwt;
use crate::secret::{random_bytes, NoRandomness, Secret};

/// The prefix of every signing secret.
pub const SECRET_PREFIX: &str = "whsec_";
/// The prefix of every symmetric signature.
const SIGNATURE_PREFIX: &str = "v1,";
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The default tolerance for the age of a delivery, in seconds.
pub const TOLERANCE_S: i64 = 300;
/// The number of signatures in a header that are checked.
const SIGNATURES_MAX: usize = 32;

/// The text is not a signing secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a signing secret is `whsec_` and the base64 of 24 to 64 bytes")]
pub struct NotASecret;

/// The message id cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message's id is 1 to 256 printable ASCII characters without blanks and dots")]
pub struct NotAnId;

/// Why a delivery is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("the timestamp is not a number of seconds")]
    Timestamp,
    #[error("the timestamp is too old")]
    TooOld,
    #[error("the timestamp is too far in the future")]
    TooNew,
    #[error("no signature matches")]
    NoMatch,
    #[error(transparent)]
    NotAnId(#[from] NotAnId),
}

/// A secret that deliveries are signed with.
pub struct SigningSecret(hmac::Key);

impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSecret(***)")
    }
}

impl SigningSecret {
    /// Parses `whsec_...`.
    pub fn parse(text: &str) -> Result<Self, NotASecret> {
        let bytes = text.strip_prefix(SECRET_PREFIX).and_then(|rest| STANDARD.decode(rest).ok()).ok_or(NotASecret)?;
        if !SECRET_BYTES.contains(&bytes.len()) {
            return Err(NotASecret);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    fn tag(&self, id: &str, timestamp: &str, body: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            context.update(part);
        }
        context.sign()
    }
}

/// Generates a secret of 256 random bits.
pub fn new_secret() -> Result<String, NoRandomness> {
    Ok(format!("{SECRET_PREFIX}{}", STANDARD.encode(random_bytes::<32>()?)))
}

/// The header `webhook-signature`: one signature for each secret, in the same order.
pub fn sign(secrets: &[SigningSecret], id: &str, timestamp_s: i64, body: &[u8]) -> Result<String, NotAnId> {
    check_id(id)?;
    let timestamp = timestamp_s.to_string();
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| format!("{SIGNATURE_PREFIX}{}", STANDARD.encode(secret.tag(id, &timestamp, body))))
        .collect();
    Ok(signatures.join(" "))
}

/// A received delivery: its headers `webhook-id`, `webhook-timestamp` (UTC seconds) and `webhook-signature`, and its
/// body.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    pub signatures: &'a str,
    pub body: &'a [u8],
}

/// Verifies a delivery's signature and age. Every secret is compared with every signature in constant time.
pub fn verify(
    secrets: &[SigningSecret],
    delivery: &Delivery<'_>,
    now_s: i64,
    tolerance_s: i64,
) -> Result<(), Rejection> {
    let Delivery { id, timestamp, signatures, body } = *delivery;
    check_id(id)?;
    if timestamp.is_empty() || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Rejection::Timestamp);
    }
    let sent_s: i64 = timestamp.parse().map_err(|_| Rejection::Timestamp)?;
    if now_s.saturating_sub(sent_s) > tolerance_s {
        return Err(Rejection::TooOld);
    }
    if sent_s.saturating_sub(now_s) > tolerance_s {
        return Err(Rejection::TooNew);
    }
    let given: Vec<Vec<u8>> = signatures
        .split(' ')
        .take(SIGNATURES_MAX)
        .filter_map(|one| one.strip_prefix(SIGNATURE_PREFIX))
        .filter_map(|one| STANDARD.decode(one).ok())
        .collect();
    let mut matched = false;
    for secret in secrets {
        let right = secret.tag(id, timestamp, body);
        for signature in &given {
            matched |= same(right.as_ref(), signature);
        }
    }
    if matched {
        Ok(())
    } else {
        Err(Rejection::NoMatch)
    }
}

/// The lifetime of a delivery's token, in seconds: the maximum age of a timestamp.
const TOKEN_LIFETIME_S: i64 = TOLERANCE_S;

/// The signer, whose public key is published, and the audience.
#[derive(Debug)]
pub struct Token<'a> {
    /// PKCS #8 PEM of an RSA key.
    pub key: &'a Secret,
    pub key_id: &'a str,
    pub issuer: &'a str,
    pub audience: &'a str,
}

/// Why a delivery could not be signed with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSigned {
    #[error(transparent)]
    Id(#[from] NotAnId),
    #[error(transparent)]
    Key(#[from] jwt::Broken),
}

/// The header `webhook-signature` for a listener without a shared secret. The token names the listener, the message and
/// the SHA-256 of the body, so that it is valid only for this delivery.
pub fn sign_token(token: &Token<'_>, id: &str, timestamp_s: i64, body: &[u8]) -> Result<String, NotSigned> {
    check_id(id)?;
    let claims = json!({
        "iss": token.issuer,
        "aud": token.audience,
        "iat": timestamp_s,
        "exp": timestamp_s.saturating_add(TOKEN_LIFETIME_S),
        "jti": id,
        "body_sha256": jwt::encode(digest::digest(&digest::SHA256, body).as_ref()),
    });
    Ok(jwt::sign_rs256(token.key, Some(token.key_id), &claims)?)
}

/// With a dot, an id could be mistaken for an id and a timestamp.
fn check_id(id: &str) -> Result<(), NotAnId> {
    let plain = id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'.');
    if plain && (1..=256).contains(&id.len()) {
        Ok(())
    } else {
        Err(NotAnId)
    }
}

fn same(right: &[u8], given: &[u8]) -> bool {
    right.len() == given.len() && right.iter().zip(given).fold(0_u8, |seen, (a, b)| seen | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // The example in the specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIMESTAMP: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn secret(text: &str) -> SigningSecret {
        SigningSecret::parse(text).expect("a secret")
    }

    fn check(timestamp: &str, signatures: &str, body: &[u8], now_s: i64) -> Result<(), Rejection> {
        verify(&[secret(SECRET)], &delivery(ID, timestamp, signatures, body), now_s, TOLERANCE_S)
    }

    fn delivery<'a>(id: &'a str, timestamp: &'a str, signatures: &'a str, body: &'a [u8]) -> Delivery<'a> {
        Delivery { id, timestamp, signatures, body }
    }

    #[test]
    fn the_published_example_is_signed_and_verified() {
        assert_eq!(sign(&[secret(SECRET)], ID, TIMESTAMP, BODY).as_deref(), Ok(SIGNATURE));
        assert_eq!(check("1614265330", SIGNATURE, BODY, TIMESTAMP), Ok(()));
    }

    /// The tests of the wheel verify the content and signature of a token with an official library.
    #[test]
    fn a_token_needs_a_key_and_an_id() {
        let key = Secret::from("no key".to_owned());
        let token = Token { key: &key, key_id: "k", issuer: "us", audience: "https://you" };
        assert_eq!(sign_token(&token, "a.b", 0, b""), Err(NotSigned::Id(NotAnId)));
        assert_eq!(sign_token(&token, "a", 0, b""), Err(NotSigned::Key(jwt::Broken::Key)));
        assert!(!format!("{token:?}").contains("no key"));
    }

    #[test]
    fn a_delivery_is_held_to_its_time() {
        for (now_s, outcome) in [
            (TIMESTAMP + 300, Ok(())),
            (TIMESTAMP + 301, Err(Rejection::TooOld)),
            (TIMESTAMP - 300, Ok(())),
            (TIMESTAMP - 301, Err(Rejection::TooNew)),
        ] {
            assert_eq!(check("1614265330", SIGNATURE, BODY, now_s), outcome, "{now_s}");
        }
        for timestamp in ["", "x", "-1614265330", "+1614265330", " 1614265330", "1614265330.0", "99999999999999999999"]
        {
            assert_eq!(check(timestamp, SIGNATURE, BODY, TIMESTAMP), Err(Rejection::Timestamp), "{timestamp}");
        }
        // Another spelling of the same second is a different text, so the signature does not match.
        assert_eq!(check("01614265330", SIGNATURE, BODY, TIMESTAMP), Err(Rejection::NoMatch));
    }

    #[test]
    fn one_good_signature_among_others_is_enough_and_none_is_not() {
        let list = format!("v1a,AAAA v2,{} v1,AAAA {SIGNATURE}", &SIGNATURE[3..]);
        assert_eq!(check("1614265330", &list, BODY, TIMESTAMP), Ok(()));
        let many = "v1,AAAA ".repeat(10_000) + SIGNATURE;
        for signatures in ["", "v1,", "v1", &SIGNATURE[3..], &SIGNATURE[..20], &SIGNATURE.replace("v1,", "v1a,"), &many]
        {
            assert_eq!(check("1614265330", signatures, BODY, TIMESTAMP), Err(Rejection::NoMatch));
        }
    }

    #[test]
    fn while_a_secret_is_rotated_both_verify() {
        let (old, new) = (new_secret().expect("randomness"), new_secret().expect("randomness"));
        let header = sign(&[secret(&new), secret(&old)], "m", 7, b"x").expect("signed");
        for one in [&old, &new] {
            assert_eq!(verify(&[secret(one)], &delivery("m", "7", &header, b"x"), 7, 0), Ok(()));
        }
        let other = new_secret().expect("randomness");
        assert_eq!(verify(&[secret(&other)], &delivery("m", "7", &header, b"x"), 7, 0), Err(Rejection::NoMatch));
        assert_eq!(verify(&[], &delivery("m", "7", &header, b"x"), 7, 0), Err(Rejection::NoMatch));
    }

    #[test]
    fn secrets_and_ids_have_a_form() {
        for text in [
            "",
            "whsec_",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_c2hvcnQ=",
            "whsec_no base64",
            &format!("whsec_{}", STANDARD.encode([0; 65])),
            &format!("whsec_{}", STANDARD.encode([0; 23])),
        ] {
            assert!(SigningSecret::parse(text).is_err(), "{text}");
        }
        for id in ["", "a.b", "a b", "a\n", "\u{e9}", &"a".repeat(257)] {
            assert_eq!(sign(&[], id, 0, b""), Err(NotAnId), "{id}");
        }
        assert!(!format!("{:?}", secret(SECRET)).contains("MfKQ"));
    }

    proptest! {
        #[test]
        fn whatever_is_signed_verifies_and_any_other_body_does_not(
            body: Vec<u8>, at: usize, bit in 0..8_u8, id in "[A-Za-z0-9_-]{1,64}", time in 0..i64::MAX / 2
        ) {
            let header = sign(&[secret(SECRET)], &id, time, &body).expect("signed");
            let check = |body: &[u8]| verify(&[secret(SECRET)], &delivery(&id, &time.to_string(), &header, body), time, 0);
            prop_assert_eq!(check(&body), Ok(()));
            let mut other = body.clone();
            if other.is_empty() { other.push(0) } else { let at = at % other.len(); other[at] ^= 1 << bit }
            prop_assert_eq!(check(&other), Err(Rejection::NoMatch));
        }
    }
}
