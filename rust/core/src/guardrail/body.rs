//! The texts of a JSON body: what people and models say, whichever dialect says it.
//!
//! A string is a text when the nearest member name above it is one of [`TEXTS`]. So one walk reads every dialect, and ids,
//! roles, model names, base64 of images and signatures are left alone. The walk assumes nothing of the body's form and
//! stops quietly at what is no JSON: the parser behind it refuses that.

use super::text::judge_text;
use super::{merge, Actions, Findings};
use serde_json::Value;
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
/// Deeper nesting is refused by the parsers.
const MAX_DEPTH: usize = crate::json::MAX_DEPTH;

/// What the guardrails make of a body. `body` is there where something was replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    pub findings: Findings,
    pub body: Option<Vec<u8>>,
}

/// Judges every text of a body.
pub fn judge_body(body: &[u8], actions: Actions) -> Judged {
    let mut judged = Judged::default();
    if actions.is_off() {
        return judged;
    }
    let mut cuts: Vec<(Range<usize>, String)> = Vec::new();
    for place in texts(body) {
        let Some(text) = read(&body[place.clone()]) else { continue };
        let one = judge_text(&text, actions);
        merge(&mut judged.findings, one.findings);
        if let Some(redacted) = one.redacted {
            cuts.push((place, write(redacted)));
        }
    }
    if !cuts.is_empty() {
        judged.body = Some(splice(body, &cuts));
    }
    judged
}

/// The body with other strings in these places.
pub(super) fn splice(body: &[u8], cuts: &[(Range<usize>, String)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut at = 0;
    for (place, text) in cuts {
        out.extend_from_slice(&body[at..place.start]);
        out.extend_from_slice(text.as_bytes());
        at = place.end;
    }
    out.extend_from_slice(&body[at..]);
    out
}

/// A string of JSON as a text; borrowed where nothing in it is escaped.
pub(super) fn read(raw: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let inner = raw.get(1..raw.len().checked_sub(1)?)?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Into::into);
    }
    serde_json::from_slice::<String>(raw).ok().map(Into::into)
}

pub(super) fn write(text: String) -> String {
    Value::String(text).to_string()
}

/// Where the texts of a body are, quotes included.
pub(super) fn texts(body: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // For each open object or array: whether strings in it are texts, and whether the next string is a member's name.
    let mut open: Vec<(bool, bool)> = Vec::new();
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            b'{' | b'[' => {
                if open.len() == MAX_DEPTH {
                    return found;
                }
                let is_text = open.last().is_some_and(|above| above.0);
                open.push((is_text, body[at] == b'{'));
            }
            b'}' | b']' => {
                open.pop();
            }
            b'"' => {
                let Some(end) = end_of_string(body, at) else { return found };
                let place = at..end;
                at = end;
                let is_name = body[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                match open.last_mut() {
                    Some(here) if here.1 && is_name => here.0 = is_text_name(&body[place.start + 1..place.end - 1]),
                    Some(here) if here.0 => found.push(place),
                    _ => {}
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn is_text_name(name: &[u8]) -> bool {
    TEXTS.iter().any(|text| text.as_bytes() == name)
}

/// The offset after the closing quote.
fn end_of_string(body: &[u8], start: usize) -> Option<usize> {
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
