//! Applies guardrails to requests and responses.
//!
//! The snapshot determines which guardrails run, except those that the key or the call disables. If no guardrail acts
//! on responses, which is the default, responses are relayed without inspection.

use crate::active_config::ActiveConfig;
use crate::gate::request::Admission;
use crate::observe::settle::Settlement;
use crate::shared::Shared;
use bytes::{Bytes, BytesMut};
use fairlead_core::guardrail::{
    self, blocking, judge_body, judge_text, Action, Actions, Disabled, Finding, Findings, GuardedEvent, Guardrails,
    StreamGuard,
};
use fairlead_core::{Error, ErrorKind};
use fairlead_dialect::Pieces;
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// The maximum size of an event, or list of events, that is buffered until it is complete.
const MAX_HELD_BYTES: usize = 32 * 1024 * 1024;

/// Returns the guardrails of a call: those of the gateway except those that the key or the call disables, plus those of
/// the key's groups, which cannot be disabled.
pub fn of_call(active: &ActiveConfig, admission: &Admission) -> Guardrails {
    let key = admission.principal.key();
    let of_key = key.map(|key| Disabled::of(key.disabled_guardrails.iter().map(String::as_str))).unwrap_or_default();
    let gateway = active.snapshot.guardrails.without(admission.disabled_guardrails.and(of_key));
    let groups = key.into_iter().flat_map(|key| &key.groups);
    groups.fold(gateway, |guardrails, group| guardrails.strictest(group.guardrails))
}

/// Checks a request body and returns the body to send. The findings and the actions on the response are recorded. A
/// guardrail that blocks the request returns an error.
pub fn admit(active: &ActiveConfig, settlement: &mut Settlement, body: &Bytes) -> Result<Bytes, Error> {
    let guardrails = of_call(active, &settlement.admission);
    settlement.answer_guardrails = guardrails.answer;
    let judged = judge_body(body, guardrails.request);
    let stop = blocking(&judged.findings);
    guardrail::merge(&mut settlement.guardrail_findings, judged.findings);
    match stop {
        Some(finding) => Err(blocked(finding)),
        None => Ok(judged.body.map_or_else(|| body.clone(), Bytes::from)),
    }
}

/// Checks the body of a request that control sends to a provider, and replaces it with the body to send.
pub fn admit_paid(shared: &Shared, settlement: &mut Settlement, body: &mut Bytes) -> Result<(), Error> {
    *body = admit(&shared.active.load(), settlement, body)?;
    Ok(())
}

/// Checks a complete response body and returns the body to send. The findings are recorded. `is_text` means plain text
/// such as a transcript; otherwise the body is JSON.
pub fn judge_answer(settlement: &mut Settlement, body: &Bytes, is_text: bool) -> Result<Bytes, Error> {
    let actions = settlement.answer_guardrails;
    if actions.is_off() {
        return Ok(body.clone());
    }
    let (findings, redacted) = if is_text {
        let judged = judge_text(&String::from_utf8_lossy(body), actions);
        (judged.findings, judged.redacted.map(Bytes::from))
    } else {
        let judged = judge_body(body, actions);
        (judged.findings, judged.body.map(Bytes::from))
    };
    settlement.note_answer_findings(&findings);
    match blocking(&findings) {
        Some(finding) => Err(blocked(finding)),
        None => Ok(redacted.unwrap_or_else(|| body.clone())),
    }
}

/// Checks a conversation of events in both directions: complete events from the caller, deltas and complete events from
/// the model.
#[derive(Debug)]
pub struct EventGuard {
    request: Actions,
    answer: Option<StreamGuard>,
}

impl EventGuard {
    pub fn new(active: &ActiveConfig, admission: &Admission) -> Self {
        let Guardrails { request, answer } = of_call(active, admission);
        Self { request, answer: (!answer.is_off()).then(|| StreamGuard::new(answer)) }
    }

    /// Checks an event of the caller and returns the event to send; an error if a guardrail blocks it.
    pub fn admit(&self, settlement: &mut Settlement, event: String) -> Result<String, Error> {
        let judged = judge_body(event.as_bytes(), self.request);
        let stop = blocking(&judged.findings);
        guardrail::merge(&mut settlement.guardrail_findings, judged.findings);
        match stop {
            Some(finding) => Err(blocked(finding)),
            None => Ok(judged.body.map_or(event, text_of)),
        }
    }

    /// Checks an event of the model and returns the texts to send; an error if a guardrail withholds it.
    pub fn judge(&mut self, settlement: &mut Settlement, event: String) -> Result<SmallVec<[String; 1]>, Error> {
        let Some(guard) = &mut self.answer else { return Ok(SmallVec::from_iter([event])) };
        let GuardedEvent { before, event: changed } = guard.event(event.as_bytes());
        settlement.note_answer_findings(guard.findings());
        if let Some(finding) = blocking(guard.findings()) {
            return Err(blocked(finding));
        }
        let mut out: SmallVec<[String; 1]> = before.into_iter().map(text_of).collect();
        out.push(changed.map_or(event, text_of));
        Ok(out)
    }

    /// Returns the texts that are still buffered when the conversation ends early.
    pub fn rest(&mut self, settlement: &mut Settlement) -> Vec<String> {
        let Some(guard) = &mut self.answer else { return Vec::new() };
        let rest = guard.finish();
        settlement.note_answer_findings(guard.findings());
        if blocking(guard.findings()).is_some() {
            return Vec::new();
        }
        rest.into_iter().map(text_of).collect()
    }
}

/// Redaction replaces text with text, so UTF-8 stays valid.
fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Checks the texts of a form. Forms cannot be changed, so a text that would be redacted is refused.
pub fn judge_form<'t>(
    texts: impl Iterator<Item = &'t str>,
    actions: Actions,
    findings: &mut Findings,
) -> Result<(), Error> {
    for text in texts {
        guardrail::merge(findings, judge_text(text, actions).findings);
    }
    let stops = |finding: &&Finding| matches!(finding.action, Action::Block | Action::Redact);
    findings.iter().find(stops).map_or(Ok(()), |finding| Err(blocked(*finding)))
}

/// The error names the kind of finding, never its text.
fn blocked(finding: Finding) -> Error {
    let message = format!(
        "The guardrail {} blocks this: it found what looks like {} ({}).",
        finding.guardrail.name(),
        article(finding.kind),
        finding.kind
    );
    Error::client(ErrorKind::GuardrailBlocked, message)
}

fn article(kind: &str) -> &'static str {
    match kind {
        "email" | "card" | "iban" | "ssn" | "phone" => "personal data",
        "override" | "reveal" | "persona" | "turn-mark" | "exfiltrate" => "an attempt to take over the model",
        _ => "a credential",
    }
}

/// A stream of server-sent events that is checked event by event.
#[derive(Debug)]
pub struct StreamFilter {
    guard: StreamGuard,
    pending: BytesMut,
    /// `pending` contains no end of an event before this offset.
    searched: usize,
    /// An action applies to findings, so an event that is too long to check must not be sent.
    withholds: bool,
    /// Server-sent events; otherwise one JSON list, which is checked when it is complete.
    is_events: bool,
}

impl StreamFilter {
    /// Creates a filter; `None` if no guardrail acts, so that the stream passes unchanged.
    pub fn new(actions: Actions, is_events: bool) -> Option<Self> {
        let all = [actions.pii_masker, actions.prompt_injection, actions.credential_masker];
        (!actions.is_off()).then(|| Self {
            guard: StreamGuard::new(actions),
            pending: BytesMut::new(),
            searched: 0,
            withholds: all.iter().any(|action| matches!(action, Action::Redact | Action::Block)),
            is_events,
        })
    }

    /// Whether events are checked one by one. Otherwise the stream is one JSON list, which is checked when it is
    /// complete.
    pub fn is_events(&self) -> bool {
        self.is_events
    }

    /// The findings so far.
    pub fn findings(&self) -> &Findings {
        self.guard.findings()
    }

    /// Adds bytes and returns those that may be sent, including earlier ones.
    pub fn push(&mut self, pieces: &Pieces) -> Result<Pieces, Error> {
        let mut out = Pieces::new();
        for piece in pieces {
            self.pending.extend_from_slice(piece);
        }
        if !self.is_events {
            return if self.pending.len() > MAX_HELD_BYTES { Err(too_long()) } else { Ok(out) };
        }
        while let Some(end) = end_of_event(&self.pending, &mut self.searched) {
            let event = self.pending.split_to(end).freeze();
            self.searched = 0;
            self.event(event, &mut out);
        }
        if self.pending.len() > MAX_HELD_BYTES {
            if self.withholds {
                return Err(too_long());
            }
            out.push(self.pending.split().freeze());
            self.searched = 0;
        }
        self.verdict()?;
        Ok(out)
    }

    /// Ends the stream and returns the remaining bytes that may be sent.
    pub fn finish(&mut self) -> Result<Pieces, Error> {
        let mut out = Pieces::new();
        if !self.is_events {
            let list = self.list();
            self.verdict()?;
            out.push(list);
            return Ok(out);
        }
        // The last event may lack its blank line and is parsed anyway.
        let rest = self.pending.split().freeze();
        if !rest.is_empty() {
            self.event(rest, &mut out);
        }
        let rest = self.guard.finish();
        release(&rest, &mut out);
        self.verdict()?;
        Ok(out)
    }

    /// Returns the whole list with its elements checked as events. Anything other than a list, such as an error, is
    /// checked as one event.
    fn list(&mut self) -> Bytes {
        let whole = self.pending.split().freeze();
        let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(&whole) else {
            return self.guard.whole(&whole).map_or(whole, Bytes::from);
        };
        let mut passed: Vec<Vec<u8>> = Vec::with_capacity(elements.len());
        for element in elements {
            let data = element.get().as_bytes();
            let GuardedEvent { before, event } = self.guard.event(data);
            passed.extend(before);
            passed.push(event.unwrap_or_else(|| data.to_vec()));
        }
        passed.extend(self.guard.finish());
        [b"[", passed.join(&b",\n"[..]).as_slice(), b"]"].concat().into()
    }

    fn event(&mut self, event: Bytes, out: &mut Pieces) {
        let lines: SmallVec<[(usize, usize); 1]> = data_of(&event).collect();
        let Some(&(start, end)) = lines.first() else {
            // A comment, or an event that clients ignore.
            if self.guard.whole(&event).is_none() {
                out.push(event);
            }
            return;
        };
        let is_one = lines.len() == 1;
        let joined;
        let data = if is_one {
            &event[start..end]
        } else {
            joined = lines.iter().map(|&(start, end)| &event[start..end]).collect::<Vec<_>>().join(&b'\n');
            &joined
        };
        if data == b"[DONE]" || !data.starts_with(b"{") && !data.starts_with(b"[") {
            // This event ends the stream, so buffered text precedes it.
            let rest = self.guard.finish();
            release(&rest, out);
            return match self.guard.whole(data) {
                None => out.push(event),
                Some(changed) => out.push(whole_event(&changed)),
            };
        }
        let GuardedEvent { before, event: changed } = self.guard.event(data);
        release(&before, out);
        let has_more = self.guard.whole(&event[..start]).is_some() || self.guard.whole(&event[end..]).is_some();
        match changed {
            None if has_more => out.push(whole_event(data)),
            None => out.push(event),
            Some(changed) if is_one && !has_more => {
                out.push(event.slice(..start));
                out.push(changed.into());
                out.push(event.slice(end..));
            }
            // JSON on several lines is written as one line.
            Some(changed) => out.push(whole_event(&changed)),
        }
    }

    fn verdict(&self) -> Result<(), Error> {
        blocking(self.guard.findings()).map_or(Ok(()), |finding| Err(blocked(finding)))
    }
}

/// Writes buffered text as events of its original kind.
fn release(rest: &[Vec<u8>], out: &mut Pieces) {
    out.extend(rest.iter().filter(|data| !data.is_empty()).map(|data| whole_event(data)));
}

fn too_long() -> Error {
    let message =
        "The answer is one list or event of more than 32 MiB, which guardrails do not read, and they may change or \
                   withhold it; ask for events (`alt=sse`), or for less in one.";
    Error::gateway(ErrorKind::TooLarge, message)
}

/// Formats an event with one `data:` line.
fn whole_event(data: &[u8]) -> Bytes {
    let mut event = BytesMut::with_capacity(data.len() + 64);
    if let Some(name) = event_name(data) {
        event.extend_from_slice(b"event: ");
        event.extend_from_slice(name.as_bytes());
        event.extend_from_slice(b"\n");
    }
    event.extend_from_slice(b"data: ");
    for part in data.split(|byte| *byte == b'\n') {
        event.extend_from_slice(part);
    }
    event.extend_from_slice(b"\n\n");
    event.freeze()
}

/// In dialects with named events, the name equals the `type` member.
fn event_name(data: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Typed {
        r#type: String,
    }
    serde_json::from_slice::<Typed>(data).ok().map(|typed| typed.r#type)
}

/// Returns the offset after the blank line that ends the first event, searching from `searched`. Lines end with CR, LF
/// or both, as the protocol allows.
fn end_of_event(bytes: &[u8], searched: &mut usize) -> Option<usize> {
    loop {
        let line = *searched + memchr::memchr2(b'\n', b'\r', &bytes[*searched..])?;
        // Until more bytes arrive, a blank line may still complete this line end.
        *searched = line;
        let next = after_line(bytes, line)?;
        match *bytes.get(next)? {
            b'\n' => return Some(next + 1),
            b'\r' => return after_line(bytes, next),
            _ => *searched = next,
        }
    }
}

/// Returns the offset after this line end; `None` if its second byte may still arrive.
fn after_line(bytes: &[u8], end: usize) -> Option<usize> {
    match (bytes[end], bytes.get(end + 1)) {
        (b'\r', None) => None,
        (b'\r', Some(b'\n')) => Some(end + 2),
        _ => Some(end + 1),
    }
}

/// Returns the ranges of an event's `data:` values without surrounding spaces.
pub fn data_of(event: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < event.len() {
            let line = &event[at..];
            let length = memchr::memchr2(b'\n', b'\r', line).unwrap_or(line.len());
            let start = at;
            at += length + 1;
            // The first line may start with a byte order mark.
            let mark = if start == 0 && line.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
            if let Some(rest) = line[..length].get(mark..).and_then(|line| line.strip_prefix(b"data:")) {
                let from = start + length - rest.trim_ascii_start().len();
                return Some((from, from + rest.trim_ascii().len()));
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const REDACT: Actions =
        Actions { pii_masker: Action::Redact, prompt_injection: Action::Off, credential_masker: Action::Off };

    fn filtered(chunks: &[&[u8]], actions: Actions) -> Result<String, Error> {
        let mut filter = StreamFilter::new(actions, true).expect("a filter");
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend(filter.push(&Pieces::from_iter([Bytes::copy_from_slice(chunk)]))?.concat());
        }
        out.extend(filter.finish()?.concat());
        Ok(String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn events_are_read_however_their_lines_end() {
        for end in ["\n", "\r\n", "\r"] {
            let event = |text: &str| {
                format!("data: {}{end}{end}", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
            };
            let stream = [event("it is ada@exam"), event("ple.org. "), format!("data: [DONE]{end}{end}")].concat();
            for cut in 0..stream.len() {
                let (one, two) = stream.as_bytes().split_at(cut);
                let out = filtered(&[one, two], REDACT).expect("it passes");
                assert!(out.contains("[REDACTED:email]") && !out.contains("ada"), "{out}");
                assert!(out.trim_end().ends_with("data: [DONE]"), "{out}");
            }
        }
    }

    #[test]
    fn an_event_in_several_lines_or_without_its_end_is_read() {
        let out =
            filtered(&[b"\xef\xbb\xbfdata: {\"content\":\ndata: \"ada@example.org\"}\n\n"], REDACT).expect("it passes");
        assert_eq!(out, "data: {\"content\":\"[REDACTED:email]\"}\n\n");
        let out = filtered(&[b"data: {\"content\":\"ada@example.org\"}"], REDACT).expect("it passes");
        assert_eq!(out, "data: {\"content\":\"[REDACTED:email]\"}");
    }

    #[test]
    fn what_is_not_an_event_of_json_is_read_too() {
        for (stream, wanted) in [
            (": ada@example.org\n\ndata: {}\n\n", "data: {}\n\n"),
            ("data: ada@example.org\n\n", "data: [REDACTED:email]\n\n"),
            ("data: \"ada@example.org\"\n\n", "data: \"[REDACTED:email]\"\n\n"),
            ("event: ada@example.org\ndata: {\"a\":1}\n\n", "data: {\"a\":1}\n\n"),
            (": hi\nid: 1\nevent: a\ndata: {\"a\":1}\n\n", ": hi\nid: 1\nevent: a\ndata: {\"a\":1}\n\n"),
        ] {
            assert_eq!(filtered(&[stream.as_bytes()], REDACT).expect("it passes"), wanted);
        }
        let mut filter = StreamFilter::new(REDACT, false).expect("a filter");
        filter.push(&Pieces::from_iter([Bytes::from_static(b"{\"text\":\"ada@example.org\"}")])).expect("it passes");
        assert_eq!(filter.finish().expect("it passes").concat(), b"{\"text\":\"[REDACTED:email]\"}");
    }

    #[test]
    fn a_large_event_is_read_and_one_that_is_too_large_is_withheld() {
        let large = |bytes: usize| {
            let event = json!({"type": "response.completed", "picture": "A".repeat(bytes), "text": "ada@example.org"});
            format!("data: {event}\n\n").into_bytes()
        };
        let event = large(2 << 20);
        let chunks: Vec<&[u8]> = event.chunks(64 * 1024).collect();
        assert!(filtered(&chunks, REDACT).expect("it passes").contains("[REDACTED:email]"));
        let event = large(33 << 20);
        let chunks: Vec<&[u8]> = event.chunks(64 * 1024).collect();
        assert_eq!(filtered(&chunks, REDACT).map_err(|error| error.kind), Err(ErrorKind::TooLarge));
        let warns = Actions { pii_masker: Action::Warn, ..REDACT };
        assert_eq!(filtered(&chunks, warns).map(|out| out.len()).ok(), Some(event.len()));
    }
}
