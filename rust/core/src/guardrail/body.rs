//! Judges the texts of a JSON body and splices the replacements into it.

use super::encoded::judge_encoded;
use super::escapes::unescaped;
use super::lossy::lossy;
use super::number::integer_of;
use super::streamed_text::StreamedText;
use super::text::judge_text;
use super::walk::{walk, TextKind, Visitor, MIN_FINDING_BYTES};
use super::{merge, Actions, Findings};
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;

/// The number of quote bytes around a string.
const QUOTES: usize = 2;

/// The result for a body. `body` is set if something was replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    pub findings: Findings,
    pub body: Option<Vec<u8>>,
}

/// Judges every text of a body.
pub fn judge_body(body: &[u8], actions: Actions) -> Judged {
    let mut findings = Findings::new();
    if actions.is_off() {
        return Judged::default();
    }
    let cuts = cuts(body, actions, &mut findings);
    Judged { findings, body: (!cuts.is_empty()).then(|| splice(body, &cuts)) }
}

/// The texts of a body that change, with their replacements, in order.
pub(super) fn cuts(body: &[u8], actions: Actions, findings: &mut Findings) -> Vec<(Range<usize>, String)> {
    let mut judge = Judge { body, actions, findings, cuts: Vec::new() };
    walk(body, &mut judge);
    judge.cuts
}

/// The replacement of a text, or `None` if it is unchanged.
pub(super) fn judged(text: &str, kind: TextKind, actions: Actions, findings: &mut Findings) -> Option<String> {
    match kind {
        TextKind::Json => {
            let out = StreamedText::new(true).push(text, actions, findings, true);
            (out != text).then_some(out)
        }
        TextKind::Encoded => judge_encoded(text, actions, findings),
        TextKind::Value | TextKind::Alone => {
            let one = judge_text(text, actions);
            merge(findings, one.findings);
            one.redacted
        }
    }
}

struct Judge<'b> {
    body: &'b [u8],
    actions: Actions,
    findings: &'b mut Findings,
    cuts: Vec<(Range<usize>, String)>,
}

impl Visitor for Judge<'_> {
    fn text(&mut self, span: Range<usize>, _: Range<usize>, kind: TextKind) {
        if span.len() < MIN_FINDING_BYTES + QUOTES {
            return;
        }
        let Some(text) = read(&self.body[span.clone()]) else { return };
        if let Some(redacted) = judged(&text, kind, self.actions, self.findings) {
            self.cuts.push((span, write(redacted)));
        }
    }
}

/// Returns the body with the given ranges replaced.
pub(super) fn splice(body: &[u8], cuts: &[(Range<usize>, String)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut at = 0;
    for (span, text) in cuts {
        out.extend_from_slice(&body[at..span.start]);
        out.extend_from_slice(text.as_bytes());
        at = span.end;
    }
    out.extend_from_slice(&body[at..]);
    out
}

/// Decodes a JSON string or number as text, borrowed if it holds no escape. Invalid Unicode, such as a lone surrogate,
/// does not hide the remaining text.
pub(super) fn read(raw: &[u8]) -> Option<Cow<'_, str>> {
    if raw.first().is_some_and(u8::is_ascii_digit) {
        return Some(integer_of(raw).map_or_else(|| lossy(raw), Cow::Owned));
    }
    let inner = raw.get(1..raw.len().checked_sub(1)?)?;
    if memchr::memchr(b'\\', inner).is_none() {
        return Some(lossy(inner));
    }
    let read = serde_json::from_slice::<String>(raw).unwrap_or_else(|_| unescaped(&lossy(raw)));
    Some(Cow::Owned(read))
}

pub(super) fn write(text: String) -> String {
    Value::String(text).to_string()
}
