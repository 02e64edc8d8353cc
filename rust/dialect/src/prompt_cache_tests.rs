//! Tests cache keys and cache marks: in translated requests and in bodies that pass through.

use bytes::Bytes;
use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};

use crate::cache_hints::CacheHints;
use crate::facts_tests::{known, parsed, with, written};
use crate::fit::{Destination, Fit};
use crate::translate::{self, Pair};

const CHAT: Dialect = Dialect::Openai;
const RESPONSES: Dialect = Dialect::OpenaiResponses;
const MESSAGES: Dialect = Dialect::Anthropic;

fn fit() -> Fit {
    Fit { cache: CacheHints { key: Some(0xfeed), pays: true }, ..Fit::default() }
}

fn facts(members: Value) -> ModelFacts {
    serde_json::from_value(members).expect("facts")
}

fn long(text: &str) -> String {
    format!("{text} ").repeat(1_000)
}

/// A chat request with tools, instructions and three turns of the user; the second one is a tool result.
fn chat() -> Value {
    json!({"model": "m", "messages": [
        {"role": "system", "content": long("rule")},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "sun"},
        {"role": "tool", "tool_call_id": "b", "content": "rain"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"}
    ], "tools": [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}
    ]})
}

fn messages() -> Value {
    json!({"model": "m", "max_tokens": 9, "system": long("rule"), "messages": [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "sun"}]},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"}
    ], "tools": [{"name": "f", "input_schema": {"type": "object"}}, {"name": "g", "input_schema": {"type": "object"}}]})
}

fn sent(caller: Dialect, provider: Dialect, body: &Value, facts: &ModelFacts) -> Value {
    parsed(&written(Pair { caller, provider }, body, facts, &fit()).expect("written"))
}

/// The paths of all marks in a body.
fn marks(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if name == "cache_control" {
                    found.push(path.to_owned());
                } else {
                    marks(value, &format!("{path}/{name}"), found);
                }
            }
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| marks(value, &format!("{path}/{at}"), found));
        }
        _ => {}
    }
}

fn marks_of(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    marks(body, "", &mut found);
    found.sort();
    found
}

const OF_MESSAGES: [&str; 4] = ["/messages/2/content", "/messages/4/content/0", "/system/0", "/tools/1"];

#[test]
fn claude_gets_four_marks() {
    let body = sent(CHAT, MESSAGES, &chat(), &ModelFacts::default());
    let expected = ["/messages/2/content/1", OF_MESSAGES[1], OF_MESSAGES[2], OF_MESSAGES[3]];
    assert_eq!(marks_of(&body), expected, "both results are one message");
    assert_eq!(body["system"][0]["cache_control"], json!({"type": "ephemeral"}));

    let body = sent(MESSAGES, MESSAGES, &messages(), &ModelFacts::default());
    let expected = ["/messages/2/content/0", OF_MESSAGES[1], OF_MESSAGES[2], OF_MESSAGES[3]];
    assert_eq!(marks_of(&body), expected);
    let mut unmarked = body;
    for path in expected {
        unmarked.pointer_mut(path).and_then(Value::as_object_mut).expect("an object").remove("cache_control");
    }
    assert_eq!(unmarked["messages"][4]["content"], json!([{"type": "text", "text": "three"}]));
    assert_eq!(unmarked["tools"], messages()["tools"]);
}

#[test]
fn a_chat_provider_with_marks_gets_them_in_its_texts() {
    let facts = facts(json!({"cache_marks": 4}));
    for (caller, body) in [(MESSAGES, messages()), (CHAT, chat())] {
        let body = sent(caller, CHAT, &body, &facts);
        let marked = marks_of(&body);
        let last = body["messages"].as_array().expect("messages").len() - 1;
        assert_eq!(marked.len(), 3, "{caller:?}: {marked:?}");
        assert!(marked.contains(&"/messages/0/content/0".to_owned()), "{caller:?}: {marked:?}");
        assert!(marked.contains(&format!("/messages/{}/content/0", last - 2)), "the tool's result: {marked:?}");
        assert!(marked.contains(&format!("/messages/{last}/content/0")), "{caller:?}: {marked:?}");
    }
}

#[test]
fn the_callers_own_marks_are_not_moved() {
    let mut body = messages();
    body["messages"][2]["content"][0]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    assert_eq!(sent(MESSAGES, MESSAGES, &body, &ModelFacts::default()), body);

    let carried = sent(MESSAGES, CHAT, &body, &facts(json!({"cache_marks": 4})));
    assert_eq!(marks_of(&carried), ["/messages/3/content/0"]);
    assert_eq!(carried["messages"][3]["content"][0]["cache_control"]["ttl"], "1h");
    assert_eq!(carried["messages"][3]["role"], "tool");
}

#[test]
fn a_caller_that_leaves_the_marks_to_the_provider_gets_them_with_its_lifetime() {
    let body = with(messages(), &json!({"cache_control": {"type": "ephemeral", "ttl": "1h"}}));
    assert_eq!(sent(MESSAGES, MESSAGES, &body, &ModelFacts::default()), body);

    let plain = Fit::default();
    let carried = written(Pair { caller: MESSAGES, provider: CHAT }, &body, &facts(json!({"cache_marks": 4})), &plain);
    let carried = parsed(&carried.expect("written"));
    assert_eq!(marks_of(&carried).len(), 3, "{carried}");
    assert_eq!(carried["messages"][0]["content"][0]["cache_control"]["ttl"], "1h");

    let chat = with(chat(), &json!({"cache_control": {"type": "ephemeral"}}));
    assert_eq!(marks_of(&sent(CHAT, MESSAGES, &chat, &ModelFacts::default())).len(), 4);
}

#[test]
fn a_short_or_unpaid_request_gets_nothing() {
    let short = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    assert!(marks_of(&sent(CHAT, MESSAGES, &short, &ModelFacts::default())).is_empty());
    let takes_key = facts(json!({"prompt_cache_key_most": 64}));
    assert_eq!(sent(CHAT, CHAT, &short, &takes_key), short);
    assert!(marks_of(&sent(CHAT, MESSAGES, &chat(), &known("anthropic/claude-opus-4-7"))).is_empty(), "2,048 tokens");

    let unpaid = Fit { cache: CacheHints::default(), ..Fit::default() };
    let body = written(Pair { caller: CHAT, provider: MESSAGES }, &chat(), &ModelFacts::default(), &unpaid);
    assert!(marks_of(&parsed(&body.expect("written"))).is_empty());
}

#[test]
fn providers_that_accept_a_key_get_one() {
    let takes_key = facts(json!({"prompt_cache_key_most": 64}));
    let responses = json!({"model": "m", "store": false, "input": long("hello")});
    for (caller, provider, body) in [
        (CHAT, CHAT, chat()),
        (MESSAGES, CHAT, messages()),
        (MESSAGES, RESPONSES, messages()),
        (RESPONSES, RESPONSES, responses.clone()),
        (RESPONSES, CHAT, responses),
    ] {
        let found = sent(caller, provider, &body, &takes_key);
        assert_eq!(found["prompt_cache_key"], "fl-000000000000feed", "{caller:?} {provider:?}");
        for refuses in [
            json!({}),
            json!({"prompt_cache_key_most": 0}),
            json!({"prompt_cache_key_most": 64, "refused": ["prompt_cache_key"]}),
        ] {
            let found = sent(caller, provider, &body, &facts(refuses));
            assert!(found.get("prompt_cache_key").is_none(), "{caller:?} {provider:?}");
        }
    }
    let own = with(chat(), &json!({"prompt_cache_key": "mine"}));
    assert_eq!(sent(CHAT, CHAT, &own, &takes_key)["prompt_cache_key"], "mine");
    assert_eq!(sent(CHAT, RESPONSES, &own, &takes_key)["prompt_cache_key"], "mine");
}

#[test]
fn a_body_that_passes_keeps_every_other_byte() {
    let text = format!(
        "{{ \"model\" : \"p/m\",\n \"max_tokens\":9, \"system\":\"{}\", \"messages\":[{{\"role\":\"user\",\"content\" : \"one\"}}] }}\n",
        long("rule")
    );
    let body = Bytes::from(text.clone());
    let read = translate::read(MESSAGES, &body).expect("a request");
    let (fit, facts) = (fit(), ModelFacts::default());
    let to = Destination { model: "m", fit: &fit, facts: &facts };
    let pair = Pair { caller: MESSAGES, provider: MESSAGES };
    let sent = translate::request_for(pair, &body, &read, to).expect("written").pieces.concat();
    let sent = String::from_utf8(sent).expect("text");
    let mark = r#","cache_control":{"type":"ephemeral"}}]"#;
    let restored = sent.replace(mark, "").replace(r#"[{"type":"text","text":"#, "").replace("\"m\"", "\"p/m\"");
    assert_eq!(restored, text);
    assert_eq!(sent.matches(mark).count(), 2);
}

#[test]
fn tools_that_are_loaded_later_and_blank_texts_get_no_mark() {
    let mut body = messages();
    body["tools"][1]["defer_loading"] = json!(true);
    body["messages"][4]["content"] = json!([{"type": "text", "text": "three"}, {"type": "text", "text": " "}]);
    let marked = marks_of(&sent(MESSAGES, MESSAGES, &body, &ModelFacts::default()));
    assert_eq!(marked, ["/messages/2/content/0", "/messages/4/content/0", "/system/0"]);
}
