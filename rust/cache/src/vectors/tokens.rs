//! Splits a text into the tokens of a vocabulary: byte-pair encoding, with bytes for characters without a token.
//!
//! The vocabulary file has the format of the `tokenizers` library. Only the features that this vocabulary uses are
//! supported: a mark before the text and for each space, and merges by rank. A test compares the tokens with those of
//! that library.

use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

const SPACE: char = '\u{2581}';
const UNKNOWN: &str = "<unk>";

#[derive(Deserialize)]
struct Document {
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    vocab: HashMap<String, u32>,
    merges: Vec<Merge>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Text(String),
    Pair(String, String),
}

/// The tokens and the merges.
#[derive(Debug)]
pub(super) struct Vocabulary {
    tokens: usize,
    chars: HashMap<char, u32, Quick>,
    bytes: Vec<u32>,
    /// For each pair of tokens: the rank, and the merged token.
    merges: HashMap<(u32, u32), (u32, u32), Quick>,
}

type Quick = BuildHasherDefault<Mix>;

/// A fast hash without protection against chosen keys, because the vocabulary determines which pairs are in the map.
#[derive(Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(26) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// A part of the text, linked to its neighbours. `u32::MAX` means none.
#[derive(Debug, Clone, Copy)]
struct Part {
    token: u32,
    before: u32,
    after: u32,
}

const NONE: u32 = u32::MAX;

impl Vocabulary {
    pub(super) fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let Document { model: Model { vocab, merges } } = serde_json::from_slice(json)?;
        let mut by_pair = HashMap::with_capacity_and_hasher(merges.len(), Quick::default());
        for (rank, merge) in merges.iter().enumerate() {
            let (left, right) = match merge {
                Merge::Text(text) => text.split_once(' ').unwrap_or_default(),
                Merge::Pair(left, right) => (left.as_str(), right.as_str()),
            };
            let whole = [left, right].concat();
            if let (Some(&left), Some(&right), Some(&whole)) = (vocab.get(left), vocab.get(right), vocab.get(&whole)) {
                by_pair.insert((left, right), (rank as u32, whole));
            }
        }
        let unknown = vocab.get(UNKNOWN).copied().unwrap_or(0);
        let byte = |byte: u8| vocab.get(&format!("<0x{byte:02X}>")).copied().unwrap_or(unknown);
        let chars = vocab.iter().filter_map(|(text, &token)| {
            let mut chars = text.chars();
            chars.next().filter(|_| chars.next().is_none()).map(|char| (char, token))
        });
        Ok(Self { tokens: vocab.len(), chars: chars.collect(), bytes: (0..=255).map(byte).collect(), merges: by_pair })
    }

    pub(super) fn len(&self) -> usize {
        self.tokens
    }

    /// The tokens of a text, without marks for its beginning or end.
    pub(super) fn tokens(&self, text: &str) -> Vec<u32> {
        if text.is_empty() {
            return Vec::new();
        }
        let mut parts: Vec<Part> = Vec::with_capacity(text.len() + 1);
        let mut add = |token| parts.push(Part { token, before: NONE, after: NONE });
        for char in std::iter::once(SPACE).chain(text.chars()) {
            let char = if char == ' ' { SPACE } else { char };
            if let Some(&token) = self.chars.get(&char) {
                add(token);
                continue;
            }
            let mut bytes = [0; 4];
            char.encode_utf8(&mut bytes).bytes().for_each(|byte| add(self.bytes[usize::from(byte)]));
        }
        let count = parts.len() as u32;
        for at in 0..count {
            parts[at as usize].before = at.checked_sub(1).unwrap_or(NONE);
            parts[at as usize].after = if at + 1 < count { at + 1 } else { NONE };
        }
        self.merge(&mut parts);
        let mut tokens = Vec::new();
        let mut at = 0;
        while at != NONE {
            tokens.push(parts[at as usize].token);
            at = parts[at as usize].after;
        }
        tokens
    }

    /// Merges neighbours until no merge applies: lowest rank first, and leftmost first for equal ranks.
    fn merge(&self, parts: &mut [Part]) {
        let mut heap = BinaryHeap::new();
        let propose = |heap: &mut BinaryHeap<_>, parts: &[Part], left: u32| {
            let Some(part) = parts.get(left as usize).filter(|part| part.after != NONE) else { return };
            let pair = (part.token, parts[part.after as usize].token);
            if let Some(&(rank, whole)) = self.merges.get(&pair) {
                heap.push(Reverse((rank, left, whole, pair)));
            }
        };
        (0..parts.len() as u32).for_each(|left| propose(&mut heap, parts, left));
        while let Some(Reverse((_, left, whole, pair))) = heap.pop() {
            let Part { token, before, after } = parts[left as usize];
            // One of the two may have been merged since. No token is empty, so an outdated pair never matches.
            if after == NONE || (token, parts[after as usize].token) != pair {
                continue;
            }
            let beyond = parts[after as usize].after;
            parts[left as usize] = Part { token: whole, before, after: beyond };
            parts[after as usize] = Part { token: NONE, before: NONE, after: NONE };
            if beyond != NONE {
                parts[beyond as usize].before = left;
            }
            propose(&mut heap, parts, left);
            if before != NONE {
                propose(&mut heap, parts, before);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Vocabulary;

    const DOCUMENT: &str = r#"{"model": {"vocab": {"<unk>": 0, "<0xC3>": 1, "<0xA9>": 2, "▁": 3, "a": 4, "b": 5, "c": 6,
        "ab": 7, "▁a": 8, "bc": 9, "abc": 10, "▁▁": 11}, "merges": ["b c", "a b", ["▁", "a"], "a bc", "▁ ▁"]}}"#;

    #[test]
    fn the_lowest_rank_is_joined_first() {
        let vocabulary = Vocabulary::parse(DOCUMENT.as_bytes()).expect("a vocabulary");
        for (text, tokens) in [
            ("", &[][..]),
            ("abc", &[8, 9]),
            ("ab", &[3, 7]),
            ("abab", &[3, 7, 7]),
            ("cabc", &[3, 6, 10]),
            ("a a", &[8, 8]),
            (" a", &[3, 8]),
            ("é", &[3, 1, 2]),
            ("bcbc", &[3, 9, 9]),
        ] {
            assert_eq!(vocabulary.tokens(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn another_file_is_an_error() {
        assert!(Vocabulary::parse(b"{}").is_err());
        assert!(Vocabulary::parse(b"").is_err());
    }
}
