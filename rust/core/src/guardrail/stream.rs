//! Judges the texts of a stream. A finding may span several events, so the possible beginning of one is held back until
//! it is certain. Held text is sent with the next event of the same text, or before the event that ends it.
//!
//! An event is the JSON data of one stream event. Events that carry pieces of texts are distinguished from events with
//! complete texts, which are judged like a plain answer and hold nothing back.

use super::body::{cuts, judged, read, splice, write};
use super::event::{Event, Ids, Key, Kind};
use super::lossy::lossy;
use super::streamed_text::StreamedText;
use super::walk::{TextKind, MIN_FINDING_BYTES};
use super::{Actions, Findings};
use serde::de::IgnoredAny;
use smallvec::SmallVec;
use std::ops::Range;

/// The most texts of one stream that are tracked. Beyond that, the text that was idle longest is released.
const MAX_VOICES: usize = 256;
/// Larger events do not hold pieces of texts.
const MAX_DELTA_BYTES: usize = 256 * 1024;

/// The guardrails of one stream.
#[derive(Debug)]
pub struct StreamGuard {
    actions: Actions,
    speakers: Vec<Speaker>,
    findings: Findings,
    /// The number of events so far, to order texts by their last event.
    clock: u64,
    /// The number of events inserted among numbered events, and the last number that was sent.
    inserted: u64,
    last_sequence: u64,
}

#[derive(Debug)]
struct Speaker {
    key: Key,
    part: Part,
    text: StreamedText,
    /// The last event of this text, and the offset of the text in it. Empty while nothing is held.
    event: Vec<u8>,
    span: usize,
    spoke: u64,
}

/// The part or choice of an answer whose texts end together.
#[derive(Debug)]
enum Part {
    Of(Ids),
    Choice(SmallVec<[u8; 16]>),
}

/// An event after the guardrails: the event to send, and the events to send before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GuardedEvent {
    /// Events with held text, which are sent first.
    pub before: Vec<Vec<u8>>,
    /// The changed event; `None` if it is sent unchanged.
    pub event: Option<Vec<u8>>,
}

impl StreamGuard {
    pub fn new(actions: Actions) -> Self {
        Self { actions, speakers: Vec::new(), findings: Findings::new(), clock: 0, inserted: 0, last_sequence: 0 }
    }

    /// The findings so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Judges an event. Its text may become empty, when all of it is held.
    pub fn event(&mut self, data: &[u8]) -> GuardedEvent {
        self.clock += 1;
        let mut passed = GuardedEvent::default();
        let event = Event::read(data);
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        match event.kind() {
            Kind::Delta if data.len() <= MAX_DELTA_BYTES => self.push_event(&event, data, &mut passed, &mut changes),
            Kind::Delta => {
                self.end(&mut passed.before, |_| true);
                changes = cuts(data, self.actions, &mut self.findings);
            }
            Kind::End(ids) => {
                self.end(&mut passed.before, |part| !matches!(part, Part::Of(of) if are_others(of, &ids)));
                changes = cuts(data, self.actions, &mut self.findings);
            }
            Kind::Beside => changes = cuts(data, self.actions, &mut self.findings),
            Kind::Sound => {}
        }
        if let Some((span, number)) = event.sequence.as_ref().and_then(|span| Some((span, number_at(data, span)?))) {
            self.last_sequence = number + self.inserted;
            if self.inserted > 0 {
                let at = changes.partition_point(|(other, _)| other.start < span.start);
                changes.insert(at, (span.clone(), self.last_sequence.to_string()));
            }
        }
        passed.event = (!changes.is_empty()).then(|| splice(data, &changes));
        passed
    }

    /// Judges bytes that hold no piece of a text: JSON, or plain text. Returns them with the findings replaced; `None` if
    /// nothing is.
    pub fn whole(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        if data.len() < MIN_FINDING_BYTES {
            return None;
        }
        if serde_json::from_slice::<IgnoredAny>(data).is_ok() {
            let changes = cuts(data, self.actions, &mut self.findings);
            return (!changes.is_empty()).then(|| splice(data, &changes));
        }
        let text = lossy(data);
        judged(&text, TextKind::Value, self.actions, &mut self.findings).map(String::into_bytes)
    }

    /// Returns the text that is still held, as events. Called at the end of the stream, or before its last event.
    pub fn finish(&mut self) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        self.end(&mut events, |_| true);
        events
    }

    /// Whether any text is held.
    pub fn holds(&self) -> bool {
        self.speakers.iter().any(|speaker| speaker.text.holds())
    }

    /// Judges an event that holds pieces of texts.
    fn push_event(
        &mut self,
        event: &Event<'_>,
        data: &[u8],
        passed: &mut GuardedEvent,
        changes: &mut Vec<(Range<usize>, String)>,
    ) {
        let mut keys: SmallVec<[Key; 2]> = SmallVec::new();
        for text in &event.texts {
            let Some(piece) = read(&data[text.span.clone()]) else { continue };
            let is_json = event.is_json(text);
            if !event.is_delta(text) {
                let kind = if is_json { TextKind::Json } else { text.kind };
                changes.extend(
                    judged(&piece, kind, self.actions, &mut self.findings)
                        .map(|changed| (text.span.clone(), write(changed))),
                );
                continue;
            }
            let key = event.key(text);
            let (choice, is_end) = event.choice_of(text);
            if piece.is_empty() && !(is_end && self.speakers.iter().any(|speaker| speaker.key == key)) {
                continue;
            }
            let part = if choice.is_empty() { Part::Of(event.ids()) } else { Part::Choice(choice) };
            let at = self.speaker(key, part, is_json, &mut passed.before);
            let speaker = &mut self.speakers[at];
            // An event may hold several pieces of one text. Only the last of them can end it.
            let is_end = is_end
                && !event.texts.iter().any(|later| {
                    later.span.start > text.span.start && event.is_delta(later) && event.key(later) == speaker.key
                });
            let out = speaker.text.push(&piece, self.actions, &mut self.findings, is_end);
            speaker.spoke = self.clock;
            speaker.event.clear();
            if speaker.text.holds() {
                speaker.event.extend_from_slice(data);
                speaker.span = text.span.start;
            }
            keys.push(speaker.key.clone());
            if out != *piece {
                changes.push((text.span.clone(), write(out)));
            }
        }
        for choice in event.finished() {
            let is_other = |speaker: &Speaker| !keys.contains(&speaker.key);
            self.end_where(&mut passed.before, |speaker| {
                is_other(speaker) && matches!(&speaker.part, Part::Choice(of) if *of == choice)
            });
        }
    }

    fn speaker(&mut self, key: Key, part: Part, is_json: bool, before: &mut Vec<Vec<u8>>) -> usize {
        if let Some(at) = self.speakers.iter().position(|speaker| speaker.key == key) {
            return at;
        }
        while self.speakers.len() >= MAX_VOICES {
            let clock = self.clock;
            let idle = |(_, speaker): &(usize, &Speaker)| (speaker.text.holds(), speaker.spoke);
            // Texts of this event are excluded: the event has not been sent, so none of its text can be sent before it.
            let others = self.speakers.iter().enumerate().filter(|(_, speaker)| speaker.spoke < clock);
            let Some((at, _)) = others.min_by_key(idle) else { break };
            let speaker = self.speakers.swap_remove(at);
            before.extend(self.last_of(speaker));
        }
        let spoke = self.clock;
        self.speakers.push(Speaker { key, part, text: StreamedText::new(is_json), event: Vec::new(), span: 0, spoke });
        self.speakers.len() - 1
    }

    fn end(&mut self, before: &mut Vec<Vec<u8>>, is_ended: impl Fn(&Part) -> bool) {
        self.end_where(before, |speaker| is_ended(&speaker.part));
    }

    fn end_where(&mut self, before: &mut Vec<Vec<u8>>, is_ended: impl Fn(&Speaker) -> bool) {
        let mut at = 0;
        while at < self.speakers.len() {
            if is_ended(&self.speakers[at]) {
                let speaker = self.speakers.remove(at);
                before.extend(self.last_of(speaker));
            } else {
                at += 1;
            }
        }
    }

    /// Returns the held end of a text, as an event.
    fn last_of(&mut self, mut speaker: Speaker) -> Option<Vec<u8>> {
        let has_rest = speaker.text.holds();
        let out = speaker.text.push("", self.actions, &mut self.findings, true);
        if !has_rest || out.is_empty() {
            return None;
        }
        let event = Event::read(&speaker.event);
        let sequence = event.sequence.is_some().then(|| {
            self.inserted += 1;
            self.last_sequence += 1;
            self.last_sequence
        });
        Some(event.alone(speaker.span, &out, sequence))
    }
}

/// Whether two events belong to different parts of an answer, by the ids that both have.
fn are_others(one: &Ids, other: &Ids) -> bool {
    one.iter().zip(other).any(|(one, other)| !one.is_empty() && !other.is_empty() && one != other)
}

fn number_at(data: &[u8], span: &Range<usize>) -> Option<u64> {
    std::str::from_utf8(&data[span.clone()]).ok()?.parse().ok()
}
