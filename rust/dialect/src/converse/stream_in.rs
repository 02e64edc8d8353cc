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
use crate::protocol::push_event;
use crate::step::Malformed;
use crate::text::{Text, Writer};

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
    /// The block that has begun and has not ended, by Bedrock's index.
    open: Option<u64>,
    /// The index of the next block of the message.
    next: u64,
    reason: Option<String>,
}

impl StreamReader {
    pub(crate) fn new(model: &str, id: &str) -> Self {
        let (model, id) = (model.to_owned(), message_id(id));
        Self { model, id, open: None, next: 0, reason: None }
    }

    /// Reads one event by its name, and appends the events that it becomes.
    pub(crate) fn read(&mut self, name: &str, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        let event: EventIn<'_> = serde_json::from_slice(payload).map_err(|_| Malformed)?;
        let index = event.content_block_index;
        match name {
            "messageStart" => self.start(out),
            "contentBlockStart" => {
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    let block = |block: &mut Writer| {
                        block.key("type").raw(r#""tool_use""#).member("id", &call.tool_use_id);
                        block.member("name", &call.name).key("input").raw("{}");
                    };
                    self.begin(index, block, out);
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

    fn start(&self, out: &mut Vec<u8>) {
        let mut event = Writer::default();
        event.open(b'{').key("type").raw(r#""message_start""#).key("message").open(b'{');
        event.key("id").str(&self.id).key("type").raw(r#""message""#).key("role").raw(r#""assistant""#);
        event.key("model").str(&self.model).key("content").raw("[]").key("stop_reason").raw("null");
        event.key("stop_sequence").raw("null").key("usage").raw(r#"{"input_tokens":0,"output_tokens":0}"#);
        push_event("message_start", &event.close(b'}').close(b'}').take(), out);
    }

    fn begin(&mut self, index: u64, block: impl FnOnce(&mut Writer), out: &mut Vec<u8>) {
        self.end_block(out);
        let mut event = Writer::default();
        event.open(b'{').key("type").raw(r#""content_block_start""#).key("index").number(self.next);
        block(event.key("content_block").open(b'{'));
        push_event("content_block_start", &event.close(b'}').close(b'}').take(), out);
        self.open = Some(index);
    }

    fn delta(&mut self, index: u64, delta: DeltaIn<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if let Some(text) = delta.text {
            self.begin_if_new(index, r#""type":"text","text":"""#, out);
            self.write_delta("text_delta", "text", &text, out);
        } else if let Some(InputIn { input }) = delta.tool_use {
            if self.open != Some(index) {
                return Err(Malformed);
            }
            self.write_delta("input_json_delta", "partial_json", &input, out);
        } else if let Some(reasoning) = delta.reasoning_content {
            if let Some(data) = reasoning.redacted_content {
                let members = |block: &mut Writer| {
                    block.key("type").raw(r#""redacted_thinking""#).member("data", &data);
                };
                self.begin(index, members, out);
                return Ok(());
            }
            self.begin_if_new(index, r#""type":"thinking","thinking":"","signature":"""#, out);
            if let Some(text) = reasoning.text {
                self.write_delta("thinking_delta", "thinking", &text, out);
            }
            if let Some(signature) = reasoning.signature {
                self.write_delta("signature_delta", "signature", &signature, out);
            }
        }
        Ok(())
    }

    fn begin_if_new(&mut self, index: u64, members: &str, out: &mut Vec<u8>) {
        if self.open != Some(index) {
            let write = |block: &mut Writer| {
                block.raw(members);
            };
            self.begin(index, write, out);
        }
    }

    fn write_delta(&self, kind: &str, member: &str, text: &Text<'_>, out: &mut Vec<u8>) {
        let mut event = Writer::default();
        event.open(b'{').key("type").raw(r#""content_block_delta""#).key("index").number(self.next);
        event.key("delta").open(b'{').key("type").str(kind).member(member, text);
        push_event("content_block_delta", &event.close(b'}').close(b'}').take(), out);
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            let event = format!(r#"{{"type":"content_block_stop","index":{}}}"#, self.next);
            push_event("content_block_stop", event.as_bytes(), out);
            self.next += 1;
        }
    }

    fn stop(&mut self, usage: Option<UsageIn>, out: &mut Vec<u8>) {
        // Without a reason the answer broke off.
        let Some(reason) = self.reason.take() else { return };
        self.end_block(out);
        if let Some(message) = broken(&reason) {
            let mut event = Writer::default();
            event.open(b'{').key("type").raw(r#""error""#).key("error").open(b'{').key("type").raw(r#""api_error""#);
            push_event("error", &event.key("message").str(message).close(b'}').close(b'}').take(), out);
            return;
        }
        let mut event = Writer::default();
        event.open(b'{').key("type").raw(r#""message_delta""#).key("delta").open(b'{');
        event.key("stop_reason").str(stop_reason(&reason)).key("stop_sequence").raw("null").close(b'}');
        usage.unwrap_or_default().write(&mut event);
        push_event("message_delta", &event.close(b'}').take(), out);
        push_event("message_stop", br#"{"type":"message_stop"}"#, out);
    }
}
