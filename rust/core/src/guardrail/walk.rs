//! The texts of a JSON body, in whichever dialect it is.
//!
//! Every string, every member name and every long number is text, except where [`names`](super::names) lists the member as an id,
//! a choice, an address, base64 or settings. In what a tool is called with or gives back, and in documents, everything is text. The
//! walk assumes nothing about the body's form and ends quietly at a string that has no end: the parser behind it refuses that.

use super::names::{holds, holds_base64, is_base64_kind, is_tool_response, Holds};
use std::borrow::Cow;
use std::ops::Range;

/// Deeper than this, every string is judged as a text by itself.
const MAX_DEPTH: usize = crate::json::MAX_DEPTH;
/// No finding is shorter.
pub(super) const MIN_FINDING_BYTES: usize = 6;
/// The shortest number that a payment card has. Other findings need more than digits.
const MIN_NUMBER_BYTES: usize = 13;
/// A name of letters alone that is this long may be a key; vendors' own names are mostly shorter.
const MIN_KEY_BYTES: usize = 20;

/// Where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// The value of a member, or an element of a list.
    Value,
    /// A value that is itself JSON.
    Json,
    /// The name of a member, or a number. It never continues in another event.
    Alone,
}

#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Open {
    is_object: bool,
    /// Everything inside is text.
    is_deep: bool,
    /// The nearest member name, and what its value holds.
    name: Range<usize>,
    holds: Holds,
    /// The name is this object's own: a list has that of the member it is.
    has_name: bool,
    /// A value follows that has not been visited.
    is_owed: bool,
    /// The value of this object's `type`, with its quotes.
    kind: Option<Range<usize>>,
}

/// Receives the parts of a body in order. Places include quotes; names do not, and are as they are written.
pub(super) trait Visitor {
    /// An object or a list opens; with the member's name where it is one.
    fn enter(&mut self, _name: Option<Range<usize>>) {}
    fn leave(&mut self) {}
    /// A text, with the name above it.
    fn text(&mut self, place: Range<usize>, name: Range<usize>, kind: TextKind);
    /// A member's value that is neither text nor object nor list.
    fn value(&mut self, _name: Range<usize>, _place: Range<usize>) {}
}

/// Walks the whole body.
pub(super) fn walk(body: &[u8], visitor: &mut impl Visitor) {
    let mut open: Vec<Open> = Vec::new();
    // Objects and lists that are open below the greatest depth.
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

/// Where a number, a boolean or null ends, or what is no JSON.
fn end_of_plain(body: &[u8], start: usize) -> usize {
    let is_end =
        |byte: &u8| matches!(byte, b',' | b'}' | b']' | b'"' | b':' | b'{' | b'[') || byte.is_ascii_whitespace();
    body[start + 1..].iter().position(is_end).map_or(body.len(), |length| start + 1 + length)
}

/// A number, a boolean or null: a value, and where it may be a card's number a text too.
fn visit_plain(body: &[u8], place: Range<usize>, here: &mut Open, visitor: &mut impl Visitor) {
    let is_owed = std::mem::take(&mut here.is_owed);
    let is_long = place.len() >= MIN_NUMBER_BYTES && body[place.clone()].iter().all(u8::is_ascii_digit);
    if is_long && (here.is_deep || !matches!(here.holds, Holds::Fixed | Holds::Unread)) {
        visitor.text(place, here.name.clone(), TextKind::Alone);
    } else if is_owed {
        visitor.value(here.name.clone(), place);
    }
}

/// A string in an object or list: the name of a member, a text, or another value.
fn visit_string(body: &[u8], place: Range<usize>, open: &mut [Open], visitor: &mut impl Visitor) {
    let depth = open.len();
    let Some(here) = open.last_mut() else { return };
    let is_name = here.is_object && body[place.end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
    if is_name {
        here.name = place.start + 1..place.end - 1;
        let name = name_at(body, &here.name);
        here.holds = holds(name.as_bytes());
        (here.has_name, here.is_owed) = (true, true);
        if here.holds == Holds::Text && may_be_finding(name.as_bytes()) {
            visitor.text(place, here.name.clone(), TextKind::Alone);
        }
        return;
    }
    here.is_owed = false;
    if here.holds == Holds::Kind && here.has_name {
        here.kind = Some(place.clone());
    }
    let is_text = here.is_deep
        || match here.holds {
            Holds::Text | Holds::Json | Holds::Deep | Holds::DeepObject => true,
            Holds::Fixed | Holds::Kind | Holds::Unread => false,
            Holds::Data | Holds::Outcome => !is_base64(body, &place, open),
        };
    let here = &open[depth - 1];
    if is_text {
        let is_json = here.holds == Holds::Json && !here.is_deep;
        visitor.text(place, here.name.clone(), if is_json { TextKind::Json } else { TextKind::Value });
    } else if here.has_name {
        visitor.value(here.name.clone(), place);
    }
}

/// Whether a name may hold a finding. The names of the vendors' own members mostly do not.
fn may_be_finding(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.len() >= MIN_FINDING_BYTES && (name.len() >= MIN_KEY_BYTES || !name.iter().all(is_plain))
}

/// Whether the string at this place, the `data` or `result` of the innermost object, is base64.
fn is_base64(body: &[u8], place: &Range<usize>, open: &[Open]) -> bool {
    let [above @ .., here] = open else { return false };
    if !here.is_object {
        return false;
    }
    if above.last().is_some_and(|above| above.is_object && holds_base64(name_at(body, &above.name).as_bytes())) {
        return true;
    }
    let kind = here.kind.clone().or_else(|| kind_behind(body, place.end));
    kind.is_some_and(|kind| is_base64_kind(&body[kind.start + 1..kind.end - 1]))
}

/// The value of the `type` that follows in the same object.
fn kind_behind(body: &[u8], mut at: usize) -> Option<Range<usize>> {
    let mut is_kind = false;
    loop {
        match body.get(at)? {
            b'"' => {
                let end = end_of_string(body, at)?;
                if is_kind {
                    return Some(at..end);
                }
                let is_name = body[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                is_kind = is_name && &body[at + 1..end - 1] == b"type";
                at = end;
                continue;
            }
            b'{' | b'[' => {
                at = end_of_value(body, at);
                continue;
            }
            b'}' | b']' => return None,
            _ => {}
        }
        at += 1;
    }
}

/// The end of an object or a list in which nothing is text, which begins here.
fn end_of_unread(body: &[u8], at: usize, open: &mut [Open]) -> Option<usize> {
    let here = open.last_mut().filter(|here| here.holds == Holds::Unread && here.has_name && !here.is_deep)?;
    here.is_owed = false;
    Some(end_of_value(body, at))
}

/// The offset after the object or list that begins here.
fn end_of_value(body: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = body.get(at) {
        match byte {
            b'"' => {
                let Some(end) = end_of_string(body, at) else { return body.len() };
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// What an object or list that opens is, and the name of the member that it is.
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

/// A name as it is meant, which may be written with escapes.
pub(super) fn name_at<'b>(body: &'b [u8], place: &Range<usize>) -> Cow<'b, str> {
    let raw = &body[place.clone()];
    if memchr::memchr(b'\\', raw).is_none() {
        return String::from_utf8_lossy(raw);
    }
    let quoted = &body[place.start - 1..=place.end];
    serde_json::from_slice::<String>(quoted).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Owned)
}

/// The offset after the closing quote.
pub(super) fn end_of_string(body: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let step = memchr::memchr2(b'"', b'\\', body.get(at..)?)?;
        at += step;
        if body[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}
