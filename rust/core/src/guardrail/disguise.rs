//! Reads characters as people and models read them: full-width forms, digits of other scripts, look-alike letters,
//! invisible characters and percent escapes.
//!
//! Patterns match ASCII. A text with disguised characters is searched twice: as it is, and with each of them replaced
//! by the character that it stands for. Findings of the second search are mapped back to the original text.

use super::patterns::Characters;
use std::ops::{Range, RangeInclusive};
use std::sync::LazyLock;

/// First bytes of the disguised characters in UTF-8, as bits from 0xC0 on.
const LEADS: u64 = leads(&[
    0xc2, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd8, 0xd9, 0xdb, 0xdf, 0xe0, 0xe1, 0xe2, 0xe3, 0xea, 0xef,
    0xf0, 0xf3,
]);
/// The characters that begin an escape of ASCII letters: `%40` and `\u0040`.
const ESCAPES: Characters = Characters::one(b'%').either(Characters::one(b'\\'));
/// The hexadecimal digits of an escape that say which character it is.
const ESCAPED_DIGITS: usize = 2;

/// The digits zero of scripts whose ten digits are consecutive, except those of ASCII and the full-width ones.
const ZEROS: &[u32] = &[
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450,
    0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50,
    0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];
/// Letters of Greek and Cyrillic that look like letters of ASCII, and the letters that they look like.
const ALIKE: [&str; 2] =
    ["ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοϲϳАВЕЅІЈКМНОРСТУХаеорсухѕіјһԁԛԝ", "ABEZHIKMNOPTYXocjABESIJKMHOPCTYXaeopcyxsijhdqw"];

/// The code points of Greek and Cyrillic.
const GREEK_TO_CYRILLIC: RangeInclusive<u32> = 0x370..=0x52f;
/// The letter of ASCII that each of these looks like, or 0.
static LOOKALIKES: LazyLock<[u8; 0x1c0]> = LazyLock::new(|| {
    let mut letters = [0; 0x1c0];
    for (own, plain) in ALIKE[0].chars().zip(ALIKE[1].bytes()) {
        letters[(u32::from(own) - GREEK_TO_CYRILLIC.start()) as usize] = plain;
    }
    letters
});

const fn leads(bytes: &[u8]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < bytes.len() {
        bits |= 1 << (bytes[at] - 0xc0);
        at += 1;
    }
    bits
}

/// A text in which disguised characters are replaced or left out.
#[derive(Debug)]
pub(super) struct PlainText {
    text: String,
    /// The length of the original text.
    original: usize,
    /// Offsets in the plain and in the original text, wherever the distance between them changes.
    steps: Vec<(usize, usize)>,
}

/// The meaning and the length of the beginning of a text.
enum Unit {
    /// One character, which stands for itself.
    Itself(char),
    /// A disguised character, or an invisible one, which stands for nothing.
    Disguise(Option<char>, usize),
    /// The beginning of an escape. The next piece of the text may complete it.
    Incomplete,
}

impl PlainText {
    /// The plain form; `None` if nothing is disguised. Unless it is the end of the text, an escape at the end is left
    /// out, because its meaning is not known.
    pub(super) fn of(text: &str, has: Characters, is_end: bool) -> Option<Self> {
        if !has.has_lead(LEADS) && !has.has_any(ESCAPES) {
            return None;
        }
        Some(Self::form(text, is_end)).filter(|plain| !plain.steps.is_empty())
    }

    /// The plain form, which equals the text if nothing is disguised.
    pub(super) fn form(text: &str, is_end: bool) -> Self {
        let mut plain = Self { text: String::new(), original: text.len(), steps: Vec::new() };
        let (mut at, mut copied) = (0, 0);
        while let Some(character) = text[at..].chars().next() {
            match unit(&text[at..], character, is_end) {
                Unit::Itself(character) => at += character.len_utf8(),
                Unit::Disguise(meaning, length) => {
                    plain.text.push_str(&text[copied..at]);
                    plain.steps.push((plain.text.len(), at));
                    plain.text.extend(meaning);
                    at += length;
                    copied = at;
                    plain.steps.push((plain.text.len(), at));
                }
                Unit::Incomplete => {
                    plain.text.push_str(&text[copied..at]);
                    plain.steps.push((plain.text.len(), at));
                    return plain;
                }
            }
        }
        plain.text.push_str(&text[copied..]);
        plain
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The offset in the plain text for one in the original text. Inside a disguised character it is the next one's.
    pub(super) fn plain(&self, original: usize) -> usize {
        let next = self.steps.partition_point(|(_, from)| *from <= original);
        let (plain, from) = next.checked_sub(1).map_or((0, 0), |last| self.steps[last]);
        let most = self.steps.get(next).map_or(self.text.len(), |(plain, _)| *plain);
        (plain + (original - from)).min(most)
    }

    /// The offset in the original text of the character at this offset of the plain one. For the end of the plain text
    /// it is the end of the original text, or the beginning of an incomplete escape.
    pub(super) fn start(&self, plain: usize) -> usize {
        let next = self.steps.partition_point(|(to, _)| *to <= plain);
        let (to, from) = next.checked_sub(1).map_or((0, 0), |last| self.steps[last]);
        (from + (plain - to)).min(self.original)
    }

    /// The offset in the original text of the end of the character that ends at this offset of the plain one.
    pub(super) fn end(&self, plain: usize) -> usize {
        let Some(last) = self.text[..plain].chars().next_back() else { return 0 };
        let start = self.start(plain - last.len_utf8());
        let step = self.steps.partition_point(|(_, from)| *from <= start);
        match self.steps.get(step) {
            Some((to, from)) if *to == plain => *from,
            _ => start + last.len_utf8(),
        }
    }

    /// The range in the original text of a range of the plain one that is not empty.
    pub(super) fn span(&self, plain: &Range<usize>) -> Range<usize> {
        self.start(plain.start)..self.end(plain.end)
    }
}

fn unit(text: &str, character: char, is_end: bool) -> Unit {
    if matches!(character, '%' | '\\') {
        return escape(text, character, is_end);
    }
    match meaning(character) {
        None => Unit::Itself(character),
        Some(meaning) => Unit::Disguise(meaning, character.len_utf8()),
    }
}

/// Reads `%40` or `\u0040`, if it stands for a visible character of ASCII or a blank.
fn escape(text: &str, character: char, is_end: bool) -> Unit {
    let mark = if character == '%' { "%" } else { "\\u00" };
    let length = mark.len() + ESCAPED_DIGITS;
    let bytes = text.as_bytes();
    let common = mark.bytes().zip(bytes).take_while(|(one, other)| one == *other).count();
    let is_hex = bytes[common..].iter().take(length - common).all(u8::is_ascii_hexdigit);
    let is_whole = common == mark.len();
    if bytes.len() < length && (is_whole && is_hex || common == bytes.len()) && !is_end {
        return Unit::Incomplete;
    }
    let value = text.get(mark.len()..length).filter(|_| is_whole && is_hex);
    match value.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
        Some(byte @ b' '..=b'~') => Unit::Disguise(Some(char::from(byte)), length),
        _ => Unit::Itself(character),
    }
}

/// The character that a disguised one stands for. An invisible one stands for nothing.
#[allow(clippy::option_option, reason = "a character may be plain, invisible, or stand for another one")]
fn meaning(character: char) -> Option<Option<char>> {
    let code = u32::from(character);
    let of = |code: u32| Some(char::from_u32(code));
    match code {
        0..=0x7f => None,
        0xad
        | 0x34f
        | 0x61c
        | 0x180b..=0x180f
        | 0x200b..=0x200f
        | 0x202a..=0x202e
        | 0x2060..=0x206f
        | 0xfe00..=0xfe0f
        | 0xfeff
        | 0xe0000..=0xe001f
        | 0xe007f
        | 0xe0100..=0xe01ef => Some(None),
        0xe0020..=0xe007e => of(code - 0xe0000),
        0xff01..=0xff5e => of(code - 0xfee0),
        0xa0 | 0x2000..=0x200a | 0x202f | 0x205f | 0x3000 => Some(Some(' ')),
        0x2010..=0x2015 | 0x2212 | 0xfe58 | 0xfe63 => Some(Some('-')),
        0x2024 | 0xfe52 => Some(Some('.')),
        0xfe6b => Some(Some('@')),
        0x1d400..=0x1d6a3 => {
            let letter = (code - 0x1d400) % 52;
            of(if letter < 26 { u32::from(b'A') + letter } else { u32::from(b'a') + letter - 26 })
        }
        _ if GREEK_TO_CYRILLIC.contains(&code) => {
            let letter = LOOKALIKES[(code - GREEK_TO_CYRILLIC.start()) as usize];
            (letter > 0).then(|| Some(char::from(letter)))
        }
        _ => {
            let zero = ZEROS[..ZEROS.partition_point(|zero| *zero <= code)].last()?;
            (code - zero < 10).then(|| char::from_digit(code - zero, 10))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Option<String> {
        PlainText::of(text, Characters::of(text), true).map(|plain| plain.text)
    }

    #[test]
    fn disguised_characters_are_read_as_what_they_stand_for() {
        for (text, wanted) in [
            ("４１１１", "4111"),
            ("٤١١١ ۴۱۱۱ ४१११ 𝟒𝟏𝟏𝟏", "4111 4111 4111 4111"),
            ("a\u{200b}d\u{ad}a\u{feff}＠example．org", "ada@example.org"),
            ("аԁа@example.оrg", "ada@example.org"),
            ("ada%40example%2eorg", "ada@example.org"),
            ("ada\\u0040example.org", "ada@example.org"),
            ("𝐢𝐠𝐧𝐨𝐫𝐞", "ignore"),
            ("\u{e0069}\u{e0067}", "ig"),
            ("4111\u{a0}1111\u{2011}1111", "4111 1111-1111"),
        ] {
            assert_eq!(plain(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "plain", "100% of C:\\users", "%zz %0a %e4", "é 是 ครับ", "50 %"] {
            assert_eq!(plain(text).filter(|plain| plain != text), None, "{text}");
        }
    }

    #[test]
    fn the_tables_are_whole() {
        assert_eq!(ALIKE[0].chars().count(), ALIKE[1].chars().count());
        assert!(ZEROS.is_sorted());
    }

    #[test]
    fn offsets_lead_back_to_the_original() {
        let text = "x\u{200b}\u{200b}４１%40y\u{200b}";
        let plain = PlainText::of(text, Characters::of(text), true).expect("something is disguised");
        assert_eq!(plain.text, "x41@y");
        assert_eq!(&text[plain.span(&(0..1))], "x");
        assert_eq!(&text[plain.span(&(1..3))], "４１");
        assert_eq!(&text[plain.span(&(3..5))], "%40y");
        assert_eq!(plain.start(5), text.len());
        for (at, _) in text.char_indices() {
            assert!(plain.start(plain.plain(at)) >= at, "{at}");
        }
    }

    #[test]
    fn an_incomplete_escape_waits_for_its_end() {
        for text in ["ada%", "ada%4", "ada\\", "ada\\u", "ada\\u004"] {
            let open = PlainText::of(text, Characters::of(text), false).expect("it may be an escape");
            assert_eq!((open.text.as_str(), open.start(3)), ("ada", 3), "{text}");
            assert_eq!(plain(text).filter(|plain| plain != text), None, "{text}");
        }
        assert!(PlainText::of("ada%4x", Characters::of("ada%4x"), false).is_none());
    }
}
