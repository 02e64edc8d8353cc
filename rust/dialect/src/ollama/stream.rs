//! Converts a chat stream to JSON lines as it arrives. The caller always receives exactly one final line.

use bytes::Bytes;
use serde_json::json;

use super::line::{AnswerForm, AnswerTime};
use super::stream_out::Encoder;
use crate::model::{Event, Stop};
use crate::openai::stream_in::Reader;
use crate::sse::{data_of, Framer, Limits, Part, Verdict};
use crate::step::{read_event, Malformed, Step};

/// The maximum size of an event. Events are buffered until they are complete; a longer one is an error.
const MAX_EVENT_BYTES: usize = 8 << 20;

/// Converts the events of a chat stream to lines.
pub struct Lines {
    framer: Framer,
    state: State,
}

#[derive(Debug)]
struct State {
    reader: Reader,
    encoder: Encoder,
    /// The time of the first event.
    first_ns: Option<u64>,
    is_ended: bool,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Lines {
    pub fn new(form: AnswerForm) -> Self {
        let limits = Limits { held_bytes: MAX_EVENT_BYTES, event_bytes: MAX_EVENT_BYTES };
        let state = State { reader: Reader::default(), encoder: Encoder::new(form), first_ns: None, is_ended: false };
        Self { framer: Framer::new(limits), state }
    }

    /// Processes the next chunk and returns the lines that it completes. `at.until_first_ns` need not be set.
    pub fn push(&mut self, chunk: &Bytes, at: AnswerTime) -> Bytes {
        let mut out = Vec::new();
        let state = &mut self.state;
        self.framer.push(chunk, |part| {
            let (Part::Event(event) | Part::Opening(event) | Part::More(event)) = part;
            state.take(event, at, &mut out);
            Verdict::Drop
        });
        Bytes::from(out)
    }

    /// Ends the lines at the end of the stream. Adds an error line if the stream was incomplete.
    pub fn finish(mut self, at: AnswerTime) -> Bytes {
        let mut out = Vec::new();
        let rest = self.framer.close();
        if !rest.bytes.is_empty() {
            self.state.take(&rest.bytes, at, &mut out);
        }
        if !self.state.is_ended {
            fail("The answer stops short.", &mut out);
        }
        Bytes::from(out)
    }
}

impl State {
    fn take(&mut self, event: &[u8], at: AnswerTime, out: &mut Vec<u8>) {
        if self.is_ended {
            return;
        }
        let Some(data) = data_of(event) else {
            out.extend_from_slice(&self.encoder.heartbeat(at));
            return;
        };
        if data.trim_ascii_start().is_empty() {
            return;
        }
        let first_ns = *self.first_ns.get_or_insert(at.since_start_ns);
        let at = AnswerTime { until_first_ns: Some(first_ns), ..at };
        let mut is_written = Ok(());
        let encoder = &mut self.encoder;
        let mut emit = |event: Event<'_>| {
            if is_written.is_ok() {
                is_written = encoder.write(event, at, out);
            }
        };
        let step = read_event(&data, &mut emit, |data, emit| self.reader.read(data, emit));
        match step.and_then(|step| is_written.map(|()| step)) {
            Ok(Step::More) => {}
            Ok(Step::Done) => {
                let stop = self.reader.stop().unwrap_or(Stop::End);
                let finished = self.encoder.finish(stop, self.reader.usage(), at, out);
                self.end(finished, out);
            }
            Ok(Step::Failed(error)) => {
                fail(&error.message, out);
                self.is_ended = true;
            }
            Err(Malformed) => self.end(Err(Malformed), out),
        }
    }

    fn end(&mut self, finished: Result<(), Malformed>, out: &mut Vec<u8>) {
        if finished.is_err() {
            fail("The provider sent an event that is not what its protocol says.", out);
        }
        self.is_ended = true;
    }
}

/// Writes the final line of a failed answer.
fn fail(message: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(json!({ "error": message }).to_string().as_bytes());
    out.push(b'\n');
}
