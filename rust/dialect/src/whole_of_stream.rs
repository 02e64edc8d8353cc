//! Collects a stream into the complete answer of the same dialect. Some servers stream although no stream was requested.

use bytes::Bytes;
use fairlead_core::Dialect;
use serde_json::{json, Map, Value};

use crate::sse::{data_of, Framer, Limits, Part, Verdict};
use crate::{gemini, lenient};

/// The maximum size of an event.
const MAX_EVENT_BYTES: usize = 8 << 20;

/// Returns the answer, or the error that the stream reports. `None` for a stream that ended too early or that is not one
/// of this dialect.
pub fn whole_of_stream(form: Dialect, stream: &Bytes) -> Option<Bytes> {
    if form == Dialect::Gemini && stream.trim_ascii_start().starts_with(b"[") {
        return whole_of_stream(form, &gemini::replay::events_of(stream)?);
    }
    let mut collected = Collected::default();
    let limits = Limits { held_bytes: MAX_EVENT_BYTES, event_bytes: MAX_EVENT_BYTES };
    let mut framer = Framer::new(limits);
    framer.push(stream, |part| {
        let (Part::Event(event) | Part::Opening(event) | Part::More(event)) = part;
        collected.read(form, event);
        Verdict::Drop
    });
    // The blank line after the last event can be missing.
    collected.read(form, &framer.close().bytes);
    collected.finish(form).map(|answer| Bytes::from(answer.to_string()))
}

/// The answer so far.
#[derive(Default)]
struct Collected {
    answer: Map<String, Value>,
    /// The choices, blocks, items or candidates so far.
    parts: Vec<Value>,
    is_ended: bool,
    error: Option<Value>,
}

impl Collected {
    fn read(&mut self, form: Dialect, event: &[u8]) {
        let Some(data) = data_of(event) else { return };
        if data.starts_with(b"[DONE]") {
            // Some chat servers never send a finish reason.
            self.is_ended |= form == Dialect::Openai && !self.parts.is_empty();
            return;
        }
        let Some(Value::Object(event)) = lenient::value(&data) else { return };
        match form {
            Dialect::Openai => self.read_chat(event),
            Dialect::Anthropic => self.read_messages(event),
            Dialect::OpenaiResponses => self.read_responses(event),
            Dialect::Gemini => self.read_gemini(event),
        }
    }

    fn finish(mut self, form: Dialect) -> Option<Value> {
        if let Some(error) = self.error {
            return Some(error);
        }
        if !self.is_ended || self.answer.is_empty() && self.parts.is_empty() {
            return None;
        }
        let member = match form {
            Dialect::Openai => {
                self.parts.iter_mut().for_each(end_choice);
                if self.answer.get("object").is_some_and(|object| object == "chat.completion.chunk") {
                    self.answer.insert("object".to_owned(), "chat.completion".into());
                }
                "choices"
            }
            Dialect::Anthropic => {
                self.parts.iter_mut().for_each(end_block);
                "content"
            }
            Dialect::OpenaiResponses => "output",
            Dialect::Gemini => "candidates",
        };
        // The last event of responses has the output already, except at some servers.
        let has_own = self.answer.get(member).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        let is_blocked = form == Dialect::Gemini && self.parts.is_empty();
        if !has_own && !is_blocked {
            self.answer.insert(member.to_owned(), Value::Array(self.parts));
        }
        Some(Value::Object(self.answer))
    }

    fn read_chat(&mut self, mut chunk: Map<String, Value>) {
        if chunk.get("error").is_some_and(Value::is_object) {
            self.error = Some(Value::Object(chunk));
            return;
        }
        let choices = chunk.remove("choices");
        for (name, value) in chunk {
            if !value.is_null() {
                self.answer.insert(name, value);
            }
        }
        for choice in choices.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let index = choice["index"].as_u64().unwrap_or(0);
            let at = self.parts.iter().position(|own| own["index"] == index).unwrap_or_else(|| {
                self.parts.push(json!({"index": index, "message": {"role": "assistant", "content": null}}));
                self.parts.len() - 1
            });
            let Some(own) = self.parts.get_mut(at) else { continue };
            for (name, value) in choice.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
                match name.as_str() {
                    "index" => {}
                    "delta" | "message" => join(member(own, "message"), value),
                    "text" => append(member(own, "text"), value),
                    _ => *member(own, name) = value.clone(),
                }
            }
            let reason = own["finish_reason"].as_str();
            self.is_ended |= reason.is_some_and(|reason| !reason.is_empty());
        }
    }

    fn read_messages(&mut self, mut event: Map<String, Value>) {
        let index = event.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        match (kind.as_str(), index) {
            ("error", _) => self.error = Some(Value::Object(event)),
            ("message_start", _) => {
                if let Some(Value::Object(message)) = event.remove("message") {
                    self.answer = message;
                }
            }
            ("content_block_start", Some(index)) if index == self.parts.len() => {
                self.parts.extend(event.remove("content_block").filter(Value::is_object));
            }
            ("content_block_delta", Some(index)) => {
                let Some(block) = self.parts.get_mut(index) else { return };
                for (name, value) in event.get("delta").and_then(Value::as_object).into_iter().flatten() {
                    match name.as_str() {
                        "type" => {}
                        "citation" => extend(member(block, "citations"), value.clone()),
                        _ => append(member(block, name), value),
                    }
                }
            }
            ("message_delta", _) => {
                let members = event.get("delta").and_then(Value::as_object).into_iter().flatten();
                members.for_each(|(name, value)| drop(self.answer.insert(name.clone(), value.clone())));
                let usage = self.answer.entry("usage").or_insert_with(|| json!({}));
                for (name, value) in event.get("usage").and_then(Value::as_object).into_iter().flatten() {
                    append(member(usage, name), value);
                }
                self.is_ended |= self.answer.get("stop_reason").is_some_and(Value::is_string);
            }
            _ => {}
        }
    }

    fn read_responses(&mut self, mut event: Map<String, Value>) {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "error" => {
                let error = event.remove("error").filter(Value::is_object).unwrap_or(Value::Object(event));
                self.error = Some(json!({ "error": error }));
            }
            "response.output_item.done" => self.parts.extend(event.remove("item")),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.is_ended = true;
                if let Some(Value::Object(response)) = event.remove("response") {
                    self.answer = response;
                }
            }
            _ => {}
        }
    }

    fn read_gemini(&mut self, mut chunk: Map<String, Value>) {
        if chunk.get("error").is_some_and(Value::is_object) {
            self.error = Some(Value::Object(chunk));
            return;
        }
        let candidates = chunk.remove("candidates");
        self.is_ended |= chunk.contains_key("promptFeedback");
        self.answer.extend(chunk);
        for (at, candidate) in candidates.as_ref().and_then(Value::as_array).into_iter().flatten().enumerate() {
            self.is_ended |= candidate["finishReason"].is_string();
            if at >= self.parts.len() {
                self.parts.push(candidate.clone());
                continue;
            }
            let Some(own) = self.parts.get_mut(at) else { continue };
            for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                extend_parts(member(member(own, "content"), "parts"), part);
            }
            for (name, value) in candidate.as_object().into_iter().flatten().filter(|(name, _)| *name != "content") {
                *member(own, name) = value.clone();
            }
        }
    }
}

/// Joins the members of a chat delta to those of the message.
fn join(message: &mut Value, delta: &Value) {
    for (name, value) in delta.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let own = member(message, name);
        match (name.as_str(), value) {
            ("role", _) => *own = value.clone(),
            ("tool_calls", Value::Array(calls)) => calls.iter().for_each(|call| join_call(own, call)),
            (_, Value::Array(list)) => list.iter().for_each(|element| extend(own, element.clone())),
            _ => append(own, value),
        }
    }
}

fn join_call(calls: &mut Value, piece: &Value) {
    if !calls.is_array() {
        *calls = json!([]);
    }
    let Some(list) = calls.as_array_mut() else { return };
    let is_it = |call: &Value| match piece["index"].as_u64() {
        Some(index) => call["index"] == index,
        None => piece["id"].is_null() || call["id"] == piece["id"],
    };
    let Some(at) = list.iter().rposition(is_it) else {
        list.push(piece.clone());
        return;
    };
    let Some(call) = list.get_mut(at) else { return };
    for (name, value) in piece.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        match value {
            Value::Object(inner) => {
                for (inner_name, value) in inner {
                    let own = member(member(call, name), inner_name);
                    // A server can repeat the name in each piece.
                    if inner_name == "name" {
                        *own = value.clone();
                    } else {
                        append(own, value);
                    }
                }
            }
            _ => *member(call, name) = value.clone(),
        }
    }
}

/// Returns a member of an object. A value of another type becomes one.
fn member<'v>(value: &'v mut Value, name: &str) -> &'v mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    &mut value[name]
}

/// Appends a text to a text. Any other value replaces the one before it.
fn append(own: &mut Value, more: &Value) {
    match (own, more) {
        (Value::String(own), Value::String(more)) => own.push_str(more),
        (_, Value::Null) => {}
        (own, more) => *own = more.clone(),
    }
}

fn extend(list: &mut Value, element: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        list.push(element);
    }
}

/// Adds a part of a chunk. A text continues the text before it.
fn extend_parts(parts: &mut Value, part: &Value) {
    let is_text = |part: &Value| {
        part["text"].is_string()
            && part.as_object().is_some_and(|members| members.keys().all(|name| name == "text" || name == "thought"))
    };
    let last = parts.as_array_mut().and_then(|list| list.last_mut());
    match last.filter(|last| is_text(last) && is_text(part) && last["thought"] == part["thought"]) {
        Some(last) => append(member(last, "text"), &part["text"]),
        None => extend(parts, part.clone()),
    }
}

fn end_choice(choice: &mut Value) {
    let message = member(choice, "message");
    let has_calls = message["tool_calls"].is_array();
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        call.as_object_mut().map(|members| members.remove("index"));
    }
    if choice["finish_reason"].is_null() {
        choice["finish_reason"] = if has_calls { "tool_calls" } else { "stop" }.into();
    }
    if choice["text"].is_string() {
        choice.as_object_mut().map(|members| members.remove("message"));
    }
}

fn end_block(block: &mut Value) {
    let Some(Value::String(json)) = block.as_object_mut().and_then(|members| members.remove("partial_json")) else {
        return;
    };
    if !json.is_empty() {
        block["input"] = serde_json::from_str(&json).unwrap_or(Value::String(json));
    }
}
