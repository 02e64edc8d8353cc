//! The texts of a stream. A finding may lie across events, so what could be its beginning is held back until it is clear
//! that it is none; what is held goes out with the next event of the same text, or before what ends it.
//!
//! An event is the JSON of one event of a stream. Those that bring a text piece by piece are told from those whose texts are
//! whole, which hold nothing back and are judged as a plain answer is.

use super::body::{cuts, judged, read, splice, write};
use super::event::{Event, Ids, Key, Kind};
use super::streamed_text::StreamedText;
use super::{Actions, Findings};
use smallvec::SmallVec;
use std::ops::Range;

/// Texts of one stream that something may be held of. Of more, what is held longest goes out.
const MAX_VOICES: usize = 256;
/// A larger event brings no piece of a text.
const MAX_DELTA_BYTES: usize = 256 * 1024;

/// The texts of a stream.
#[derive(Debug)]
pub struct StreamGuard {
    actions: Actions,
    speakers: Vec<Speaker>,
    findings: Findings,
    /// Events so far, for the order in which texts were last spoken.
    clock: u64,
    /// Events of ours among those with numbers, and the last number that went out.
    inserted: u64,
    last_sequence: u64,
}

#[derive(Debug)]
struct Speaker {
    key: Key,
    part: Part,
    text: StreamedText,
    /// The event that spoke last, and where in it the text stands; empty while nothing is held.
    event: Vec<u8>,
    place: usize,
    spoke: u64,
}

/// The part or the choice of an answer whose texts have come to their end.
#[derive(Debug)]
enum Part {
    Of(Ids),
    Choice(SmallVec<[u8; 16]>),
}

/// An event after the guardrails: what goes out for it, and what goes out before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GuardedEvent {
    /// Events that go before it: what was held.
    pub before: Vec<Vec<u8>>,
    /// The event where it changed; else it goes out as it came.
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

    /// The event as it may go out. It may come out with an empty text: the text is held.
    pub fn event(&mut self, data: &[u8]) -> GuardedEvent {
        self.clock += 1;
        let mut passed = GuardedEvent::default();
        let event = Event::read(data);
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        match event.kind() {
            Kind::Delta if data.len() <= MAX_DELTA_BYTES => self.hear(&event, data, &mut passed, &mut changes),
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
        if let Some((place, number)) = event.sequence.as_ref().and_then(|place| Some((place, number_at(data, place)?)))
        {
            self.last_sequence = number + self.inserted;
            if self.inserted > 0 {
                let at = changes.partition_point(|(other, _)| other.start < place.start);
                changes.insert(at, (place.clone(), self.last_sequence.to_string()));
            }
        }
        passed.event = (!changes.is_empty()).then(|| splice(data, &changes));
        passed
    }

    /// The text that is still held, as events: at the stream's end, or before its last event.
    pub fn finish(&mut self) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        self.end(&mut events, |_| true);
        events
    }

    /// Whether anything is held.
    pub fn holds(&self) -> bool {
        self.speakers.iter().any(|speaker| speaker.text.holds())
    }

    /// An event that brings pieces of texts.
    fn hear(
        &mut self,
        event: &Event<'_>,
        data: &[u8],
        passed: &mut GuardedEvent,
        changes: &mut Vec<(Range<usize>, String)>,
    ) {
        let mut keys: SmallVec<[Key; 2]> = SmallVec::new();
        for text in &event.texts {
            let Some(piece) = read(&data[text.place.clone()]) else { continue };
            let is_json = event.is_json(text);
            if !event.is_delta(text) {
                changes.extend(
                    judged(&piece, is_json, self.actions, &mut self.findings)
                        .map(|changed| (text.place.clone(), write(changed))),
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
            // Of one text there may be more in this event: the last of them ends it.
            let is_end = is_end
                && !event.texts.iter().any(|later| {
                    later.place.start > text.place.start && event.is_delta(later) && event.key(later) == speaker.key
                });
            let out = speaker.text.say(&piece, self.actions, &mut self.findings, is_end);
            speaker.spoke = self.clock;
            speaker.event.clear();
            if speaker.text.holds() {
                speaker.event.extend_from_slice(data);
                speaker.place = text.place.start;
            }
            keys.push(speaker.key.clone());
            if out != *piece {
                changes.push((text.place.clone(), write(out)));
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
            // What this event says is not in it yet, so that it cannot go before it.
            let others = self.speakers.iter().enumerate().filter(|(_, speaker)| speaker.spoke < clock);
            let Some((at, _)) = others.min_by_key(idle) else { break };
            let speaker = self.speakers.swap_remove(at);
            before.extend(self.last_of(speaker));
        }
        let spoke = self.clock;
        self.speakers.push(Speaker { key, part, text: StreamedText::new(is_json), event: Vec::new(), place: 0, spoke });
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

    /// The rest of a text, as an event.
    fn last_of(&mut self, mut speaker: Speaker) -> Option<Vec<u8>> {
        let has_rest = speaker.text.holds();
        let out = speaker.text.say("", self.actions, &mut self.findings, true);
        if !has_rest || out.is_empty() {
            return None;
        }
        let event = Event::read(&speaker.event);
        let sequence = event.sequence.is_some().then(|| {
            self.inserted += 1;
            self.last_sequence += 1;
            self.last_sequence
        });
        Some(event.alone(speaker.place, &out, sequence))
    }
}

/// Whether two events are of different parts of an answer, by what both say.
fn are_others(one: &Ids, other: &Ids) -> bool {
    one.iter().zip(other).any(|(one, other)| !one.is_empty() && !other.is_empty() && one != other)
}

fn number_at(data: &[u8], place: &Range<usize>) -> Option<u64> {
    std::str::from_utf8(&data[place.clone()]).ok()?.parse().ok()
}
