//! Guardrails on the way: what is said to a provider, and what it says.
//!
//! Which guardrails run is the snapshot's word, less what the key and the call opt out of. Where none acts on answers, which
//! is the rule, answers pass as they came and nothing here looks at them.

use crate::admission::Admission;
use crate::live::Live;
use crate::settle::Settlement;
use bytes::{Bytes, BytesMut};
use fairlead_core::error::{Error, Kind};
use fairlead_core::guardrail::{
    self, blocking, judge_body, judge_text, speaks, Action, Actions, Disabled, Finding, Findings, StreamGuard,
};
use fairlead_dialect::Pieces;
use serde_json::value::RawValue;
use std::fmt::Write as _;

/// An event that is longer goes out unread: it holds no text of a model.
const MAX_EVENT_BYTES: usize = 1024 * 1024;
/// The longest list that is held until it is whole.
const MAX_LIST_BYTES: usize = 32 * 1024 * 1024;

/// What guardrails do with this call's request.
pub fn of_request(live: &Live, admission: &Admission) -> Actions {
    live.snapshot.guardrails.request.without(disabled(admission))
}

/// What guardrails do with this call's answer.
pub fn of_answer(live: &Live, admission: &Admission) -> Actions {
    live.snapshot.guardrails.answer.without(disabled(admission))
}

fn disabled(admission: &Admission) -> Disabled {
    let of_key = admission.principal.key().map(|key| Disabled::of(key.disabled_guardrails.iter().map(String::as_str)));
    admission.disabled_guardrails.and(of_key.unwrap_or_default())
}

/// The body as it may go on, with what was found in it noted; an error where a guardrail blocks.
fn judge(body: &Bytes, actions: Actions, findings: &mut Findings) -> Result<Bytes, Error> {
    let judged = judge_body(body, actions);
    let stop = blocking(&judged.findings);
    guardrail::merge(findings, judged.findings);
    match stop {
        Some(finding) => Err(blocked(finding)),
        None => Ok(judged.body.map_or_else(|| body.clone(), Bytes::from)),
    }
}

/// The request's body as it may go on, with what was found and what is done with the answer noted.
pub fn admit(live: &Live, settlement: &mut Settlement, body: &Bytes) -> Result<Bytes, Error> {
    settlement.answer_guardrails = of_answer(live, &settlement.admission);
    judge(body, of_request(live, &settlement.admission), &mut settlement.guardrail_findings)
}

/// A whole answer's body as it may go to the caller, with what was found noted.
pub fn judge_answer(settlement: &mut Settlement, body: &Bytes) -> Result<Bytes, Error> {
    let mut findings = Findings::new();
    let judged = judge(body, settlement.answer_guardrails, &mut findings);
    settlement.note_answer_findings(&findings);
    judged
}

/// The same for an answer that is text and nothing else, such as a transcript.
pub fn judge_answer_text(settlement: &mut Settlement, body: &Bytes) -> Result<Bytes, Error> {
    if settlement.answer_guardrails.is_off() {
        return Ok(body.clone());
    }
    let judged = judge_text(&String::from_utf8_lossy(body), settlement.answer_guardrails);
    settlement.note_answer_findings(&judged.findings);
    match blocking(&judged.findings) {
        Some(finding) => Err(blocked(finding)),
        None => Ok(judged.redacted.map_or_else(|| body.clone(), Bytes::from)),
    }
}

/// What is found in the texts of a form, which goes on as it came: what would be redacted is refused.
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

/// Names what was found, never the finding itself.
fn blocked(finding: Finding) -> Error {
    let message = format!(
        "The guardrail {} blocks this: it found what looks like {} ({}).",
        finding.guardrail.name(),
        article(finding.kind),
        finding.kind
    );
    Error::client(Kind::GuardrailBlocked, message)
}

fn article(kind: &str) -> &'static str {
    match kind {
        "email" | "card" | "iban" | "ssn" | "phone" => "personal data",
        "override" | "reveal" | "persona" | "turn-mark" | "exfiltrate" => "an attempt to take over the model",
        _ => "a credential",
    }
}

/// For the header: `pii-masker;found=email;action=warn`, separated by commas.
pub fn told(findings: &Findings) -> String {
    let mut out = String::new();
    for finding in findings {
        let separator = if out.is_empty() { "" } else { ", " };
        let (name, action) = (finding.guardrail.name(), finding.action.name());
        // Writing to a string does not fail.
        let _ = write!(out, "{separator}{name};found={};action={action}", finding.kind);
    }
    out
}

/// A stream of server-sent events, judged event by event.
#[derive(Debug)]
pub struct StreamFilter {
    guard: StreamGuard,
    pending: BytesMut,
    /// Server-sent events; else one JSON list, which is judged when it is whole.
    is_events: bool,
}

impl StreamFilter {
    /// `None` where nothing is done, and the stream passes as it comes.
    pub fn new(actions: Actions, is_events: bool) -> Option<Self> {
        (!actions.is_off()).then(|| Self { guard: StreamGuard::new(actions), pending: BytesMut::new(), is_events })
    }

    /// What was found so far.
    pub fn findings(&self) -> &Findings {
        self.guard.findings()
    }

    /// What may go out of these bytes and those before.
    pub fn push(&mut self, pieces: &Pieces) -> Result<Pieces, Error> {
        let mut out = Pieces::new();
        for piece in pieces {
            self.pending.extend_from_slice(piece);
        }
        if !self.is_events {
            return if self.pending.len() > MAX_LIST_BYTES { Err(too_long()) } else { Ok(out) };
        }
        while let Some(end) = end_of_event(&self.pending) {
            let event = self.pending.split_to(end).freeze();
            self.event(event, &mut out);
        }
        if self.pending.len() > MAX_EVENT_BYTES {
            out.push(self.pending.split().freeze());
        }
        self.verdict()?;
        Ok(out)
    }

    /// What is left at the stream's end.
    pub fn finish(&mut self) -> Result<Pieces, Error> {
        let mut out = Pieces::new();
        if !self.is_events {
            let list = self.list();
            self.verdict()?;
            out.push(list);
            return Ok(out);
        }
        self.release(&mut out);
        let rest = self.pending.split().freeze();
        if !rest.is_empty() {
            out.push(rest);
        }
        self.verdict()?;
        Ok(out)
    }

    /// The whole list, its elements judged as events are. What is no list, as an error in its place, goes as it is.
    fn list(&mut self) -> Bytes {
        let whole = self.pending.split().freeze();
        let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(&whole) else { return whole };
        let mut told: Vec<Vec<u8>> = Vec::with_capacity(elements.len());
        for element in elements {
            let data = element.get().as_bytes();
            told.push(self.guard.event(data).unwrap_or_else(|| data.to_vec()));
        }
        told.extend(self.guard.finish());
        [b"[", told.join(&b",\n"[..]).as_slice(), b"]"].concat().into()
    }

    fn event(&mut self, event: Bytes, out: &mut Pieces) {
        let Some((start, end)) = data_of(&event) else {
            // A comment, or what is no event of JSON: `[DONE]` ends the stream, so what is held goes before it.
            if memchr::memmem::find(&event, b"data:").is_some() {
                self.release(out);
            }
            return out.push(event);
        };
        let data = &event[start..end];
        if !speaks(data) {
            if memchr::memmem::find(data, b"\"ping\"").is_none() {
                self.release(out);
            }
            return out.push(event);
        }
        match self.guard.event(data) {
            None => out.push(event),
            Some(changed) => {
                out.push(event.slice(..start));
                out.push(changed.into());
                out.push(event.slice(end..));
            }
        }
    }

    /// What is held, as events of the kind that said it.
    fn release(&mut self, out: &mut Pieces) {
        if !self.guard.holds() {
            return;
        }
        for data in self.guard.finish() {
            let name = event_name(&data);
            let mut event = BytesMut::with_capacity(data.len() + 64);
            if let Some(name) = name {
                event.extend_from_slice(b"event: ");
                event.extend_from_slice(name.as_bytes());
                event.extend_from_slice(b"\n");
            }
            event.extend_from_slice(b"data: ");
            event.extend_from_slice(&data);
            event.extend_from_slice(b"\n\n");
            out.push(event.freeze());
        }
    }

    fn verdict(&self) -> Result<(), Error> {
        blocking(self.guard.findings()).map_or(Ok(()), |finding| Err(blocked(finding)))
    }
}

fn too_long() -> Error {
    let message = "The answer is too long to be judged as one list; ask for events (`alt=sse`).";
    Error::gateway(Kind::TooLarge, message)
}

/// Dialects whose events have names call them as their `type` is.
fn event_name(data: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Typed {
        r#type: String,
    }
    serde_json::from_slice::<Typed>(data).ok().map(|typed| typed.r#type)
}

/// The offset after the blank line that ends the first event.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = at + memchr::memchr(b'\n', &bytes[at..])?;
        at = line + 1;
        match bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

/// Where the JSON of an event with one `data:` line is.
fn data_of(event: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    for line in event.split_inclusive(|byte| *byte == b'\n') {
        if let Some(rest) = line.strip_prefix(b"data:") {
            let start = at + line.len() - rest.trim_ascii_start().len();
            let end = start + rest.trim_ascii().len();
            return event[start..end].starts_with(b"{").then_some((start, end));
        }
        at += line.len();
    }
    None
}
