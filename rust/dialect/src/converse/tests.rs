//! Requests in each dialect as `Converse` bodies, and answers as messages.

use bytes::Bytes;
use fairlead_core::{Dialect, ForcedTools, Letters, ModelFacts, NameRule, Protocol};
use serde_json::{json, Value};

use crate::answer_context::AnswerContext;
use crate::cache_hints::CacheHints;
use crate::converse::StreamReader;
use crate::fit::{Destination, Fit};
use crate::protocol::{self, Sending};
use crate::translate::{self, NoAnswer, Pair, SentRequest};

fn sent(caller: Dialect, body: &Value, facts: &ModelFacts) -> Result<(Value, Vec<String>), String> {
    let sent = translated(caller, body, facts)?;
    Ok((serde_json::from_slice(&sent.pieces.concat()).expect("JSON"), sent.left_out))
}

fn translated(caller: Dialect, body: &Value, facts: &ModelFacts) -> Result<SentRequest, String> {
    let body = Bytes::from(body.to_string());
    let read = translate::read(caller, &body).expect("a request");
    let pair = Pair { caller, provider: Dialect::Anthropic };
    let sending = Sending { protocol: Protocol::BedrockConverse, pair, betas: None };
    let to = Destination { model: "amazon.nova-pro-v1:0", fit: &Fit::default(), facts };
    protocol::request_for(sending, &body, &read, to).map_err(|error| error.message.into_owned())
}

fn chat(more: &Value) -> Result<(Value, Vec<String>), String> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    sent(Dialect::Openai, &body, &ModelFacts::default())
}

fn tool() -> Value {
    json!({"type": "function", "function": {"name": "f", "description": " ", "parameters": {"type": "object"}}})
}

fn history() -> Value {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    json!([
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": " \n", "tool_calls": [call("functions.f:0"), call("b/c")]},
        {"role": "tool", "tool_call_id": "functions.f:0", "content": "1"},
        {"role": "tool", "tool_call_id": "b/c", "content": ""},
    ])
}

#[test]
fn calls_and_results_are_blocks_of_alternating_turns() {
    let (body, _) = chat(&json!({"messages": history(), "tools": [tool()]})).expect("written");
    let [user, calls, results] = body["messages"].as_array().expect("turns").as_slice() else { panic!("{body}") };
    assert_eq!(user["content"], json!([{"text": "hello"}]));
    let ids: Vec<&str> = calls["content"]
        .as_array()
        .expect("blocks")
        .iter()
        .filter_map(|one| one["toolUse"]["toolUseId"].as_str())
        .collect();
    assert_eq!((ids.len(), ids[0]), (2, "functions.f:0"));
    assert!(ids[1].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte)), "{ids:?}");
    assert_eq!(results["content"][0]["toolResult"], json!({"toolUseId": ids[0], "content": [{"text": "1"}]}));
    assert_eq!(results["content"][1]["toolResult"], json!({"toolUseId": ids[1], "content": [{"text": "(no output)"}]}));
    // A blank description is rejected.
    let spec = json!({"name": "f", "inputSchema": {"json": {"type": "object"}}});
    assert_eq!(body["toolConfig"], json!({"tools": [{"toolSpec": spec}]}));
}

#[test]
fn a_choice_of_no_tool_leaves_the_tools_out() {
    let (body, _) = chat(&json!({"tools": [tool()], "tool_choice": "none"})).expect("written");
    assert_eq!(body["toolConfig"], Value::Null);
    let refused = chat(&json!({"messages": history(), "tools": [tool()], "tool_choice": "none"}));
    assert!(refused.expect_err("refused").contains("`tool_choice` cannot be expressed"));
}

#[test]
fn a_tool_is_forced_where_the_model_can_be() {
    let forced = json!({"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "f"}}});
    let (body, _) = chat(&forced).expect("written");
    assert_eq!(body["toolConfig"]["toolChoice"], json!({"tool": {"name": "f"}}));
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
    body.as_object_mut().expect("an object").extend(forced.as_object().expect("an object").clone());
    let facts = ModelFacts { forced_tools: Some(ForcedTools::Refused), ..ModelFacts::default() };
    assert!(sent(Dialect::Openai, &body, &facts).is_err());
}

#[test]
fn cache_marks_become_points_where_the_model_has_them() {
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let block = json!([{"type": "text", "text": "long", "cache_control": mark}]);
    let body = json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": block}]});
    let facts = ModelFacts { cache_marks: Some(4), ..ModelFacts::default() };
    let (written, left_out) = sent(Dialect::Anthropic, &body, &facts).expect("written");
    let point = json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    assert_eq!((&written["messages"][0]["content"][1], left_out.len()), (&point, 0));
    let (written, left_out) = sent(Dialect::Anthropic, &body, &ModelFacts::default()).expect("written");
    assert_eq!(written["messages"][0]["content"], json!([{"text": "long"}]));
    assert_eq!(left_out, ["cache_control"]);
}

#[test]
fn a_long_tool_name_is_shortened_and_restored() {
    let long = "mcp__".to_owned() + &"a".repeat(95);
    let schema = json!({"type": "object"});
    let body = json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}],
        "tools": [{"name": long, "input_schema": schema}], "tool_choice": {"type": "tool", "name": long}});
    let rule = NameRule { most: 64, letters: Letters::Word };
    let facts = ModelFacts { tool_names: Some(rule), ..ModelFacts::default() };
    let written = translated(Dialect::Anthropic, &body, &facts).expect("written");
    let sent: Value = serde_json::from_slice(&written.pieces.concat()).expect("JSON");
    let name = sent["toolConfig"]["tools"][0]["toolSpec"]["name"].as_str().expect("a name");
    assert!(name.len() <= 64, "{name}");
    assert_eq!(sent["toolConfig"]["toolChoice"]["tool"]["name"], name);

    let context = AnswerContext { tool_names: written.tool_names, ..context() };
    let call = json!({"toolUse": {"toolUseId": "t", "name": name, "input": {}}});
    let answer = json!({"output": {"message": {"content": [call]}}, "stopReason": "tool_use"}).to_string();
    let read = protocol::answer(Protocol::BedrockConverse, answer.as_bytes(), "m", &context).expect("an answer");
    let message: Value = serde_json::from_slice(&read.expect("rewritten")).expect("JSON");
    assert_eq!(message["content"][0]["name"], long);

    let mut reader = StreamReader::new("m", &context);
    let mut events = Vec::new();
    let start = json!({"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t", "name": name}}}).to_string();
    reader.read("contentBlockStart", start.as_bytes(), &mut events).expect("an event");
    assert!(String::from_utf8(events).expect("text").contains(&format!(r#""name":"{long}""#)));
}

#[test]
fn the_gateways_hints_become_points_where_the_model_has_them() {
    let long = "word ".repeat(2_000);
    let body = json!({"model": "m", "messages": [
        {"role": "system", "content": long}, {"role": "user", "content": "hello"}], "tools": [tool()]});
    let body = Bytes::from(body.to_string());
    let read = translate::read(Dialect::Openai, &body).expect("a request");
    let pair = Pair { caller: Dialect::Openai, provider: Dialect::Anthropic };
    let sending = Sending { protocol: Protocol::BedrockConverse, pair, betas: None };
    let fit = Fit { cache: CacheHints { key: None, pays: true }, ..Fit::default() };
    let facts = ModelFacts { cache_marks: Some(4), ..ModelFacts::default() };
    let to = Destination { model: "amazon.nova-pro-v1:0", fit: &fit, facts: &facts };
    let sent = protocol::request_for(sending, &body, &read, to).expect("written");
    let written: Value = serde_json::from_slice(&sent.pieces.concat()).expect("JSON");
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!((&written["system"][1], &written["messages"][0]["content"][1]), (&point, &point));
    // Nova caches no tools; the mark of the instructions covers them.
    assert_eq!(written["toolConfig"]["tools"].as_array().map(Vec::len), Some(1));
    assert!(sent.left_out.is_empty());
}

#[test]
fn json_is_asked_for_in_words() {
    let (body, _) = chat(&json!({"response_format": {"type": "json_object"}})).expect("written");
    assert!(body["system"][0]["text"].as_str().expect("a text").contains("JSON object"));
    let schema = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}});
    assert!(chat(&json!({"response_format": schema})).expect_err("refused").contains("`response_format`"));
}

fn context() -> AnswerContext {
    AnswerContext { id: "1".into(), ..AnswerContext::default() }
}

fn answer(body: &Value) -> Result<Value, NoAnswer> {
    let read = protocol::answer(Protocol::BedrockConverse, body.to_string().as_bytes(), "m", &context())?;
    Ok(serde_json::from_slice(&read.expect("a rewritten answer")).expect("JSON"))
}

#[test]
fn an_answer_becomes_a_message() {
    let content = json!([
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"reasoningContent": {"redactedContent": "aaaa"}},
        {"text": "hi"},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}},
    ]);
    let usage = json!({"inputTokens": 9, "outputTokens": 2, "totalTokens": 16, "cacheReadInputTokens": 3,
        "cacheWriteInputTokens": 2, "cacheDetails": [{"ttl": "1h", "inputTokens": 1}, {"ttl": "5m", "inputTokens": 1}]});
    let body = json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use",
        "usage": usage});
    let message = answer(&body).expect("a message");
    let blocks = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "aaaa"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
    ]);
    assert_eq!((&message["content"], &message["stop_reason"]), (&blocks, &json!("tool_use")));
    let counts = json!({"input_tokens": 9, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2,
        "output_tokens": 2, "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 1}});
    assert_eq!((&message["usage"], &message["id"]), (&counts, &json!("msg_1")));
}

#[test]
fn what_is_no_answer_is_told_apart() {
    let message = json!({"message": {"role": "assistant", "content": [{"text": "hi"}]}});
    assert_eq!(answer(&json!({"message": "x"})), Err(NoAnswer::Without("output")));
    assert_eq!(answer(&json!({"output": {"message": {"content": 5}}})), Err(NoAnswer::Strange));
    assert_eq!(protocol::answer(Protocol::BedrockConverse, b"no JSON", "m", &context()), Err(NoAnswer::NotJson));
    for reason in ["malformed_model_output", "malformed_tool_use"] {
        let broken = answer(&json!({"output": message, "stopReason": reason}));
        assert!(matches!(broken, Err(NoAnswer::ProviderError(_))), "{broken:?}");
    }
    let blocked = answer(&json!({"output": message, "stopReason": "guardrail_intervened"})).expect("a message");
    assert_eq!(blocked["stop_reason"], "refusal");
}
