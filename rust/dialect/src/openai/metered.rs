//! Inspects answers that pass unchanged for their usage and for errors.
//!
//! Providers report the usage of such answers in several formats: `prompt_tokens` or `input_tokens`, a single
//! `total_tokens`, or `meta.tokens` as Cohere does. A stream of typed events (`image_generation.completed`,
//! `transcript.text.done`, `speech.audio.done`) reports it in the event that ends an item.

use bytes::Bytes;
use fairlead_core::json::{self, JsonFault, Kind, Scan, Value};
use fairlead_core::{Error, ErrorKind, Retry, Units, Usage, MAX_UNITS};

use super::error::{self, UpstreamError};
use super::stream::has_finish;
use super::unfinished::Unfinished;
use super::usage;
use crate::lenient;
use crate::sse::{data_of, Flow, Framer, Limits, Part, Verdict};
use crate::Pieces;

const MAX_DEPTH: usize = 16;
/// The members that are read from an event.
const EVENT_MEMBERS: [&str; 7] = ["type", "usage", "error", "meta", "duration", "usage_info", "choices"];
/// An event can contain an image.
const LIMITS: Limits = Limits { held_bytes: 1 << 20, event_bytes: 64 << 20 };

/// The relevant data of a complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metered {
    pub usage: Option<Usage>,
    /// The billing units other than tokens that the provider reported.
    pub units: Units,
    pub error: Option<UpstreamError>,
    /// The member that such an answer requires is present.
    pub is_answer: bool,
    /// The number of its elements.
    pub listed: u64,
}

/// Inspects a body. Fails if the body is not a single JSON object.
pub fn inspect(body: &[u8], member: &str) -> Result<Metered, JsonFault> {
    lenient::read(body, |body| inspect_strictly(body, member))
}

fn inspect_strictly(body: &[u8], member: &str) -> Result<Metered, JsonFault> {
    let wanted = ["usage", "error", "meta", "duration", "usage_info", member];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH)?;
    let listed = scan.get(member).filter(|value| value.kind == Kind::Array).map_or(0, |value| value.elements as u64);
    let mut units = read_units(body, &scan);
    if member == "pages" {
        units = Units { pages: listed, ..Units::default() }.updated_with(units);
    }
    let error = scan.get("error").filter(|member| error::is_error(*member));
    Ok(Metered {
        usage: read_usage(body, &scan),
        units,
        listed,
        error: error.map(|member| error::read(body, member)),
        is_answer: scan.get(member).is_some_and(|value| !value.is_null()),
    })
}

fn read_usage<const N: usize>(body: &[u8], scan: &Scan<'_, N>) -> Option<Usage> {
    if let Some(used) = object(body, scan, "usage") {
        return read_object(used);
    }
    let meta = object(body, scan, "meta")?;
    let inner = json::scan_object(meta, &["tokens", "billed_units"], MAX_DEPTH).ok()?;
    object(meta, &inner, "tokens").or_else(|| object(meta, &inner, "billed_units")).and_then(read_object)
}

/// Reads the units other than tokens: the length of a recording, pages, searches.
fn read_units<const N: usize>(body: &[u8], scan: &Scan<'_, N>) -> Units {
    let mut units = Units::default();
    let count = |object: &[u8], name: &'static str| {
        let wanted = [name];
        let scan = json::scan_object(object, &wanted, MAX_DEPTH).ok()?;
        json::as_u64(object, scan.get(name)?).filter(|count| *count <= MAX_UNITS)
    };
    let seconds = |object: &[u8], scan: Option<Value>| milliseconds(object.get(scan?.span())?);
    if let Some(used) = object(body, scan, "usage") {
        let duration = json::scan_object(used, &["seconds"], MAX_DEPTH).ok().and_then(|scan| scan.get("seconds"));
        units.audio_ms = seconds(used, duration).unwrap_or(0);
    }
    if units.audio_ms == 0 {
        units.audio_ms = seconds(body, scan.get("duration")).unwrap_or(0);
    }
    if let Some(info) = object(body, scan, "usage_info") {
        units.pages = count(info, "pages_processed").unwrap_or(0);
    }
    let meta = object(body, scan, "meta").unwrap_or(b"{}");
    let billed = json::scan_object(meta, &["billed_units"], MAX_DEPTH).ok();
    if let Some(billed) = billed.and_then(|scan| object(meta, &scan, "billed_units")) {
        units.queries = count(billed, "search_units").unwrap_or(0);
        units.images = count(billed, "images").unwrap_or(0);
    }
    units
}

/// Parses seconds from a number or, as some providers write it, a string.
fn milliseconds(token: &[u8]) -> Option<u64> {
    let seconds: f64 = std::str::from_utf8(token).ok()?.trim_matches('"').parse().ok()?;
    let ms = (seconds * 1_000.0).ceil();
    // An absurd length is ignored.
    (ms > 0.0 && ms < 1e12).then_some(ms as u64)
}

/// Reads the usage from an event of a realtime conversation. Only `response.done` has it.
pub fn of_realtime(event: &[u8]) -> Option<Usage> {
    memchr::memmem::find(event, b"response.done")?;
    let scan = json::scan_object(event, &["type", "response"], json::MAX_DEPTH).ok()?;
    let kind = scan.get("type").and_then(|kind| json::as_str(event, kind))?;
    let response = object(event, &scan, "response").filter(|_| kind == "response.done")?;
    let inner = json::scan_object(response, &["usage"], json::MAX_DEPTH).ok()?;
    object(response, &inner, "usage").and_then(read_object)
}

fn object<'b, const N: usize>(bytes: &'b [u8], scan: &Scan<'_, N>, name: &str) -> Option<&'b [u8]> {
    let value = scan.get(name).filter(|value| value.kind == Kind::Object)?;
    bytes.get(value.span())
}

/// Reads a `usage` object in any of the formats.
fn read_object(used: &[u8]) -> Option<Usage> {
    let wanted = ["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens"];
    let scan = json::scan_object(used, &wanted, MAX_DEPTH).ok()?;
    if scan.get("prompt_tokens").is_some() || scan.get("completion_tokens").is_some() {
        return usage::read(used);
    }
    let count = |name| scan.get(name).and_then(|value| usage::tokens(used, value));
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    let input_or_all = input.or_else(|| count("total_tokens").map(|all| all.saturating_sub(output.unwrap_or(0))));
    if input_or_all.is_none() && output.is_none() {
        return None;
    }
    let input = input_or_all.unwrap_or(0);
    let cached = usage::Cached::of(used);
    let read = cached.read.min(input);
    let cache_write = cached.written.min(input - read);
    Some(Usage { input, output: output.unwrap_or(0), cached: read, cache_write, ..Usage::default() })
}

/// Whether a text completion had a finish reason. If not, the gateway adds a final event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// No choices have arrived, so it is another kind of stream.
    NotNeeded,
    Missing,
    Found,
}

/// Follows a stream of typed events to its end.
pub struct Meter {
    framer: Framer,
    state: State,
}

/// The data collected from the events so far.
struct State {
    usage: Option<Usage>,
    units: Units,
    is_finished: bool,
    reason: Reason,
    unfinished: Unfinished,
    failure: Option<UpstreamError>,
    has_answered: bool,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter")
            .field("usage", &self.state.usage)
            .field("is_finished", &self.state.is_finished)
            .finish_non_exhaustive()
    }
}

/// The result of a chunk.
#[derive(Debug)]
pub struct MeteredPiece {
    pub pieces: Pieces,
    /// The stream has ended.
    pub done: bool,
}

/// How a stream of typed events ended.
#[derive(Debug)]
pub struct Ending {
    pub usage: Option<Usage>,
    pub units: Units,
    /// The error, if it failed.
    pub error: Option<Error>,
    /// Buffered bytes that can be passed on.
    pub rest: Bytes,
    /// The error that the stream itself reports.
    pub reported: Option<UpstreamError>,
}

impl Default for Meter {
    fn default() -> Self {
        let state = State {
            usage: None,
            units: Units::default(),
            is_finished: false,
            reason: Reason::NotNeeded,
            unfinished: Unfinished::default(),
            failure: None,
            has_answered: false,
        };
        Self { framer: Framer::new(LIMITS), state }
    }
}

impl Meter {
    pub fn push(&mut self, chunk: &Bytes) -> MeteredPiece {
        let Self { framer, state } = self;
        let (mut pieces, flow) = framer.push(chunk, |part| state.judge(part));
        pieces.extend(state.unfinished.events());
        MeteredPiece { pieces, done: flow != Flow::Open }
    }

    pub fn usage(&self) -> Option<Usage> {
        self.state.usage
    }

    /// Returns the units other than tokens reported so far.
    pub fn units(&self) -> Units {
        self.state.units
    }

    /// Returns whether an event of the answer has arrived.
    pub fn has_answered(&self) -> bool {
        self.state.has_answered
    }

    /// Ends the stream. `broken` is the error if the provider's body ended abnormally.
    pub fn finish(self, broken: Option<Error>) -> Ending {
        let State { usage, units, is_finished, failure, .. } = self.state;
        if let Some(reported) = failure {
            let message = "The provider reported an error in its stream.";
            let error = Some(Error::upstream(ErrorKind::UpstreamStatus, Retry::Never, message));
            return Ending { usage, units, error, rest: Bytes::new(), reported: Some(reported) };
        }
        let rest = self.framer.close();
        let error = broken.or_else(|| {
            let message = "The provider ended its stream before the answer was complete.";
            (!is_finished || (rest.mid_event && !rest.is_complete))
                .then(|| Error::upstream(ErrorKind::UpstreamReset, Retry::Never, message))
        });
        let rest = if error.is_none() && rest.is_complete { rest.bytes } else { Bytes::new() };
        Ending { usage, units, error, rest, reported: None }
    }
}

impl State {
    fn judge(&mut self, part: Part<'_>) -> Verdict {
        let (Part::Event(bytes) | Part::Opening(bytes)) = part else { return Verdict::Pass };
        let Some(data) = data_of(bytes) else { return Verdict::Pass };
        self.has_answered = true;
        if data.starts_with(b"[DONE]") {
            self.is_finished = true;
            if self.reason == Reason::Missing {
                self.unfinished.end();
                return Verdict::Stop;
            }
            return Verdict::Last;
        }
        match lenient::read(&data, |data| self.read_event(data)) {
            Ok(verdict) => verdict,
            Err(_) if matches!(part, Part::Event(_)) => Verdict::Stop,
            Err(_) => {
                // The start of an event that is too long to buffer is not complete JSON. The finish reason may
                // follow later in the event.
                self.reason = Reason::Found;
                Verdict::Pass
            }
        }
    }

    fn read_event(&mut self, data: &[u8]) -> Result<Verdict, JsonFault> {
        let scan = json::scan_object(data, &EVENT_MEMBERS, json::MAX_DEPTH)?;
        if let Some(member) = scan.get("error").filter(|member| error::is_error(*member)) {
            self.failure = Some(error::read(data, member));
            return Ok(Verdict::Last);
        }
        self.usage = read_usage(data, &scan).or(self.usage);
        if self.reason != Reason::Found && scan.get("choices").is_some_and(|choices| choices.elements > 0) {
            self.reason = if has_finish(data) { Reason::Found } else { Reason::Missing };
            self.unfinished.begin(data);
        }
        let kind = scan.get("type").and_then(|kind| json::as_str(data, kind));
        let is_picture = kind.as_ref().is_some_and(|kind| kind.starts_with("image_") && kind.ends_with(".completed"));
        self.units = Units {
            images: self.units.images.saturating_add(u64::from(is_picture)),
            ..self.units.updated_with(read_units(data, &scan))
        };
        if kind.is_some_and(|kind| kind.ends_with(".completed") || kind.ends_with(".done")) {
            self.is_finished = true;
        }
        Ok(Verdict::Pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    #[test]
    fn every_spelling_of_usage_is_read() {
        for (body, expected) in [
            (r#"{"data":[],"usage":{"prompt_tokens":5,"total_tokens":5}}"#, usage(5, 0)),
            (r#"{"data":[],"usage":{"input_tokens":7,"output_tokens":9,"total_tokens":16}}"#, usage(7, 9)),
            (r#"{"data":[],"usage":{"total_tokens":11}}"#, usage(11, 0)),
            (r#"{"data":[],"meta":{"tokens":{"input_tokens":3,"output_tokens":0}}}"#, usage(3, 0)),
            (
                r#"{"data":[],"usage":{"input_tokens":7,"output_tokens":1,"input_tokens_details":{"cached_tokens":4}}}"#,
                Usage { cached: 4, ..usage(7, 1) },
            ),
        ] {
            let metered = inspect(body.as_bytes(), "data").expect("an object");
            assert_eq!((metered.usage, metered.is_answer), (Some(expected), true), "{body}");
        }
        for body in
            [r#"{"data":[]}"#, r#"{"data":[],"usage":{"seconds":3,"type":"duration"}}"#, r#"{"data":[],"usage":7}"#]
        {
            assert_eq!(inspect(body.as_bytes(), "data").expect("an object").usage, None, "{body}");
        }
    }

    #[test]
    fn things_beside_tokens_are_counted() {
        let none = Units::default();
        for (member, body, expected) in [
            ("data", r#"{"data":[{"url":"a"},{"url":"b"}]}"#, none),
            ("data", r#"{"data":[{}],"meta":{"billed_units":{"images":2}}}"#, Units { images: 2, ..none }),
            ("text", r#"{"text":"a","duration":3.25}"#, Units { audio_ms: 3_250, ..none }),
            ("text", r#"{"text":"a","duration":"12.5"}"#, Units { audio_ms: 12_500, ..none }),
            ("text", r#"{"text":"a","usage":{"type":"duration","seconds":9}}"#, Units { audio_ms: 9_000, ..none }),
            ("text", r#"{"text":"a","duration":-1}"#, none),
            ("text", r#"{"text":"a","duration":1e300}"#, none),
            ("pages", r#"{"pages":[{},{},{}]}"#, Units { pages: 3, ..none }),
            ("pages", r#"{"pages":[{}],"usage_info":{"pages_processed":4}}"#, Units { pages: 4, ..none }),
            ("results", r#"{"results":[],"meta":{"billed_units":{"search_units":2}}}"#, Units { queries: 2, ..none }),
            // An absurd count is ignored, and the number of elements applies.
            (
                "pages",
                r#"{"pages":[{}],"usage_info":{"pages_processed":9000000000000000000}}"#,
                Units { pages: 1, ..none },
            ),
            (
                "results",
                r#"{"results":[],"meta":{"billed_units":{"search_units":1000000001,"images":1000000001}}}"#,
                none,
            ),
            ("results", r#"{"results":[{},{}]}"#, none),
        ] {
            assert_eq!(inspect(body.as_bytes(), member).expect("an object").units, expected, "{body}");
        }
    }

    #[test]
    fn pictures_of_a_stream_are_counted() {
        let stream = "data: {\"type\":\"image_generation.partial_image\"}\n\n\
            data: {\"type\":\"image_generation.completed\"}\n\ndata: {\"type\":\"image_edit.completed\"}\n\n";
        let (_, ending) = followed(stream, 9);
        assert_eq!(ending.units, Units { images: 2, ..Units::default() });
    }

    #[test]
    fn a_conversation_tells_usage_when_a_response_is_done() {
        let done = br#"{"type":"response.done","response":{"usage":{"input_tokens":9,"output_tokens":4,"input_token_details":{"cached_tokens":3}}}}"#;
        assert_eq!(of_realtime(done), Some(Usage { cached: 3, ..usage(9, 4) }));
        assert_eq!(of_realtime(br#"{"type":"response.created","response":{"usage":null}}"#), None);
        assert_eq!(of_realtime(br#"{"type":"x","text":"response.done"}"#), None);
    }

    #[test]
    fn what_most_parsers_read_is_no_fault() {
        let odd = br#"{"id":1,"id":2,"choices":[{"text":"\ud83d"}],"usage":{"prompt_tokens":7}}"#;
        assert!(inspect(odd, "choices").expect("an object").usage.is_some_and(|usage| usage.input == 7));
    }

    #[test]
    fn an_error_under_200_and_a_missing_member_are_seen() {
        let metered = inspect(br#"{"error":{"message":"no"}}"#, "data").expect("an object");
        assert!(metered.error.is_some() && !metered.is_answer);
        assert!(inspect(b"<html>", "data").is_err());
    }

    #[test]
    fn an_event_that_most_parsers_read_ends_no_stream() {
        let half = r#"data: {"id":1,"id":2,"choices":[{"text":"\ud83d","finish_reason":null}]}"#;
        let last = r#"data: {"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":7}}"#;
        let stream = format!("{half}\n\n{last}\n\ndata: [DONE]\n\n");
        let (sent, ending) = followed(&stream, 9);
        assert_eq!(sent, stream);
        assert!(ending.error.is_none());
        assert_eq!(ending.usage.map(|usage| usage.input), Some(7));
    }

    fn followed(stream: &str, step: usize) -> (String, Ending) {
        let mut meter = Meter::default();
        let mut sent = Vec::new();
        for chunk in stream.as_bytes().chunks(step) {
            let passed = meter.push(&Bytes::copy_from_slice(chunk));
            sent.extend(passed.pieces.concat());
            if passed.done {
                break;
            }
        }
        let ending = meter.finish(None);
        sent.extend_from_slice(&ending.rest);
        (String::from_utf8(sent).expect("text"), ending)
    }

    #[test]
    fn typed_events_pass_byte_for_byte_however_they_are_cut() {
        let stream = "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\"}\n\n\
            data: {\"type\":\"image_generation.completed\",\"usage\":{\"input_tokens\":2,\"output_tokens\":3}}\r\n\r\n";
        for step in 1..stream.len() {
            let (sent, ending) = followed(stream, step);
            assert_eq!((sent.as_str(), ending.usage), (stream, Some(usage(2, 3))), "{step}");
            assert!(ending.error.is_none());
        }
    }

    #[test]
    fn a_text_completion_that_never_said_why_it_ended_is_ended_in_its_place() {
        let text = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n";
        let stop = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n";
        let done = "data: [DONE]\n\n";
        let (sent, ending) = followed(&[text, done].concat(), 7);
        let added = "data: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"text\":\"\"}]}\n\n";
        assert_eq!((sent, ending.error), ([text, added, done].concat(), None));
        assert!(followed(text, 7).1.error.is_some());
        let is_complete = [text, stop, done].concat();
        let (sent, ending) = followed(&is_complete, 7);
        assert!(sent == is_complete && ending.error.is_none());
        // A stream without choices has no finish reasons.
        assert!(followed(done, 7).1.error.is_none());
    }

    #[test]
    fn a_stream_without_its_end_is_a_failure() {
        let (_, ending) = followed("data: {\"type\":\"transcript.text.delta\"}\n\n", 9);
        assert_eq!(ending.error.map(|error| error.kind), Some(ErrorKind::UpstreamReset));
        let (sent, ending) = followed("data: {\"error\":{\"message\":\"no\"}}\n\ndata: {}\n\n", 500);
        assert!(ending.reported.is_some() && ending.error.is_some() && !sent.contains("{}"));
    }
}
