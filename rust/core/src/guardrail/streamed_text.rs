//! Judges one text that arrives in pieces: which part of it can be sent, and which part is held.
//!
//! The text that is sent equals the whole text judged at once, wherever it was cut. Text is held from the beginning of
//! the first finding that may still grow, and no longer. A guardrail that only warns holds nothing.

use super::disguise::PlainText;
use super::escapes::Escapes;
use super::patterns::{Characters, Pattern};
use super::prefix::beginnings;
use super::scan::Scan;
use super::text::{head, limit_of, mark, patterns_of};
use super::{merge, Action, Actions, Finding, Findings, Guardrail};
use regex::Regex;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::LazyLock;

/// The longest beginning of a finding that is held. A longer one is judged as it is.
pub(super) const MAX_OPEN_BYTES: usize = 8 * 1024;
/// The longest run of invisible characters that is kept to see the character before it.
const MAX_CONTEXT_BYTES: usize = 64;

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
    /// The text that has not been judged, and the visible character before it.
    text: String,
    /// How many bytes came before `text`.
    before: usize,
    /// Everything before this offset has been sent or redacted.
    gone: usize,
    /// Every pattern has searched up to this offset.
    looked: usize,
    /// Patterns that continue after `looked`, because one of their findings ends there.
    ahead: SmallVec<[Ahead; 2]>,
    /// The last search looked at the plain form too, because something was disguised.
    had_plain: bool,
    /// Findings to redact, none of them before `gone`.
    cuts: Vec<(Range<usize>, &'static str)>,
    /// For a text that is JSON: decodes its strings.
    escapes: Option<Escapes>,
    /// The characters that continue a finding that was redacted before its end.
    swallows: Option<fn(char) -> bool>,
}

/// How far a pattern has searched the text, or its plain form.
#[derive(Debug)]
struct Ahead {
    kind: &'static str,
    is_plain: bool,
    at: usize,
}

/// The result of a search, as offsets in bytes.
struct Searched {
    /// The start of the first finding that may still grow.
    looked: usize,
    /// Up to where text can be sent.
    hold: usize,
    /// The start of the visible character before `looked`.
    context: usize,
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
        let mut searched = self.search(actions, findings, is_end);
        if !is_end && self.text.len() - searched.looked > MAX_OPEN_BYTES {
            self.looked = searched.looked;
            searched = self.search(actions, findings, true);
        }
        let mut out = self.release(searched.hold);
        if let Some(escapes) = self.escapes.as_mut().filter(|_| is_end) {
            out.push_str(&escapes.rest());
        }
        self.forget(searched.looked, searched.context);
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

    /// Searches the text for findings, and its plain form if characters are disguised.
    fn search(&mut self, actions: Actions, findings: &mut Findings, is_end: bool) -> Searched {
        let all = self.text.len();
        let (mut looked, mut hold) = (all, all);
        let has = Characters::of(&self.text);
        // A finding of the plain form may still grow behind one of the text as it is, after the disguised character was
        // sent. The text as it is has been searched beyond that point.
        let is_pending = self.had_plain && self.ahead.iter().any(|ahead| !ahead.is_plain && ahead.at > self.looked);
        let plain =
            PlainText::of(&self.text, has, is_end).or_else(|| is_pending.then(|| PlainText::form(&self.text, is_end)));
        self.had_plain = plain.is_some();
        let plain_has = plain.as_ref().map(|plain| Characters::of(plain.text()));
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
            let scan = Scan { guardrail, action, plain: None, has, end, is_end: is_end || all >= limit };
            let mut clear = self.scan(&scan, findings);
            if let (Some(_), Some(has)) = (&plain, plain_has) {
                clear = clear.min(self.scan(&Scan { plain: plain.as_ref(), has, ..scan }, findings));
            }
            looked = looked.min(clear);
            if matches!(action, Action::Redact | Action::Block) {
                hold = hold.min(clear);
            }
        }
        let last = |text: &str| text.chars().next_back().map_or(0, char::len_utf8);
        let near = looked - last(&self.text[..looked]);
        let context = plain.map_or(near, |plain| {
            let at = plain.plain(looked);
            plain.start(at - last(&plain.text()[..at])).min(near)
        });
        Searched { looked, hold, context: if looked - context > MAX_CONTEXT_BYTES { near } else { context } }
    }

    /// Searches for the findings of one guardrail. Returns the offset of the first one that may still grow.
    fn scan(&mut self, scan: &Scan<'_>, findings: &mut Findings) -> usize {
        let is_plain = scan.plain.is_some();
        let mut is_ahead = false;
        let mut clear = self.text.len();
        for pattern in patterns_of(scan.guardrail) {
            let is_own = |ahead: &Ahead| ahead.kind == pattern.kind && ahead.is_plain == is_plain;
            let was = self.ahead.iter().find(|ahead| is_own(ahead)).map_or(0, |ahead| ahead.at);
            let at = self.scan_pattern(scan, pattern, was.max(self.looked), findings);
            if at > self.looked {
                is_ahead = true;
                if at > was {
                    self.ahead.retain(|ahead| !is_own(ahead));
                    self.ahead.push(Ahead { kind: pattern.kind, is_plain, at });
                }
                if !scan.is_end {
                    clear = clear.min(scan.opens(pattern, &self.text, at));
                }
            }
        }
        if scan.is_end {
            return clear;
        }
        if is_ahead {
            let is_known = |kind| self.ahead.iter().any(|ahead| ahead.kind == kind && ahead.is_plain == is_plain);
            let behind = patterns_of(scan.guardrail).iter().filter(|pattern| !is_known(pattern.kind));
            return behind.map(|pattern| scan.opens(pattern, &self.text, self.looked)).fold(clear, usize::min);
        }
        let regex = &BEGINNINGS[scan.guardrail as usize];
        let open = regex.find_at(scan.text(&self.text), scan.at(self.looked));
        open.map_or(self.text.len(), |found| scan.start(found.start()))
    }

    /// Records the findings of one pattern from `from` on, and the ranges to redact. Returns the offset up to which it
    /// has searched.
    fn scan_pattern(
        &mut self,
        scan: &Scan<'_>,
        pattern: &'static Pattern,
        from: usize,
        findings: &mut Findings,
    ) -> usize {
        if !pattern.may_meet(scan.has) || from > scan.end {
            return from;
        }
        let all = self.text.len();
        let text = scan.text(&self.text);
        let start = scan.at(from);
        let mut at = start;
        let mut opens = None;
        while let Some(met) = pattern.meet(text, at) {
            let opens = *opens.insert(match opens {
                _ if scan.is_end => text.len(),
                Some(known) if known >= at => known,
                _ => pattern.opens(text, at),
            });
            if met.span.start >= opens && !scan.is_end {
                break;
            }
            at = met.next;
            let span = scan.plain.map_or(met.span.clone(), |plain| plain.span(&met.span));
            let is_value = self.escapes.as_ref().is_none_or(|own| own.is_value(&self.text, &span));
            if !met.is_finding || !is_value {
                continue;
            }
            merge(findings, [Finding { guardrail: scan.guardrail, kind: pattern.kind, action: scan.action }]);
            if scan.action == Action::Redact {
                if span.end == all {
                    self.swallows = pattern.tail;
                }
                self.cuts.push((span, pattern.kind));
            }
        }
        if at == start {
            from
        } else {
            scan.end(at)
        }
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

    /// Drops text that does not need to be searched again, except for the character before it, which shows whether a
    /// word begins there.
    fn forget(&mut self, looked: usize, context: usize) {
        let cut = context;
        self.looked = looked - cut;
        if cut == 0 {
            return;
        }
        self.text.drain(..cut);
        self.before += cut;
        self.gone -= cut;
        self.ahead.retain(|ahead| ahead.at > looked);
        for ahead in &mut self.ahead {
            ahead.at -= cut;
        }
        for (span, _) in &mut self.cuts {
            *span = span.start - cut..span.end - cut;
        }
        if let Some(escapes) = &mut self.escapes {
            escapes.forget(cut);
        }
    }
}
