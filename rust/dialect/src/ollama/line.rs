//! The common members of an answer's lines: the requested model name, the time, and in the last line counts and
//! durations.

use fairlead_core::{rfc3339, Usage};

use super::OllamaCall;
use crate::model::{Call, Stop};
use crate::text::{Text, Writer};

/// The data needed to write an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerForm {
    pub call: OllamaCall,
    /// The model name in the request.
    pub model: String,
    /// The caller did not disable reasoning.
    pub shows_thinking: bool,
}

/// The times that a line of an answer reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerTime {
    /// Milliseconds since 1970 (UTC).
    pub unix_ms: u64,
    /// Nanoseconds since the arrival of the request, from a monotonic clock.
    pub since_start_ns: u64,
    /// Nanoseconds from the request to the start of its answer, once it has started.
    pub until_first_ns: Option<u64>,
}

impl AnswerForm {
    /// Writes the first members.
    pub(super) fn open(&self, out: &mut Writer, at: AnswerTime) {
        out.open(b'{').key("model").str(&self.model).key("created_at").str(&rfc3339(at.unix_ms));
    }

    /// Writes a line other than the last, with a piece of the answer's text. `more` adds members to the message.
    pub(super) fn piece(&self, at: AnswerTime, text: &Text<'_>, more: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut out = Writer::default();
        self.open(&mut out, at);
        self.message(&mut out, text, more);
        out.key("done").flag(false);
        let mut line = out.close(b'}').take();
        line.push(b'\n');
        line
    }

    /// Writes the answer's text into the member that the call uses.
    pub(super) fn message(&self, out: &mut Writer, text: &Text<'_>, more: impl FnOnce(&mut Writer)) {
        match self.call {
            OllamaCall::Chat => {
                out.key("message").open(b'{').key("role").raw(r#""assistant""#).member("content", text);
                more(out);
                out.close(b'}');
            }
            OllamaCall::Generate => {
                out.member("response", text);
                more(out);
            }
        }
    }
}

/// Writes the final members of a completed answer.
pub(super) fn close(out: &mut Writer, stop: Stop, usage: &Usage, at: AnswerTime) {
    let reason = match stop {
        Stop::End | Stop::Sequence | Stop::Tools => "stop",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    };
    let first_ns = at.until_first_ns.unwrap_or(at.since_start_ns);
    out.key("done").flag(true).key("done_reason").str(reason);
    out.key("total_duration").number(at.since_start_ns).key("load_duration").number(0);
    out.key("prompt_eval_count").number(usage.input).key("prompt_eval_duration").number(first_ns);
    out.key("eval_count").number(usage.output);
    out.key("eval_duration").number(at.since_start_ns.saturating_sub(first_ns)).close(b'}');
}

/// Writes a tool call. Its arguments must be an object.
pub(super) fn write_call(out: &mut Writer, call: &Call<'_>, index: u64) {
    out.open(b'{').member("id", &call.id).key("function").open(b'{').key("index").number(index);
    out.member("name", &call.name).key("arguments").raw(&call.arguments).close(b'}').close(b'}');
}
