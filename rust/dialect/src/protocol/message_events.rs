//! Writes a streamed answer as server-sent events of the messages dialect.

use crate::text::{Text, Writer};

/// The blocks of one answer, in order.
#[derive(Debug, Default)]
pub(crate) struct MessageEvents {
    /// The index of the open block, or of the next one.
    index: u64,
    is_open: bool,
}

impl MessageEvents {
    /// Starts the answer.
    pub(crate) fn start(id: &str, model: &str, out: &mut Vec<u8>) {
        let mut event = Writer::default();
        event.open(b'{').key("type").raw(r#""message_start""#).key("message").open(b'{');
        event.key("id").str(id).key("type").raw(r#""message""#).key("role").raw(r#""assistant""#);
        event.key("model").str(model).key("content").raw("[]").key("stop_reason").raw("null");
        event.key("stop_sequence").raw("null").key("usage").raw(r#"{"input_tokens":0,"output_tokens":0}"#);
        push_event("message_start", &event.close(b'}').close(b'}').take(), out);
    }

    /// Begins a block, whose members `block` writes, after the open one.
    pub(crate) fn begin(&mut self, block: impl FnOnce(&mut Writer), out: &mut Vec<u8>) {
        self.end_block(out);
        let mut event = Writer::default();
        event.open(b'{').key("type").raw(r#""content_block_start""#).key("index").number(self.index);
        block(event.key("content_block").open(b'{'));
        push_event("content_block_start", &event.close(b'}').close(b'}').take(), out);
        self.is_open = true;
    }

    /// Begins a block of text or reasoning.
    pub(crate) fn begin_empty(&mut self, block: EmptyBlock, out: &mut Vec<u8>) {
        let members = match block {
            EmptyBlock::Text => r#""type":"text","text":"""#,
            EmptyBlock::Thinking => r#""type":"thinking","thinking":"","signature":"""#,
        };
        let write = |block: &mut Writer| {
            block.raw(members);
        };
        self.begin(write, out);
    }

    /// Begins a call of a tool.
    pub(crate) fn begin_call(&mut self, id: &Text<'_>, name: &Text<'_>, out: &mut Vec<u8>) {
        let block = |block: &mut Writer| {
            block.key("type").raw(r#""tool_use""#).member("id", id);
            block.member("name", name).key("input").raw("{}");
        };
        self.begin(block, out);
    }

    /// Adds text to the open block.
    pub(crate) fn delta(&self, kind: DeltaKind, text: &Text<'_>, out: &mut Vec<u8>) {
        let (name, member) = kind.names();
        let mut event = Writer::default();
        event.open(b'{').key("type").raw(r#""content_block_delta""#).key("index").number(self.index);
        event.key("delta").open(b'{').key("type").str(name).member(member, text);
        push_event("content_block_delta", &event.close(b'}').close(b'}').take(), out);
    }

    /// Ends the open block, if there is one.
    pub(crate) fn end_block(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            let event = format!(r#"{{"type":"content_block_stop","index":{}}}"#, self.index);
            push_event("content_block_stop", event.as_bytes(), out);
            self.index += 1;
        }
    }

    /// Ends the answer. `usage` writes the member of that name.
    pub(crate) fn stop(&mut self, reason: &str, usage: impl FnOnce(&mut Writer), out: &mut Vec<u8>) {
        self.end_block(out);
        let mut event = Writer::default();
        event.open(b'{').key("type").raw(r#""message_delta""#).key("delta").open(b'{');
        event.key("stop_reason").str(reason).key("stop_sequence").raw("null").close(b'}');
        usage(&mut event);
        push_event("message_delta", &event.close(b'}').take(), out);
        push_event("message_stop", br#"{"type":"message_stop"}"#, out);
    }
}

/// A block that begins without content.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EmptyBlock {
    Text,
    Thinking,
}

/// The kind of text that is added to a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeltaKind {
    Text,
    Thinking,
    Signature,
    Input,
}

impl DeltaKind {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text_delta", "text"),
            Self::Thinking => ("thinking_delta", "thinking"),
            Self::Signature => ("signature_delta", "signature"),
            Self::Input => ("input_json_delta", "partial_json"),
        }
    }
}

/// Writes an error, which ends the stream.
pub(crate) fn push_error(kind: &str, message: &str, out: &mut Vec<u8>) {
    let mut error = Writer::default();
    error.open(b'{').key("type").raw(r#""error""#).key("error").open(b'{').key("type").str(kind);
    error.key("message").str(message).close(b'}').close(b'}');
    push_event("error", &error.take(), out);
}

/// Appends one server-sent event.
pub(crate) fn push_event(name: &str, data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    // Line breaks occur only between the tokens of JSON.
    out.extend(data.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    out.extend_from_slice(b"\n\n");
}
