//! Streamed answers between any two dialects: an upstream's events go into the model and out again as the caller's, each
//! as soon as it is whole, and whatever happens the caller gets exactly one end.
//!
//! ```text
//! upstream says                               the caller gets after it         outcome
//! its terminal event                          the caller's terminal event      completed
//! why the model stopped, then a clean end     the caller's terminal event      completed
//! an error event                              an error event                   upstream failed
//! anything else, cut or not                   an error event                   upstream failed
//! ```
//!
//! Where both sides speak chat, `openai::stream` does the same without reading what it need not read. Where both speak
//! messages, events are read here for what they tell, and pass byte for byte.

use bytes::Bytes;
use fairlead_core::error::{Error, Kind, Retry};
use fairlead_core::usage::Usage;

use crate::model::{Event, Stop};
use crate::openai::error::UpstreamError;
use crate::openai::stream::{Closing, End, Outcome, Passed, StreamScan};
use crate::shapes::{error_body, ErrorText, Surface};
use crate::sse::{data_of, Flow, Framer, Limits, Part, Verdict};
use crate::translate::{Form, Pair};
use crate::{anthropic, openai, Pieces};

/// An event longer than this is a fault; up to it, it is held until it is whole.
const MAX_EVENT_BYTES: usize = 8 << 20;

/// An event that is not what its protocol says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What an event came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    /// The upstream's terminal event.
    Done,
    Failed(UpstreamError),
}

/// Follows one answer from its first chunk to its end.
#[derive(Debug)]
pub enum Follow {
    Scan(Box<StreamScan>),
    Translate(Box<Translation>),
}

/// See the module's page.
#[derive(Debug)]
pub struct Translation {
    framer: Framer,
    state: State,
}

#[derive(Debug)]
struct State {
    caller: Form,
    reader: Reader,
    /// `None` where events pass as they came.
    encoder: Option<Encoder>,
    answered: bool,
    end: Option<Ended>,
}

#[derive(Debug)]
enum Ended {
    Done,
    InBand(UpstreamError),
    Fault(Error),
}

#[derive(Debug)]
enum Reader {
    Chat(openai::stream_in::Reader),
    Messages(anthropic::stream_in::Reader),
}

#[derive(Debug)]
enum Encoder {
    Chat(openai::stream_out::Encoder),
    Messages(anthropic::stream_out::Encoder),
}

impl Follow {
    /// `asks_usage`: the caller asked for the usage chunk of the chat form; `created_s`: the time, for a form that tells one.
    pub fn new(pair: Pair, asks_usage: bool, created_s: u64) -> Self {
        if (pair.caller, pair.provider) == (Form::Chat, Form::Chat) {
            return Self::Scan(Box::new(StreamScan::new(asks_usage)));
        }
        let limits = Limits { held_bytes: MAX_EVENT_BYTES, event_bytes: MAX_EVENT_BYTES };
        let reader = match pair.provider {
            Form::Chat => Reader::Chat(openai::stream_in::Reader::default()),
            Form::Messages => Reader::Messages(anthropic::stream_in::Reader::default()),
        };
        let encoder = (pair.caller != pair.provider).then(|| match pair.caller {
            Form::Chat => Encoder::Chat(openai::stream_out::Encoder::new(created_s, asks_usage)),
            Form::Messages => Encoder::Messages(anthropic::stream_out::Encoder::default()),
        });
        let state = State { caller: pair.caller, reader, encoder, answered: false, end: None };
        Self::Translate(Box::new(Translation { framer: Framer::new(limits), state }))
    }

    /// Takes the next chunk of the upstream's body.
    pub fn push(&mut self, chunk: &Bytes) -> Passed {
        match self {
            Self::Scan(scan) => scan.push(chunk),
            Self::Translate(translation) => translation.push(chunk),
        }
    }

    /// The last usage told so far.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Scan(scan) => scan.usage(),
            Self::Translate(translation) => translation.state.reader.usage(),
        }
    }

    /// Whether a comment may be sent now.
    pub fn between_events(&self) -> bool {
        match self {
            Self::Scan(scan) => scan.between_events(),
            Self::Translate(translation) => translation.framer.between_events(),
        }
    }

    /// Ends the answer.
    pub fn finish(self, how: End) -> Closing {
        match self {
            Self::Scan(scan) => scan.finish(how),
            Self::Translate(translation) => translation.finish(how),
        }
    }
}

impl Translation {
    fn push(&mut self, chunk: &Bytes) -> Passed {
        if self.state.end.is_some() {
            return Passed { pieces: Pieces::new(), first_token: false, done: true };
        }
        let answered = self.state.answered;
        let mut out = Vec::new();
        let (mut pieces, flow) = self.framer.push(chunk, |part| self.state.judge(part, &mut out));
        if flow == Flow::TooLong {
            let error = invalid("The provider sent an event that is too long.");
            self.state.fail(error, &mut out);
        }
        if !out.is_empty() {
            pieces.push(Bytes::from(out));
        }
        Passed { pieces, first_token: self.state.answered && !answered, done: self.state.end.is_some() }
    }

    fn finish(self, how: End) -> Closing {
        let Self { framer, mut state } = self;
        let mut out = Vec::new();
        if state.end.is_none() {
            match how {
                End::Clean => state.end_cleanly(&framer.close().bytes, &mut out),
                End::Broken(error) => state.fail(error, &mut out),
            }
        }
        let usage = state.reader.usage();
        let (error, upstream_error) = match state.end {
            None | Some(Ended::Done) => (None, None),
            Some(Ended::Fault(error)) => (Some(error), None),
            Some(Ended::InBand(told)) => {
                let message = "The provider reported an error in its stream.";
                (Some(Error::upstream(Kind::UpstreamStatus, Retry::Never, message)), Some(told))
            }
        };
        let outcome = if error.is_some() { Outcome::UpstreamFailed } else { Outcome::Completed };
        Closing { bytes: Bytes::from(out), outcome, usage, error, upstream_error }
    }
}

impl State {
    fn judge(&mut self, part: Part<'_>, out: &mut Vec<u8>) -> Verdict {
        // Events are held until they are whole, so there are no others.
        let (Part::Event(event) | Part::Opening(event) | Part::More(event)) = part;
        let passes = self.encoder.is_none();
        match data_of(event) {
            // A comment is the upstream's own sign of life.
            None => return if passes { Verdict::Pass } else { Verdict::Drop },
            Some(data) if data.trim_ascii_start().is_empty() => return Verdict::Drop,
            Some(data) => self.take(&data, out),
        }
        match (&self.end, passes) {
            (None, true) => Verdict::Pass,
            (None, false) => Verdict::Drop,
            (Some(Ended::Done | Ended::InBand(_)), true) => Verdict::Last,
            (Some(_), _) => Verdict::Stop,
        }
    }

    /// Reads the data of an event and says it again in the caller's form.
    fn take(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        let mut emit = |event: Event<'_>| {
            if let Some(encoder) = &mut self.encoder {
                encoder.write(event, out);
            }
        };
        let step = match &mut self.reader {
            Reader::Chat(reader) => reader.read(data, &mut emit),
            Reader::Messages(reader) => reader.read(data, &mut emit),
        };
        match step {
            Ok(Step::More) => {}
            Ok(Step::Done) => self.complete(out),
            Ok(Step::Failed(told)) => {
                if self.encoder.is_some() {
                    let kind = told.kind.as_deref().unwrap_or("upstream_error");
                    let text = ErrorText {
                        status: status_of(&told),
                        message: &told.message,
                        kind,
                        code: told.code.as_deref().or(told.kind.as_deref()),
                        param: told.param.as_deref(),
                    };
                    out.extend_from_slice(&terminal_error(self.caller, &text));
                }
                self.end = Some(Ended::InBand(told));
                return;
            }
            Err(Malformed) => {
                out.truncate(before);
                self.fail(invalid("The provider sent an event that is not what its protocol says."), out);
                return;
            }
        }
        self.answered = self.answered || self.encoder.is_none() || out.len() > before;
    }

    fn complete(&mut self, out: &mut Vec<u8>) {
        let stop = self.reader.stop().unwrap_or(Stop::End);
        let usage = self.reader.usage();
        if let Some(encoder) = &mut self.encoder {
            encoder.finish(stop, usage, out);
        }
        self.end = Some(Ended::Done);
    }

    fn fail(&mut self, error: Error, out: &mut Vec<u8>) {
        out.extend_from_slice(&terminal_error(self.caller, &ErrorText::from(&error)));
        self.end = Some(Ended::Fault(error));
    }

    /// `rest` is what was held when the upstream's body ended: an event whose blank line may be missing.
    fn end_cleanly(&mut self, rest: &[u8], out: &mut Vec<u8>) {
        if let Some(data) = data_of(rest).filter(|data| is_whole(data)) {
            self.take(&data, out);
            if self.encoder.is_none() && !matches!(self.end, Some(Ended::Fault(_))) {
                out.extend_from_slice(rest.trim_ascii_end());
                out.extend_from_slice(b"\n\n");
            }
        }
        if self.end.is_some() {
            return;
        }
        if self.reader.stop().is_some() {
            if self.encoder.is_none() {
                out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
            }
            return self.complete(out);
        }
        let message = "The provider ended its stream before the answer was complete.";
        self.fail(Error::upstream(Kind::UpstreamReset, Retry::Never, message), out);
    }
}

/// Whether data at the end of a body is not cut off.
fn is_whole(data: &[u8]) -> bool {
    data.starts_with(b"[DONE]") || fairlead_core::json::validate(data, fairlead_core::json::MAX_DEPTH).is_ok()
}

impl Reader {
    fn stop(&self) -> Option<Stop> {
        match self {
            Self::Chat(reader) => reader.stop(),
            Self::Messages(reader) => reader.stop(),
        }
    }

    fn usage(&self) -> Option<Usage> {
        match self {
            Self::Chat(reader) => reader.usage(),
            Self::Messages(reader) => reader.usage(),
        }
    }
}

impl Encoder {
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Chat(encoder) => encoder.write(event, out),
            Self::Messages(encoder) => encoder.write(event, out),
        }
    }

    fn finish(&mut self, stop: Stop, usage: Option<Usage>, out: &mut Vec<u8>) {
        match self {
            Self::Chat(encoder) => encoder.finish(stop, usage, out),
            Self::Messages(encoder) => encoder.finish(stop, usage, out),
        }
    }
}

/// An error as the last event of a stream, in the caller's form.
pub fn terminal_error(form: Form, text: &ErrorText<'_>) -> Bytes {
    match form {
        Form::Chat => openai::stream::terminal_error(text),
        Form::Messages => {
            let body = error_body(Surface::Anthropic, text, "");
            Bytes::from([b"event: error\ndata: ", &*body, b"\n\n"].concat())
        }
    }
}

/// The status that an error told in a stream would have had.
fn status_of(told: &UpstreamError) -> u16 {
    match told.kind.as_deref().or(told.code.as_deref()) {
        Some("invalid_request_error") => 400,
        Some("authentication_error") => 401,
        Some("permission_error") => 403,
        Some("not_found_error") => 404,
        Some("request_too_large") => 413,
        Some("rate_limit_error" | "rate_limit_exceeded") => 429,
        Some("overloaded_error") => 529,
        Some("timeout_error") => 504,
        _ => 500,
    }
}

fn invalid(message: &'static str) -> Error {
    Error::upstream(Kind::UpstreamInvalid, Retry::Never, message)
}
