//! The texts of a JSON body: what people and models say, whichever dialect says it.
//!
//! A string is a text when the nearest member name above it is one of [`TEXTS`], or when it stands anywhere in what a tool is
//! called with or gives back. So one walk reads every dialect, and ids, roles, model names, base64 of images and signatures
//! are left alone. The walk assumes nothing of the body's form and stops quietly at what is no JSON: the parser behind it
//! refuses that.

use std::borrow::Cow;
use std::ops::Range;

/// Members that hold what is said, in requests and answers of every dialect.
const TEXTS: &[&str] = &[
    "arguments",
    "content",
    "delta",
    "documents",
    "input",
    "instructions",
    "markdown",
    "negative_prompt",
    "negativePrompt",
    "output",
    "output_text",
    "partial_json",
    "parts",
    "prompt",
    "query",
    "reasoning",
    "reasoning_content",
    "refusal",
    "revised_prompt",
    "system",
    "text",
    "thinking",
    "transcript",
];
/// Members whose string is JSON itself.
const NESTED: &[&str] = &["arguments", "partial_json"];
/// Objects in which every string is a text: the arguments of a tool.
const DEEP: &[&str] = &["args", "arguments", "input"];
/// Members of a tool's result that hold texts: the member of a member.
const DEEP_INSIDE: (&[&str], &str) = (&["functionResponse", "function_response"], "response");
/// Deeper nesting is refused by the parsers.
const MAX_DEPTH: usize = crate::json::MAX_DEPTH;

#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Open {
    is_object: bool,
    is_deep: bool,
    /// The nearest member name, and whether it is that of a text, or of a text that is JSON.
    name: Range<usize>,
    is_text: bool,
    is_json: bool,
    /// The name is this object's own: a list has that of the member it is.
    has_name: bool,
    /// A value follows that has not been visited.
    is_owed: bool,
}

/// Receives the parts of a body in order. Places include quotes; names do not, and are as they are written.
pub(super) trait Visitor {
    /// An object or a list opens; with the member's name where it is one.
    fn enter(&mut self, _name: Option<Range<usize>>) {}
    fn leave(&mut self) {}
    /// A text, with the name above it.
    fn text(&mut self, place: Range<usize>, name: Range<usize>, is_json: bool);
    /// A member's value that is neither text nor object nor list.
    fn value(&mut self, _name: Range<usize>, _place: Range<usize>) {}
}

/// Walks the whole body.
pub(super) fn walk(body: &[u8], visitor: &mut impl Visitor) {
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            b'{' | b'[' => {
                if open.len() == MAX_DEPTH {
                    return;
                }
                let is_object = body[at] == b'{';
                let inner = inside(body, &mut open, is_object);
                visitor.enter(inner.1);
                open.push(inner.0);
            }
            b'}' | b']' => {
                if open.pop().is_some() {
                    visitor.leave();
                }
            }
            b'"' => {
                let Some(end) = end_of_string(body, at) else { return };
                if let Some(here) = open.last_mut() {
                    visit_string(body, at..end, here, visitor);
                }
                at = end;
                continue;
            }
            b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => {
                if let Some(here) = open.last_mut().filter(|here| here.is_owed) {
                    here.is_owed = false;
                    let end = end_of_plain(body, at);
                    visitor.value(here.name.clone(), at..end);
                    at = end;
                    continue;
                }
            }
        }
        at += 1;
    }
}

/// Where a number, a boolean or null ends.
fn end_of_plain(body: &[u8], start: usize) -> usize {
    let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
    body[start..].iter().position(is_end).map_or(body.len(), |length| start + length)
}

/// A string in an object or list: the name of a member, a text, or another value.
fn visit_string(body: &[u8], place: Range<usize>, here: &mut Open, visitor: &mut impl Visitor) {
    let is_name = body[place.end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
    if here.is_object && is_name {
        here.name = place.start + 1..place.end - 1;
        let name = name_at(body, &here.name);
        here.is_text = TEXTS.contains(&&*name);
        here.is_json = here.is_text && NESTED.contains(&&*name);
        (here.has_name, here.is_owed) = (true, true);
        return;
    }
    here.is_owed = false;
    if here.is_text || here.is_deep {
        visitor.text(place, here.name.clone(), here.is_json && !here.is_deep);
    } else if here.has_name {
        visitor.value(here.name.clone(), place);
    }
}

/// What an object or list that opens is, and the name of the member that it is.
fn inside(body: &[u8], open: &mut [Open], is_object: bool) -> (Open, Option<Range<usize>>) {
    let depth = open.len();
    let Some(here) = open.last_mut() else { return (Open { is_object, ..Open::default() }, None) };
    here.is_owed = false;
    let is_member = here.is_object && here.has_name;
    let name = here.name.clone();
    let (is_text, is_json, mut is_deep) = (here.is_text, here.is_json, here.is_deep);
    if is_member && !is_deep {
        let text = name_at(body, &name);
        let is_inside = || depth > 1 && DEEP_INSIDE.0.contains(&&*name_at(body, &open[depth - 2].name));
        is_deep = is_object && DEEP.contains(&&*text) || *text == *DEEP_INSIDE.1 && is_inside();
    }
    let inner = Open { is_object, is_deep, name: name.clone(), is_text, is_json, has_name: false, is_owed: false };
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
