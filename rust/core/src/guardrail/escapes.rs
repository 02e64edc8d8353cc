//! Text that is itself JSON, such as the arguments of tools. Its strings are judged decoded, and written out as they
//! were encoded. A finding never covers half of an escape or a string's quote.

use std::collections::VecDeque;
use std::ops::Range;

/// Replaces the quote at the edge of a string while patterns search. No pattern matches across it, because it ends a
/// sentence.
const EDGE: char = '!';

/// The original encoding of decoded characters: quotes and escapes.
#[derive(Debug, Default)]
pub(super) struct Escapes {
    /// Keyed by the offset of the character in the decoded text. Offsets do not count forgotten text.
    written: VecDeque<(usize, Box<str>)>,
    /// An escape whose end has not arrived.
    open: String,
    /// The reader is inside a string.
    reads_string: bool,
    /// The writer is inside a string.
    writes_string: bool,
}

/// The decoded value of an escape.
enum Meaning {
    Character(char),
    /// Incomplete; more input is needed.
    Open,
    /// Invalid; the escape is left as it is.
    Nothing,
    /// A lone surrogate, which takes this many bytes.
    Half(usize),
}

impl Escapes {
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn is_in_string(&self) -> bool {
        self.writes_string
    }

    /// Decodes a piece and appends it to the text.
    pub(super) fn read(&mut self, piece: &str, text: &mut String) {
        for character in piece.chars() {
            self.take(character, text);
        }
    }

    fn take(&mut self, character: char, text: &mut String) {
        if self.open.is_empty() {
            match character {
                '\\' if self.reads_string => self.open.push('\\'),
                '"' => {
                    self.reads_string = !self.reads_string;
                    self.written.push_back((text.len(), "\"".into()));
                    text.push(EDGE);
                }
                plain => text.push(plain),
            }
            return;
        }
        self.open.push(character);
        match meaning(&self.open) {
            Meaning::Open => {}
            Meaning::Character(meant) => {
                self.written.push_back((text.len(), std::mem::take(&mut self.open).into()));
                text.push(meant);
            }
            Meaning::Nothing => text.push_str(&std::mem::take(&mut self.open)),
            Meaning::Half(own) => {
                let open = std::mem::take(&mut self.open);
                self.written.push_back((text.len(), open[..own].into()));
                text.push(char::REPLACEMENT_CHARACTER);
                for character in open[own..].chars() {
                    self.take(character, text);
                }
            }
        }
    }

    /// Takes the characters of an escape that was never completed.
    pub(super) fn rest(&mut self) -> String {
        std::mem::take(&mut self.open)
    }

    /// Whether a finding is a whole value or lies in a string. Removing digits from a longer number would make the JSON
    /// invalid. Any other text outside strings is not JSON, so replacing it cannot break anything.
    pub(super) fn is_value(&self, text: &str, span: &Range<usize>) -> bool {
        let edges = self.written.iter().take_while(|(at, _)| *at < span.start);
        let is_in_string = self.writes_string ^ (edges.filter(|(_, raw)| &**raw == "\"").count() % 2 == 1);
        let bytes = text.as_bytes();
        let is_part = bytes[span.clone()].iter().all(u8::is_ascii_digit)
            && (span.start.checked_sub(1).is_some_and(|at| b"-+.eE".contains(&bytes[at]))
                || bytes.get(span.end).is_some_and(|next| b".eE".contains(next)));
        is_in_string || !is_part
    }

    /// Writes this range of the text in its original encoding. With no `out` it only advances.
    pub(super) fn write(&mut self, text: &str, range: Range<usize>, mut out: Option<&mut String>) {
        let mut at = range.start;
        while self.written.front().is_some_and(|(next, _)| *next < range.end) {
            let Some((next, raw)) = self.written.pop_front() else { break };
            if &*raw == "\"" {
                self.writes_string = !self.writes_string;
            }
            if let Some(out) = out.as_deref_mut() {
                out.push_str(&text[at..next]);
                out.push_str(&raw);
            }
            at = next + text[next..].chars().next().map_or(1, char::len_utf8);
        }
        if let Some(out) = out {
            out.push_str(&text[at..range.end]);
        }
    }

    /// Shifts the offsets after the first `bytes` bytes of the text were removed. All of them have been written.
    pub(super) fn forget(&mut self, bytes: usize) {
        for (at, _) in &mut self.written {
            *at -= bytes;
        }
    }
}

/// Decodes a JSON string without its quotes, as far as it is valid.
pub(super) fn unescaped(quoted: &str) -> String {
    let mut escapes = Escapes { reads_string: true, ..Escapes::default() };
    let mut text = String::with_capacity(quoted.len());
    escapes.read(quoted.strip_prefix('"').unwrap_or(quoted), &mut text);
    text.truncate(text.strip_suffix(EDGE).map_or(text.len(), str::len));
    text
}

fn meaning(escape: &str) -> Meaning {
    let mut characters = escape.chars().skip(1);
    let Some(kind) = characters.next() else { return Meaning::Open };
    match kind {
        '"' | '\\' | '/' => Meaning::Character(kind),
        'b' => Meaning::Character('\u{8}'),
        'f' => Meaning::Character('\u{c}'),
        'n' => Meaning::Character('\n'),
        'r' => Meaning::Character('\r'),
        't' => Meaning::Character('\t'),
        'u' => unicode(escape),
        _ => Meaning::Nothing,
    }
}

/// Decodes `\uXXXX`, or a surrogate pair of two.
fn unicode(escape: &str) -> Meaning {
    let digits = &escape[2..];
    if !digits.chars().take(4).all(|digit| digit.is_ascii_hexdigit()) {
        return Meaning::Nothing;
    }
    let Some(high) = digits.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
        return Meaning::Open;
    };
    if let Some(character) = char::from_u32(high) {
        return Meaning::Character(character);
    }
    let second = &digits[4..];
    let is_beginning = "\\u".starts_with(second)
        || second.strip_prefix("\\u").is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if !(0xd800..0xdc00).contains(&high) || !is_beginning {
        return Meaning::Half(6);
    }
    let Some(low) = second.get(2..6).and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
        return Meaning::Open;
    };
    if !(0xdc00..0xe000).contains(&low) {
        return Meaning::Half(6);
    }
    char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)).map_or(Meaning::Half(6), Meaning::Character)
}
