//! The model's events, written as a generateContent stream: chunks, each a whole answer that holds what is new.
//!
//! A stream is a series of events, or, where the caller did not ask for events, one JSON list that grows.

use fairlead_core::Usage;

use super::usage;
use super::whole::{finish_reason, write_call, write_text};
use crate::arguments::CallBuffer;
use crate::model::{Call, Event, Stop};
use crate::shapes::{error_body, ErrorText, Surface};
use crate::signature::{for_gemini_caller, of_redacted};
use crate::step::Malformed;
use crate::text::Writer;

/// How chunks are told apart.
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

/// The model's events, written as a generateContent stream: chunks, each a whole answer that holds what is new.
#[derive(Debug)]
pub(crate) struct Encoder {
    framing: Framing,
    /// Model and id, as every chunk ends with them.
    closing: Vec<u8>,
    signature: Option<String>,
    /// The call that is under way: it is told whole.
    call: CallBuffer,
}

impl Encoder {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, closing: Vec::new(), signature: None, call: CallBuffer::default() }
    }

    /// A fault: the arguments of a call that has ended are no object.
    pub(crate) fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match event {
            Event::Start { id, model } => {
                let mut closing = Writer::default();
                closing.open(b',').member("modelVersion", &model.unwrap_or_else(|| "".into()));
                closing.member("responseId", &id.unwrap_or_else(|| "".into()));
                self.closing = closing.take();
            }
            // Refused where the request is translated.
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
            Event::Call { id, name } => {
                self.end_call(out)?;
                self.call.begin(id, name);
            }
            Event::Arguments(text) => self.call.push(&text),
            Event::BlockEnd => {
                let call = self.call.take_whole();
                self.tell_call(call, out);
            }
        }
        Ok(())
    }

    /// The regular end, whatever came before.
    pub(crate) fn finish(&mut self, stop: Stop, usage: Option<Usage>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let call = self.call.take_last(stop)?;
        self.tell_call(call, out);
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
        self.tell_call(call, out);
        Ok(())
    }

    fn tell_call(&mut self, call: Option<Call<'_>>, out: &mut Vec<u8>) {
        let Some(call) = call else { return };
        let signature = self.signature.take();
        self.chunk(out, |part| write_call(part, &call, true, signature.as_deref()));
    }
}
