//! The keys of one object, to detect duplicates.

use std::borrow::Cow;
use std::collections::HashSet;

/// Up to this number, a new key is compared with each earlier one. Bodies of real clients have fewer.
const FEW: usize = 32;
/// The initial capacity for keys.
const USUAL: usize = 8;

/// The keys so far, unescaped.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    /// One bit for the sketch of each key. A clear bit means that the key is new, without a comparison.
    sketches: u64,
    few: Vec<Cow<'a, str>>,
    /// Used beyond [`FEW`] keys, so that a body with a million keys does not take quadratic time.
    many: Option<HashSet<Cow<'a, str>>>,
}

impl<'a> Keys<'a> {
    pub(super) fn new() -> Self {
        Self { sketches: 0, few: Vec::new(), many: None }
    }

    /// Adds a key. Returns `false` if it is a duplicate.
    pub(super) fn insert(&mut self, key: Cow<'a, str>) -> bool {
        if let Some(many) = &mut self.many {
            return many.insert(key);
        }
        let bit = sketch(key.as_bytes());
        if self.sketches & bit != 0 && self.few.contains(&key) {
            return false;
        }
        self.sketches |= bit;
        if self.few.capacity() == 0 {
            self.few.reserve(USUAL);
        }
        self.few.push(key);
        if self.few.len() > FEW {
            self.many = Some(self.few.drain(..).collect());
        }
        true
    }
}

/// One of 64 bits, chosen by the length and the outer bytes of the key.
fn sketch(key: &[u8]) -> u64 {
    let first = key.first().copied().unwrap_or(0);
    let last = key.last().copied().unwrap_or(0);
    let mixed = key.len().wrapping_mul(7) ^ usize::from(first) ^ usize::from(last).wrapping_mul(5);
    1 << (mixed & 63)
}
