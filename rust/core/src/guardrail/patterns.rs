//! A kind of finding: the pattern that meets it and the check that believes it.

use regex::Regex;
use std::ops::Range;

/// Some ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Characters(u128);

impl Characters {
    pub(super) const DIGITS: Self = Self::between(b'0', b'9');
    pub(super) const CAPITALS: Self = Self::between(b'A', b'Z');

    pub(super) const fn one(character: u8) -> Self {
        Self(1 << character)
    }

    pub(super) const fn either(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn between(first: u8, last: u8) -> Self {
        Self(u128::MAX >> (127 - last) & u128::MAX << first)
    }

    /// Those that a text has.
    pub(super) fn of(text: &str) -> Self {
        // Two halves: shifts of 64 bits are one instruction.
        let mut halves = [0_u64; 4];
        for byte in text.bytes() {
            halves[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
        Self(u128::from(halves[0]) | u128::from(halves[1]) << 64)
    }

    const fn has_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) kind: &'static str,
    regex: Regex,
    /// A text that lacks any of these, every character of one, is not searched, which is most of them.
    needs: &'static [Characters],
    believes: fn(&str) -> bool,
}

impl Pattern {
    /// The patterns stand in the code; one that does not compile is found by the first test.
    pub(super) fn new(
        kind: &'static str,
        needs: &'static [Characters],
        regex: &str,
        believes: fn(&str) -> bool,
    ) -> Self {
        match Regex::new(regex) {
            Ok(regex) => Self { kind, regex, needs, believes },
            Err(error) => unreachable!("the pattern of {kind} does not compile: {error}"),
        }
    }

    /// Whether it may lie in a text that has these characters.
    pub(super) fn may_meet(&self, has: Characters) -> bool {
        self.needs.iter().all(|needed| has.has_any(*needed))
    }

    /// Where it lies in the text.
    pub(super) fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        self.regex.find_iter(text).filter(|found| (self.believes)(found.as_str())).map(|found| found.range())
    }
}

/// For patterns that say enough by themselves.
pub(super) fn always(_: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_those_of_the_text() {
        let has = Characters::of("aZ9 \u{e9}");
        assert!(has.has_any(Characters::DIGITS) && has.has_any(Characters::CAPITALS));
        assert_eq!(has, Characters::one(b'a').either(Characters::one(b'Z')).either(Characters(1 << b'9' | 1 << b' ')));
        for (text, is_there) in [("0", true), ("9", true), ("/", false), (":", false), ("", false)] {
            assert_eq!(Characters::of(text).has_any(Characters::DIGITS), is_there, "{text}");
        }
    }
}
