//! One text that comes in pieces: what of it may go out already, and what waits.
//!
//! What goes out piece by piece is what the judgement of the whole text says, whatever the cuts. Text waits from where the
//! first finding may begin that could still grow, and no longer; what is only warned of never waits.

use super::escapes::Escapes;
use super::patterns::{Characters, Pattern};
use super::prefix::beginnings;
use super::text::{head, limit_of, mark, patterns_of};
use super::{merge, Action, Actions, Finding, Findings, Guardrail};
use regex::Regex;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::LazyLock;

/// The longest beginning of a finding that is waited for. What grows beyond is judged as it is then.
pub(super) const MAX_OPEN_BYTES: usize = 8 * 1024;

/// The beginnings of all patterns of a guardrail.
static BEGINNINGS: [LazyLock<Regex>; 3] = [
    LazyLock::new(|| beginnings_of(Guardrail::ALL[0])),
    LazyLock::new(|| beginnings_of(Guardrail::ALL[1])),
    LazyLock::new(|| beginnings_of(Guardrail::ALL[2])),
];

fn beginnings_of(guardrail: Guardrail) -> Regex {
    beginnings(patterns_of(guardrail).iter().map(|pattern| pattern.source))
}

/// One text that comes in pieces: what of it may go out already, and what waits. Offsets are those of `text`.
#[derive(Debug, Default)]
pub(super) struct StreamedText {
    /// The text that is not judged yet, with the character before it.
    text: String,
    /// How much was said before `text`.
    before: usize,
    /// Up to here it has gone out, or was cut out.
    gone: usize,
    /// Up to here every pattern has looked.
    looked: usize,
    /// Patterns that look on from behind `looked`: a finding of theirs ends there.
    ahead: SmallVec<[(&'static str, usize); 2]>,
    /// Findings that are to be cut out, none of them before `gone`.
    cuts: Vec<(Range<usize>, &'static str)>,
    /// Of a text that is JSON: the strings in it are read as what they mean.
    escapes: Option<Escapes>,
    /// A finding that grew too long to be waited for goes on with these.
    swallows: Option<fn(char) -> bool>,
}

/// One guardrail's search of a text: what is done about findings, and the bounds of the search.
struct Scan {
    guardrail: Guardrail,
    action: Action,
    /// The kinds of characters in what is searched.
    has: Characters,
    /// Up to where the guardrail reads, in bytes; a limit of its own may lie before the end of the text.
    end: usize,
    /// Nothing follows that could make a finding longer.
    is_end: bool,
}

impl StreamedText {
    pub(super) fn new(is_json: bool) -> Self {
        Self { escapes: is_json.then(Escapes::default), ..Self::default() }
    }

    /// Whether something waits.
    pub(super) fn holds(&self) -> bool {
        self.gone < self.text.len() || self.escapes.as_ref().is_some_and(Escapes::is_open)
    }

    /// Takes what is said next, or the end of it all; gives what may go out.
    pub(super) fn say(&mut self, piece: &str, actions: Actions, findings: &mut Findings, is_end: bool) -> String {
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

    /// Drops what a finding goes on with that was cut out before its end.
    fn swallow(&mut self) {
        let Some(tail) = self.swallows else { return };
        let rest = self.text[self.looked..].trim_start_matches(tail).len();
        self.skip(self.text.len() - rest);
        self.looked = self.gone;
        if rest > 0 {
            self.swallows = None;
        }
    }

    /// Searches the text for findings. Returns up to where all of it is clear, and up to where what is not cut out may go
    /// out, both in bytes.
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

    /// Searches for what one guardrail knows. Returns up to where the text is clear of it.
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

    /// Notes the findings of one pattern from `at` on, and what of them is cut out. Returns up to where it has searched.
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
            if met.place.start >= opens && !scan.is_end {
                break;
            }
            at = met.next;
            let is_value = self.escapes.as_ref().is_none_or(|own| own.is_value(&self.text, &met.place));
            if !met.is_finding || !is_value {
                continue;
            }
            merge(findings, [Finding { guardrail: scan.guardrail, kind: pattern.kind, action: scan.action }]);
            if scan.action == Action::Redact {
                if met.place.end == all {
                    self.swallows = pattern.tail;
                }
                self.cuts.push((met.place, pattern.kind));
            }
        }
        at
    }

    /// The text that goes out up to here; where two cuts overlap, the one that begins first names the mark.
    fn release(&mut self, hold: usize) -> String {
        let mut out = String::with_capacity(hold.saturating_sub(self.gone));
        if !self.cuts.is_empty() {
            self.cuts.sort_by_key(|(place, _)| (place.start, usize::MAX - place.end));
            let ripe = self.cuts.iter().take_while(|(place, _)| place.start < hold).count();
            for (place, kind) in self.cuts.drain(..ripe).collect::<SmallVec<[_; 4]>>() {
                if place.start < self.gone {
                    // The longer of two that overlap takes the rest with it.
                    if place.end > self.gone {
                        self.skip(place.end);
                    }
                    continue;
                }
                self.copy(place.start, &mut out);
                let is_bare = self.escapes.as_ref().is_some_and(|own| !own.is_in_string());
                let quote = if is_bare { "\"" } else { "" };
                out.extend([quote, &mark(kind), quote]);
                self.skip(place.end);
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

    /// Drops what needs not be looked at again, but for one character, which tells whether a word begins behind it.
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
        for (place, _) in &mut self.cuts {
            *place = place.start - cut..place.end - cut;
        }
        if let Some(escapes) = &mut self.escapes {
            escapes.forget(cut);
        }
    }
}
