//! A streamed chat answer: what is passed on, what is learned from it, and how it ends.
//!
//! Events pass byte for byte, with two exceptions: the usage chunk that the caller did not ask for, and anything after
//! the end of the stream. The end is `[DONE]` or an error object, whichever comes first. The gateway adds an end to a
//! stream that has none, so that a caller can distinguish a complete answer from a broken one:
//!
//! ```text
//! upstream sends                         caller also receives        outcome
//! a finish reason, then [DONE]           nothing                     completed
//! a finish reason, then a clean end      [DONE]                      completed
//! no finish reason, an answer, [DONE]    an event with one, [DONE]   completed
//! an error object                        [DONE]                      upstream failed
//! anything else, truncated or not        error object, [DONE]        upstream failed
//! ```
//!
//! Some servers never send a finish reason, so `[DONE]` after an answer ends it. Without an answer the stream is
//! broken.

use std::sync::LazyLock;

use bytes::{BufMut, Bytes, BytesMut};
use fairlead_core::json::{self, Kind};
use fairlead_core::{Dialect, Error, ErrorKind, Retry, Usage};
use memchr::memmem::Finder;

use super::error::{self, UpstreamError};
use super::unfinished::Unfinished;
use super::usage;
use crate::lenient;
use crate::shapes::{error_body, ErrorText, Surface};
use crate::sse::{data_of, Flow, Framer, Limits, Part, Verdict};
use crate::substance::Watch;
use crate::translate;
use crate::Pieces;

const DONE: &[u8] = b"data: [DONE]\n\n";

static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"usage\""));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));
/// The members that are read from an event with usage or an error.
const WANTED: [&str; 5] = ["usage", "error", "choices", "service_tier", "x_groq"];
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finish_reason\""));
static CALLS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"tool_calls\""));
/// The bytes buffered from the end of a partial event, enough to find a finish reason that is split between two parts.
const TAIL_BYTES: usize = 64;

/// Processes one answer from its first chunk to its end.
#[derive(Debug)]
pub struct StreamScan {
    framer: Framer,
    progress: Progress,
}

/// The data collected so far.
#[derive(Debug)]
struct Progress {
    requests_usage: bool,
    answered: bool,
    watch: Watch,
    finish_reason: bool,
    unfinished: Unfinished,
    /// The last bytes of an event that is passed on in parts.
    tail: Vec<u8>,
    usage: Option<Usage>,
    end: Option<Ended>,
}

#[derive(Debug)]
enum Ended {
    Done,
    InBand(UpstreamError),
    Fault(Error),
}

/// The result of a chunk.
#[derive(Debug)]
pub struct StreamPiece {
    /// The bytes for the caller. Empty if the whole chunk is buffered or dropped.
    pub pieces: Pieces,
    /// This chunk contains the first event of the answer.
    pub first_token: bool,
    /// The answer has content by the end of this chunk, not only its opening.
    pub has_output: bool,
    /// The caller has received the end of the stream. Further upstream data is dropped.
    pub done: bool,
}

/// How the provider's response body ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// According to its framing.
    Clean,
    /// In any other way: truncated, timed out, or aborted by the gateway.
    Broken(Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    UpstreamFailed,
}

/// How the answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The remaining bytes for the caller, possibly empty.
    pub bytes: Bytes,
    pub outcome: Outcome,
    /// The last usage that the provider reported.
    pub usage: Option<Usage>,
    /// The error, if the answer failed.
    pub error: Option<Error>,
    /// The error object from the stream, if that is the cause.
    pub upstream_error: Option<UpstreamError>,
    /// The complete response of a responses stream that is to be stored.
    pub response: Option<Bytes>,
}

impl StreamScan {
    /// `requests_usage`: the caller asked for the usage chunk.
    pub fn new(requests_usage: bool) -> Self {
        Self::with_limits(requests_usage, Limits::default())
    }

    pub fn with_limits(requests_usage: bool, limits: Limits) -> Self {
        Self { framer: Framer::new(limits), progress: Progress::new(requests_usage) }
    }

    /// Processes the next chunk of the provider's response body.
    pub fn push(&mut self, chunk: &Bytes) -> StreamPiece {
        if self.progress.end.is_some() {
            return StreamPiece {
                pieces: Pieces::new(),
                first_token: false,
                has_output: self.progress.watch.has_output(),
                done: true,
            };
        }
        let answered = self.progress.answered;
        let (mut pieces, flow) = self.framer.push(chunk, |part| self.progress.judge(part));
        if flow == Flow::TooLong {
            self.progress.end = Some(Ended::Fault(invalid("The provider sent an event that is too long.")));
        }
        match &self.progress.end {
            None => {}
            Some(Ended::Done) => pieces.extend(self.progress.unfinished.events()),
            Some(Ended::InBand(_)) => pieces.push(Bytes::from_static(DONE)),
            Some(Ended::Fault(error)) => pieces.push(terminal(error, !self.framer.between_events())),
        }
        StreamPiece {
            pieces,
            first_token: self.progress.answered && !answered,
            has_output: self.progress.watch.has_output(),
            done: self.progress.end.is_some(),
        }
    }

    /// Returns the last usage reported so far.
    pub fn usage(&self) -> Option<Usage> {
        self.progress.usage
    }

    /// Returns whether a comment can be sent now. It cannot within an event that is passed on in parts.
    pub fn between_events(&self) -> bool {
        self.framer.between_events()
    }

    /// Ends the answer.
    pub fn finish(mut self, how: End) -> Closing {
        let mut bytes = Bytes::new();
        // The first end applies, unless a guardrail withheld it from the caller.
        let is_taken_away = matches!((&self.progress.end, &how), (Some(Ended::Done), End::Broken(fault)) if fault.kind == ErrorKind::GuardrailBlocked);
        if self.progress.end.is_none() || is_taken_away {
            bytes = match how {
                End::Clean => self.end_cleanly(),
                End::Broken(error) => self.end_with(error),
            };
        }
        let usage = self.progress.usage;
        let (error, upstream_error) = match self.progress.end {
            None | Some(Ended::Done) => (None, None),
            Some(Ended::Fault(error)) => (Some(error), None),
            Some(Ended::InBand(error_object)) => {
                let message = "The provider reported an error in its stream.";
                (Some(Error::upstream(ErrorKind::UpstreamStatus, Retry::Never, message)), Some(error_object))
            }
        };
        let outcome = if error.is_some() { Outcome::UpstreamFailed } else { Outcome::Completed };
        Closing { bytes, outcome, usage, error, upstream_error, response: None }
    }

    fn end_cleanly(&mut self) -> Bytes {
        let framer = std::mem::replace(&mut self.framer, Framer::new(Limits::default()));
        let rest = framer.close();
        let mut bytes = BytesMut::new();
        if rest.is_complete && !rest.mid_event {
            if matches!(self.progress.judge(Part::Event(&rest.bytes)), Verdict::Pass | Verdict::Last) {
                bytes.put_slice(&rest.bytes);
            }
        } else if !rest.mid_event && is_done(&rest.bytes) {
            // Only the blank line is missing, and the data is complete.
            if self.progress.judge_done() == Verdict::Last {
                bytes.put_slice(DONE);
            }
        }
        let cut = rest.mid_event && !rest.is_complete;
        match &self.progress.end {
            Some(Ended::Done) => bytes.extend(self.progress.unfinished.events()),
            Some(Ended::InBand(_)) => bytes.put_slice(DONE),
            Some(Ended::Fault(error)) => bytes.put_slice(&terminal(error, cut)),
            None if self.progress.finish_reason && !cut && self.progress.watch.is_empty() => {
                let error = translate::empty();
                bytes.put_slice(&terminal(&error, false));
                self.progress.end = Some(Ended::Fault(error));
            }
            None if self.progress.finish_reason && !cut => {
                self.progress.end = Some(Ended::Done);
                bytes.put_slice(DONE);
            }
            None => {
                let error = incomplete();
                bytes.put_slice(&terminal(&error, cut));
                self.progress.end = Some(Ended::Fault(error));
            }
        }
        bytes.freeze()
    }

    /// Ends the answer with an error. A buffered partial event is dropped.
    fn end_with(&mut self, error: Error) -> Bytes {
        let bytes = terminal(&error, !self.framer.between_events());
        self.progress.end = Some(Ended::Fault(error));
        bytes
    }
}

impl Progress {
    fn new(requests_usage: bool) -> Self {
        Self {
            requests_usage,
            answered: false,
            watch: Watch::new(Dialect::Openai),
            finish_reason: false,
            unfinished: Unfinished::default(),
            tail: Vec::new(),
            usage: None,
            end: None,
        }
    }

    fn judge(&mut self, part: Part<'_>) -> Verdict {
        match part {
            Part::Event(event) => data_of(event).map_or(Verdict::Pass, |data| self.judge_data(&data)),
            Part::Opening(event) => match data_of(event).as_deref().map(<[u8]>::trim_ascii_start) {
                Some([b'{', ..]) | None => {
                    self.answered = true;
                    self.watch.note_long_event();
                    self.tail.clear();
                    self.note_finish_in_part(event);
                    Verdict::Pass
                }
                Some(_) => self.malformed(),
            },
            Part::More(bytes) => {
                self.note_finish_in_part(bytes);
                Verdict::Pass
            }
        }
    }

    fn judge_data(&mut self, data: &[u8]) -> Verdict {
        match data.trim_ascii_start() {
            // Clients would parse it as JSON. Some providers use empty data as a keep-alive.
            [] => return Verdict::Drop,
            [b'{', ..] => {}
            // Clients check only the start of the data for `[DONE]`.
            _ if data.starts_with(b"[DONE]") => return self.judge_done(),
            _ => return self.malformed(),
        }
        if has_value(&USAGE, data) || has_value(&ERROR, data) {
            let verdict = self.judge_closely(data);
            if verdict != Verdict::Pass {
                return verdict;
            }
        }
        self.note_finish(data);
        self.watch.read_event(data);
        if !std::mem::replace(&mut self.answered, true) {
            self.unfinished.begin(data);
        }
        Verdict::Pass
    }

    /// Parses an event that may have usage or an error.
    fn judge_closely(&mut self, data: &[u8]) -> Verdict {
        let verdict = lenient::read(data, |data| self.judge_strictly(data).ok_or(()));
        verdict.unwrap_or_else(|()| self.malformed())
    }

    fn judge_strictly(&mut self, data: &[u8]) -> Option<Verdict> {
        let scan = json::scan_object(data, &WANTED, json::MAX_DEPTH).ok()?;
        let used = scan.get("usage").filter(|used| used.kind == Kind::Object);
        if let Some(used) = used {
            let service = usage::service_of(data, scan.get("service_tier"));
            let usage = data.get(used.span()).and_then(usage::read).map(|usage| Usage { service, ..usage });
            self.usage = usage.or(self.usage);
        } else if let Some(groq) = scan.get("x_groq").filter(|groq| groq.kind == Kind::Object) {
            // Groq reports the usage in the last chunk of every stream.
            self.usage = data.get(groq.span()).and_then(usage::inside_groq).or(self.usage);
        }
        if let Some(member) = scan.get("error").filter(|member| error::is_error(*member)) {
            self.end = Some(Ended::InBand(error::read(data, member)));
            return Some(Verdict::Last);
        }
        let no_choice = |choices: json::Value| choices.kind == Kind::Array && choices.elements == 0;
        let extra = used.is_some() && scan.get("choices").is_some_and(no_choice);
        Some(if extra && !self.requests_usage { Verdict::Drop } else { Verdict::Pass })
    }

    fn judge_done(&mut self) -> Verdict {
        if self.finish_reason && self.watch.is_empty() {
            self.end = Some(Ended::Fault(translate::empty()));
            Verdict::Stop
        } else if self.finish_reason {
            self.end = Some(Ended::Done);
            Verdict::Last
        } else if self.watch.has_output() {
            self.unfinished.end();
            self.end = Some(Ended::Done);
            Verdict::Stop
        } else {
            self.end = Some(Ended::Fault(incomplete()));
            Verdict::Stop
        }
    }

    fn note_finish(&mut self, data: &[u8]) {
        self.finish_reason = self.finish_reason || has_finish(data);
        self.note_calls(data);
    }

    fn note_calls(&mut self, data: &[u8]) {
        if !self.unfinished.has_calls()
            && values(&CALLS, data).any(|value| matches!(value, [b'[', next, ..] if *next != b']'))
        {
            self.unfinished.note_calls();
        }
    }

    fn note_finish_in_part(&mut self, bytes: &[u8]) {
        self.note_calls(bytes);
        if self.finish_reason {
            return;
        }
        let (first, last) = (bytes.len().min(TAIL_BYTES), bytes.len().saturating_sub(TAIL_BYTES));
        self.tail.extend_from_slice(bytes.get(..first).unwrap_or_default());
        self.finish_reason = has_finish(&self.tail) || has_finish(bytes);
        self.tail.extend_from_slice(bytes.get(first.max(last)..).unwrap_or_default());
        let old = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..old);
    }

    fn malformed(&mut self) -> Verdict {
        self.end = Some(Ended::Fault(invalid("The provider sent an event that is not a JSON object.")));
        Verdict::Stop
    }
}

/// Writes an error as the last event of a stream, followed by `[DONE]`.
pub fn terminal_error(text: &ErrorText<'_>) -> Bytes {
    let body = error_body(Surface::OpenAi, text, "");
    let mut bytes = BytesMut::with_capacity(body.len() + 24);
    bytes.put_slice(b"data: ");
    bytes.put_slice(&body);
    bytes.put_slice(b"\n\n");
    bytes.put_slice(DONE);
    bytes.freeze()
}

/// A comment that clients ignore, as a keep-alive.
pub fn heartbeat() -> Bytes {
    Bytes::from_static(b": keep-alive\n\n")
}

/// Writes a terminal error. `cut`: the caller has received the start of an event, which must be ended first.
fn terminal(error: &Error, cut: bool) -> Bytes {
    let bytes = terminal_error(&ErrorText::from(error));
    if cut {
        Bytes::from([b"\n\n", &*bytes].concat())
    } else {
        bytes
    }
}

fn incomplete() -> Error {
    let message = "The provider ended its stream before the answer was complete.";
    Error::upstream(ErrorKind::UpstreamReset, Retry::Never, message)
}

fn invalid(message: &'static str) -> Error {
    Error::upstream(ErrorKind::UpstreamInvalid, Retry::Never, message)
}

fn is_done(event: &[u8]) -> bool {
    data_of(event).is_some_and(|data| data.starts_with(b"[DONE]"))
}

/// Returns whether a member that `name` finds has a value other than null. Text inside a string does not match, because
/// its quotes are escaped.
fn has_value(name: &Finder<'_>, data: &[u8]) -> bool {
    values(name, data).any(|value| !matches!(value, [b'n', ..] | []))
}

/// Returns whether `data` has a finish reason. Some providers write an empty reason in earlier chunks.
pub(super) fn has_finish(data: &[u8]) -> bool {
    values(&FINISH, data).any(|value| matches!(value, [b'"', first, ..] if *first != b'"'))
}

/// Returns the data from the value on, for each occurrence of the member.
fn values<'d>(name: &'d Finder<'_>, data: &'d [u8]) -> impl Iterator<Item = &'d [u8]> {
    name.find_iter(data).filter_map(move |found_at| {
        let after = data.get(found_at + name.needle().len()..).unwrap_or_default();
        match after.trim_ascii_start() {
            [b':', value @ ..] => Some(value.trim_ascii_start()),
            _ => None,
        }
    })
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
