//! Rewrites the events of a streamed answer as those of a message.
//!
//! ```text
//! message-start                    message_start
//! content-start, content-delta     content_block_start, content_block_delta (text or thinking)
//! tool-plan-delta                  content_block_start, content_block_delta (thinking)
//! tool-call-start, tool-call-delta content_block_start, content_block_delta (tool_use)
//! content-end, tool-call-end       content_block_stop
//! message-end                      message_delta, message_stop
//! ```

use serde::Deserialize;
use std::borrow::Cow;

use super::usage::UsageIn;
use super::whole::{BlockIn, CallIn, FunctionIn};
use super::{message_id, stop_reason};
use crate::answer_context::AnswerContext;
use crate::protocol::{push_error, DeltaKind, EmptyBlock, MessageEvents};
use crate::sse::data_of;
use crate::text::Text;
use crate::tool_names::ToolNames;

/// An event that is longer is not one of Cohere's.
const MAX_EVENT_BYTES: usize = 16 << 20;
/// The longest end of an event but one byte: two line ends.
const MAX_END_BYTES: usize = 3;
const NOT_AN_EVENT: &str = "The provider's event stream is not as its protocol says.";

#[derive(Deserialize)]
struct EventIn<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    delta: Option<DeltaIn<'a>>,
    /// The text of an error in place of an event.
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DeltaIn<'a> {
    #[serde(borrow)]
    message: Option<MessageIn<'a>>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
    usage: Option<UsageIn>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageIn<'a> {
    #[serde(borrow)]
    content: Option<ContentIn<'a>>,
    #[serde(borrow)]
    tool_plan: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_calls: Option<CallsIn<'a>>,
}

/// The content of a delta; an empty list at the start of a message.
#[derive(Deserialize)]
#[serde(untagged)]
enum ContentIn<'a> {
    #[serde(borrow)]
    Block(BlockIn<'a>),
    Empty(serde::de::IgnoredAny),
}

/// One call at its start, its arguments later; an empty list at the start of a message.
#[derive(Deserialize)]
#[serde(untagged)]
enum CallsIn<'a> {
    #[serde(borrow)]
    Start(CallIn<'a>),
    #[serde(borrow)]
    More(MoreIn<'a>),
    Empty(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct MoreIn<'a> {
    #[serde(borrow)]
    function: FunctionIn<'a>,
}

/// The stream has ended with an error, which has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

/// The kind of the open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    Call,
}

/// The state of one streamed answer.
#[derive(Debug)]
pub(crate) struct StreamReader {
    model: String,
    id: String,
    names: ToolNames,
    buffer: Vec<u8>,
    has_started: bool,
    open: Option<Open>,
    events: MessageEvents,
}

impl StreamReader {
    pub(crate) fn new(model: &str, context: &AnswerContext) -> Self {
        Self {
            model: model.to_owned(),
            id: context.id.clone(),
            names: context.tool_names.clone(),
            buffer: Vec::new(),
            has_started: false,
            open: None,
            events: MessageEvents::default(),
        }
    }

    /// Reads a chunk, and appends the events that its complete events become.
    pub(crate) fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Ended> {
        // The end of an event may be cut.
        let mut searched = self.buffer.len().saturating_sub(MAX_END_BYTES);
        self.buffer.extend_from_slice(chunk);
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut start = 0;
        while let Some((end, next)) = find_end(&buffer, searched) {
            if let Some(data) = data_of(&buffer[start..end]).filter(|data| !data.is_empty()) {
                self.read(&data, out)?;
            }
            (start, searched) = (next, next);
        }
        buffer.drain(..start);
        if buffer.len() > MAX_EVENT_BYTES {
            return fail("api_error", NOT_AN_EVENT, out);
        }
        self.buffer = buffer;
        Ok(())
    }

    fn read(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), Ended> {
        if data == b"[DONE]" {
            return Ok(());
        }
        let Ok(event) = serde_json::from_slice::<EventIn<'_>>(data) else {
            return fail("api_error", NOT_AN_EVENT, out);
        };
        let delta = event.delta.unwrap_or_default();
        let message = delta.message.unwrap_or_default();
        match &*event.r#type {
            "message-start" => self.start(event.id.as_deref(), out),
            "content-start" | "content-delta" => {
                if let Some(ContentIn::Block(block)) = message.content {
                    self.block(block, &event.r#type, out);
                }
            }
            "tool-plan-delta" => {
                if let Some(plan) = message.tool_plan.filter(|plan| !plan.is_empty()) {
                    self.text(Open::Thinking, plan, out);
                }
            }
            "tool-call-start" | "tool-call-delta" => self.call(message.tool_calls, out),
            "content-end" | "tool-call-end" => self.end_block(out),
            "message-end" => {
                let usage = delta.usage.unwrap_or_default();
                self.end_block(out);
                match stop_reason(delta.finish_reason.as_deref().unwrap_or("COMPLETE")) {
                    Ok(reason) => self.events.stop(reason, |writer| usage.write(writer), out),
                    Err(message) => return fail("api_error", delta.error.as_deref().unwrap_or(&message), out),
                }
            }
            "error" => return fail("api_error", event.message.as_deref().unwrap_or("The model failed."), out),
            // Citations have no form in a message. Other events may be added to the protocol.
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, id: Option<&str>, out: &mut Vec<u8>) {
        self.has_started = true;
        MessageEvents::start(&message_id(id, &self.id), &self.model, out);
    }

    fn block(&mut self, block: BlockIn<'_>, name: &str, out: &mut Vec<u8>) {
        let (open, text) = match block {
            BlockIn { thinking: Some(text), .. } => (Open::Thinking, text),
            BlockIn { text: Some(text), .. } => (Open::Text, text),
            BlockIn { .. } => return,
        };
        if name == "content-start" {
            self.end_block(out);
        }
        if !text.is_empty() || name == "content-start" {
            self.text(open, text, out);
        }
    }

    fn text(&mut self, open: Open, text: Cow<'_, str>, out: &mut Vec<u8>) {
        if !self.has_started {
            self.start(None, out);
        }
        let (block, kind) = match open {
            Open::Thinking => (EmptyBlock::Thinking, DeltaKind::Thinking),
            Open::Text | Open::Call => (EmptyBlock::Text, DeltaKind::Text),
        };
        if self.open != Some(open) {
            self.events.begin_empty(block, out);
            self.open = Some(open);
        }
        if !text.is_empty() {
            self.events.delta(kind, &Text::from(text.into_owned()), out);
        }
    }

    fn call(&mut self, calls: Option<CallsIn<'_>>, out: &mut Vec<u8>) {
        let arguments = match calls {
            Some(CallsIn::Start(call)) => {
                if !self.has_started {
                    self.start(None, out);
                }
                let name = call.name(&self.names);
                self.events.begin_call(&Text::from(call.id.into_owned()), &name, out);
                self.open = Some(Open::Call);
                call.function.arguments
            }
            Some(CallsIn::More(more)) if self.open == Some(Open::Call) => more.function.arguments,
            _ => None,
        };
        if let Some(arguments) = arguments.filter(|text| !text.is_empty()) {
            self.events.delta(DeltaKind::Input, &Text::from(arguments.into_owned()), out);
        }
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        self.open = None;
        self.events.end_block(out);
    }
}

fn fail(kind: &str, message: &str, out: &mut Vec<u8>) -> Result<(), Ended> {
    push_error(kind, message, out);
    Err(Ended)
}

/// Finds the first empty line at or after `from`, which ends an event. Returns the end of the event, and the start of the
/// next one.
fn find_end(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let ends = memchr::memchr_iter(b'\n', bytes.get(from..)?).map(|at| from + at);
    for end in ends {
        match bytes.get(end + 1..)? {
            [b'\n', ..] => return Some((end, end + 2)),
            [b'\r', b'\n', ..] => return Some((end, end + 3)),
            _ => {}
        }
    }
    None
}
