//! Finds the texts of a JSON body, in any dialect.
//!
//! Every string, member name and long number is text, unless [`names`](super::names) lists the member as an id, a
//! choice, an address, base64 or settings. Inside tool arguments, tool output and documents, everything is text. The
//! walk does not depend on the structure of the body. It stops at a string without an end, because the parser rejects
//! such a body later.

use super::encoded::{content_of, Content};
use super::escapes::unescaped;
use super::names::{holds, holds_base64, is_tool_response, name_at, Holds};
use super::number::is_long_number;
use super::siblings::Siblings;
use crate::json::{end_of_string, end_of_value};
use std::ops::Range;

/// Below this depth, every string is judged as a text.
const MAX_DEPTH: usize = crate::json::MAX_DEPTH;
/// The shortest possible finding.
pub(super) const MIN_FINDING_BYTES: usize = 6;
/// The bytes of a string that show whether it is a data URL, and of what.
const HEAD_BYTES: usize = 128;
/// A name of letters alone that is at least this long may be a key. Most of the vendors' names are shorter.
const MIN_KEY_BYTES: usize = 20;

/// The kind of place in which a text occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// The value of a member, or an element of a list.
    Value,
    /// A value that is itself JSON.
    Json,
    /// A member name or a number, which never continues in another event.
    Alone,
    /// A text in base64, or a data URL.
    Encoded,
}

#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
struct Open {
    is_object: bool,
    /// Everything inside is text.
    is_deep: bool,
    /// The nearest member name, and what its value holds.
    name: Range<usize>,
    holds: Holds,
    /// The name belongs to this object. A list has the name of the member that it is the value of.
    has_name: bool,
    /// The value of the current member has not been visited yet.
    is_owed: bool,
    siblings: Siblings,
}

/// Receives the parts of a body in order. Ranges include quotes, except those of names, which are still escaped.
pub(super) trait Visitor {
    /// An object or list begins. `_name` is set if it is the value of a member.
    fn enter(&mut self, _name: Option<Range<usize>>) {}
    fn leave(&mut self) {}
    /// A text, and the nearest member name.
    fn text(&mut self, span: Range<usize>, name: Range<usize>, kind: TextKind);
    /// A member's value that is not text, an object or a list.
    fn value(&mut self, _name: Range<usize>, _place: Range<usize>) {}
}

/// Visits the whole body.
pub(super) fn walk(body: &[u8], visitor: &mut impl Visitor) {
    let mut open: Vec<Open> = Vec::new();
    // The number of open objects and lists below the maximum depth.
    let mut below = 0_usize;
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            b'{' | b'[' if open.len() == MAX_DEPTH => below += 1,
            b'{' | b'[' => {
                if let Some(end) = end_of_unread(body, at, &mut open) {
                    at = end;
                    continue;
                }
                let (inner, name) = inside(body, &mut open, body[at] == b'{');
                visitor.enter(name);
                open.push(inner);
            }
            b'}' | b']' if below > 0 => below -= 1,
            b'}' | b']' => {
                if open.pop().is_some() {
                    visitor.leave();
                }
            }
            b'"' => {
                let Some(end) = end_of_string(body, at) else { return };
                match open.last_mut() {
                    Some(here) if below > 0 => visitor.text(at..end, here.name.clone(), TextKind::Alone),
                    Some(_) => visit_string(body, at..end, &mut open, visitor),
                    None => visitor.text(at..end, 0..0, TextKind::Value),
                }
                at = end;
                continue;
            }
            b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => {
                let end = end_of_plain(body, at);
                if let Some(here) = open.last_mut() {
                    visit_plain(body, at..end, here, visitor);
                }
                at = end;
                continue;
            }
        }
        at += 1;
    }
}

/// The end of a number, a boolean, null or invalid text.
fn end_of_plain(body: &[u8], start: usize) -> usize {
    let is_end =
        |byte: &u8| matches!(byte, b',' | b'}' | b']' | b'"' | b':' | b'{' | b'[') || byte.is_ascii_whitespace();
    body[start + 1..].iter().position(is_end).map_or(body.len(), |length| start + 1 + length)
}

/// Visits a number, a boolean or null. A number that may be a card number is also a text.
fn visit_plain(body: &[u8], span: Range<usize>, here: &mut Open, visitor: &mut impl Visitor) {
    let is_owed = std::mem::take(&mut here.is_owed);
    let is_long = is_long_number(&body[span.clone()]);
    if is_long && (here.is_deep || !matches!(here.holds, Holds::Fixed | Holds::Unread)) {
        visitor.text(span, here.name.clone(), TextKind::Alone);
    } else if is_owed {
        visitor.value(here.name.clone(), span);
    }
}

/// Visits a string in an object or list: a member name, a text or another value.
fn visit_string(body: &[u8], span: Range<usize>, open: &mut [Open], visitor: &mut impl Visitor) {
    let depth = open.len();
    let Some(here) = open.last_mut() else { return };
    let is_name = here.is_object && body[span.end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
    if is_name {
        here.name = span.start + 1..span.end - 1;
        let name = name_at(body, &here.name);
        here.holds = holds(name.as_bytes());
        (here.has_name, here.is_owed) = (true, true);
        if here.holds == Holds::Text && may_be_finding(name.as_bytes()) {
            visitor.text(span, here.name.clone(), TextKind::Alone);
        }
        return;
    }
    here.is_owed = false;
    if here.has_name && matches!(here.holds, Holds::Kind | Holds::Fixed) {
        here.siblings.note(name_at(body, &here.name).as_bytes(), &body[span.start + 1..span.end - 1]);
    }
    let is_text = here.is_deep
        || match here.holds {
            Holds::Text | Holds::Json | Holds::Deep | Holds::DeepObject => true,
            Holds::Fixed | Holds::Kind | Holds::Unread => false,
            Holds::Data | Holds::Outcome => !is_base64(body, &span, open),
        };
    let here = &open[depth - 1];
    if is_text {
        let is_json = here.holds == Holds::Json && !here.is_deep;
        visitor.text(span, here.name.clone(), if is_json { TextKind::Json } else { TextKind::Value });
    } else if is_encoded_text(body, &span, here) {
        visitor.text(span, here.name.clone(), TextKind::Encoded);
    } else if here.has_name {
        visitor.value(here.name.clone(), span);
    }
}

/// Whether a string that is not text as it is holds one in base64: a data URL, or a document.
fn is_encoded_text(body: &[u8], span: &Range<usize>, here: &Open) -> bool {
    let raw = &body[span.start + 1..span.end - 1];
    let head = &raw[..raw.len().min(HEAD_BYTES)];
    let content = if memchr::memchr(b'\\', head).is_some() {
        content_of(unescaped(&String::from_utf8_lossy(head)).as_bytes())
    } else {
        content_of(head)
    };
    match content {
        Content::Text => true,
        Content::Other => false,
        Content::NoData => match here.holds {
            Holds::Data | Holds::Outcome => here.siblings.is_text,
            // The type of such a file is not in the body.
            Holds::Fixed => name_at(body, &here.name) == "file_data",
            _ => false,
        },
    }
}

/// Whether a name may hold a finding. Most of the vendors' member names cannot.
fn may_be_finding(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.len() >= MIN_FINDING_BYTES && (name.len() >= MIN_KEY_BYTES || !name.iter().all(is_plain))
}

/// Whether this string, the `data` or `result` of the innermost object, is base64.
fn is_base64(body: &[u8], span: &Range<usize>, open: &mut [Open]) -> bool {
    let [above @ .., here] = open else { return false };
    if !here.is_object {
        return false;
    }
    here.siblings.read_behind(body, span.end);
    if above.last().is_some_and(|above| above.is_object && holds_base64(name_at(body, &above.name).as_bytes())) {
        return true;
    }
    here.siblings.are_of_base64()
}

/// The end of the object or list at this offset if nothing in it is text.
fn end_of_unread(body: &[u8], at: usize, open: &mut [Open]) -> Option<usize> {
    let here = open.last_mut().filter(|here| here.holds == Holds::Unread && here.has_name && !here.is_deep)?;
    here.is_owed = false;
    Some(end_of_value(body, at))
}

/// The state of an object or list that begins, and the name of the member that it is the value of.
fn inside(body: &[u8], open: &mut [Open], is_object: bool) -> (Open, Option<Range<usize>>) {
    let depth = open.len();
    let Some(here) = open.last_mut() else { return (Open { is_object, ..Open::default() }, None) };
    here.is_owed = false;
    let is_member = here.is_object && here.has_name;
    let (name, holds, is_inside_deep) = (here.name.clone(), here.holds, here.is_deep);
    let is_response = || {
        is_object
            && name_at(body, &name) == "response"
            && depth > 1
            && is_tool_response(name_at(body, &open[depth - 2].name).as_bytes())
    };
    let is_deep = is_inside_deep
        || is_member
            && match holds {
                Holds::Deep | Holds::Json => true,
                Holds::DeepObject | Holds::Outcome => is_object,
                Holds::Text => is_response(),
                _ => false,
            };
    let inner = Open { is_object, is_deep, name: name.clone(), holds, ..Open::default() };
    (inner, is_member.then_some(name))
}
