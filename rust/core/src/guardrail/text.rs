//! One text: what the guardrails find in it, and what it reads like afterwards.

use super::patterns::Pattern;
use super::{credential, injection, merge, personal, Action, Actions, Finding, Findings, Guardrail};
use std::ops::Range;

/// A judged text. `redacted` is there where something was replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    pub findings: Findings,
    pub redacted: Option<String>,
}

/// What the guardrails find in a text, in the order of their priorities.
pub fn judge_text(text: &str, actions: Actions) -> Text {
    let mut findings = Findings::new();
    let mut cuts = Vec::new();
    for guardrail in Guardrail::ALL {
        let action = actions.of(guardrail);
        if action == Action::Off {
            continue;
        }
        for (kind, place) in find(guardrail, text) {
            merge(&mut findings, [Finding { guardrail, kind, action }]);
            if action == Action::Redact {
                cuts.push((place, kind));
            }
        }
    }
    let redacted = (!cuts.is_empty()).then(|| replace(text, cuts));
    Text { findings, redacted }
}

/// Where what may be cut out of a stream lies; kinds and places, by place.
pub(super) fn places(text: &str, actions: Actions) -> Vec<(Range<usize>, Finding)> {
    let mut all: Vec<(Range<usize>, Finding)> = Vec::new();
    for guardrail in Guardrail::ALL {
        let action = actions.of(guardrail);
        if action != Action::Off {
            all.extend(find(guardrail, text).map(|(kind, place)| (place, Finding { guardrail, kind, action })));
        }
    }
    all.sort_by_key(|(place, _)| (place.start, usize::MAX - place.end));
    all
}

fn find(guardrail: Guardrail, text: &str) -> impl Iterator<Item = (&'static str, Range<usize>)> + '_ {
    let (patterns, text): (&'static [Pattern], &str) = match guardrail {
        Guardrail::PiiMasker => (&*personal::PATTERNS, text),
        Guardrail::CredentialMasker => (&*credential::PATTERNS, text),
        Guardrail::PromptInjection => (&*injection::PATTERNS, head(text, injection::READ_BYTES)),
    };
    patterns.iter().flat_map(move |pattern| pattern.find(text).map(|place| (pattern.kind, place)))
}

/// At most so many bytes, whole characters.
fn head(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What is cut twice is cut as what begins first.
fn replace(text: &str, mut cuts: Vec<(Range<usize>, &'static str)>) -> String {
    cuts.sort_by_key(|(place, _)| (place.start, usize::MAX - place.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (place, kind) in cuts {
        if place.start < at {
            // The longer of two that overlap takes the rest with it.
            at = at.max(place.end);
            continue;
        }
        out.push_str(&text[at..place.start]);
        out.push_str(&mark(kind));
        at = place.end;
    }
    out.push_str(&text[at..]);
    out
}

/// What stands in place of a finding.
pub(super) fn mark(kind: &str) -> String {
    format!("[REDACTED:{kind}]")
}
