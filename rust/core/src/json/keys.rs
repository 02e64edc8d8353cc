//! The keys of one object, to see one that comes twice.

use std::borrow::Cow;
use std::collections::HashSet;

/// Up to here a key may be compared with each earlier one; a body of a real client stays below.
const FEW: usize = 32;
/// Room made for keys at once.
const USUAL: usize = 8;

/// Keys seen so far, after unescaping.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    /// One bit for each sketch of a key seen: a clear bit means that the key is new, without a comparison.
    sketches: u64,
    few: Vec<Cow<'a, str>>,
    /// Takes over beyond [`FEW`], so that a body of a million keys costs no quadratic time.
    many: Option<HashSet<Cow<'a, str>>>,
}

impl<'a> Keys<'a> {
    pub(super) fn new() -> Self {
        Self { sketches: 0, few: Vec::new(), many: None }
    }

    /// Notes a key; false when it was there already.
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

/// One bit out of 64, told by the key's length and its outer bytes.
fn sketch(key: &[u8]) -> u64 {
    let first = key.first().copied().unwrap_or(0);
    let last = key.last().copied().unwrap_or(0);
    let mixed = key.len().wrapping_mul(7) ^ usize::from(first) ^ usize::from(last).wrapping_mul(5);
    1 << (mixed & 63)
}
