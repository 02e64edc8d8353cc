//! Judges one text: its findings, and the text after redaction.

use super::disguise::PlainText;
use super::patterns::{Characters, Pattern};
use super::{credential, injection, merge, personal, Action, Actions, Finding, Findings, Guardrail};
use std::ops::Range;

/// A judged text. `redacted` is set if something was replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    pub findings: Findings,
    pub redacted: Option<String>,
}

/// Judges a text. The findings are in the order of the guardrails' priorities.
pub fn judge_text(text: &str, actions: Actions) -> Text {
    let mut findings = Findings::new();
    let mut cuts = Vec::new();
    find(text, actions, |span, finding| {
        merge(&mut findings, [finding]);
        if finding.action == Action::Redact {
            cuts.push((span, finding.kind));
        }
    });
    let redacted = (!cuts.is_empty()).then(|| replace(text, cuts));
    Text { findings, redacted }
}

/// Finds what the guardrails look for: in the text as it is, and in its plain form if characters are disguised.
pub(super) fn find(text: &str, actions: Actions, mut found: impl FnMut(Range<usize>, Finding)) {
    if actions.is_off() {
        return;
    }
    let has = Characters::of(text);
    search(text, has, |limit| head(text, limit).len(), actions, &mut found);
    if let Some(plain) = PlainText::of(text, has, true) {
        let limit = |limit| plain.plain(head(text, limit).len());
        let has = Characters::of(plain.text());
        search(plain.text(), has, limit, actions, |span, finding| found(plain.span(&span), finding));
    }
}

/// `end` converts the number of bytes that a guardrail searches to an offset in this text.
fn search(
    text: &str,
    has: Characters,
    end: impl Fn(usize) -> usize,
    actions: Actions,
    mut found: impl FnMut(Range<usize>, Finding),
) {
    for guardrail in Guardrail::ALL {
        let action = actions.of(guardrail);
        if action == Action::Off {
            continue;
        }
        let text = limit_of(guardrail).map_or(text, |limit| &text[..end(limit)]);
        let first = if guardrail == Guardrail::PromptInjection { injection::first(text) } else { Some(0) };
        for pattern in patterns_of(guardrail).iter().filter(|pattern| pattern.may_meet(has)) {
            let Some(mut from) = (if pattern.is_phrase() { first } else { Some(0) }) else { continue };
            while let Some(met) = pattern.meet(text, from) {
                from = met.next;
                if met.is_finding {
                    found(met.span, Finding { guardrail, kind: pattern.kind, action });
                }
            }
        }
    }
}

pub(super) fn patterns_of(guardrail: Guardrail) -> &'static [Pattern] {
    match guardrail {
        Guardrail::PiiMasker => &*personal::PATTERNS,
        Guardrail::CredentialMasker => &*credential::PATTERNS,
        Guardrail::PromptInjection => &*injection::PATTERNS,
    }
}

/// The number of bytes that the guardrail searches, if it has a limit.
pub(super) fn limit_of(guardrail: Guardrail) -> Option<usize> {
    (guardrail == Guardrail::PromptInjection).then_some(injection::READ_BYTES)
}

/// Returns at most this many bytes, ending at a character boundary.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Replaces the findings with marks. If two overlap, the first one names the mark.
fn replace(text: &str, mut cuts: Vec<(Range<usize>, &'static str)>) -> String {
    cuts.sort_by_key(|(span, _)| (span.start, usize::MAX - span.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (span, kind) in cuts {
        if span.start < at {
            // If two findings overlap, the longer one also covers the rest.
            at = at.max(span.end);
            continue;
        }
        out.push_str(&text[at..span.start]);
        out.push_str(&mark(kind));
        at = span.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The text that replaces a finding.
pub(super) fn mark(kind: &str) -> String {
    format!("[REDACTED:{kind}]")
}
