//! Rewrites the events of a `ConverseStream` answer as those of a message.
//!
//! ```text
//! messageStart       message_start
//! contentBlockStart  content_block_start (calls of tools only; other blocks begin with their first delta)
//! contentBlockDelta  content_block_delta
//! contentBlockStop   content_block_stop
//! messageStop        (buffered)
//! metadata           message_delta with the reason and the usage, message_stop
//! ```

use serde::Deserialize;
use std::borrow::Cow;

use super::whole::UsageIn;
use super::{broken, message_id, stop_reason};
use crate::answer_context::AnswerContext;
use crate::protocol::{push_error, DeltaKind, EmptyBlock, MessageEvents};
use crate::step::Malformed;
use crate::text::{Text, Writer};
use crate::tool_names::ToolNames;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventIn<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow, default)]
    start: Option<StartIn<'a>>,
    #[serde(borrow, default)]
    delta: Option<DeltaIn<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<UsageIn>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartIn<'a> {
    #[serde(borrow, default)]
    tool_use: Option<CallIn<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallIn<'a> {
    #[serde(borrow)]
    tool_use_id: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeltaIn<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_use: Option<InputIn<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<ReasoningIn<'a>>,
}

#[derive(Deserialize)]
struct InputIn<'a> {
    #[serde(borrow)]
    input: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningIn<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    redacted_content: Option<Text<'a>>,
}

/// The state of one streamed answer.
#[derive(Debug)]
pub(crate) struct StreamReader {
    model: String,
    id: String,
    /// The caller's names of tools that were sent under other names.
    names: ToolNames,
    /// The block that has begun and has not ended, by Bedrock's index.
    open: Option<u64>,
    events: MessageEvents,
    reason: Option<String>,
}

impl StreamReader {
    pub(crate) fn new(model: &str, context: &AnswerContext) -> Self {
        let (model, id, names) = (model.to_owned(), message_id(&context.id), context.tool_names.clone());
        Self { model, id, names, open: None, events: MessageEvents::default(), reason: None }
    }

    /// Reads one event by its name, and appends the events that it becomes.
    pub(crate) fn read(&mut self, name: &str, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        let event: EventIn<'_> = serde_json::from_slice(payload).map_err(|_| Malformed)?;
        let index = event.content_block_index;
        match name {
            "messageStart" => MessageEvents::start(&self.id, &self.model, out),
            "contentBlockStart" => {
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    let name = self.names.own(&call.name).unwrap_or(call.name);
                    self.events.begin_call(&call.tool_use_id, &name, out);
                    self.open = Some(index);
                }
            }
            "contentBlockDelta" => self.delta(index, event.delta.ok_or(Malformed)?, out)?,
            "contentBlockStop" => self.end_block(out),
            "messageStop" => {
                self.end_block(out);
                self.reason = event.stop_reason.map(Cow::into_owned);
            }
            "metadata" => self.stop(event.usage, out),
            // Unknown events may be added to the protocol.
            _ => {}
        }
        Ok(())
    }

    /// Ends an answer whose usage was never sent.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.stop(None, out);
    }

    fn delta(&mut self, index: u64, delta: DeltaIn<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if let Some(text) = delta.text {
            self.begin_if_new(index, EmptyBlock::Text, out);
            self.events.delta(DeltaKind::Text, &text, out);
        } else if let Some(InputIn { input }) = delta.tool_use {
            if self.open != Some(index) {
                return Err(Malformed);
            }
            self.events.delta(DeltaKind::Input, &input, out);
        } else if let Some(reasoning) = delta.reasoning_content {
            if let Some(data) = reasoning.redacted_content {
                let members = |block: &mut Writer| {
                    block.key("type").raw(r#""redacted_thinking""#).member("data", &data);
                };
                self.events.begin(members, out);
                self.open = Some(index);
                return Ok(());
            }
            self.begin_if_new(index, EmptyBlock::Thinking, out);
            if let Some(text) = reasoning.text {
                self.events.delta(DeltaKind::Thinking, &text, out);
            }
            if let Some(signature) = reasoning.signature {
                self.events.delta(DeltaKind::Signature, &signature, out);
            }
        }
        Ok(())
    }

    fn begin_if_new(&mut self, index: u64, block: EmptyBlock, out: &mut Vec<u8>) {
        if self.open != Some(index) {
            self.events.begin_empty(block, out);
            self.open = Some(index);
        }
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        self.open = None;
        self.events.end_block(out);
    }

    fn stop(&mut self, usage: Option<UsageIn>, out: &mut Vec<u8>) {
        // Without a reason the answer broke off.
        let Some(reason) = self.reason.take() else { return };
        self.end_block(out);
        match broken(&reason) {
            Some(message) => push_error("api_error", message, out),
            None => self.events.stop(stop_reason(&reason), |event| usage.unwrap_or_default().write(event), out),
        }
    }
}
