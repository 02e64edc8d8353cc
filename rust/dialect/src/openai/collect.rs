//! Builds a complete chat completion from the events of a stream, for providers that stream although the caller asked
//! for a complete answer.

use bytes::Bytes;
use serde_json::{json, Map, Value};

use crate::sse::{data_of, Framer, Limits, Part, Verdict};

/// Returns the chat completion of a whole event stream. An error in the stream is returned as a body with that error.
/// `None` if the stream ends before the answer is complete.
pub fn whole(stream: &Bytes) -> Option<Bytes> {
    let mut collected = Collected::default();
    let most = stream.len() + 1;
    let mut framer = Framer::new(Limits { held_bytes: most, event_bytes: most });
    let mut judge = |event: &[u8]| collected.read_event(event);
    framer.push(stream, |part| match part {
        Part::Event(event) => judge(event),
        Part::Opening(_) | Part::More(_) => Verdict::Stop,
    });
    let rest = framer.close();
    if rest.whole {
        collected.read_event(&rest.bytes);
    }
    collected.into_body()
}

/// The data of the events so far.
#[derive(Default)]
struct Collected {
    /// The members of the answer apart from its choices.
    head: Map<String, Value>,
    choices: Vec<Value>,
    failure: Option<Value>,
    is_done: bool,
}

impl Collected {
    fn read_event(&mut self, event: &[u8]) -> Verdict {
        let Some(data) = data_of(event) else { return Verdict::Drop };
        if data.starts_with(b"[DONE]") {
            self.is_done = true;
            return Verdict::Stop;
        }
        let Ok(Value::Object(mut chunk)) = serde_json::from_slice(&data) else { return Verdict::Drop };
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            self.failure = Some(Value::Object(chunk));
            return Verdict::Stop;
        }
        if let Some(Value::Array(choices)) = chunk.remove("choices") {
            for choice in choices {
                self.read_choice(choice);
            }
        }
        chunk.remove("object");
        for (name, value) in chunk {
            // The usage grows with each chunk at some servers. The other members are the same in all of them.
            if !value.is_null() && (name == "usage" || !self.head.contains_key(&name)) {
                self.head.insert(name, value);
            }
        }
        Verdict::Drop
    }

    fn read_choice(&mut self, choice: Value) {
        let Value::Object(mut choice) = choice else { return };
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let at = self.choices.iter().position(|known| known["index"] == json!(index)).unwrap_or_else(|| {
            self.choices.push(json!({"index": index, "message": {"role": "assistant", "content": null}}));
            self.choices.len() - 1
        });
        let known = &mut self.choices[at];
        if let Some(Value::Object(delta)) = choice.remove("delta") {
            delta.into_iter().for_each(|(name, value)| extend_message(&mut known["message"], &name, value));
        }
        choice.remove("index");
        for (name, value) in choice {
            match value {
                Value::Null => {}
                Value::Object(parts) => {
                    for (part, value) in parts {
                        append(&mut known[&name][part], value);
                    }
                }
                value => known[&name] = value,
            }
        }
    }

    fn into_body(mut self) -> Option<Bytes> {
        if let Some(failure) = self.failure {
            return Some(Bytes::from(failure.to_string()));
        }
        let is_finished =
            !self.choices.is_empty() && self.choices.iter().all(|choice| choice["finish_reason"].is_string());
        if !self.is_done && !is_finished {
            return None;
        }
        for choice in &mut self.choices {
            if let Some(calls) = choice["message"]["tool_calls"].as_array_mut() {
                calls.iter_mut().filter_map(Value::as_object_mut).for_each(|call| drop(call.remove("index")));
            }
            if choice["finish_reason"].is_null() {
                let has_calls = choice["message"]["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
                choice["finish_reason"] = json!(if has_calls { "tool_calls" } else { "stop" });
            }
        }
        self.head.insert("object".to_owned(), json!("chat.completion"));
        self.head.insert("choices".to_owned(), Value::Array(self.choices));
        Some(Bytes::from(Value::Object(self.head).to_string()))
    }
}

/// Adds a member of a delta to the message.
fn extend_message(message: &mut Value, name: &str, value: Value) {
    match (name, value) {
        ("role", _) | (_, Value::Null) => {}
        ("tool_calls", Value::Array(calls)) => {
            if !message["tool_calls"].is_array() {
                message["tool_calls"] = json!([]);
            }
            if let Some(known) = message["tool_calls"].as_array_mut() {
                for call in calls {
                    extend_calls(known, call);
                }
            }
        }
        (name, value) => append(&mut message[name], value),
    }
}

/// Adds a fragment of a tool call. Fragments of one call have the same index, or the same id.
fn extend_calls(known: &mut Vec<Value>, fragment: Value) {
    let id = fragment["id"].as_str().unwrap_or_default();
    let at = match fragment["index"].as_u64() {
        Some(index) => known.iter().position(|call| call["index"] == json!(index)),
        None if id.is_empty() => known.len().checked_sub(1),
        None => known.iter().position(|call| call["id"] == id),
    };
    let Some(at) = at else { return known.push(fragment) };
    let call = &mut known[at];
    if let Value::Object(members) = fragment {
        for (name, value) in members {
            match value {
                Value::Object(function) => {
                    for (part, value) in function {
                        let is_known = call[&name][&part].as_str().is_some_and(|text| !text.is_empty());
                        if part == "arguments" || !is_known {
                            append(&mut call[&name][part], value);
                        }
                    }
                }
                value if call[&name].is_null() || call[&name] == "" => call[&name] = value,
                _ => {}
            }
        }
    }
}

/// Appends a text to a text and a list to a list. Any other value replaces the known one.
fn append(known: &mut Value, value: Value) {
    match (known, value) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (known, value) => *known = value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(chunks: &[Value], end: &str) -> Bytes {
        let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        Bytes::from(events.concat() + end)
    }

    fn chunk(delta: &Value, finish: Option<&str>) -> Value {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    }

    fn collected(stream: &Bytes) -> Option<Value> {
        whole(stream).map(|body| serde_json::from_slice(&body).expect("JSON"))
    }

    #[test]
    fn texts_reasoning_calls_and_usage_become_one_answer() {
        let call = |part: Value| json!({"tool_calls": [part]});
        let usage = json!({"prompt_tokens": 3, "completion_tokens": 4});
        let chunks = [
            chunk(&json!({"role": "assistant", "content": ""}), None),
            chunk(&json!({"reasoning_content": "Let me "}), None),
            chunk(&json!({"reasoning_content": "see."}), None),
            chunk(&json!({"content": "Now"}), None),
            chunk(
                &call(json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}})),
                None,
            ),
            chunk(
                &call(json!({"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{"}})),
                None,
            ),
            chunk(&call(json!({"index": 0, "function": {"name": "f", "arguments": "{\"x\":1"}})), None),
            chunk(&call(json!({"index": 1, "function": {"arguments": "}"}})), None),
            chunk(&call(json!({"index": 0, "function": {"arguments": "}"}})), None),
            chunk(&json!({}), Some("tool_calls")),
            json!({"id": "c", "model": "m", "choices": [], "usage": usage}),
        ];
        let answer = collected(&stream(&chunks, "data: [DONE]\n\n")).expect("whole");
        let message = &answer["choices"][0]["message"];
        assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("Now"), &json!("Let me see.")));
        let calls: Vec<_> =
            message["tool_calls"].as_array().expect("calls").iter().map(|call| &call["function"]).collect();
        assert_eq!(calls, [&json!({"name": "f", "arguments": "{\"x\":1}"}), &json!({"name": "g", "arguments": "{}"})]);
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(
            (&answer["usage"], &answer["object"], &answer["id"]),
            (&usage, &json!("chat.completion"), &json!("c"))
        );
    }

    #[test]
    fn a_stream_that_breaks_off_is_no_answer() {
        let text = chunk(&json!({"content": "a"}), None);
        assert_eq!(collected(&stream(std::slice::from_ref(&text), "")), None);
        let ended = collected(&stream(std::slice::from_ref(&text), "data: [DONE]\n\n")).expect("whole");
        assert_eq!(ended["choices"][0]["finish_reason"], "stop");
        let last = chunk(&json!({"content": "b"}), Some("length"));
        let answer = collected(&stream(&[text.clone(), last], "")).expect("whole");
        assert_eq!(answer["choices"][0]["message"]["content"], "ab");
        let failure = json!({"error": {"message": "no"}});
        assert_eq!(collected(&stream(&[text, failure.clone()], "")), Some(failure));
    }
}
