//! Writes the model's events as a messages stream.

use fairlead_core::Usage;

use super::complete::stop_reason;
use super::request_out::source;
use super::usage;
use crate::media::as_link;
use crate::model::{Content, Event, Stop};
use crate::portable_id::written;
use crate::text::{Text, Writer};

/// The open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
    Call,
    Image,
}

/// Writes the model's events as a messages stream.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    id: Option<Text<'static>>,
    model: Option<Text<'static>>,
    is_started: bool,
    open: Option<Block>,
    /// The index of the open block, or of the next one.
    index: u64,
}

impl Encoder {
    pub(crate) fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { id, model } => {
                self.id = id.map(Text::into_owned);
                self.model = model.map(Text::into_owned);
            }
            // Rejected when the request is translated.
            Event::Logprobs(_) => {}
            Event::Text(text) | Event::Refusal(text) => {
                self.begin(Block::Text, r#"{"type":"text","text":""}"#, out);
                self.delta(out, b"\"text_delta\",\"text\":", &text);
            }
            Event::Thinking(text) => {
                self.begin(Block::Thinking, r#"{"type":"thinking","thinking":"","signature":""}"#, out);
                self.delta(out, b"\"thinking_delta\",\"thinking\":", &text);
            }
            Event::Signature(text) => {
                self.begin(Block::Thinking, r#"{"type":"thinking","thinking":"","signature":""}"#, out);
                self.delta(out, b"\"signature_delta\",\"signature\":", &text);
                self.end(out);
            }
            Event::Redacted(text) => {
                self.end(out);
                let mut block = Writer::default();
                block.open(b'{').key("type").raw(r#""redacted_thinking""#).member("data", &text).close(b'}');
                self.begin(Block::Thinking, &String::from_utf8_lossy(&block.take()), out);
                self.end(out);
            }
            Event::Media(content) => self.media(&content, out),
            Event::Call { id, name } => {
                self.end(out);
                let mut block = Writer::default();
                block.open(b'{').key("type").raw(r#""tool_use""#).member("id", &written(&id)).member("name", &name);
                block.key("input").raw("{}").close(b'}');
                self.begin(Block::Call, &String::from_utf8_lossy(&block.take()), out);
            }
            Event::Arguments(text) => self.delta(out, b"\"input_json_delta\",\"partial_json\":", &text),
            Event::BlockEnd => self.end(out),
        }
    }

    /// Writes the regular end of the stream.
    pub(crate) fn finish(&mut self, stop: Stop, usage: Option<Usage>, out: &mut Vec<u8>) {
        self.start(out);
        self.end(out);
        out.extend_from_slice(b"event: message_delta\ndata: ");
        let mut writer = Writer::default();
        writer.open(b'{').key("type").raw(r#""message_delta""#).key("delta").open(b'{');
        writer.key("stop_reason").str(stop_reason(stop)).key("stop_sequence").raw("null").close(b'}').key("usage");
        usage::write(&mut writer, &usage.unwrap_or_default());
        writer.close(b'}');
        out.extend_from_slice(&writer.take());
        out.extend_from_slice(b"\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    }

    /// The counts are zero here and follow in the last event, because other dialects report them at the end.
    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        let empty = || Text::from("");
        let mut writer = Writer::default();
        writer.open(b'{').key("type").raw(r#""message_start""#).key("message").open(b'{');
        writer.member("id", &self.id.take().unwrap_or_else(empty)).key("type").raw(r#""message""#);
        writer.key("role").raw(r#""assistant""#).member("model", &self.model.take().unwrap_or_else(empty));
        writer.key("content").raw("[]").key("stop_reason").raw("null").key("stop_sequence").raw("null").key("usage");
        usage::write(&mut writer, &Usage::default());
        writer.close(b'}').close(b'}');
        out.extend_from_slice(b"event: message_start\ndata: ");
        out.extend_from_slice(&writer.take());
        out.extend_from_slice(b"\n\n");
    }

    /// Writes an image as a complete block, and other media as a link in a text block.
    fn media(&mut self, content: &Content<'_>, out: &mut Vec<u8>) {
        self.end(out);
        if let Content::Image(from) = content {
            let mut block = Writer::default();
            block.open(b'{').key("type").raw(r#""image""#);
            source(&mut block, from);
            block.close(b'}');
            self.begin(Block::Image, &String::from_utf8_lossy(&block.take()), out);
        } else if let Some(link) = as_link(content) {
            self.begin(Block::Text, r#"{"type":"text","text":""}"#, out);
            self.delta(out, b"\"text_delta\",\"text\":", &link);
        }
        self.end(out);
    }

    /// Opens a block unless one of its kind is open. Calls are always closed first.
    fn begin(&mut self, block: Block, content: &str, out: &mut Vec<u8>) {
        if self.open == Some(block) {
            return;
        }
        self.end(out);
        self.start(out);
        self.open = Some(block);
        out.extend_from_slice(b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":");
        out.extend_from_slice(self.index.to_string().as_bytes());
        out.extend_from_slice(b",\"content_block\":");
        out.extend_from_slice(content.as_bytes());
        out.extend_from_slice(b"}\n\n");
    }

    fn delta(&mut self, out: &mut Vec<u8>, kind: &[u8], text: &Text<'_>) {
        out.extend_from_slice(b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":");
        out.extend_from_slice(self.index.to_string().as_bytes());
        out.extend_from_slice(b",\"delta\":{\"type\":");
        out.extend_from_slice(kind);
        match text {
            Text::Token(token) => out.extend_from_slice(token.as_bytes()),
            Text::Plain(_) => {
                let mut writer = Writer::default();
                writer.text(text);
                out.extend_from_slice(&writer.take());
            }
        }
        out.extend_from_slice(b"}}\n\n");
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_none() {
            return;
        }
        out.extend_from_slice(b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":");
        out.extend_from_slice(self.index.to_string().as_bytes());
        out.extend_from_slice(b"}\n\n");
        self.index += 1;
    }
}
