//! Secrets: the format of keys, their storage, and the encryption of provider credentials.
//!
//! A key consists of 256 random bits, with a prefix that secret scanners recognize and a checksum that detects typing
//! errors before any lookup. It is stored as its SHA-256. A slow hash would protect nothing, because 256 random bits
//! cannot be guessed.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ring::digest::{digest, SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Deserializer};
use std::cell::RefCell;

/// The prefix of every gateway key.
pub const KEY_PREFIX: &str = "sk-fl-";
/// The prefix of every management access token.
pub const TOKEN_PREFIX: &str = "flm_";
const RANDOM_CHARS: usize = 43;
const CHECKSUM_CHARS: usize = 6;
const KEY_LEN: usize = KEY_PREFIX.len() + RANDOM_CHARS + CHECKSUM_CHARS;
const SEAL_VERSION: u8 = 1;
const NAME_BYTES: usize = 16;
const NAMES_BYTES: usize = 32 * NAME_BYTES;

/// SHA-256 of a secret, the only form in which a secret is stored or compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    pub fn of(text: &[u8]) -> Self {
        let mut bytes = [0_u8; 32];
        bytes.copy_from_slice(digest(&SHA256, text).as_ref());
        Self(bytes)
    }

    /// Parses 64 hex digits.
    pub fn from_hex(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0_u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (nibble(pair[0])? << 4) | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }

    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// Compares in constant time, so that timing does not reveal where the values differ.
    pub fn same_as(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).fold(0_u8, |seen, (a, b)| seen | (a ^ b)) == 0
    }
}

/// A text that must not be shown. It prints as `***`.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the text, for the code that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)] as char);
        out.push(DIGITS[usize::from(byte & 15)] as char);
    }
    out
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// The system's random source failed, so no secret can be generated.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

/// `N` random bytes from the system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0_u8; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

thread_local! {
    /// Random bytes for names, and how many of them have been used.
    static FOR_NAMES: RefCell<([u8; NAMES_BYTES], usize)> = const { RefCell::new(([0; NAMES_BYTES], NAMES_BYTES)) };
}

/// A unique name: 128 random bits in hex. It is not a secret, so random bytes are read for many names at a time, which
/// saves system calls.
pub fn random_name() -> Result<String, NoRandomness> {
    FOR_NAMES.with_borrow_mut(|(bytes, used)| {
        if *used == NAMES_BYTES {
            *bytes = random_bytes()?;
            *used = 0;
        }
        let name = hex(&bytes[*used..*used + NAME_BYTES]);
        *used += NAME_BYTES;
        Ok(name)
    })
}

/// Generates a gateway key.
pub fn generate_key() -> Result<String, NoRandomness> {
    let body = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
    let mut key = format!("{KEY_PREFIX}{body}");
    key.push_str(&checksum(&key));
    Ok(key)
}

/// Whether the text has the form and the checksum of a gateway key. Does not check that the key exists.
pub fn is_well_formed_key(text: &str) -> bool {
    text.len() == KEY_LEN
        && text.starts_with(KEY_PREFIX)
        && text.is_char_boundary(KEY_LEN - CHECKSUM_CHARS)
        && checksum(&text[..KEY_LEN - CHECKSUM_CHARS]) == text[KEY_LEN - CHECKSUM_CHARS..]
}

fn checksum(text: &str) -> String {
    let mut sum = URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()));
    sum.truncate(CHECKSUM_CHARS);
    sum
}

/// A sealed value cannot be opened: another key, another record, or changed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sealed secret does not open with this key for this record")]
pub struct SealBroken;

/// Encrypts and decrypts provider credentials (AES-256-GCM). The record's id is associated data, so a secret that was
/// copied to another row cannot be opened there.
#[derive(Clone)]
pub struct Sealer {
    key: LessSafeKey,
    /// Also opens values sealed with this key, while keys are rotated.
    other: Option<LessSafeKey>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(***)")
    }
}

impl Sealer {
    /// `None` unless the key has 32 bytes.
    pub fn new(key: &[u8]) -> Option<Self> {
        Some(Self { key: aes_key(key)?, other: None })
    }

    /// Adds a second key for opening. `None` unless it has 32 bytes.
    #[must_use]
    pub fn with_other(self, other: &[u8]) -> Option<Self> {
        Some(Self { other: Some(aes_key(other)?), ..self })
    }

    /// Returns one version byte, the nonce, and the ciphertext with its tag.
    pub fn seal(&self, record_id: &str, plaintext: &[u8]) -> Result<Vec<u8>, NoRandomness> {
        let nonce = random_bytes::<NONCE_LEN>()?;
        let mut text = plaintext.to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), associated(record_id), &mut text)
            .map_err(|_| NoRandomness)?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + text.len());
        sealed.push(SEAL_VERSION);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&text);
        Ok(sealed)
    }

    pub fn open(&self, record_id: &str, sealed: &[u8]) -> Result<Vec<u8>, SealBroken> {
        let (&version, rest) = sealed.split_first().ok_or(SealBroken)?;
        if version != SEAL_VERSION || rest.len() < NONCE_LEN {
            return Err(SealBroken);
        }
        let (nonce, text) = rest.split_at(NONCE_LEN);
        match (open_with(&self.key, record_id, nonce, text), &self.other) {
            (Err(_), Some(other)) => open_with(other, record_id, nonce, text),
            (opened, _) => opened,
        }
    }
}

fn aes_key(key: &[u8]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, key).ok().map(LessSafeKey::new)
}

fn open_with(key: &LessSafeKey, record_id: &str, nonce: &[u8], text: &[u8]) -> Result<Vec<u8>, SealBroken> {
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealBroken)?;
    let mut text = text.to_vec();
    let open_len = key.open_in_place(nonce, associated(record_id), &mut text).map_err(|_| SealBroken)?.len();
    text.truncate(open_len);
    Ok(text)
}

fn associated(record_id: &str) -> Aad<String> {
    Aad::from(format!("fairlead:{record_id}"))
}

/// Deserializes a hash from 64 hex digits.
pub fn hash_from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretHash, D::Error> {
    let text = String::deserialize(deserializer)?;
    SecretHash::from_hex(&text).ok_or_else(|| serde::de::Error::custom("a hash is 64 hex digits"))
}

/// Deserializes an optional hash from 64 hex digits.
pub fn optional_hash<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretHash>, D::Error> {
    match Option::<String>::deserialize(deserializer)? {
        None => Ok(None),
        Some(text) => {
            SecretHash::from_hex(&text).map(Some).ok_or_else(|| serde::de::Error::custom("a hash is 64 hex digits"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_alike() {
        let names: std::collections::HashSet<_> = (0..100).map(|_| random_name().expect("randomness")).collect();
        assert!(names.len() == 100 && names.iter().all(|name| name.len() == 32));
    }

    #[test]
    fn what_is_sealed_with_either_key_opens_while_keys_are_exchanged() {
        let (old, new) = (Sealer::new(&[1; 32]).expect("a key"), Sealer::new(&[2; 32]).expect("a key"));
        let sealed = old.seal("row", b"secret").expect("randomness");
        assert!(new.open("row", &sealed).is_err());
        let both = new.clone().with_other(&[1; 32]).expect("a key");
        assert_eq!(both.open("row", &sealed).expect("it opens"), b"secret");
        assert!(both.open("another row", &sealed).is_err());
        let resealed = both.seal("row", b"secret").expect("randomness");
        assert!(old.open("row", &resealed).is_err() && new.open("row", &resealed).is_ok());
        assert!(new.with_other(&[1; 31]).is_none());
    }

    #[test]
    fn a_fresh_key_is_well_formed_and_one_wrong_character_is_not() {
        let key = generate_key().expect("randomness");
        assert!(is_well_formed_key(&key));
        let wrong =
            format!("{}{}", &key[..20], key[20..].replacen(|_| true, if &key[20..21] == "A" { "B" } else { "A" }, 1));
        assert!(!is_well_formed_key(&wrong));
        assert!(!is_well_formed_key("sk-fl-"));
        assert!(!is_well_formed_key(&"é".repeat(KEY_LEN / 2)));
    }

    #[test]
    fn a_sealed_secret_opens_only_for_its_record_and_key() {
        let sealer = Sealer::new(&[7; 32]).expect("a key");
        let sealed = sealer.seal("record-1", b"sk-upstream").expect("sealed");
        assert_eq!(sealer.open("record-1", &sealed).as_deref(), Ok(&b"sk-upstream"[..]));
        assert_eq!(sealer.open("record-2", &sealed), Err(SealBroken));
        assert_eq!(Sealer::new(&[8; 32]).expect("a key").open("record-1", &sealed), Err(SealBroken));
        let mut changed = sealed.clone();
        *changed.last_mut().expect("bytes") ^= 1;
        assert_eq!(sealer.open("record-1", &changed), Err(SealBroken));
        assert!(Sealer::new(&[7; 31]).is_none());
    }

    #[test]
    fn hashes_survive_hex_and_compare() {
        let hash = SecretHash::of(b"x");
        let again = SecretHash::from_hex(&hash.to_hex()).expect("hex");
        assert!(hash.same_as(&again));
        assert!(!hash.same_as(&SecretHash::of(b"y")));
        assert!(SecretHash::from_hex("zz").is_none());
    }
}
