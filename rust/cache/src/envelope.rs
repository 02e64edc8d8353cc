//! The encrypted form of a cached answer for other workers, with a version number.
//!
//! ```text
//!  version | length of the sealed meta | sealed meta | sealed body
//! ```
//!
//! The metadata can be read without the body. Each part is bound to the name that it is stored under, so no part can be
//! substituted for another. The question is not included, because a worker that finds the answer has the same question.

use crate::entry::{CachedAnswer, Meta};
use bytes::Bytes;
use fairlead_core::Sealer;
use std::sync::Arc;

/// Larger bodies are not shared.
pub const MAX_SHARED_BYTES: usize = 256 * 1024;
/// The version, the length and the metadata of a shared answer fit into this size.
pub const HEAD_BYTES: usize = 2 * 1024;

const VERSION: u8 = 1;
const LENGTH_BYTES: usize = 4;

/// Encrypts the answer for storage under `name`. Returns `None` if it is too large or cannot be encrypted.
pub fn seal(answer: &CachedAnswer, name: &str, sealer: &Sealer) -> Option<Vec<u8>> {
    if answer.body.len() > MAX_SHARED_BYTES {
        return None;
    }
    let meta = serde_json::to_vec(&Meta { question: None, ..Meta::clone(&answer.meta) }).ok()?;
    let meta = sealer.seal(&meta_of(name), &meta).ok()?;
    let body = sealer.seal(&body_of(name), &answer.body).ok()?;
    if 1 + LENGTH_BYTES + meta.len() > HEAD_BYTES {
        return None;
    }
    let mut out = Vec::with_capacity(1 + LENGTH_BYTES + meta.len() + body.len());
    out.push(VERSION);
    out.extend_from_slice(&u32::try_from(meta.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&meta);
    out.extend_from_slice(&body);
    Some(out)
}

/// Opens the output of `seal`. Returns `None` for anything else.
pub fn open(bytes: &[u8], name: &str, sealer: &Sealer) -> Option<CachedAnswer> {
    let (meta, body) = parts(bytes)?;
    let meta = open_meta(meta, name, sealer)?;
    let body = sealer.open(&body_of(name), body).ok()?;
    Some(CachedAnswer { meta: Arc::new(meta), body: Bytes::from(body) })
}

/// Opens the metadata. `bytes` must hold at least the first `HEAD_BYTES`.
pub fn open_head(bytes: &[u8], name: &str, sealer: &Sealer) -> Option<Meta> {
    open_meta(parts(bytes)?.0, name, sealer)
}

fn open_meta(sealed: &[u8], name: &str, sealer: &Sealer) -> Option<Meta> {
    serde_json::from_slice(&sealer.open(&meta_of(name), sealed).ok()?).ok()
}

fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    let (length, rest) = rest.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

fn meta_of(name: &str) -> String {
    format!("{name} meta")
}

fn body_of(name: &str) -> String {
    format!("{name} body")
}
