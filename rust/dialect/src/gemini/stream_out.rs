//! Writes the model's events as a generateContent stream. Each chunk is a complete answer with the new content.
//!
//! A stream is a series of events, or a growing JSON array if the caller did not request events.

use fairlead_core::Usage;

use super::complete::{finish_reason, write_call, write_text};
use super::part_out::write_part;
use super::usage;
use crate::arguments::CallBuffer;
use crate::model::{Call, Event, Part, Stop};
use crate::shapes::{error_body, ErrorText, Surface};
use crate::signature::{for_gemini_caller, of_redacted};
use crate::step::Malformed;
use crate::text::Writer;

/// How chunks are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Events,
    /// The elements of a list, and whether it has any yet.
    List {
        is_open: bool,
    },
}

impl Framing {
    pub(crate) fn new(is_list: bool) -> Self {
        if is_list {
            Self::List { is_open: false }
        } else {
            Self::Events
        }
    }

    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        let before: &[u8] = match self {
            Self::Events => b"data: ",
            Self::List { is_open: false } => b"[",
            Self::List { is_open: true } => b",\r\n",
        };
        out.extend_from_slice(before);
        if let Self::List { is_open } = self {
            *is_open = true;
        }
    }

    pub(crate) fn end(self, out: &mut Vec<u8>) {
        if self == Self::Events {
            out.extend_from_slice(b"\r\n\r\n");
        }
    }

    /// Ends the stream.
    pub(crate) fn close(self, out: &mut Vec<u8>) {
        match self {
            Self::Events => {}
            Self::List { is_open: true } => out.extend_from_slice(b"]"),
            Self::List { is_open: false } => out.extend_from_slice(b"[]"),
        }
    }

    pub(crate) fn fail(&mut self, error: &ErrorText<'_>, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(&error_body(Surface::Gemini, error, ""));
        self.end(out);
        self.close(out);
    }
}

/// Writes the model's events as a generateContent stream.
#[derive(Debug)]
pub(crate) struct Encoder {
    framing: Framing,
    /// The model and id that end every chunk.
    closing: Vec<u8>,
    signature: Option<String>,
    /// The current call, buffered because the dialect has no partial calls.
    call: CallBuffer,
}

impl Encoder {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, closing: Vec::new(), signature: None, call: CallBuffer::default() }
    }

    /// Fails if the arguments of a finished call are not an object.
    pub(crate) fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match event {
            Event::Start { id, model } => {
                let mut closing = Writer::default();
                closing.open(b',').member("modelVersion", &model.unwrap_or_else(|| "".into()));
                closing.member("responseId", &id.unwrap_or_else(|| "".into()));
                self.closing = closing.take();
            }
            // Rejected when the request is translated.
            Event::Logprobs(_) => {}
            Event::Text(text) | Event::Refusal(text) => {
                self.end_call(out)?;
                let signature = self.signature.take();
                self.chunk(out, |part| write_text(part, &text, signature.as_deref()));
            }
            Event::Thinking(text) => {
                self.end_call(out)?;
                self.chunk(out, |part| {
                    part.open(b'{').member("text", &text).key("thought").raw("true").close(b'}');
                });
            }
            Event::Signature(text) => {
                self.end_call(out)?;
                self.signature = Some(for_gemini_caller(&text.decode()));
            }
            Event::Redacted(text) => {
                self.end_call(out)?;
                self.signature = Some(for_gemini_caller(&of_redacted(&text.decode())));
            }
            Event::Media(content) => {
                self.end_call(out)?;
                let signature = self.signature.take();
                let mut part = Writer::default();
                write_part(&mut part, &Part::new("", content), signature.as_deref()).map_err(|_| Malformed)?;
                self.chunk(out, |chunk| {
                    chunk.spliced(&part.take());
                });
            }
            Event::Call { id, name } => {
                self.end_call(out)?;
                self.call.begin(id, name);
            }
            Event::Arguments(text) => self.call.push(&text),
            Event::BlockEnd => {
                let call = self.call.take_complete();
                self.write_call_event(call, out);
            }
        }
        Ok(())
    }

    /// Writes the regular end of the stream.
    pub(crate) fn finish(&mut self, stop: Stop, usage: Option<Usage>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let call = self.call.take_last(stop)?;
        self.write_call_event(call, out);
        let mut chunk = Writer::default();
        chunk.open(b'{').key("candidates").open(b'[').open(b'{').key("content").open(b'{').key("parts").open(b'[');
        write_text(&mut chunk, &"".into(), self.signature.take().as_deref());
        chunk.close(b']').key("role").raw(r#""model""#).close(b'}').key("finishReason").str(finish_reason(stop));
        chunk.key("index").number(0).close(b'}').close(b']').key("usageMetadata");
        usage::write(&mut chunk, &usage.unwrap_or_default());
        self.framing.begin(out);
        out.extend_from_slice(&chunk.take());
        out.extend_from_slice(&self.closing);
        out.push(b'}');
        self.framing.end(out);
        self.framing.close(out);
        Ok(())
    }

    pub(crate) fn fail(&mut self, error: &ErrorText<'_>, out: &mut Vec<u8>) {
        self.framing.fail(error, out);
    }

    fn chunk(&mut self, out: &mut Vec<u8>, part: impl FnOnce(&mut Writer)) {
        self.framing.begin(out);
        out.extend_from_slice(br#"{"candidates":[{"content":{"parts":["#);
        let mut writer = Writer::default();
        part(&mut writer);
        out.extend_from_slice(&writer.take());
        out.extend_from_slice(br#"],"role":"model"},"index":0}]"#);
        out.extend_from_slice(&self.closing);
        out.push(b'}');
        self.framing.end(out);
    }

    fn end_call(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let call = self.call.take()?;
        self.write_call_event(call, out);
        Ok(())
    }

    fn write_call_event(&mut self, call: Option<Call<'_>>, out: &mut Vec<u8>) {
        let Some(call) = call else { return };
        let signature = self.signature.take();
        self.chunk(out, |part| write_call(part, &call, true, signature.as_deref()));
    }
}
