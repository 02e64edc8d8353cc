//! The texts of a stream. A finding may lie across events, so the end of what was said is held back until it is clear
//! that nothing begins there; what is held goes out with the next event, or before the last.
//!
//! An event is the JSON of one `data:` line. Which text an event continues is told by its *voice*: everything in the event
//! but the text itself and what changes with each event.

use super::body::{read, splice, texts, write};
use super::text::{mark, places};
use super::{merge, Action, Actions, Findings};
use std::ops::Range;

/// No finding but a private key is longer with a blank in it; without one, [`LONGEST_WORD`] holds.
const HELD_BYTES: usize = 64;
/// The longest credential that is one word and could still be growing.
const LONGEST_WORD: usize = 256;
/// Voices of one stream: choices, blocks, tools. More than this are not told apart.
const MAX_VOICES: usize = 64;

/// See the module's page.
#[derive(Debug)]
pub struct StreamGuard {
    actions: Actions,
    voices: Vec<Voice>,
    findings: Findings,
}

#[derive(Debug)]
struct Voice {
    name: u64,
    held: String,
    /// The event that spoke last, and where in it the text stands.
    event: Vec<u8>,
    place: Range<usize>,
}

impl StreamGuard {
    pub fn new(actions: Actions) -> Self {
        Self { actions, voices: Vec::new(), findings: Findings::new() }
    }

    /// What was found so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The event as it may go out; `None` where it goes out as it came. An event may come out with an empty text: the
    /// text is held.
    ///
    /// An event that says how its voice ends holds nothing back.
    pub fn event(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        let mut cuts = Vec::new();
        let is_end = ends(data);
        for place in texts(data) {
            let Some(text) = read(&data[place.clone()]) else { continue };
            if text.is_empty() {
                continue;
            }
            let at = self.voice(data, &place);
            let voice = &mut self.voices[at];
            let mut said = std::mem::take(&mut voice.held);
            said.push_str(&text);
            let (out, held) = release(&said, self.actions, &mut self.findings, is_end);
            voice.held = held;
            voice.event.clear();
            voice.event.extend_from_slice(data);
            voice.place = place.clone();
            if out != *text {
                cuts.push((place, write(out)));
            }
        }
        (!cuts.is_empty()).then(|| splice(data, &cuts))
    }

    /// What is still held, as events: before the stream's last event, and at its end.
    pub fn finish(&mut self) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for voice in &mut self.voices {
            let said = std::mem::take(&mut voice.held);
            if said.is_empty() {
                continue;
            }
            let (out, _) = release(&said, self.actions, &mut self.findings, true);
            events.push(splice(&voice.event, &[(voice.place.clone(), write(out))]));
        }
        events
    }

    /// Whether anything is held.
    pub fn holds(&self) -> bool {
        self.voices.iter().any(|voice| !voice.held.is_empty())
    }

    fn voice(&mut self, data: &[u8], place: &Range<usize>) -> usize {
        let name = name_of(data, place);
        let full = self.voices.len() >= MAX_VOICES;
        if let Some(at) = self.voices.iter().position(|voice| voice.name == name) {
            return at;
        }
        if full {
            return MAX_VOICES - 1;
        }
        self.voices.push(Voice { name, held: String::new(), event: Vec::new(), place: 0..0 });
        self.voices.len() - 1
    }
}

/// Whether the event says something; one that does not comes after what was said.
pub fn speaks(data: &[u8]) -> bool {
    !texts(data).is_empty()
}

/// OpenAI's and Gemini's last event of a choice, which may hold text.
fn ends(data: &[u8]) -> bool {
    ["finish_reason", "finishReason"].iter().any(|name| {
        memchr::memmem::find(data, name.as_bytes()).is_some_and(|found| {
            let after = data[found + name.len()..].iter().filter(|byte| !byte.is_ascii_whitespace());
            after.skip(1).take(2).copied().eq(*b":\"")
        })
    })
}

/// The event's type and the numbers that tell choices, blocks and tools apart; and which of the event's texts it is.
fn name_of(data: &[u8], place: &Range<usize>) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    for wanted in [&b"\"index\""[..], b"\"output_index\"", b"\"content_index\"", b"\"type\""] {
        for found in memchr::memmem::find_iter(data, wanted) {
            let value: Vec<u8> = data[found + wanted.len()..]
                .iter()
                .copied()
                .skip_while(|byte| byte.is_ascii_whitespace() || *byte == b':')
                .take_while(|byte| !b",}]".contains(byte))
                .take(64)
                .collect();
            value.hash(&mut hasher);
        }
    }
    // The member's name stands before the text.
    let before = &data[place.start.saturating_sub(24)..place.start];
    before.rsplit(|byte| *byte == b'"').nth(1).hash(&mut hasher);
    hasher.finish()
}

/// What may go out, redacted, and what must wait.
fn release(said: &str, actions: Actions, findings: &mut Findings, is_end: bool) -> (String, String) {
    let hold_from = if is_end { said.len() } else { safe_end(said) };
    let mut out = String::with_capacity(said.len());
    let mut at = 0;
    let mut end = hold_from;
    for (place, finding) in places(said, actions) {
        if place.end > hold_from && !is_end {
            // It may still grow: all of it waits.
            end = end.min(place.start.max(at));
            continue;
        }
        merge(findings, [finding]);
        if finding.action == Action::Redact && place.start >= at && place.end <= end {
            out.push_str(&said[at..place.start]);
            out.push_str(&mark(finding.kind));
            at = place.end;
        }
    }
    let end = end.max(at);
    out.push_str(&said[at..end]);
    (out, said[end..].to_owned())
}

/// Up to where nothing can begin that is not all here.
fn safe_end(said: &str) -> usize {
    let mut end = said.len().saturating_sub(HELD_BYTES);
    while !said.is_char_boundary(end) {
        end -= 1;
    }
    // A word that is cut at the edge waits whole, unless it is longer than any that is looked for.
    match said[..end].rfind(char::is_whitespace) {
        Some(blank) if end - blank <= LONGEST_WORD => blank + 1,
        None if end <= LONGEST_WORD => 0,
        _ => end,
    }
}
