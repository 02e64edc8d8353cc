//! Tests the position of system messages and the billing block of Claude Code, for each pair of dialects.

use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};

use crate::facts_tests::{parsed, written};
use crate::fit::Fit;
use crate::translate::Pair;

const CHAT: Dialect = Dialect::Openai;
const RESPONSES: Dialect = Dialect::OpenaiResponses;
const MESSAGES: Dialect = Dialect::Anthropic;
const GEMINI: Dialect = Dialect::Gemini;

fn sent(caller: Dialect, provider: Dialect, body: &Value) -> Value {
    let sent = written(Pair { caller, provider }, body, &ModelFacts::default(), &Fit::default()).expect("written");
    parsed(&sent)
}

/// A conversation of Claude Code with a system message after the first turn.
fn claude_code() -> Value {
    json!({"model": "m", "max_tokens": 9, "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.37.fbe; cc_entrypoint=cli; cch=94dd6;"},
        {"type": "text", "text": "You are a coding tool."},
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    ], "messages": [
        {"role": "user", "content": "one"},
        {"role": "system", "content": "The clock strikes."},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"}
    ]})
}

#[test]
fn the_billing_block_goes_to_no_other_dialect() {
    for provider in [CHAT, RESPONSES, GEMINI] {
        let body = sent(MESSAGES, provider, &claude_code());
        let text = body.to_string();
        assert!(!text.contains("billing"), "{provider:?}: {text}");
        assert!(text.contains("You are a coding tool."), "{provider:?}: {text}");
    }
    let body = claude_code();
    let same = sent(MESSAGES, MESSAGES, &body);
    assert_eq!(same, body, "Anthropic gets it as it was sent");
}

#[test]
fn the_billing_line_of_a_single_text_is_cut() {
    let mut body = claude_code();
    body["system"] = json!("x-anthropic-billing-header: cch=1;\nYou are a coding tool.");
    assert_eq!(sent(MESSAGES, CHAT, &body)["messages"][0]["content"], "You are a coding tool.");
    body["system"] = json!("x-anthropic-billing-header: cch=1;");
    assert_eq!(sent(MESSAGES, CHAT, &body)["messages"][0], json!({"role": "user", "content": "one"}));
    body["system"] = json!("Explain x-anthropic-billing-header: to me");
    assert_eq!(sent(MESSAGES, CHAT, &body)["messages"][0]["content"], body["system"]);
}

#[test]
fn a_system_message_keeps_its_position_where_the_dialect_has_it() {
    let body = sent(MESSAGES, CHAT, &claude_code());
    let roles: Vec<_> = body["messages"].as_array().expect("messages").iter().map(|one| &one["role"]).collect();
    assert_eq!(roles, ["system", "user", "system", "assistant", "user"]);
    assert_eq!(body["messages"][2]["content"], "The clock strikes.");

    let body = sent(MESSAGES, RESPONSES, &claude_code());
    assert_eq!(body["input"][2]["role"], "developer", "{body}");
    assert_eq!(body["input"][2]["content"], "The clock strikes.");
    assert_eq!(body["input"][3]["role"], "assistant");
}

#[test]
fn both_openai_dialects_keep_developer_messages_in_place() {
    let chat = json!({"model": "m", "messages": [
        {"role": "system", "content": "a"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"},
        {"role": "developer", "content": "d"}, {"role": "user", "content": "e"}
    ]});
    let body = sent(CHAT, RESPONSES, &chat);
    assert_eq!(body["instructions"], "a");
    assert_eq!(body["input"][2], json!({"type": "message", "role": "developer", "content": "d"}));

    let responses = json!({"model": "m", "store": false, "instructions": "a", "input": [
        {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"},
        {"role": "system", "content": "d"}, {"role": "user", "content": "e"}
    ]});
    let body = sent(RESPONSES, CHAT, &responses);
    let roles: Vec<_> = body["messages"].as_array().expect("messages").iter().map(|one| &one["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "system", "user"]);
}

#[test]
fn other_dialects_get_all_instructions_at_the_beginning() {
    let body = sent(MESSAGES, GEMINI, &claude_code());
    let texts: Vec<_> =
        body["systemInstruction"]["parts"].as_array().expect("parts").iter().map(|one| &one["text"]).collect();
    assert_eq!(texts, ["You are a coding tool.", "Be brief.", "The clock strikes."]);
    assert_eq!(body["contents"].as_array().expect("contents").len(), 3);

    let chat = json!({"model": "m", "messages": [
        {"role": "user", "content": "b"}, {"role": "developer", "content": "d"}, {"role": "user", "content": "e"}
    ]});
    let body = sent(CHAT, MESSAGES, &chat);
    assert_eq!(body["system"], "d");
    assert_eq!(
        body["messages"].as_array().expect("messages").len(),
        1,
        "two turns of one role are one message: {body}"
    );
}

#[test]
fn reasoning_before_a_system_message_that_is_moved_does_not_reach_a_model_that_binds_it() {
    let answer = |text: &str| {
        let block = json!({"type": "thinking", "thinking": text, "signature": "EuYB"});
        json!({"role": "assistant", "content": text, "thinking_blocks": [block]})
    };
    let user = json!({"role": "user", "content": "go on"});
    let system = json!({"role": "system", "content": "The clock strikes."});
    let body = json!({"model": "m", "messages": [user, answer("one"), system, user, answer("two"), user]});
    let facts = |binds| ModelFacts { binds_thinking: Some(binds), ..ModelFacts::default() };
    let thoughts = |body: &Value, facts: &ModelFacts| {
        let pair = Pair { caller: CHAT, provider: MESSAGES };
        let sent = parsed(&written(pair, body, facts, &Fit::default()).expect("written")).to_string();
        ["one", "two"].map(|text| sent.contains(&format!(r#""thinking":"{text}""#)))
    };
    assert_eq!(thoughts(&body, &facts(true)), [false, true]);
    assert_eq!(thoughts(&body, &facts(false)), [true, true]);
    let body = json!({"model": "m", "messages": [system, user, answer("one"), user]});
    assert_eq!(thoughts(&body, &facts(true)), [true, false]);
}
