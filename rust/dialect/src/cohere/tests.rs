//! Requests in each dialect as bodies of Cohere's chat, and answers as messages.

use bytes::Bytes;
use fairlead_core::{Dialect, ModelFacts, Protocol, Thinking};
use serde_json::{json, Value};

use crate::answer_context::AnswerContext;
use crate::fit::{Destination, Fit};
use crate::protocol::{self, EventReader, Sending};
use crate::translate::{self, NoAnswer, Pair};

fn sent(caller: Dialect, body: &Value, facts: &ModelFacts) -> Result<(Value, Vec<String>), String> {
    let body = Bytes::from(body.to_string());
    let read = translate::read(caller, &body).expect("a request");
    let pair = Pair { caller, provider: Dialect::Anthropic };
    let sending = Sending { protocol: Protocol::CohereChat, pair, betas: None };
    let to = Destination { model: "command-a-03-2025", fit: &Fit::default(), facts };
    let sent = protocol::request_for(sending, &body, &read, to).map_err(|error| error.message.into_owned())?;
    Ok((serde_json::from_slice(&sent.pieces.concat()).expect("JSON"), sent.left_out))
}

fn chat(more: &Value) -> Result<(Value, Vec<String>), String> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    sent(Dialect::Openai, &body, &ModelFacts::default())
}

fn reasons() -> ModelFacts {
    ModelFacts { thinking: Some(Thinking::Switch), ..ModelFacts::default() }
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "d", "parameters": {"type": "object"}}})
}

#[test]
fn members_have_coheres_names() {
    let (body, left_out) = chat(&json!({
        "stream": true, "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"],
        "frequency_penalty": 0.5, "presence_penalty": -1, "user": "u",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
    }))
    .expect("written");
    let expected = json!({
        "model": "command-a-03-2025", "stream": true, "max_tokens": 9, "temperature": 0.5, "p": 0.9, "seed": 7,
        "stop_sequences": ["END"], "frequency_penalty": 0.5,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
    });
    assert_eq!(body, expected);
    assert_eq!(left_out, ["presence_penalty", "user"]);
}

#[test]
fn samplers_stay_in_coheres_ranges() {
    let (body, _) = chat(&json!({"top_p": 1})).expect("written");
    assert_eq!(body["p"], Value::Null);
    let (body, _) = chat(&json!({"top_p": 0})).expect("written");
    assert_eq!(body["p"], 0.01);
    let many = json!({"model": "m", "max_tokens": 5, "top_k": 900, "messages": [{"role": "user", "content": "hello"}]});
    let (body, _) = sent(Dialect::Anthropic, &many, &ModelFacts::default()).expect("written");
    assert_eq!(body["k"], 500);
}

#[test]
fn a_conversation_with_tools() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}});
    let (body, _) = chat(&json!({
        "tools": [tool("f"), tool("g")], "tool_choice": "required",
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
            {"role": "user", "content": [
                {"type": "text", "text": "and this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}},
            ]},
        ],
    }))
    .expect("written");
    let [_, assistant, result, user] = body["messages"].as_array().expect("turns").as_slice() else { panic!("{body}") };
    assert_eq!(*assistant, json!({"role": "assistant", "tool_calls": [call]}));
    assert_eq!(*result, json!({"role": "tool", "tool_call_id": "c1", "content": "(no output)"}));
    assert_eq!(user["content"][1], json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}));
    assert_eq!((body["tools"].as_array().map(Vec::len), &body["tool_choice"]), (Some(2), &json!("REQUIRED")));
}

#[test]
fn one_forced_tool_is_the_only_one_offered() {
    let choice = json!({"type": "function", "function": {"name": "g"}});
    let (body, _) = chat(&json!({"tools": [tool("f"), tool("g")], "tool_choice": choice})).expect("written");
    assert_eq!((body["tools"].as_array().map(Vec::len), &body["tools"][0]["function"]["name"]), (Some(1), &json!("g")));
    assert_eq!(body["tool_choice"], "REQUIRED");
    let (body, _) = chat(&json!({"tools": [tool("f")], "tool_choice": "none"})).expect("written");
    assert_eq!(body["tool_choice"], "NONE");
}

#[test]
fn formats_and_their_limits() {
    let schema = json!({"type": "object"});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let (body, _) = chat(&json!({"response_format": format})).expect("written");
    assert_eq!(body["response_format"], json!({"type": "json_object", "json_schema": schema}));
    let refused = chat(&json!({"response_format": format, "tools": [tool("f")]}));
    assert!(refused.expect_err("refused").contains("`response_format`"));
    let refused = chat(&json!({"parallel_tool_calls": false, "tools": [tool("f")]}));
    assert!(refused.expect_err("refused").contains("`parallel_tool_calls`"));
}

#[test]
fn reasoning_is_switched_for_models_that_reason() {
    let body = json!({"model": "m", "reasoning_effort": "high", "messages": [{"role": "user", "content": "hello"}]});
    let (written, _) = sent(Dialect::Openai, &body, &reasons()).expect("written");
    assert_eq!(written["thinking"], json!({"type": "enabled"}));
    let (written, left_out) = sent(Dialect::Openai, &body, &ModelFacts::default()).expect("written");
    assert_eq!((&written["thinking"], left_out), (&Value::Null, vec!["reasoning_effort".to_owned()]));
    let off = json!({"model": "m", "reasoning_effort": "none", "messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(sent(Dialect::Openai, &off, &reasons()).expect("written").0["thinking"], json!({"type": "disabled"}));
}

#[test]
fn reasoning_of_another_provider_is_left_out() {
    let thought = |signature: &str| json!({"type": "thinking", "thinking": "hm", "signature": signature});
    let call = json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}});
    let body = |signature: &str| {
        json!({"model": "m", "max_tokens": 5, "tools": [{"name": "f", "input_schema": {"type": "object"}}], "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [thought(signature), call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "1"}]},
        ]})
    };
    let (own, _) = sent(Dialect::Anthropic, &body(""), &reasons()).expect("written");
    assert_eq!(own["messages"][1]["content"], json!([{"type": "thinking", "thinking": "hm"}]));
    let (plan, _) = sent(Dialect::Anthropic, &body(""), &ModelFacts::default()).expect("written");
    assert_eq!(plan["messages"][1]["tool_plan"], "hm");
    let (others, _) = sent(Dialect::Anthropic, &body("c2lnbmVk"), &reasons()).expect("written");
    assert_eq!(others["messages"][1]["content"], Value::Null);
}

fn context() -> AnswerContext {
    AnswerContext { id: "1".into(), ..AnswerContext::default() }
}

fn answer(body: &Value) -> Result<Value, NoAnswer> {
    let read = protocol::answer(Protocol::CohereChat, body.to_string().as_bytes(), "m", &context())?;
    Ok(serde_json::from_slice(&read.expect("a rewritten answer")).expect("JSON"))
}

#[test]
fn an_answer_becomes_a_message() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}});
    let body = json!({
        "id": "own", "finish_reason": "TOOL_CALL",
        "message": {"role": "assistant", "tool_plan": "I will look.", "tool_calls": [call],
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]},
        "usage": {"billed_units": {"input_tokens": 9.0, "output_tokens": 2.0},
            "tokens": {"input_tokens": 90.0, "output_tokens": 20.0}, "cached_tokens": 4.0},
    });
    let message = answer(&body).expect("a message");
    let blocks = json!([
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "text", "text": "hi"},
        {"type": "thinking", "thinking": "I will look.", "signature": ""},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
    ]);
    assert_eq!((&message["content"], &message["stop_reason"]), (&blocks, &json!("tool_use")));
    let usage = json!({"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 2});
    assert_eq!((&message["usage"], &message["id"]), (&usage, &json!("own")));
}

#[test]
fn what_is_no_answer_is_an_error() {
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "hi"}]});
    for reason in ["ERROR", "TIMEOUT"] {
        let failed = answer(&json!({"id": "x", "finish_reason": reason, "message": message}));
        assert!(matches!(failed, Err(NoAnswer::ProviderError(_))), "{failed:?}");
    }
    assert!(matches!(answer(&json!({"message": "invalid api token"})), Err(NoAnswer::ProviderError(_))));
    assert_eq!(answer(&json!({"id": "x"})), Err(NoAnswer::Without("message")));
    assert_eq!(protocol::answer(Protocol::CohereChat, b"no JSON", "m", &context()), Err(NoAnswer::NotJson));
    let ended = answer(&json!({"id": "x", "finish_reason": "MAX_TOKENS", "message": message})).expect("a message");
    assert_eq!(ended["stop_reason"], "max_tokens");
}

fn streamed(events: &[Value], size: usize) -> (String, String) {
    let mut reader = EventReader::of(Protocol::CohereChat, "m", &context()).expect("a reader");
    let written = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    let stream = written.collect::<Vec<_>>().concat();
    let mut out = String::new();
    for part in stream.as_bytes().chunks(size) {
        out.push_str(std::str::from_utf8(&reader.push(part)).expect("text"));
    }
    (out, String::from_utf8(reader.finish().to_vec()).expect("text"))
}

fn begun() -> Vec<Value> {
    let delta = |delta: Value| json!({"message": delta});
    vec![
        json!({"type": "message-start", "id": "own",
            "delta": delta(json!({"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}))}),
        json!({"type": "content-start", "index": 0, "delta": delta(json!({"content": {"type": "thinking", "thinking": ""}}))}),
        json!({"type": "content-delta", "index": 0, "delta": delta(json!({"content": {"thinking": "hm"}}))}),
        json!({"type": "content-end", "index": 0}),
        json!({"type": "content-start", "index": 1, "delta": delta(json!({"content": {"type": "text", "text": ""}}))}),
        json!({"type": "content-delta", "index": 1, "delta": delta(json!({"content": {"text": "hi"}}))}),
        json!({"type": "citation-start", "index": 0, "delta": delta(json!({"citations": {"start": 0}}))}),
        json!({"type": "content-end", "index": 1}),
        json!({"type": "tool-call-start", "index": 0, "delta": delta(json!({"tool_calls":
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}}))}),
        json!({"type": "tool-call-delta", "index": 0, "delta": delta(json!({"tool_calls": {"function": {"arguments": "{\"a\":"}}}))}),
        json!({"type": "tool-call-delta", "index": 0, "delta": delta(json!({"tool_calls": {"function": {"arguments": "1}"}}}))}),
        json!({"type": "tool-call-end", "index": 0}),
    ]
}

#[test]
fn a_stream_becomes_events_of_a_message() {
    let mut events = begun();
    events.push(json!({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL",
        "usage": {"billed_units": {"input_tokens": 9, "output_tokens": 2}}}}));
    let (out, rest) = streamed(&events, 1_000_000);
    let kinds: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(
        kinds,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    assert!(out.contains(r#""stop_reason":"tool_use""#) && out.contains(r#""input_tokens":9"#), "{out}");
    assert!(out.contains(r#"{"type":"tool_use","id":"c1","name":"f","input":{}}"#), "{out}");
    assert_eq!(rest, "");
    for size in [1, 2, 3, 7, 64] {
        assert_eq!(streamed(&events, size).0, out);
    }
    let mut reader = EventReader::of(Protocol::CohereChat, "m", &context()).expect("a reader");
    let lines = "event: message-start\r\ndata: {\"type\":\"message-start\",\"id\":\"own\"}\r\n\r\n";
    let read: Vec<u8> = lines.as_bytes().chunks(1).flat_map(|part| reader.push(part)).collect();
    assert!(read.starts_with(b"event: message_start\n"));
}

#[test]
fn a_stream_that_fails_ends_with_an_error() {
    let mut events = begun();
    events.push(json!({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "it broke"}}));
    let (out, _) = streamed(&events, 64);
    assert!(
        out.ends_with("{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"it broke\"}}\n\n"),
        "{out}"
    );
    // An answer without its last event has broken off: nothing is added.
    let (out, rest) = streamed(&begun(), 64);
    assert!(!out.contains("message_stop") && rest.is_empty());
}
