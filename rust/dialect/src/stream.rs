//! Translates streamed answers between any two dialects. Each event is parsed into the model and written in the
//! caller's dialect as soon as it is complete. The caller always receives exactly one terminal event.
//!
//! ```text
//! upstream sends                      caller receives at the end   outcome
//! stop reason and terminal event      terminal event               completed
//! stop reason, then a clean end       terminal event               completed
//! an error event                      an error event               upstream failed
//! anything else, truncated or not     an error event               upstream failed
//! ```
//!
//! If both sides use the chat dialect, `openai::stream` does this with less parsing. If both use messages, events are
//! parsed here and passed through byte for byte.

use bytes::Bytes;
use fairlead_core::{Dialect, Error, ErrorKind, Retry, Usage};

use crate::answer_context::AnswerContext;
use crate::gemini::stream_out::Framing;
use crate::model::{Event, Stop};
use crate::openai::error::UpstreamError;
use crate::openai::stream::{Closing, End, Outcome, StreamPiece, StreamScan};
use crate::shapes::{error_body, ErrorText, Surface};
use crate::sse::{data_of, Flow, Framer, Limits, Part, Verdict};
use crate::step::{read_event, Malformed, Step};
use crate::substance::Watch;
use crate::text::Text;
use crate::tool_names::{name_as_caller, ToolNames};
use crate::translate::{self, Pair};
use crate::{anthropic, gemini, openai, responses, Pieces};

/// The maximum size of an event. Events are buffered until they are complete; a longer one is an error.
const MAX_EVENT_BYTES: usize = 8 << 20;

/// Processes one answer from its first chunk to its end.
#[derive(Debug)]
pub enum Follow {
    Scan(Box<StreamScan>),
    Translate(Box<Translation>),
}

/// Translates one streamed answer. See the module's description.
#[derive(Debug)]
pub struct Translation {
    framer: Framer,
    state: State,
}

#[derive(Debug)]
struct State {
    caller: Dialect,
    created_s: u64,
    /// The id of an answer without one from the provider.
    id: String,
    tool_names: ToolNames,
    reader: Reader,
    watch: Watch,
    way: PassMode,
    answered: bool,
    end: Option<Ended>,
}

/// How events are passed on.
#[derive(Debug)]
enum PassMode {
    /// Events pass unchanged.
    Pass,
    /// The data of events passes unchanged, as the elements of a list.
    List(Framing),
    /// Events are written in the caller's dialect.
    Say(Encoder),
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
    Responses(responses::stream_in::Reader),
    Messages(anthropic::stream_in::Reader),
    Gemini(gemini::stream_in::Reader),
}

#[derive(Debug)]
enum Encoder {
    Chat(openai::stream_out::Encoder),
    Responses(Box<responses::stream_out::Encoder>),
    Messages(anthropic::stream_out::Encoder),
    Gemini(gemini::stream_out::Encoder),
}

impl Follow {
    pub fn new(pair: Pair, context: AnswerContext) -> Self {
        if (pair.caller, pair.provider) == (Dialect::Openai, Dialect::Openai) {
            return Self::Scan(Box::new(StreamScan::new(context.requests_usage)));
        }
        let limits = Limits { held_bytes: MAX_EVENT_BYTES, event_bytes: MAX_EVENT_BYTES };
        let reader = match pair.provider {
            Dialect::Openai => Reader::Chat(openai::stream_in::Reader::default()),
            Dialect::OpenaiResponses => Reader::Responses(responses::stream_in::Reader::new(context.keeps)),
            Dialect::Anthropic => Reader::Messages(anthropic::stream_in::Reader::default()),
            Dialect::Gemini => Reader::Gemini(gemini::stream_in::Reader::default()),
        };
        let tool_names = context.tool_names.clone();
        let (created_s, id, framing) = (context.created_s, context.id.clone(), Framing::new(context.is_list));
        let way = match pair.caller {
            caller if caller == pair.provider && caller == Dialect::Gemini && context.is_list => {
                PassMode::List(framing)
            }
            caller if caller == pair.provider => PassMode::Pass,
            Dialect::Openai => {
                let encoder = openai::stream_out::Encoder::new(created_s, context.requests_usage, context.tool_names);
                PassMode::Say(Encoder::Chat(encoder))
            }
            Dialect::OpenaiResponses => {
                PassMode::Say(Encoder::Responses(Box::new(responses::stream_out::Encoder::new(context))))
            }
            Dialect::Anthropic => PassMode::Say(Encoder::Messages(anthropic::stream_out::Encoder::default())),
            Dialect::Gemini => PassMode::Say(Encoder::Gemini(gemini::stream_out::Encoder::new(framing))),
        };
        let state = State {
            caller: pair.caller,
            created_s,
            id,
            tool_names,
            reader,
            watch: Watch::new(pair.provider),
            way,
            answered: false,
            end: None,
        };
        Self::Translate(Box::new(Translation { framer: Framer::new(limits), state }))
    }

    /// Processes the next chunk of the provider's response body.
    pub fn push(&mut self, chunk: &Bytes) -> StreamPiece {
        match self {
            Self::Scan(scan) => scan.push(chunk),
            Self::Translate(translation) => translation.push(chunk),
        }
    }

    /// Returns the last usage reported so far.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Scan(scan) => scan.usage(),
            Self::Translate(translation) => translation.state.reader.usage(),
        }
    }

    /// Returns whether a comment can be sent now.
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
    fn push(&mut self, chunk: &Bytes) -> StreamPiece {
        if self.state.end.is_some() {
            return StreamPiece {
                pieces: Pieces::new(),
                first_token: false,
                has_output: self.state.watch.has_output(),
                done: true,
            };
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
        StreamPiece {
            pieces,
            first_token: self.state.answered && !answered,
            has_output: self.state.watch.has_output(),
            done: self.state.end.is_some(),
        }
    }

    fn finish(self, how: End) -> Closing {
        let Self { framer, mut state } = self;
        let mut out = Vec::new();
        // Same rule as in `openai::stream`.
        let is_taken_away = matches!((&state.end, &how), (Some(Ended::Done), End::Broken(fault)) if fault.kind == ErrorKind::GuardrailBlocked);
        if state.end.is_none() || is_taken_away {
            match how {
                End::Clean => state.end_cleanly(&framer.close().bytes, &mut out),
                End::Broken(error) => state.fail(error, &mut out),
            }
        }
        let usage = state.reader.usage();
        let (error, upstream_error) = match state.end.take() {
            None | Some(Ended::Done) => (None, None),
            Some(Ended::Fault(error)) => (Some(error), None),
            Some(Ended::InBand(error_object)) => {
                let message = "The provider reported an error in its stream.";
                (Some(Error::upstream(ErrorKind::UpstreamStatus, Retry::Never, message)), Some(error_object))
            }
        };
        let outcome = if error.is_some() { Outcome::UpstreamFailed } else { Outcome::Completed };
        let response = state.response();
        Closing { bytes: Bytes::from(out), outcome, usage, error, upstream_error, response }
    }
}

impl State {
    fn judge(&mut self, part: Part<'_>, out: &mut Vec<u8>) -> Verdict {
        // Events are buffered until they are complete, so the other parts do not occur.
        let (Part::Event(event) | Part::Opening(event) | Part::More(event)) = part;
        let passes = matches!(self.way, PassMode::Pass);
        match data_of(event) {
            // A comment is a keep-alive from the provider.
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

    /// Parses the data of an event and writes it in the caller's dialect.
    fn take(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        self.watch.read_event(data);
        let mut is_said = Ok(());
        let (way, id, tool_names) = (&mut self.way, &self.id, &self.tool_names);
        let mut emit = |mut event: Event<'_>| {
            let PassMode::Say(encoder) = &mut *way else { return };
            name_as_caller(&mut event, id, tool_names);
            if is_said.is_ok() {
                is_said = encoder.write(event, out);
            }
        };
        let step = read_event(data, &mut emit, |data, emit| self.reader.read(data, emit));
        match step.and_then(|step| is_said.map(|()| step)) {
            Ok(Step::More) => self.relist(data, out),
            // Some chat servers never send a finish reason.
            Ok(Step::Done) if self.reader.stop().is_none() && !self.is_done_unsaid() => {
                return self.fail(incomplete(), out)
            }
            Ok(Step::Done) if self.watch.is_empty() => return self.fail(translate::empty(), out),
            Ok(Step::Done) => {
                self.relist(data, out);
                self.complete(out);
            }
            Ok(Step::Failed(reported)) => {
                self.relist(data, out);
                match &mut self.way {
                    PassMode::Pass => {}
                    PassMode::List(framing) => framing.close(out),
                    PassMode::Say(_) => {
                        let kind = reported.kind.as_deref().unwrap_or("upstream_error");
                        let text = ErrorText {
                            status: status_of(&reported),
                            message: &reported.message,
                            kind,
                            code: reported.code.as_deref().or(reported.kind.as_deref()),
                            param: reported.param.as_deref(),
                            detail: reported.detail.as_deref(),
                            diagnostics: None,
                        };
                        self.write_failure(&text, out);
                    }
                }
                self.end = Some(Ended::InBand(reported));
                return;
            }
            Err(Malformed) => {
                // Output that was already written is sent, because the encoder's state includes it.
                self.fail(invalid("The provider sent an event that is not what its protocol says."), out);
                return;
            }
        }
        self.answered = self.answered || matches!(self.way, PassMode::Pass) || out.len() > before;
    }

    /// Returns whether a terminal event may end the answer without a finish reason.
    fn is_done_unsaid(&self) -> bool {
        matches!(self.reader, Reader::Chat(_)) && self.watch.has_output()
    }

    /// Returns the complete response if it is to be stored.
    fn response(&mut self) -> Option<Bytes> {
        match (&mut self.way, &mut self.reader) {
            (PassMode::Say(Encoder::Responses(encoder)), _) => encoder.take_response(),
            (PassMode::Pass, Reader::Responses(reader)) => reader.take_response(),
            _ => None,
        }
    }

    fn relist(&mut self, data: &[u8], out: &mut Vec<u8>) {
        if let PassMode::List(framing) = &mut self.way {
            framing.begin(out);
            out.extend_from_slice(data.trim_ascii());
        }
    }

    fn complete(&mut self, out: &mut Vec<u8>) {
        let has_calls = matches!(&self.reader, Reader::Chat(reader) if reader.has_calls());
        let unsaid = if has_calls { Stop::Tools } else { Stop::End };
        let stop = self.reader.stop().unwrap_or(unsaid);
        let usage = self.reader.usage();
        let is_said = match &mut self.way {
            PassMode::Pass => Ok(()),
            PassMode::List(framing) => {
                framing.close(out);
                Ok(())
            }
            PassMode::Say(encoder) => encoder.finish(stop, usage, out),
        };
        match is_said {
            Ok(()) => self.end = Some(Ended::Done),
            Err(Malformed) => self.fail(invalid("The provider sent a call whose arguments are no object."), out),
        }
    }

    fn fail(&mut self, error: Error, out: &mut Vec<u8>) {
        self.write_failure(&ErrorText::from(&error), out);
        self.end = Some(Ended::Fault(error));
    }

    /// Writes the end of a failed stream in the caller's dialect.
    fn write_failure(&mut self, text: &ErrorText<'_>, out: &mut Vec<u8>) {
        match (&mut self.way, &self.reader) {
            (PassMode::List(framing), _) => framing.fail(text, out),
            (PassMode::Say(Encoder::Responses(encoder)), _) => encoder.fail(text, out),
            (PassMode::Say(Encoder::Gemini(encoder)), _) => encoder.fail(text, out),
            (PassMode::Pass, Reader::Responses(reader)) => {
                let id = reader.id().map(Text::decode);
                let id = id.as_deref().unwrap_or(&self.id);
                let sequence = reader.next_sequence();
                let end = responses::stream_out::failure(text, id, reader.model(), sequence, self.created_s);
                out.extend_from_slice(&end);
            }
            _ => out.extend_from_slice(&terminal_error(self.caller, false, text)),
        }
    }

    /// `rest` holds the bytes buffered when the response body ended: an event whose blank line may be missing.
    fn end_cleanly(&mut self, rest: &[u8], out: &mut Vec<u8>) {
        if let Some(data) = data_of(rest).filter(|data| is_complete(data)) {
            self.take(&data, out);
            if matches!(self.way, PassMode::Pass) && !matches!(self.end, Some(Ended::Fault(_))) {
                out.extend_from_slice(rest.trim_ascii_end());
                out.extend_from_slice(b"\n\n");
            }
        }
        if self.end.is_some() {
            return;
        }
        if self.reader.stop().is_some() {
            if self.watch.is_empty() {
                return self.fail(translate::empty(), out);
            }
            if matches!(self.way, PassMode::Pass) && self.caller == Dialect::Anthropic {
                out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
            }
            return self.complete(out);
        }
        self.fail(incomplete(), out);
    }
}

/// Returns whether data at the end of a body is complete.
fn is_complete(data: &[u8]) -> bool {
    data.starts_with(b"[DONE]") || fairlead_core::json::validate(data, fairlead_core::json::MAX_DEPTH).is_ok()
}

impl Reader {
    fn read(&mut self, data: &[u8], emit: &mut dyn FnMut(Event<'_>)) -> Result<Step, Malformed> {
        match self {
            Self::Chat(reader) => reader.read(data, emit),
            Self::Responses(reader) => reader.read(data, emit),
            Self::Messages(reader) => reader.read(data, emit),
            Self::Gemini(reader) => reader.read(data, emit),
        }
    }

    fn stop(&self) -> Option<Stop> {
        match self {
            Self::Chat(reader) => reader.stop(),
            Self::Responses(reader) => reader.stop(),
            Self::Messages(reader) => reader.stop(),
            Self::Gemini(reader) => reader.stop(),
        }
    }

    fn usage(&self) -> Option<Usage> {
        match self {
            Self::Chat(reader) => reader.usage(),
            Self::Responses(reader) => reader.usage(),
            Self::Messages(reader) => reader.usage(),
            Self::Gemini(reader) => reader.usage(),
        }
    }
}

impl Encoder {
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match self {
            Self::Chat(encoder) => encoder.write(event, out),
            Self::Responses(encoder) => encoder.write(event, out),
            Self::Messages(encoder) => encoder.write(event, out),
            Self::Gemini(encoder) => return encoder.write(event, out),
        }
        Ok(())
    }

    fn finish(&mut self, stop: Stop, usage: Option<Usage>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match self {
            Self::Chat(encoder) => encoder.finish(stop, usage, out),
            Self::Responses(encoder) => encoder.finish(stop, usage, out),
            Self::Messages(encoder) => encoder.finish(stop, usage, out),
            Self::Gemini(encoder) => return encoder.finish(stop, usage, out),
        }
        Ok(())
    }
}

/// Writes an error as the only content of a stream in the caller's dialect. `is_list`: a Gemini caller reads a JSON
/// array.
pub fn terminal_error(form: Dialect, is_list: bool, text: &ErrorText<'_>) -> Bytes {
    match form {
        Dialect::Openai => openai::stream::terminal_error(text),
        Dialect::Anthropic => {
            let body = error_body(Surface::Anthropic, text, "");
            Bytes::from([b"event: error\ndata: ", &*body, b"\n\n"].concat())
        }
        Dialect::OpenaiResponses => Bytes::from(responses::stream_out::failure(text, "", None, 0, 0)),
        Dialect::Gemini => {
            let mut out = Vec::new();
            Framing::new(is_list).fail(text, &mut out);
            Bytes::from(out)
        }
    }
}

/// A keep-alive that clients of this dialect ignore.
pub fn heartbeat(form: Dialect, is_list: bool) -> Bytes {
    if form == Dialect::Gemini && is_list {
        Bytes::from_static(b"\r\n")
    } else {
        openai::stream::heartbeat()
    }
}

/// The HTTP status for an error that was reported within a stream.
fn status_of(error: &UpstreamError) -> u16 {
    let status = error.code.as_deref().and_then(|code| code.parse::<u16>().ok());
    if let Some(status) = status.filter(|status| (400..600).contains(status)) {
        return status;
    }
    match error.kind.as_deref().or(error.code.as_deref()) {
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

fn incomplete() -> Error {
    let message = "The provider ended its stream before the answer was complete.";
    Error::upstream(ErrorKind::UpstreamReset, Retry::Never, message)
}

fn invalid(message: &'static str) -> Error {
    Error::upstream(ErrorKind::UpstreamInvalid, Retry::Never, message)
}
