//! Writes the model's events as JSON lines: one per piece of text, one per tool call, and a final one.

use fairlead_core::Usage;

use super::line::{close, write_call, AnswerForm, AnswerTime};
use crate::arguments::CallBuffer;
use crate::media::as_link;
use crate::model::{Call, Content, Event, Source, Stop};
use crate::step::Malformed;
use crate::text::{Text, Writer};

#[derive(Debug)]
pub(super) struct Encoder {
    form: AnswerForm,
    /// The current call, buffered because the dialect has no partial calls.
    call: CallBuffer,
    calls: u64,
    /// The log probabilities of the next text: a list or empty.
    logprobs: String,
}

impl Encoder {
    pub(super) fn new(form: AnswerForm) -> Self {
        Self { form, call: CallBuffer::default(), calls: 0, logprobs: String::new() }
    }

    /// Fails if the arguments of a finished call are not an object.
    pub(super) fn write(&mut self, event: Event<'_>, at: AnswerTime, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match event {
            Event::Start { .. } | Event::Signature(_) | Event::Redacted(_) => {}
            Event::Logprobs(list) => list.clone_into(&mut self.logprobs),
            Event::Text(text) | Event::Refusal(text) => {
                self.end_call(at, out)?;
                self.text(&text, at, out);
            }
            Event::Thinking(text) => {
                self.end_call(at, out)?;
                if self.form.shows_thinking {
                    out.extend_from_slice(&self.form.piece(at, &"".into(), |message| {
                        message.member("thinking", &text);
                    }));
                }
            }
            Event::Media(Content::Image(Source::Base64 { data, .. })) => {
                self.end_call(at, out)?;
                out.extend_from_slice(&self.form.piece(at, &"".into(), |message| {
                    message.key("images").open(b'[').str(&data).close(b']');
                }));
            }
            Event::Media(content) => {
                self.end_call(at, out)?;
                if let Some(link) = as_link(&content) {
                    self.text(&link, at, out);
                }
            }
            Event::Call { id, name } => {
                self.end_call(at, out)?;
                self.call.begin(id, name);
            }
            Event::Arguments(text) => self.call.push(&text),
            Event::BlockEnd => {
                let call = self.call.take_complete();
                self.write_call_event(call, at, out);
            }
        }
        Ok(())
    }

    /// Writes a line without content as a keep-alive, because JSON lines have no comments.
    pub(super) fn heartbeat(&self, at: AnswerTime) -> Vec<u8> {
        self.form.piece(at, &"".into(), |_| {})
    }

    /// Writes the regular final line.
    pub(super) fn finish(
        &mut self,
        stop: Stop,
        usage: Option<Usage>,
        at: AnswerTime,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let call = self.call.take_last(stop)?;
        self.write_call_event(call, at, out);
        let mut line = Writer::default();
        self.form.open(&mut line, at);
        self.form.message(&mut line, &"".into(), |_| {});
        close(&mut line, stop, &usage.unwrap_or_default(), at);
        out.extend_from_slice(&line.take());
        out.push(b'\n');
        Ok(())
    }

    fn text(&mut self, text: &Text<'_>, at: AnswerTime, out: &mut Vec<u8>) {
        let logprobs = std::mem::take(&mut self.logprobs);
        if logprobs.is_empty() {
            return out.extend_from_slice(&self.form.piece(at, text, |_| {}));
        }
        let mut line = Writer::default();
        self.form.open(&mut line, at);
        self.form.message(&mut line, text, |_| {});
        line.key("logprobs").raw(&logprobs).key("done").flag(false).close(b'}');
        out.extend_from_slice(&line.take());
        out.push(b'\n');
    }

    fn end_call(&mut self, at: AnswerTime, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let call = self.call.take()?;
        self.write_call_event(call, at, out);
        Ok(())
    }

    fn write_call_event(&mut self, call: Option<Call<'_>>, at: AnswerTime, out: &mut Vec<u8>) {
        let Some(call) = call else { return };
        let index = self.calls;
        self.calls += 1;
        out.extend_from_slice(&self.form.piece(at, &"".into(), |message| {
            message.key("tool_calls").open(b'[');
            write_call(message, &call, index);
            message.close(b']');
        }));
    }
}
