//! The search of one guardrail in a text that arrives in pieces, or in its plain form.

use super::disguise::PlainText;
use super::patterns::{Characters, Pattern};
use super::{Action, Guardrail};

/// The search of one guardrail: the action on findings, and the bounds.
pub(super) struct Scan<'p> {
    pub(super) guardrail: Guardrail,
    pub(super) action: Action,
    /// Searches this form of the text instead, in which no character is disguised.
    pub(super) plain: Option<&'p PlainText>,
    /// The characters that occur in the text to search.
    pub(super) has: Characters,
    /// The offset in bytes up to which the guardrail searches. Its own limit may lie before the end of the text.
    pub(super) end: usize,
    /// No more text follows that could extend a finding.
    pub(super) is_end: bool,
}

impl<'p> Scan<'p> {
    /// The text that is searched.
    pub(super) fn text<'t>(&self, text: &'t str) -> &'t str
    where
        'p: 't,
    {
        self.plain.map_or(&text[..self.end], |plain| &plain.text()[..plain.plain(self.end)])
    }

    /// The offset in the searched text for one in the original text.
    pub(super) fn at(&self, original: usize) -> usize {
        self.plain.map_or(original, |plain| plain.plain(original))
    }

    /// The offset in the original text where a possible finding begins.
    pub(super) fn start(&self, at: usize) -> usize {
        self.plain.map_or(at, |plain| plain.start(at))
    }

    /// The offset in the original text up to which a pattern has searched.
    pub(super) fn end(&self, at: usize) -> usize {
        self.plain.map_or(at, |plain| plain.end(at))
    }

    /// The start of the first finding of the pattern that may still grow, as an offset in the original text.
    pub(super) fn opens(&self, pattern: &Pattern, text: &str, from: usize) -> usize {
        self.start(pattern.opens(self.text(text), self.at(from.min(self.end))))
    }
}
