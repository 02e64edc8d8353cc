//! A chat stream, told in lines of JSON as it comes: whatever happens the caller gets exactly one end.

use bytes::Bytes;
use serde_json::json;

use super::line::{AnswerForm, AnswerTime};
use super::stream_out::Encoder;
use crate::model::{Event, Stop};
use crate::openai::stream_in::Reader;
use crate::sse::{data_of, Framer, Limits, Part, Verdict};
use crate::step::{read_event, Malformed, Step};

/// An event longer than this is a fault; up to it, it is held until it is whole.
const MAX_EVENT_BYTES: usize = 8 << 20;

/// Turns the events of a chat stream into lines.
pub struct Lines {
    framer: Framer,
    state: State,
}

#[derive(Debug)]
struct State {
    reader: Reader,
    encoder: Encoder,
    /// When the first event came.
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

    /// Takes the next chunk of the stream and gives the lines that it completes. `at` needs no time of the beginning.
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

    /// Ends the lines where the stream has ended: with a failure, unless its end was told.
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

/// The line that ends an answer which failed.
fn fail(message: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(json!({ "error": message }).to_string().as_bytes());
    out.push(b'\n');
}
