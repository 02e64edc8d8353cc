//! Judges one text that arrives in pieces: which part of it can be sent, and which part is held.
//!
//! The text that is sent equals the whole text judged at once, wherever it was cut. Text is held from the beginning of
//! the first finding that may still grow, and no longer. A guardrail that only warns holds nothing.

use super::escapes::Escapes;
use super::patterns::{Characters, Pattern};
use super::prefix::beginnings;
use super::text::{head, limit_of, mark, patterns_of};
use super::{merge, Action, Actions, Finding, Findings, Guardrail};
use regex::Regex;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::LazyLock;

/// The longest beginning of a finding that is held. A longer one is judged as it is.
pub(super) const MAX_OPEN_BYTES: usize = 8 * 1024;

/// The patterns for beginnings of findings, by guardrail.
static BEGINNINGS: [LazyLock<Regex>; 3] = [
    LazyLock::new(|| beginnings_of(Guardrail::ALL[0])),
    LazyLock::new(|| beginnings_of(Guardrail::ALL[1])),
    LazyLock::new(|| beginnings_of(Guardrail::ALL[2])),
];

fn beginnings_of(guardrail: Guardrail) -> Regex {
    beginnings(patterns_of(guardrail).iter().map(|pattern| pattern.source))
}

/// One text that arrives in pieces. Offsets are relative to `text`.
#[derive(Debug, Default)]
pub(super) struct StreamedText {
    /// The text that has not been judged, and the character before it.
    text: String,
    /// How many bytes came before `text`.
    before: usize,
    /// Everything before this offset has been sent or redacted.
    gone: usize,
    /// Every pattern has searched up to this offset.
    looked: usize,
    /// Patterns that continue after `looked`, because one of their findings ends there.
    ahead: SmallVec<[(&'static str, usize); 2]>,
    /// Findings to redact, none of them before `gone`.
    cuts: Vec<(Range<usize>, &'static str)>,
    /// For a text that is JSON: decodes its strings.
    escapes: Option<Escapes>,
    /// The characters that continue a finding that was redacted before its end.
    swallows: Option<fn(char) -> bool>,
}

/// The search of one guardrail: the action on findings, and the bounds.
struct Scan {
    guardrail: Guardrail,
    action: Action,
    /// The characters that occur in the text to search.
    has: Characters,
    /// The offset in bytes up to which the guardrail searches. Its own limit may lie before the end of the text.
    end: usize,
    /// No more text follows that could extend a finding.
    is_end: bool,
}

impl StreamedText {
    pub(super) fn new(is_json: bool) -> Self {
        Self { escapes: is_json.then(Escapes::default), ..Self::default() }
    }

    /// Whether some text is held.
    pub(super) fn holds(&self) -> bool {
        self.gone < self.text.len() || self.escapes.as_ref().is_some_and(Escapes::is_open)
    }

    /// Takes the next piece, or the end of the text. Returns the text that can be sent.
    pub(super) fn push(&mut self, piece: &str, actions: Actions, findings: &mut Findings, is_end: bool) -> String {
        match &mut self.escapes {
            Some(escapes) => escapes.read(piece, &mut self.text),
            None => self.text.push_str(piece),
        }
        self.swallow();
        let (mut looked, mut hold) = self.search(actions, findings, is_end);
        if !is_end && self.text.len() - looked > MAX_OPEN_BYTES {
            self.looked = looked;
            (looked, hold) = self.search(actions, findings, true);
        }
        let mut out = self.release(hold);
        if let Some(escapes) = self.escapes.as_mut().filter(|_| is_end) {
            out.push_str(&escapes.rest());
        }
        self.forget(looked);
        out
    }

    /// Drops the continuation of a finding that was redacted before its end.
    fn swallow(&mut self) {
        let Some(tail) = self.swallows else { return };
        let rest = self.text[self.looked..].trim_start_matches(tail).len();
        self.skip(self.text.len() - rest);
        self.looked = self.gone;
        if rest > 0 {
            self.swallows = None;
        }
    }

    /// Searches the text for findings. Returns two offsets in bytes: where the first finding that may still grow begins,
    /// and up to where text can be sent.
    fn search(&mut self, actions: Actions, findings: &mut Findings, is_end: bool) -> (usize, usize) {
        let all = self.text.len();
        let (mut looked, mut hold) = (all, all);
        let has = Characters::of(&self.text[self.looked..]);
        for guardrail in Guardrail::ALL {
            let action = actions.of(guardrail);
            if action == Action::Off {
                continue;
            }
            let limit = limit_of(guardrail).map_or(usize::MAX, |limit| limit.saturating_sub(self.before));
            let end = if all >= limit { head(&self.text, limit).len() } else { all };
            if end < self.looked {
                continue;
            }
            let scan = Scan { guardrail, action, has, end, is_end: is_end || all >= limit };
            let clear = self.scan(&scan, findings);
            looked = looked.min(clear);
            if matches!(action, Action::Redact | Action::Block) {
                hold = hold.min(clear);
            }
        }
        (looked, hold)
    }

    /// Searches for the findings of one guardrail. Returns the offset of the first one that may still grow.
    fn scan(&mut self, scan: &Scan, findings: &mut Findings) -> usize {
        let mut is_ahead = false;
        let mut clear = self.text.len();
        for pattern in patterns_of(scan.guardrail) {
            let was = self.ahead.iter().find(|(kind, _)| *kind == pattern.kind).map_or(0, |(_, at)| *at);
            let at = self.scan_pattern(scan, pattern, was.max(self.looked), findings);
            if at > self.looked {
                is_ahead = true;
                if at > was {
                    self.ahead.retain(|(kind, _)| *kind != pattern.kind);
                    self.ahead.push((pattern.kind, at));
                }
                if !scan.is_end {
                    clear = clear.min(pattern.opens(&self.text[..scan.end], at.min(scan.end)));
                }
            }
        }
        if scan.is_end {
            return clear;
        }
        let text = &self.text[..scan.end];
        if is_ahead {
            let kinds = |kind| self.ahead.iter().any(|(ahead, _)| *ahead == kind);
            let behind = patterns_of(scan.guardrail).iter().filter(|pattern| !kinds(pattern.kind));
            return behind.map(|pattern| pattern.opens(text, self.looked)).fold(clear, usize::min);
        }
        let regex = &BEGINNINGS[scan.guardrail as usize];
        regex.find_at(text, self.looked).map_or(self.text.len(), |found| found.start())
    }

    /// Records the findings of one pattern from `at` on, and the ranges to redact. Returns the offset up to which it
    /// has searched.
    fn scan_pattern(
        &mut self,
        scan: &Scan,
        pattern: &'static Pattern,
        mut at: usize,
        findings: &mut Findings,
    ) -> usize {
        if !pattern.may_meet(scan.has) || at > scan.end {
            return at;
        }
        let all = self.text.len();
        let mut opens = None;
        while let Some(met) = pattern.meet(&self.text[..scan.end], at) {
            let opens = *opens.insert(match opens {
                _ if scan.is_end => all,
                Some(known) if known >= at => known,
                _ => pattern.opens(&self.text[..scan.end], at),
            });
            if met.span.start >= opens && !scan.is_end {
                break;
            }
            at = met.next;
            let is_value = self.escapes.as_ref().is_none_or(|own| own.is_value(&self.text, &met.span));
            if !met.is_finding || !is_value {
                continue;
            }
            merge(findings, [Finding { guardrail: scan.guardrail, kind: pattern.kind, action: scan.action }]);
            if scan.action == Action::Redact {
                if met.span.end == all {
                    self.swallows = pattern.tail;
                }
                self.cuts.push((met.span, pattern.kind));
            }
        }
        at
    }

    /// Returns the text up to `hold`. If two redactions overlap, the first one names the mark.
    fn release(&mut self, hold: usize) -> String {
        let mut out = String::with_capacity(hold.saturating_sub(self.gone));
        if !self.cuts.is_empty() {
            self.cuts.sort_by_key(|(span, _)| (span.start, usize::MAX - span.end));
            let ripe = self.cuts.iter().take_while(|(span, _)| span.start < hold).count();
            for (span, kind) in self.cuts.drain(..ripe).collect::<SmallVec<[_; 4]>>() {
                if span.start < self.gone {
                    // If two redactions overlap, the longer one also covers the rest.
                    if span.end > self.gone {
                        self.skip(span.end);
                    }
                    continue;
                }
                self.copy(span.start, &mut out);
                let is_bare = self.escapes.as_ref().is_some_and(|own| !own.is_in_string());
                let quote = if is_bare { "\"" } else { "" };
                out.extend([quote, &mark(kind), quote]);
                self.skip(span.end);
            }
        }
        if self.gone < hold {
            self.copy(hold, &mut out);
        }
        out
    }

    fn copy(&mut self, end: usize, out: &mut String) {
        match &mut self.escapes {
            None => out.push_str(&self.text[self.gone..end]),
            Some(escapes) => escapes.write(&self.text, self.gone..end, Some(out)),
        }
        self.gone = end;
    }

    fn skip(&mut self, end: usize) {
        if let Some(escapes) = &mut self.escapes {
            escapes.write(&self.text, self.gone..end, None);
        }
        self.gone = end;
    }

    /// Drops text that does not need to be searched again, except for one character, which shows whether a word begins
    /// after it.
    fn forget(&mut self, looked: usize) {
        let last = self.text[..looked].chars().next_back().map_or(0, char::len_utf8);
        let cut = looked - last;
        self.looked = last;
        if cut == 0 {
            return;
        }
        self.text.drain(..cut);
        self.before += cut;
        self.gone -= cut;
        self.ahead.retain(|(_, at)| *at > looked);
        for (_, at) in &mut self.ahead {
            *at -= cut;
        }
        for (span, _) in &mut self.cuts {
            *span = span.start - cut..span.end - cut;
        }
        if let Some(escapes) = &mut self.escapes {
            escapes.forget(cut);
        }
    }
}
