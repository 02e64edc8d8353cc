//! Extracts the text of a streamed answer in the provider's dialect, to validate an answer before it is sent to the
//! caller.

use bytes::Bytes;
use fairlead_core::Dialect;
use serde_json::Value;

use crate::lenient;
use crate::sse::{data_of, Framer, Limits, Part, Verdict};
use crate::substance::is_call_item;

/// The maximum size of an event. Longer events are not read.
const MAX_EVENT_BYTES: usize = 8 << 20;

/// The text received so far of the answer's first choice.
#[derive(Debug)]
pub struct AnswerText {
    form: Dialect,
    framer: Framer,
    text: String,
    calls_tools: bool,
}

impl AnswerText {
    /// Creates a reader for a stream in the provider's dialect.
    pub fn new(form: Dialect) -> Self {
        let limits = Limits { held_bytes: MAX_EVENT_BYTES, event_bytes: MAX_EVENT_BYTES };
        Self { form, framer: Framer::new(limits), text: String::new(), calls_tools: false }
    }

    pub fn push(&mut self, chunk: &Bytes) {
        let Self { form, framer, text, calls_tools } = self;
        framer.push(chunk, |part| {
            if let Part::Event(event) = part {
                let data = data_of(event);
                let event = data.as_deref().and_then(lenient::value);
                if let Some(event) = event {
                    match form {
                        Dialect::Openai => read_chunk(&event, text, calls_tools),
                        Dialect::OpenaiResponses => read_response_event(&event, text, calls_tools),
                        Dialect::Anthropic => read_message_event(&event, text, calls_tools),
                        Dialect::Gemini => read_content(&event, text, calls_tools),
                    }
                }
            }
            Verdict::Drop
        });
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn calls_tools(&self) -> bool {
        self.calls_tools
    }
}

fn append_text(value: &Value, text: &mut String) {
    text.push_str(value.as_str().unwrap_or_default());
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn read_chunk(event: &Value, text: &mut String, calls_tools: &mut bool) {
    for choice in list(&event["choices"]).iter().filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
        let delta = &choice["delta"];
        append_text(&delta["content"], text);
        list(&delta["content"])
            .iter()
            .filter(|part| part["type"] == "text")
            .for_each(|part| append_text(&part["text"], text));
        append_text(&choice["text"], text);
        *calls_tools |= !list(&delta["tool_calls"]).is_empty() || delta["function_call"].is_object();
    }
}

fn read_response_event(event: &Value, text: &mut String, calls_tools: &mut bool) {
    match event["type"].as_str() {
        Some("response.output_text.delta") => append_text(&event["delta"], text),
        Some("response.output_item.added") => *calls_tools |= is_call_item(&event["item"]),
        _ => {}
    }
}

fn read_message_event(event: &Value, text: &mut String, calls_tools: &mut bool) {
    match event["type"].as_str() {
        Some("content_block_start") => {
            let block = &event["content_block"];
            *calls_tools |= block["type"] == "tool_use";
            if block["type"] == "text" {
                append_text(&block["text"], text);
            }
        }
        Some("content_block_delta") if event["delta"]["type"] == "text_delta" => {
            append_text(&event["delta"]["text"], text);
        }
        _ => {}
    }
}

fn read_content(event: &Value, text: &mut String, calls_tools: &mut bool) {
    for part in list(&event["candidates"][0]["content"]["parts"]) {
        *calls_tools |= part["functionCall"].is_object();
        if part["thought"] != true {
            append_text(&part["text"], text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Splits the events into chunks of a few bytes. Returns the text, and whether a tool is called.
    fn read_events(form: Dialect, events: &[Value]) -> (String, bool) {
        let events: Vec<String> = events.iter().map(|event| format!("event: e\ndata: {event}\n\n")).collect();
        let stream = events.concat();
        let mut answer = AnswerText::new(form);
        for piece in stream.as_bytes().chunks(7) {
            answer.push(&Bytes::copy_from_slice(piece));
        }
        (answer.text().to_owned(), answer.calls_tools())
    }

    #[test]
    fn the_text_of_each_dialect_is_heard_and_what_was_thought_is_not() {
        let chat = [
            json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
            json!({"choices": [{"index": 0, "delta": {"content": "ä", "reasoning_content": "hm"}}, {"index": 1, "delta": {"content": "x"}}]}),
            json!({"choices": [{"index": 0, "text": "b"}]}),
            json!({"choices": [{"delta": {"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "c"}]}}]}),
            json!({"choices": []}),
        ];
        assert_eq!(read_events(Dialect::Openai, &chat), ("äbc".into(), false));
        let responses = [
            json!({"type": "response.reasoning_text.delta", "delta": "hm"}),
            json!({"type": "response.output_text.delta", "delta": "a"}),
            json!({"type": "response.output_text.done", "text": "a"}),
        ];
        assert_eq!(read_events(Dialect::OpenaiResponses, &responses), ("a".into(), false));
        let messages = [
            json!({"type": "content_block_start", "content_block": {"type": "text", "text": "a"}}),
            json!({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}}),
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "b"}}),
        ];
        assert_eq!(read_events(Dialect::Anthropic, &messages), ("ab".into(), false));
        let content = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
        let gemini =
            [content(json!([{"text": "hm", "thought": true}, {"text": "a"}])), content(json!([{"text": "b"}]))];
        assert_eq!(read_events(Dialect::Gemini, &gemini), ("ab".into(), false));
    }

    #[test]
    fn a_call_of_a_tool_is_heard_in_each_dialect() {
        for (form, event) in [
            (Dialect::Openai, json!({"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]})),
            (
                Dialect::OpenaiResponses,
                json!({"type": "response.output_item.added", "item": {"type": "function_call"}}),
            ),
            (
                Dialect::OpenaiResponses,
                json!({"type": "response.output_item.added", "item": {"type": "custom_tool_call"}}),
            ),
            (Dialect::Anthropic, json!({"type": "content_block_start", "content_block": {"type": "tool_use"}})),
            (Dialect::Gemini, json!({"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]})),
        ] {
            assert_eq!(read_events(form, &[event]), (String::new(), true), "{form:?}");
        }
    }
}
