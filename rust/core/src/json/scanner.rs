//! The JSON grammar: a cursor over UTF-8 bytes that skips one value at a time.
//!
//! Open containers are kept on a stack of single bits, so nesting needs no recursion and no allocation. Inside strings
//! the cursor tests eight bytes at once for a quote, a backslash or a control character.

use std::ops::Range;

use super::{FaultKind, Kind, Value, MAX_DEPTH};

/// A number of up to this many bytes cannot overflow a double unless it has an exponent.
const SHORT_NUMBER: usize = 300;

/// A broken rule and its position, before the member that contains it is known.
#[derive(Debug)]
pub(super) struct ScanFault {
    pub(super) kind: FaultKind,
    pub(super) offset: usize,
    pub(super) rule: &'static str,
}

/// A cursor. The bytes must be UTF-8.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
}

/// The open containers around the value being read. A set bit is an object.
struct Nesting {
    objects: [u64; MAX_DEPTH / 64],
    depth: usize,
}

impl ScanFault {
    pub(super) fn syntax(offset: usize, rule: &'static str) -> Self {
        Self { kind: FaultKind::Syntax, offset, rule }
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8], max_depth: usize) -> Self {
        Self { bytes, at: 0, max_depth }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn slice(&self, span: Range<usize>) -> &'a [u8] {
        self.bytes.get(span).unwrap_or_default()
    }

    /// Skips the opening brace of the top-level object and returns its offset.
    pub(super) fn enter_object(&mut self) -> Result<usize, ScanFault> {
        match self.skip_space() {
            Some(b'{') if self.max_depth == 0 => Err(self.too_deep()),
            Some(b'{') => {
                self.at += 1;
                Ok(self.at - 1)
            }
            None => Err(ScanFault::syntax(self.at, "the text is empty")),
            Some(_) => {
                // Reports a syntax error as such, even if the text would not have been an object.
                let offset = self.at;
                self.value(0)?;
                self.end()?;
                Err(ScanFault { kind: FaultKind::NotAnObject, offset, rule: "expected an object" })
            }
        }
    }

    /// After an opening brace: skips the closing brace if the object is empty.
    pub(super) fn leave_empty_object(&mut self) -> bool {
        let empty = self.skip_space() == Some(b'}');
        self.at += usize::from(empty);
        empty
    }

    /// After a member: skips a comma (`false`) or the closing brace (`true`).
    pub(super) fn leave_object(&mut self) -> Result<bool, ScanFault> {
        let closes = match self.skip_space() {
            Some(b',') => false,
            Some(b'}') => true,
            _ => return Err(self.expected("expected `,` or `}`")),
        };
        self.at += 1;
        Ok(closes)
    }

    /// Skips a key and its colon. The returned span includes the quotes.
    pub(super) fn key(&mut self) -> Result<Range<usize>, ScanFault> {
        if self.skip_space() != Some(b'"') {
            return Err(self.expected("expected a key"));
        }
        let start = self.at;
        self.string()?;
        let end = self.at;
        if self.skip_space() != Some(b':') {
            return Err(self.expected("expected `:`"));
        }
        self.at += 1;
        Ok(start..end)
    }

    /// Checks that only white space follows.
    pub(super) fn end(&mut self) -> Result<(), ScanFault> {
        match self.skip_space() {
            None => Ok(()),
            Some(_) => Err(ScanFault::syntax(self.at, "something follows the end of the text")),
        }
    }

    /// Skips one value, which is nested in `outside` containers.
    pub(super) fn value(&mut self, outside: usize) -> Result<Value, ScanFault> {
        self.skip_space();
        let start = self.at;
        let mut elements = 0;
        let mut kind = Kind::Null;
        let mut nesting = Nesting { objects: [0; MAX_DEPTH / 64], depth: 0 };
        loop {
            let innermost = nesting.depth;
            let this = match self.skip_space() {
                Some(b'"') => {
                    self.string()?;
                    Kind::String
                }
                Some(open @ (b'{' | b'[')) => {
                    if outside + nesting.depth >= self.max_depth {
                        return Err(self.too_deep());
                    }
                    let object = open == b'{';
                    nesting.push(object);
                    self.at += 1;
                    let close = if object { b'}' } else { b']' };
                    if self.skip_space() == Some(close) {
                        self.at += 1;
                        nesting.depth -= 1;
                    } else {
                        if nesting.depth == 1 {
                            kind = if object { Kind::Object } else { Kind::Array };
                            elements = 1;
                        }
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                    if object {
                        Kind::Object
                    } else {
                        Kind::Array
                    }
                }
                Some(b'-' | b'0'..=b'9') => {
                    self.number()?;
                    Kind::Number
                }
                Some(b't') => self.word(b"true", Kind::True)?,
                Some(b'f') => self.word(b"false", Kind::False)?,
                Some(b'n') => self.word(b"null", Kind::Null)?,
                _ => return Err(self.expected("expected a value")),
            };
            if innermost == 0 {
                kind = this;
            }
            if self.ends(&mut nesting, &mut elements)? {
                return Ok(Value { start, end: self.at, kind, elements });
            }
        }
    }

    /// After a value: closes the containers that end here. Returns `true` if all of them are closed. Otherwise the
    /// cursor is at the next value of the innermost one. `elements` counts the elements of the outermost one.
    #[inline]
    fn ends(&mut self, nesting: &mut Nesting, elements: &mut usize) -> Result<bool, ScanFault> {
        loop {
            let Some(object) = nesting.top() else { return Ok(true) };
            match (self.skip_space(), object) {
                (Some(b','), _) => {
                    self.at += 1;
                    *elements += usize::from(nesting.depth == 1);
                    if object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    self.at += 1;
                    nesting.depth -= 1;
                }
                (_, true) => return Err(self.expected("expected `,` or `}`")),
                (_, false) => return Err(self.expected("expected `,` or `]`")),
            }
        }
    }

    /// Skips a string. The cursor is on its opening quote.
    fn string(&mut self) -> Result<(), ScanFault> {
        self.at += 1;
        loop {
            self.at = plain_until(self.bytes, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => {
                    return Err(ScanFault::syntax(self.at, "a control character in a string"));
                }
                None => return Err(ScanFault::syntax(self.at, "a string does not end")),
            }
        }
    }

    /// Skips one escape. A surrogate pair counts as one.
    fn escape(&mut self) -> Result<(), ScanFault> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => match self.code_unit()? {
                0xD800..=0xDBFF => {
                    let low = if self.bytes.get(self.at..self.at + 2) == Some(b"\\u") {
                        self.at += 1;
                        self.code_unit()?
                    } else {
                        0
                    };
                    if (0xDC00..=0xDFFF).contains(&low) {
                        Ok(())
                    } else {
                        Err(ScanFault::syntax(start, "a lone surrogate"))
                    }
                }
                0xDC00..=0xDFFF => Err(ScanFault::syntax(start, "a lone surrogate")),
                _ => Ok(()),
            },
            _ => Err(ScanFault::syntax(start, "an escape that JSON does not have")),
        }
    }

    /// Reads `uXXXX`; the cursor is on the `u`.
    fn code_unit(&mut self) -> Result<u32, ScanFault> {
        let mut unit = 0;
        for offset in self.at + 1..self.at + 5 {
            let digit = self.bytes.get(offset).and_then(|byte| char::from(*byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(ScanFault::syntax(offset, "expected four hexadecimal digits"));
            };
            unit = (unit << 4) | digit;
        }
        self.at += 5;
        Ok(unit)
    }

    /// Skips a number. The cursor is on its sign or first digit.
    fn number(&mut self) -> Result<(), ScanFault> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        if (exponent || self.at - start > SHORT_NUMBER) && !is_finite(self.slice(start..self.at)) {
            return Err(ScanFault { kind: FaultKind::NumberRange, offset: start, rule: "a number out of range" });
        }
        Ok(())
    }

    /// Skips one or more digits.
    fn digits(&mut self) -> Result<(), ScanFault> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.expected("expected a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Result<Kind, ScanFault> {
        if !self.slice(self.at..self.bytes.len()).starts_with(word) {
            return Err(self.expected("expected a value"));
        }
        self.at += word.len();
        Ok(kind)
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space and returns the next byte without consuming it.
    #[inline]
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            let byte = self.peek()?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn expected(&self, rule: &'static str) -> ScanFault {
        let ended = self.at >= self.bytes.len();
        ScanFault::syntax(self.at, if ended { "the text ends too early" } else { rule })
    }

    fn too_deep(&self) -> ScanFault {
        ScanFault { kind: FaultKind::TooDeep, offset: self.at, rule: "nested too deep" }
    }
}

impl Nesting {
    /// Opens a container. The caller has limited the depth to [`MAX_DEPTH`].
    fn push(&mut self, object: bool) {
        if let Some(word) = self.objects.get_mut(self.depth / 64) {
            let bit = 1 << (self.depth % 64);
            *word = if object { *word | bit } else { *word & !bit };
        }
        self.depth += 1;
    }

    /// Whether the innermost open container is an object; `None` if none is open.
    fn top(&self) -> Option<bool> {
        let offset = self.depth.checked_sub(1)?;
        let word = self.objects.get(offset / 64)?;
        Some(word >> (offset % 64) & 1 == 1)
    }
}

/// Offset of the first quote, backslash or control character at or after `at`, or the end of the bytes.
#[inline]
fn plain_until(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES * 0x80;
    // A zero byte gets its top bit set. A borrow may also mark bytes above it but never below, so the lowest mark is
    // right.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
        let marks = control | zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5C));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1F)) {
        at += 1;
    }
    at
}

fn is_finite(number: &[u8]) -> bool {
    let number = std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok());
    number.is_some_and(f64::is_finite)
}
