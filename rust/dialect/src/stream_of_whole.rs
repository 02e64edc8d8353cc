//! Converts a complete answer to a stream of the same dialect. Some servers ignore that a stream was requested.

use bytes::Bytes;
use fairlead_core::Dialect;
use serde_json::{json, Value};

use crate::{gemini, lenient, responses};

/// Returns the stream. Members that a reader does not know are kept where the dialect's events have a place for them.
/// `None` for a body that is not an answer.
pub fn stream_of_whole(form: Dialect, body: &[u8]) -> Option<Bytes> {
    if form == Dialect::Gemini && body.trim_ascii_start().starts_with(b"[") {
        return gemini::replay::events_of(body);
    }
    let answer = lenient::value(body).filter(Value::is_object)?;
    let is_error = answer["error"].is_object() && answer["output"].is_null();
    match form {
        Dialect::Openai => Some(chat(answer)),
        Dialect::Gemini => gemini::replay::as_stream(body),
        Dialect::Anthropic if is_error => Some(events(&[with_type(answer, "error")])),
        Dialect::Anthropic => Some(messages(answer)),
        Dialect::OpenaiResponses if is_error => Some(events(&[with_type(answer["error"].clone(), "error")])),
        Dialect::OpenaiResponses => responses::replay::as_stream(body),
    }
}

fn with_type(mut event: Value, kind: &str) -> Value {
    event["type"] = kind.into();
    event
}

fn event(data: &Value) -> String {
    match data["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

fn events(list: &[Value]) -> Bytes {
    Bytes::from(list.iter().map(event).collect::<String>())
}

fn list_of(value: &mut Value) -> &mut [Value] {
    value.as_array_mut().map_or(&mut [], Vec::as_mut_slice)
}

/// One chunk with all choices, then one with the usage.
fn chat(mut answer: Value) -> Bytes {
    if answer["object"] == "chat.completion" {
        answer["object"] = "chat.completion.chunk".into();
    }
    let usage = answer.as_object_mut().and_then(|members| members.remove("usage")).filter(|usage| !usage.is_null());
    for (at, choice) in list_of(&mut answer["choices"]).iter_mut().enumerate() {
        let Some(members) = choice.as_object_mut() else { continue };
        members.entry("index").or_insert_with(|| at.into());
        let Some(Value::Object(mut message)) = members.remove("message") else { continue };
        let calls = message.get_mut("tool_calls").map(list_of).unwrap_or_default();
        for (at, call) in calls.iter_mut().enumerate() {
            if let Some(call) = call.as_object_mut() {
                call.entry("index").or_insert_with(|| at.into());
            }
        }
        members.insert("delta".to_owned(), Value::Object(message));
    }
    let mut stream = format!("data: {answer}\n\n");
    if let Some(usage) = usage {
        answer["choices"] = json!([]);
        answer["usage"] = usage;
        stream += &["data: ", &answer.to_string(), "\n\n"].concat();
    }
    Bytes::from(stream + "data: [DONE]\n\n")
}

fn messages(mut answer: Value) -> Bytes {
    let content = answer["content"].take();
    let ending: Vec<(&str, Value)> =
        ["stop_reason", "stop_sequence"].into_iter().map(|name| (name, answer[name].take())).collect();
    let usage = answer["usage"].clone();
    answer["content"] = json!([]);
    let mut all = vec![json!({"type": "message_start", "message": answer})];
    for (index, block) in content.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate() {
        let (begun, deltas) = pieces_of(block);
        all.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        for delta in deltas {
            all.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        all.push(json!({"type": "content_block_stop", "index": index}));
    }
    let mut last = json!({"type": "message_delta", "delta": {}});
    for (name, value) in ending {
        last["delta"][name] = value;
    }
    if !usage.is_null() {
        last["usage"] = usage;
    }
    all.extend([last, json!({"type": "message_stop"})]);
    events(&all)
}

/// Returns a block as its start has it, and its deltas.
fn pieces_of(block: &Value) -> (Value, Vec<Value>) {
    let mut begun = block.clone();
    let mut deltas = Vec::new();
    match block["type"].as_str() {
        Some("text") => {
            begun["text"] = "".into();
            deltas.push(json!({"type": "text_delta", "text": block["text"]}));
            if let Some(citations) = begun.as_object_mut().and_then(|members| members.remove("citations")) {
                let each = citations.as_array().into_iter().flatten();
                deltas.extend(each.map(|citation| json!({"type": "citations_delta", "citation": citation})));
            }
        }
        Some("thinking") => {
            begun["thinking"] = "".into();
            begun["signature"] = "".into();
            deltas.push(json!({"type": "thinking_delta", "thinking": block["thinking"]}));
            if block["signature"].is_string() {
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
        }
        Some("tool_use" | "server_tool_use") => {
            begun["input"] = json!({});
            deltas.push(json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}));
        }
        _ => {}
    }
    (begun, deltas)
}
