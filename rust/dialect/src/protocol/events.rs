//! Turns the events of Amazon's and Cohere's streams into server-sent events of the messages dialect, which every later
//! step reads. A stream that breaks its format, or holds an exception, ends with an `error` event.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use bytes::Bytes;
use fairlead_core::Protocol;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::frames::{Damaged, Frame, Frames};
use super::message_events::{push_error, push_event};
use crate::answer_context::AnswerContext;
use crate::{cohere, converse};

/// The types of Anthropic's errors for Bedrock's exceptions.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("throttlingException", "rate_limit_error"),
    ("serviceUnavailableException", "overloaded_error"),
    ("modelTimeoutException", "timeout_error"),
    ("validationException", "invalid_request_error"),
];

/// Reads one streamed answer.
#[derive(Debug)]
pub struct EventReader {
    source: Source,
    /// An error event was written. Everything after it is ignored.
    is_ended: bool,
}

#[derive(Debug)]
enum Source {
    /// Amazon's frames. `converse` reads the events of `ConverseStream`; without it they are events of the messages
    /// dialect.
    Amazon {
        frames: Frames,
        converse: Option<Box<converse::StreamReader>>,
    },
    Cohere(Box<cohere::StreamReader>),
}

impl EventReader {
    /// Returns the reader for a protocol's streams. `None`: they are server-sent events of the dialect. The context has
    /// the answer's id if the provider gives none.
    pub fn of(protocol: Protocol, model: &str, context: &AnswerContext) -> Option<Self> {
        let amazon = |converse| Source::Amazon { frames: Frames::default(), converse };
        let source = match protocol {
            Protocol::Own
            | Protocol::VertexRawPredict
            | Protocol::BedrockTitanEmbed
            | Protocol::BedrockCohereEmbed
            | Protocol::BedrockRerank
            | Protocol::BedrockCanvas
            | Protocol::BedrockStability
            | Protocol::VertexPredictEmbed => return None,
            Protocol::BedrockInvoke => amazon(None),
            Protocol::BedrockConverse => amazon(Some(Box::new(converse::StreamReader::new(model, context)))),
            Protocol::CohereChat => Source::Cohere(Box::new(cohere::StreamReader::new(model, context))),
        };
        Some(Self { source, is_ended: false })
    }

    /// Reads a chunk and returns its complete events.
    pub fn push(&mut self, chunk: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(chunk.len());
        if self.is_ended {
            return Bytes::new();
        }
        match &mut self.source {
            Source::Cohere(cohere) => self.is_ended = cohere.push(chunk, &mut out).is_err(),
            Source::Amazon { frames, .. } => {
                frames.push(chunk);
                self.read_frames(&mut out);
            }
        }
        out.into()
    }

    /// Ends the stream. Returns the events that the provider left out.
    pub fn finish(&mut self) -> Bytes {
        let mut out = Vec::new();
        match &mut self.source {
            Source::Amazon { frames, converse: Some(converse) } if !self.is_ended && !frames.is_mid_frame() => {
                converse.finish(&mut out);
            }
            // An answer without its last event has broken off.
            Source::Amazon { .. } | Source::Cohere(_) => {}
        }
        out.into()
    }

    fn read_frames(&mut self, out: &mut Vec<u8>) {
        while !self.is_ended {
            let Source::Amazon { frames, converse } = &mut self.source else { return };
            let error = match frames.next_frame() {
                Ok(Some(frame)) => read_frame(&frame, converse.as_deref_mut(), out),
                Ok(None) => return,
                Err(Damaged) => {
                    Err(("api_error", "The provider's event stream is damaged: a checksum is wrong.".into()))
                }
            };
            if let Err((kind, message)) = error {
                self.is_ended = true;
                push_error(kind, &message, out);
            }
        }
    }
}

/// Reads one message. An error ends the stream: its type and its message.
fn read_frame(
    frame: &Frame,
    converse: Option<&mut converse::StreamReader>,
    out: &mut Vec<u8>,
) -> Result<(), (&'static str, String)> {
    match &*frame.message_type {
        "exception" => {
            let kind = EXCEPTIONS.iter().find(|(name, _)| frame.name.eq_ignore_ascii_case(name));
            let message = exception_text(&frame.payload).unwrap_or_else(|| frame.name.clone());
            Err((kind.map_or("api_error", |(_, kind)| kind), message))
        }
        "error" => {
            let message = if frame.error_message.is_empty() { &frame.name } else { &frame.error_message };
            Err(("api_error", message.clone()))
        }
        _ => {
            let is_read = match converse {
                Some(converse) => converse.read(&frame.name, &frame.payload, out).is_ok(),
                None => read_chunk(&frame.payload, out).is_some(),
            };
            let message = || "The provider's event stream is not as its protocol says.".to_owned();
            is_read.then_some(()).ok_or_else(|| ("api_error", message()))
        }
    }
}

/// Reads a `chunk`: `bytes` is the base64 of an event of the messages dialect. An empty chunk is ignored.
fn read_chunk(payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
    #[derive(Deserialize)]
    struct Chunk<'a> {
        #[serde(borrow, default)]
        bytes: Option<Cow<'a, str>>,
    }
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
    }
    let chunk: Chunk<'_> = serde_json::from_slice(payload).ok()?;
    let Some(encoded) = chunk.bytes else { return Some(()) };
    let event = STANDARD.decode(encoded.as_bytes()).ok()?;
    let name = serde_json::from_slice::<Event<'_>>(&event).ok()?.r#type.into_owned();
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| push_event(&name, &event, out))
}

fn exception_text(payload: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Exception<'a> {
        #[serde(borrow, default, alias = "Message")]
        message: Option<&'a RawValue>,
    }
    let exception: Exception<'_> = serde_json::from_slice(payload).ok()?;
    serde_json::from_str(exception.message?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::frames::frame;
    use super::*;

    fn chunk(event: &str) -> Vec<u8> {
        let payload = format!(r#"{{"bytes":"{}","p":"abcdef"}}"#, STANDARD.encode(event));
        let headers = [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
        frame(&headers, payload.as_bytes())
    }

    fn exception(name: &str, payload: &str) -> Vec<u8> {
        frame(&[(":exception-type", name), (":message-type", "exception")], payload.as_bytes())
    }

    fn read(reader: &mut EventReader, stream: &[u8]) -> String {
        let mut out = String::new();
        for part in stream.chunks(7) {
            out.push_str(std::str::from_utf8(&reader.push(part)).expect("text"));
        }
        out
    }

    fn reader() -> EventReader {
        EventReader::of(Protocol::BedrockInvoke, "m", &AnswerContext::default()).expect("a reader")
    }

    #[test]
    fn a_chunk_becomes_the_event_in_it() {
        let stream =
            [chunk("{\"type\":\"message_start\",\n\"message\":{}}"), chunk(r#"{"type":"message_stop"}"#)].concat();
        let expected = "event: message_start\ndata: {\"type\":\"message_start\", \"message\":{}}\n\n\
                        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        assert_eq!(read(&mut reader(), &stream), expected);
    }

    #[test]
    fn an_exception_becomes_an_error() {
        for (name, kind) in [
            ("throttlingException", "rate_limit_error"),
            ("ThrottlingException", "rate_limit_error"),
            ("modelStreamErrorException", "api_error"),
            ("internalServerException", "api_error"),
            ("validationException", "invalid_request_error"),
            ("modelTimeoutException", "timeout_error"),
            ("serviceUnavailableException", "overloaded_error"),
        ] {
            let mut reader = reader();
            let stream = [exception(name, r#"{"message":"Too \"many\"."}"#), chunk(r#"{"type":"ping"}"#)].concat();
            let data = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"Too \"many\"."}}}}"#);
            assert_eq!(read(&mut reader, &stream), format!("event: error\ndata: {data}\n\n"), "{name}");
        }
        let error = frame(&[(":message-type", "error"), (":error-code", "500"), (":error-message", "Bad")], b"");
        assert!(read(&mut reader(), &error).contains(r#""message":"Bad""#));
    }

    #[test]
    fn a_damaged_stream_ends_with_an_error() {
        let mut damaged = chunk(r#"{"type":"ping"}"#);
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        let mut reader = reader();
        let events = read(&mut reader, &damaged);
        assert!(events.starts_with("event: error\n") && events.contains("a checksum is wrong"), "{events}");
        assert_eq!(reader.push(&chunk(r#"{"type":"ping"}"#)).len(), 0);
        for payload in ["", "7", r#"{"bytes":"%%"}"#, r#"{"bytes":"e30="}"#, r#"{"bytes":"eyJ0eXBlIjoiYVxuYiJ9"}"#] {
            let frame = frame(&[(":message-type", "event"), (":event-type", "chunk")], payload.as_bytes());
            let mut reader =
                EventReader::of(Protocol::BedrockInvoke, "m", &AnswerContext::default()).expect("a reader");
            assert!(read(&mut reader, &frame).starts_with("event: error\n"), "{payload}");
        }
    }
}
