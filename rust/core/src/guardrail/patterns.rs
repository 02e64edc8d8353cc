//! A kind of finding: a pattern, and a check that confirms its matches.

use super::prefix::beginnings;
use regex::Regex;
use std::ops::Range;
use std::sync::OnceLock;

/// Below this length, filling a table of all bytes costs more than it saves.
const SHORT_TEXT_BYTES: usize = 256;

/// A set of ASCII characters, and of the first bytes of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Characters {
    ascii: u128,
    /// First bytes of characters beyond ASCII, as bits from 0xC0 on.
    leads: u64,
}

impl Characters {
    pub(super) const DIGITS: Self = Self::between(b'0', b'9');
    pub(super) const CAPITALS: Self = Self::between(b'A', b'Z');

    pub(super) const fn one(character: u8) -> Self {
        Self { ascii: 1 << character, leads: 0 }
    }

    pub(super) const fn either(self, other: Self) -> Self {
        Self { ascii: self.ascii | other.ascii, leads: self.leads | other.leads }
    }

    const fn between(first: u8, last: u8) -> Self {
        Self { ascii: u128::MAX >> (127 - last) & u128::MAX << first, leads: 0 }
    }

    /// The set of the characters in a text.
    pub(super) fn of(text: &str) -> Self {
        // Words of 64 bits, because a shift of them is one instruction.
        let mut words = [0_u64; 4];
        let add = |byte: u8| words[usize::from(byte >> 6)] |= 1 << (byte & 63);
        if text.len() < SHORT_TEXT_BYTES {
            text.bytes().for_each(add);
        } else {
            // Each `|=` waits for the one before it, and stores of a constant do not.
            let mut is_present = [false; 256];
            for byte in text.bytes() {
                is_present[usize::from(byte)] = true;
            }
            (0..=u8::MAX).filter(|byte| is_present[usize::from(*byte)]).for_each(add);
        }
        Self { ascii: u128::from(words[0]) | u128::from(words[1]) << 64, leads: words[3] }
    }

    /// Whether one of these ASCII characters is in the set.
    pub(super) const fn has_any(self, others: Self) -> bool {
        self.ascii & others.ascii != 0
    }

    /// Whether a character with one of these first bytes is in the set.
    pub(super) const fn has_lead(self, leads: u64) -> bool {
        self.leads & leads != 0
    }
}

/// A match of a pattern.
#[derive(Debug)]
pub(super) struct PatternMatch {
    pub(super) span: Range<usize>,
    /// The check confirmed the match.
    pub(super) is_finding: bool,
    /// The offset where the search continues.
    pub(super) next: usize,
}

/// A kind of finding: a pattern, and a check that confirms its matches.
///
/// Word boundaries in patterns are ASCII, because scripts without spaces put letters next to numbers. [`Pattern::meet`]
/// handles the other letters of Latin scripts, so that a word is not cut at its accents.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) kind: &'static str,
    pub(super) source: &'static str,
    regex: Regex,
    beginnings: OnceLock<Regex>,
    /// A text is searched only if it has a character of each of these sets. Most texts do not.
    needs: &'static [Characters],
    believes: fn(&str) -> bool,
    bounds: Bounds,
    /// The characters that continue a finding of any length.
    pub(super) tail: Option<fn(char) -> bool>,
}

/// The sides on which an accented letter makes the match part of a longer word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bounds {
    Neither,
    Start,
    Both,
}

impl Pattern {
    /// Compiles a pattern. All patterns are constants, so the first test finds one that does not compile.
    pub(super) fn new(
        kind: &'static str,
        needs: &'static [Characters],
        source: &'static str,
        believes: fn(&str) -> bool,
    ) -> Self {
        match Regex::new(source) {
            Ok(regex) => Self {
                kind,
                source,
                regex,
                beginnings: OnceLock::new(),
                needs,
                believes,
                bounds: Bounds::Start,
                tail: None,
            },
            Err(error) => unreachable!("the pattern of {kind} does not compile: {error}"),
        }
    }

    /// Lets the pattern start after any letter.
    pub(super) fn anywhere(self) -> Self {
        Self { bounds: Bounds::Neither, ..self }
    }

    /// Marks the pattern as a phrase of words.
    pub(super) fn phrase(self) -> Self {
        Self { bounds: Bounds::Both, ..self }
    }

    pub(super) fn is_phrase(&self) -> bool {
        self.bounds == Bounds::Both
    }

    /// Extends the finding as long as these characters follow.
    pub(super) fn with_tail(self, tail: fn(char) -> bool) -> Self {
        Self { tail: Some(tail), ..self }
    }

    /// Whether a text with these characters may match.
    pub(super) fn may_meet(&self, has: Characters) -> bool {
        self.needs.iter().all(|needed| has.has_any(*needed))
    }

    /// The first match at or after this offset.
    pub(super) fn meet(&self, text: &str, from: usize) -> Option<PatternMatch> {
        let found = self.regex.find_at(text, from)?;
        let span = found.range();
        if self.is_inside_word(text, found.as_str(), &span) {
            let first = found.as_str().chars().next().map_or(1, char::len_utf8);
            return Some(PatternMatch { next: span.start + first, span, is_finding: false });
        }
        Some(PatternMatch { next: span.end, span, is_finding: (self.believes)(found.as_str()) })
    }

    /// The offset where an incomplete match may begin, or the end of the text.
    pub(super) fn opens(&self, text: &str, from: usize) -> usize {
        let regex = self.beginnings.get_or_init(|| beginnings([self.source]));
        regex.find_at(text, from).map_or(text.len(), |found| found.start())
    }

    fn is_inside_word(&self, text: &str, found: &str, span: &Range<usize>) -> bool {
        let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let has_start = self.bounds != Bounds::Neither && is_letter(found.as_bytes().first());
        let has_end = self.bounds == Bounds::Both && is_letter(found.as_bytes().last());
        (has_start && text[..span.start].chars().next_back().is_some_and(is_accented))
            || (has_end && text[span.end..].chars().next().is_some_and(is_accented))
    }
}

/// Whether it is a letter of a Latin script beyond ASCII, or a combining accent.
fn is_accented(character: char) -> bool {
    matches!(character, '\u{aa}' | '\u{ba}' | '\u{c0}'..='\u{24f}' | '\u{300}'..='\u{36f}' | '\u{1e00}'..='\u{1eff}')
        && !matches!(character, '\u{d7}' | '\u{f7}')
}

/// The check of patterns that need no confirmation.
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
        let ascii = [b'a', b'Z', b'9', b' '].map(Characters::one).into_iter().reduce(Characters::either);
        assert_eq!(Some(Characters { leads: 0, ..has }), ascii);
        assert!(has.has_lead(1 << (0xc3 - 0xc0)) && !has.has_lead(1 << (0xe2 - 0xc0)));
        for (text, is_there) in [("0", true), ("9", true), ("/", false), (":", false), ("", false)] {
            assert_eq!(Characters::of(text).has_any(Characters::DIGITS), is_there, "{text}");
        }
    }

    #[test]
    fn a_long_text_has_the_same_characters_as_its_parts() {
        let text = (0_u8..0x80).map(char::from).chain("\u{e9}\u{2028}\u{1f600}".chars()).collect::<String>();
        for (at, character) in text.char_indices() {
            let part = &text[at..at + character.len_utf8()];
            assert_eq!(Characters::of(&part.repeat(SHORT_TEXT_BYTES)), Characters::of(part), "{character:?}");
        }
        assert_eq!(Characters::of(&text.repeat(SHORT_TEXT_BYTES)), Characters::of(&text));
    }
}
