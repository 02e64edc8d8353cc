//! A validating JSON scanner. It checks that bytes are one JSON text and finds chosen members of the top-level object,
//! without building a tree.
//!
//! The relay changes one or two members of a body and forwards every other byte unchanged. A tree parser would take
//! more time and would have to serialize the tree again, so the scanner reads the bytes once and returns offsets.
//!
//! The scanner is stricter than most parsers where two parsers could read the same bytes differently, because a policy
//! decision on one reading must hold for the other. A duplicate top-level key, a lone surrogate, a number that
//! overflows a double and nesting deeper than [`MAX_DEPTH`] are faults. Everything else follows RFC 8259: no NaN,
//! trailing commas, byte order mark or raw control characters in strings. Nothing recurses, so no input can exhaust the
//! stack.
//!
//! `scanner` reads the bytes; `keys` detects duplicate keys; `ends` finds where strings and values end; `name` is a short
//! text for readers of typed bodies.

mod ends;
mod keys;
mod name;
mod scanner;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

pub use ends::{end_of_string, end_of_value, may_have};
use keys::Keys;
pub use name::Name;
use scanner::{ScanFault, Scanner};
use smallvec::SmallVec;

/// The maximum depth that a caller may allow. The top-level object or array counts as one level.
pub const MAX_DEPTH: usize = 256;

/// A member that the caller did not name is reported in [`Scan::large`] if it is longer than this.
pub const LARGE_BYTES: usize = 1_024;
/// The maximum number of large members that one scan reports.
pub const MAX_LARGE: usize = 64;

/// How many characters of a member name a fault repeats.
const SHOWN_NAME_CHARS: usize = 64;

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

/// The position and kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// Offset of the value's first byte.
    pub start: usize,
    /// Offset after the value's last byte.
    pub end: usize,
    pub kind: Kind,
    /// The number of elements of an array or members of an object; 0 for other kinds.
    pub elements: usize,
}

/// The wanted members of one object. `N` is the number of wanted names.
#[derive(Debug, Clone)]
pub struct Scan<'w, const N: usize> {
    wanted: &'w [&'w str; N],
    found: [Option<Value>; N],
    /// The keys and values of large members that were not wanted.
    large: Large,
    /// The object itself; `end - 1` is its closing brace.
    pub object: Value,
}

type Large = SmallVec<[(Range<usize>, Value); 2]>;

/// Which rule the bytes broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Not UTF-8.
    NotUtf8,
    /// Not JSON.
    Syntax,
    /// A number that overflows a double.
    NumberRange,
    /// Nested deeper than allowed.
    TooDeep,
    /// A duplicate top-level key, compared after unescaping.
    Duplicate,
    /// JSON, but not an object.
    NotAnObject,
}

/// Why bytes were rejected. The message names the position and the rule, and never repeats a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    pub kind: FaultKind,
    /// Offset of the first invalid byte.
    pub offset: usize,
    /// The top-level member that holds the fault, cut to 64 characters. Empty if the fault is not in a member.
    pub field: String,
    rule: &'static str,
}

/// Scans a text whose top-level value is an object, and finds the `wanted` members.
///
/// `max_depth` above [`MAX_DEPTH`] counts as [`MAX_DEPTH`].
pub fn scan_object<'w, const N: usize>(
    bytes: &[u8],
    wanted: &'w [&'w str; N],
    max_depth: usize,
) -> Result<Scan<'w, N>, JsonFault> {
    check_utf8(bytes)?;
    let mut scanner = Scanner::new(bytes, max_depth.min(MAX_DEPTH));
    let mut found = Found { members: [None; N], large: Large::new() };
    let mut keys = Keys::new();
    let mut open = None;
    match members(&mut scanner, wanted, &mut found, &mut keys, &mut open) {
        Ok(object) => Ok(Scan { wanted, found: found.members, large: found.large, object }),
        Err(trouble) => {
            let field = open.map_or_else(String::new, |span| shown_name(bytes, span));
            Err(JsonFault { kind: trouble.kind, offset: trouble.offset, field, rule: trouble.rule })
        }
    }
}

/// Checks that `bytes` are one JSON text of any kind, and returns its top-level value.
pub fn validate(bytes: &[u8], max_depth: usize) -> Result<Value, JsonFault> {
    check_utf8(bytes)?;
    let mut scanner = Scanner::new(bytes, max_depth.min(MAX_DEPTH));
    let checked = scanner.value(0).and_then(|value| scanner.end().map(|()| value));
    checked.map_err(|trouble| JsonFault {
        kind: trouble.kind,
        offset: trouble.offset,
        field: String::new(),
        rule: trouble.rule,
    })
}

/// The text of a scanned string value, borrowed unless it holds an escape; `None` for any other kind.
pub fn as_str(bytes: &[u8], value: Value) -> Option<Cow<'_, str>> {
    if value.kind != Kind::String {
        return None;
    }
    unescaped(bytes.get(value.span())?)
}

/// The integer of a scanned number value; `None` if it is negative, has a fraction or an exponent, overflows, or is not
/// a number.
pub fn as_u64(bytes: &[u8], value: Value) -> Option<u64> {
    if value.kind != Kind::Number {
        return None;
    }
    std::str::from_utf8(bytes.get(value.span())?).ok()?.parse().ok()
}

impl Value {
    pub fn span(&self) -> Range<usize> {
        self.start..self.end
    }

    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// The boolean value; `None` for any other kind.
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }
}

impl<const N: usize> Scan<'_, N> {
    /// The member called `name`, if the object has it. Only wanted names are found.
    pub fn get(&self, name: &str) -> Option<Value> {
        let index = self.wanted.iter().position(|wanted| *wanted == name)?;
        self.found.get(index).copied().flatten()
    }

    /// The members that were not wanted and are longer than [`LARGE_BYTES`], at most [`MAX_LARGE`] of them, of the bytes that were
    /// scanned.
    pub fn large<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (Cow<'a, str>, Value)> + 'a {
        self.large.iter().filter_map(|(key, value)| Some((unescaped(bytes.get(key.clone())?)?, *value)))
    }

    /// Offset of the object's closing brace.
    pub fn close(&self) -> usize {
        self.object.end - 1
    }

    pub fn is_empty(&self) -> bool {
        self.object.elements == 0
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.rule, self.offset)?;
        if !self.field.is_empty() {
            write!(f, ", in member {:?}", self.field)?;
        }
        Ok(())
    }
}

impl std::error::Error for JsonFault {}

/// The result of a scan: the wanted members, and other members that are large.
struct Found<const N: usize> {
    members: [Option<Value>; N],
    large: Large,
}

/// Scans the members of the top-level object. `open` is left at the key of the member that was being read.
fn members<'a, const N: usize>(
    scanner: &mut Scanner<'a>,
    wanted: &[&str; N],
    found: &mut Found<N>,
    keys: &mut Keys<'a>,
    open: &mut Option<Range<usize>>,
) -> Result<Value, ScanFault> {
    let start = scanner.enter_object()?;
    let mut elements = 0;
    if !scanner.leave_empty_object() {
        loop {
            let key = scanner.key()?;
            *open = Some(key.clone());
            let text = scanner.slice(key.clone());
            let Some(name) = unescaped(text) else {
                return Err(ScanFault::syntax(key.start, "a key is not a string"));
            };
            let slot = wanted.iter().position(|wanted| *wanted == name);
            if !keys.insert(name) {
                return Err(ScanFault { kind: FaultKind::Duplicate, offset: key.start, rule: "a key comes twice" });
            }
            let value = scanner.value(1)?;
            if let Some(index) = slot.and_then(|slot| found.members.get_mut(slot)) {
                *index = Some(value);
            } else if value.end - value.start > LARGE_BYTES && found.large.len() < MAX_LARGE {
                found.large.push((key, value));
            }
            elements += 1;
            *open = None;
            if scanner.leave_object()? {
                break;
            }
        }
    }
    let object = Value { start, end: scanner.position(), kind: Kind::Object, elements };
    scanner.end()?;
    Ok(object)
}

/// Unescapes a scanned string, without its quotes.
fn unescaped(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inner = quoted.get(1..quoted.len().checked_sub(1)?)?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(quoted).ok().map(Cow::Owned)
}

fn shown_name(bytes: &[u8], span: Range<usize>) -> String {
    let name = bytes.get(span).and_then(unescaped).unwrap_or_default();
    name.chars().take(SHOWN_NAME_CHARS).collect()
}

fn check_utf8(bytes: &[u8]) -> Result<(), JsonFault> {
    std::str::from_utf8(bytes).map(|_| ()).map_err(|error| JsonFault {
        kind: FaultKind::NotUtf8,
        offset: error.valid_up_to(),
        field: String::new(),
        rule: "not valid UTF-8",
    })
}
