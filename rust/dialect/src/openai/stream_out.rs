//! Writes the model's events as a chat stream.

use fairlead_core::Usage;

use super::complete::{finish_reason, write_image, write_usage};
use crate::media::as_link;
use crate::model::{Content, Event, Stop};
use crate::text::{Text, Writer};
use crate::text_argument::TextArgument;
use crate::tool_names::ToolNames;

/// The state of the current call.
#[derive(Debug, Default)]
enum Call {
    #[default]
    None,
    /// The call has no arguments yet.
    Bare,
    Filled,
    /// A call to a custom tool, whose text is in the arguments.
    Custom(TextArgument),
}

/// Writes the model's events as a chat stream.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// The id, object, time and model that start every chunk.
    opening: Vec<u8>,
    created_s: u64,
    requests_usage: bool,
    is_started: bool,
    calls: u64,
    call: Call,
    images: u64,
    thinking_blocks: u64,
    in_thinking: bool,
    /// The log probabilities of the next text: a list or empty.
    logprobs: String,
    tool_names: ToolNames,
}

impl Encoder {
    pub(crate) fn new(created_s: u64, requests_usage: bool, tool_names: ToolNames) -> Self {
        Self { created_s, requests_usage, tool_names, ..Self::default() }
    }

    pub(crate) fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { id, model } => self.open_with(id, model),
            Event::Logprobs(list) => list.clone_into(&mut self.logprobs),
            Event::Text(text) => {
                self.end_block(out);
                let logprobs = std::mem::take(&mut self.logprobs);
                if logprobs.is_empty() {
                    return self.delta(out, b"\"content\":", &text, b"");
                }
                let after = format!("}},\"logprobs\":{{\"content\":{logprobs},\"refusal\":null");
                self.delta(out, b"\"content\":", &text, after.as_bytes());
            }
            Event::Refusal(text) => {
                self.end_block(out);
                self.delta(out, b"\"refusal\":", &text, b"");
            }
            Event::Thinking(text) => {
                self.end_call(out);
                self.in_thinking = true;
                self.delta(out, b"\"reasoning_content\":", &text, b"");
            }
            Event::Signature(text) => self.thinking_block(out, r#""type":"thinking","signature":"#, &text),
            Event::Redacted(text) => {
                self.end_block(out);
                self.thinking_block(out, r#""type":"redacted_thinking","data":"#, &text);
            }
            Event::Call { id, name } => self.begin_call(out, &id, &name),
            Event::Arguments(text) => self.arguments(out, &text),
            Event::Media(content) => self.media(&content, out),
            Event::BlockEnd => self.end_block(out),
        }
    }

    /// Writes an image or a piece of audio as other gateways do, and a file as a link.
    fn media(&mut self, content: &Content<'_>, out: &mut Vec<u8>) {
        self.end_block(out);
        let mut member = Writer::default();
        match content {
            Content::Image(source) => {
                member.key("images").open(b'[');
                write_image(&mut member, source, self.images);
                member.close(b']');
                self.images += 1;
            }
            Content::Audio { data, .. } => {
                member.key("audio").open(b'{').key("id").str("audio_0").key("data").str(data).close(b'}');
            }
            _ => {
                let Some(link) = as_link(content) else { return };
                member.member("content", &link);
            }
        }
        self.start(out);
        out.extend_from_slice(&self.opening);
        out.extend_from_slice(b"\"choices\":[{\"index\":0,\"delta\":{");
        out.extend_from_slice(&member.take());
        out.extend_from_slice(b"},\"finish_reason\":null}]}\n\n");
    }

    /// Writes the regular end of the stream.
    pub(crate) fn finish(&mut self, stop: Stop, usage: Option<Usage>, out: &mut Vec<u8>) {
        self.end_block(out);
        self.start(out);
        out.extend_from_slice(&self.opening);
        out.extend_from_slice(br#""choices":[{"index":0,"delta":{},"finish_reason":""#);
        out.extend_from_slice(finish_reason(stop).as_bytes());
        out.extend_from_slice(b"\"}]}\n\n");
        if let (true, Some(usage)) = (self.requests_usage, usage) {
            out.extend_from_slice(&self.opening);
            out.extend_from_slice(br#""choices":[],"usage":"#);
            let mut writer = Writer::default();
            write_usage(&mut writer, &usage);
            out.extend_from_slice(&writer.take());
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn open_with(&mut self, id: Option<Text<'_>>, model: Option<Text<'_>>) {
        let mut writer = Writer::default();
        let empty = || Text::from("");
        writer.open(b'{').member("id", &id.unwrap_or_else(empty)).key("object").raw(r#""chat.completion.chunk""#);
        writer.key("created").number(self.created_s).member("model", &model.unwrap_or_else(empty));
        self.opening = [b"data: ", &*writer.take(), b","].concat();
    }

    /// Writes the first chunk, which has the role.
    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        if self.opening.is_empty() {
            self.open_with(None, None);
        }
        out.extend_from_slice(&self.opening);
        out.extend_from_slice(
            b"\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
        );
    }

    fn delta(&mut self, out: &mut Vec<u8>, before: &[u8], text: &Text<'_>, after: &[u8]) {
        self.start(out);
        out.extend_from_slice(&self.opening);
        out.extend_from_slice(b"\"choices\":[{\"index\":0,\"delta\":{");
        out.extend_from_slice(before);
        match text {
            Text::Token(token) => out.extend_from_slice(token.as_bytes()),
            Text::Plain(_) => {
                let mut writer = Writer::default();
                writer.text(text);
                out.extend_from_slice(&writer.take());
            }
        }
        out.extend_from_slice(after);
        out.extend_from_slice(b"},\"finish_reason\":null}]}\n\n");
    }

    /// Writes signed or redacted reasoning with its index, so that a caller can send it back.
    fn thinking_block(&mut self, out: &mut Vec<u8>, before: &str, text: &Text<'_>) {
        let before = format!(r#""thinking_blocks":[{{"index":{},{before}"#, self.thinking_blocks);
        self.delta(out, before.as_bytes(), text, b"}]");
        self.thinking_blocks += 1;
        self.in_thinking = false;
    }

    fn begin_call(&mut self, out: &mut Vec<u8>, id: &Text<'_>, name: &Text<'_>) {
        self.end_block(out);
        let mut writer = Writer::default();
        writer.open(b'{').key("index").number(self.calls).member("id", id).key("type");
        match self.tool_names.caller_tool(name) {
            None => {
                self.call = Call::Bare;
                writer.raw(r#""function""#).key("function").open(b'{').member("name", name).key("arguments");
            }
            Some(tool) => {
                self.call = Call::Custom(TextArgument::default());
                writer.raw(r#""custom""#).key("custom").open(b'{').key("name").str(&tool.own).key("input");
            }
        }
        let before = [b"\"tool_calls\":[", &*writer.take()].concat();
        self.calls += 1;
        self.delta(out, &before, &Text::from(""), b"}}]");
    }

    /// Writes a piece of a call's arguments.
    fn arguments(&mut self, out: &mut Vec<u8>, text: &Text<'_>) {
        if let Call::Custom(input) = &mut self.call {
            let mut piece = Vec::new();
            input.push(&text.decode(), &mut piece);
            return self.custom_text(out, &piece);
        }
        self.call = Call::Filled;
        let number = self.calls.saturating_sub(1);
        let before = format!(r#""tool_calls":[{{"index":{number},"function":{{"arguments":"#);
        self.delta(out, before.as_bytes(), text, b"}}]");
    }

    /// Writes a piece of a custom tool's text, an escaped string without its quotes.
    fn custom_text(&mut self, out: &mut Vec<u8>, piece: &[u8]) {
        if let (false, Ok(piece)) = (piece.is_empty(), std::str::from_utf8(piece)) {
            let number = self.calls.saturating_sub(1);
            let before = format!(r#""tool_calls":[{{"index":{number},"custom":{{"input":"#);
            let token = format!("\"{piece}\"");
            self.delta(out, before.as_bytes(), &Text::Token(&token), b"}}]");
        }
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        self.end_call(out);
        if std::mem::replace(&mut self.in_thinking, false) {
            self.thinking_blocks += 1;
        }
    }

    /// Ends a call. A call without arguments gets an empty object, because clients parse the text.
    fn end_call(&mut self, out: &mut Vec<u8>) {
        match std::mem::take(&mut self.call) {
            Call::None | Call::Filled => {}
            Call::Bare => {
                let number = self.calls.saturating_sub(1);
                let before = format!(r#""tool_calls":[{{"index":{number},"function":{{"arguments":"#);
                self.delta(out, before.as_bytes(), &Text::from("{}"), b"}}]");
            }
            Call::Custom(mut input) => {
                let mut rest = Vec::new();
                input.finish(&mut rest);
                self.custom_text(out, &rest);
            }
        }
    }
}
