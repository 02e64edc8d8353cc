//! A kept answer on its way between workers: sealed, and apart from what another version says.
//!
//! ```text
//! version | length of the sealed meta | sealed meta | sealed body
//! ```
//!
//! Which answer it is can be read without its body. Each part is bound to the name that it stands under, so that none can be given
//! in place of another. The question stays behind: who finds the answer asks the same.

use crate::entry::{CachedAnswer, Meta};
use bytes::Bytes;
use fairlead_core::Sealer;
use std::sync::Arc;

/// A larger body is not shared.
pub const MAX_SHARED_BYTES: usize = 256 * 1024;
/// The version, the length and the meta of a shared answer have room in this.
pub const HEAD_BYTES: usize = 2 * 1024;

const VERSION: u8 = 1;
const LENGTH_BYTES: usize = 4;

/// The answer as it stands under `name`. `None`: it is too large, or cannot be sealed.
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

/// What `seal` made. `None` for anything else.
pub fn open(bytes: &[u8], name: &str, sealer: &Sealer) -> Option<CachedAnswer> {
    let (meta, body) = parts(bytes)?;
    let meta = open_meta(meta, name, sealer)?;
    let body = sealer.open(&body_of(name), body).ok()?;
    Some(CachedAnswer { meta: Arc::new(meta), body: Bytes::from(body) })
}

/// Everything but the body, of the first `HEAD_BYTES` at least.
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
