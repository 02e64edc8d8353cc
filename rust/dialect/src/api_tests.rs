//! Tests the choice between chat completions and responses, and the members that both writers send.

use bytes::Bytes;
use fairlead_core::Dialect;
use serde_json::{json, Value};

use crate::api::ApiNeed;
use crate::facts_tests::{
    chat, chat_tools, gemini, known, messages, messages_tools, parsed, responses, sent, with, written,
};
use crate::facts_tests::{CHAT, MESSAGES};
use crate::fit::Fit;
use crate::translate::{read_at, Pair};
use crate::url_params::UrlParams;

const RESPONSES: Dialect = Dialect::OpenaiResponses;

fn need(caller: Dialect, name: &str, body: &Value) -> ApiNeed {
    let body = Bytes::from(body.to_string());
    let read = read_at(caller, &body, UrlParams { model: "m", ..UrlParams::default() }).expect("a request");
    ApiNeed::of(caller, &body, &read, &known(name))
}

#[test]
fn models_without_chat_completions_are_called_by_responses_for_every_caller() {
    for name in [
        "openai/gpt-6-astra",
        "openai/gpt-6.1-sol",
        "openai/gpt-5-codex",
        "openai/gpt-5.1-codex-max",
        "openai/gpt-5.3-codex",
        "openai/gpt-5-pro-2025-10-06",
        "openai/gpt-5.2-pro",
        "openai/gpt-5.5-pro",
        "openai/o1-pro",
        "openai/o3-pro-2025-06-10",
        "openai/o3-deep-research",
        "openai/o4-mini-deep-research-2025-06-26",
        "openai/computer-use-preview",
        "openai/gpt-daybreak-red-latest",
        "openai/codex-mini",
        "xai/grok-4.20-multi-agent-0309",
    ] {
        assert_eq!(need(CHAT, name, &chat(&json!({}))), ApiNeed::Responses, "{name}");
        assert_eq!(need(MESSAGES, name, &messages(&json!({}))), ApiNeed::Responses, "{name}");
        assert_eq!(need(Dialect::Gemini, name, &gemini(&json!({}))), ApiNeed::Responses, "{name}");
        assert_eq!(need(RESPONSES, name, &responses(&json!({}))), ApiNeed::Responses, "{name}");
    }
    for name in ["openai/gpt-5.2", "openai/gpt-4o", "openai/daybreak-red-latest", "xai/grok-4.6", "mistral/any"] {
        let body = chat(&json!({"tools": chat_tools(), "reasoning_effort": "high"}));
        assert_eq!(need(CHAT, name, &body), ApiNeed::Chat, "{name}");
    }
}

#[test]
fn tools_with_reasoning_need_responses_at_the_newest_models() {
    let tools = json!({"tools": chat_tools()});
    for (effort, expected) in
        [(json!("high"), ApiNeed::Preferred), (json!("none"), ApiNeed::Chat), (Value::Null, ApiNeed::Chat)]
    {
        for name in ["openai/gpt-5.4", "openai/gpt-5.6", "openai/gpt-6-sol", "openai/gpt-6.1-terra"] {
            let body = chat(&with(tools.clone(), &json!({"reasoning_effort": effort})));
            assert_eq!(need(CHAT, name, &body), expected, "{name} {effort}");
            let body = chat(&json!({"reasoning_effort": effort}));
            assert_eq!(need(CHAT, name, &body), ApiNeed::Chat, "{name} {effort} without tools");
        }
    }
    let own = responses(&json!({"tools": [{"type": "function", "name": "f"}]}));
    assert_eq!(need(RESPONSES, "openai/gpt-6-sol", &own), ApiNeed::Preferred);
    let thinks = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}});
    let body = messages(&with(thinks, &json!({"tools": messages_tools()})));
    assert_eq!(need(MESSAGES, "openai/gpt-6-sol", &body), ApiNeed::Preferred);
}

#[test]
fn tools_go_to_the_newest_models_of_openai_with_reasoning_off() {
    let body = messages(&json!({"tools": messages_tools()}));
    for name in ["openai/gpt-5.4", "openai/gpt-5.6", "openai/gpt-6-sol", "openai/gpt-6.1-terra"] {
        let (body, _) = sent(MESSAGES, name, &body);
        assert_eq!(body["reasoning_effort"], "none", "{name}");
    }
    for name in ["openai/gpt-5.2", "openai/gpt-4o"] {
        assert_eq!(sent(MESSAGES, name, &body).0.get("reasoning_effort"), None, "{name}");
    }
    let requested = with(body, &json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}));
    let (body, left_out) = sent(MESSAGES, "openai/gpt-5.6", &requested);
    assert_eq!((&body["reasoning_effort"], left_out), (&json!("none"), vec!["thinking".to_owned()]));
}

#[test]
fn tools_of_a_chat_caller_pass_through_with_reasoning_off() {
    let pair = Pair { caller: CHAT, provider: CHAT };
    let tools = json!({"tools": chat_tools()});
    for (name, effort, expected, left_out) in [
        ("openai/gpt-6-sol", None, json!("none"), &[][..]),
        ("openai/gpt-6-sol", Some(Value::Null), json!("none"), &[]),
        ("openai/gpt-6-sol", Some(json!("none")), json!("none"), &[]),
        ("openai/gpt-6-sol", Some(json!("high")), json!("none"), &["reasoning_effort"]),
        ("openai/gpt-5.4", None, Value::Null, &[]),
        ("openai/gpt-5.4", Some(json!("low")), json!("none"), &["reasoning_effort"]),
        ("openai/gpt-5.2", Some(json!("low")), json!("low"), &[]),
    ] {
        let mut body = chat(&tools);
        if let Some(effort) = effort {
            body["reasoning_effort"] = effort;
        }
        let sent = written(pair, &body, &known(name), &Fit::default()).expect("written");
        let after = parsed(&sent);
        assert_eq!(after.get("reasoning_effort").unwrap_or(&Value::Null), &expected, "{name} {body}");
        assert_eq!(sent.left_out, left_out, "{name} {body}");
        assert_eq!(after["tools"], body["tools"]);
    }
    let body = chat(&json!({"reasoning_effort": "high"}));
    let sent = written(pair, &body, &known("openai/gpt-6-sol"), &Fit::default()).expect("written");
    assert_eq!(parsed(&sent), body);
}

#[test]
fn the_least_output_limit_of_responses_is_sent() {
    let to_responses = Pair { caller: CHAT, provider: RESPONSES };
    let facts = known("openai/gpt-6-astra");
    for (limit, expected) in [(1, 16), (16, 16), (17, 17)] {
        let body = written(to_responses, &chat(&json!({"max_tokens": limit})), &facts, &Fit::default());
        assert_eq!(parsed(&body.expect("written"))["max_output_tokens"], expected);
    }
    let fit = Fit { cap: Some(5), ..Fit::default() };
    for caller in [CHAT, RESPONSES] {
        let body = if caller == CHAT { chat(&json!({})) } else { responses(&json!({"max_output_tokens": 40})) };
        let body = written(Pair { caller, provider: RESPONSES }, &body, &facts, &fit).expect("written");
        assert_eq!(parsed(&body)["max_output_tokens"], 16);
    }
}

#[test]
fn responses_get_no_member_that_the_model_refuses() {
    let to_responses = Pair { caller: CHAT, provider: RESPONSES };
    let facts = known("openai/gpt-6-astra");
    let body = chat(&json!({"logprobs": true, "top_logprobs": 2, "temperature": 0.5}));
    let error = written(to_responses, &body, &facts, &Fit::default()).expect_err("refused");
    assert_eq!(error.param.as_deref(), Some("logprobs"));
    let drops = Fit { drops: true, ..Fit::default() };
    let sent = written(to_responses, &body, &facts, &drops).expect("dropped");
    let after = parsed(&sent);
    for member in ["top_logprobs", "include", "temperature"] {
        assert_eq!(after.get(member), None, "{after}");
    }
    assert_eq!(sent.left_out, ["temperature", "logprobs"]);
}

#[test]
fn a_choice_of_tools_without_tools_is_left_out() {
    let body = messages(&json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}));
    for name in ["openai/gpt-4o", "mistral/any", "gemini/gemini-3-flash"] {
        let (after, left_out) = sent(MESSAGES, name, &body);
        assert!(after.get("tool_choice").is_none() && after.get("toolConfig").is_none(), "{name}: {after}");
        assert_eq!(left_out, ["tool_choice", "tool_choice.disable_parallel_tool_use"], "{name}");
    }
}

#[test]
fn more_stop_sequences_than_the_provider_takes_are_named() {
    let body = messages(&json!({"stop_sequences": ["a", "b", "c", "d", "e"]}));
    for name in ["openai/gpt-4o", "groq/any", "cerebras/any"] {
        let (after, left_out) = sent(MESSAGES, name, &body);
        assert_eq!((&after["stop"], &*left_out), (&json!(["a", "b", "c", "d"]), &["stop_sequences".to_owned()][..]));
    }
    assert_eq!(sent(MESSAGES, "openrouter/any", &body).0["stop"].as_array().map(Vec::len), Some(5));
    let (after, left_out) = sent(CHAT, "anthropic/claude-sonnet-4-5", &chat(&json!({"stop": ["\n", "END"]})));
    assert_eq!((&after["stop_sequences"], left_out), (&json!(["END"]), vec!["stop".to_owned()]));
}

#[test]
fn metadata_is_sent_only_with_store() {
    let metadata = json!({"metadata": {"a": "b"}});
    let (after, left_out) = sent(RESPONSES, "openai/gpt-5.1", &with(responses(&metadata), &json!({"store": false})));
    assert_eq!((after.get("metadata"), left_out), (None, vec!["metadata".to_owned()]));
    let (after, _) = sent(RESPONSES, "openai/gpt-5.1", &with(responses(&metadata), &json!({"store": true})));
    assert_eq!(after["metadata"], metadata["metadata"]);
    let to_responses = Pair { caller: CHAT, provider: RESPONSES };
    let sent = written(to_responses, &chat(&metadata), &known("openai/gpt-6-astra"), &Fit::default()).expect("written");
    assert_eq!(parsed(&sent)["metadata"], metadata["metadata"]);
}

#[test]
fn one_call_at_a_time_is_kept_when_a_forced_tool_is_dropped() {
    let body = chat(&json!({"tools": chat_tools(), "tool_choice": "required", "parallel_tool_calls": false}));
    let pair = Pair { caller: CHAT, provider: MESSAGES };
    let fit = Fit { drops: true, ..Fit::default() };
    let sent = written(pair, &body, &known("anthropic/claude-opus-5-5"), &fit).expect("dropped");
    assert_eq!(parsed(&sent)["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    assert_eq!(sent.left_out, ["tool_choice"]);
}

#[test]
fn cache_marks_of_tools_and_results_are_sent_where_they_are_accepted() {
    let mark = json!({"type": "ephemeral"});
    let body = messages(&json!({
        "tools": [{"name": "f", "input_schema": {"type": "object"}, "cache_control": mark}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "done", "cache_control": mark},
            ]},
        ],
    }));
    let (after, left_out) = sent(MESSAGES, "openrouter/anthropic/claude-sonnet-4.5", &body);
    assert_eq!(after["tools"][0]["cache_control"], mark, "{after}");
    let result = json!([{"type": "text", "text": "done", "cache_control": mark}]);
    assert_eq!((&after["messages"][2]["content"], left_out), (&result, vec![]));
    for name in ["openai/gpt-4o", "together/any", "gemini/gemini-3-flash"] {
        let (after, left_out) = sent(MESSAGES, name, &body);
        assert!(!after.to_string().contains("cache_control"), "{name}: {after}");
        assert_eq!(left_out, ["cache_control"], "{name}");
    }
}

#[test]
fn functions_without_parameters_get_empty_ones_where_they_are_required() {
    let body = chat(&json!({"tools": [{"type": "function", "function": {"name": "f"}}]}));
    let pair = Pair { caller: CHAT, provider: CHAT };
    let rewritten = Fit { is_rewritten: true, ..Fit::default() };
    let sent = written(pair, &body, &known("minimax/MiniMax-M2"), &rewritten).expect("written");
    let parameters = json!({"type": "object", "properties": {}});
    assert_eq!(parsed(&sent)["tools"][0]["function"]["parameters"], parameters);
}

#[test]
fn a_model_that_reasons_only_in_streams_is_asked_for_one() {
    let thinks = |kind: &str| messages(&json!({"thinking": {"type": kind, "budget_tokens": 2000}}));
    for (name, kind, is_stream) in [
        ("dashscope/qwen3-30b-a3b", "enabled", true),
        ("dashscope/qwen3-30b-a3b", "disabled", false),
        ("dashscope/qwen3-30b-a3b-instruct-2507", "enabled", false),
        ("dashscope/qwen-plus", "enabled", false),
    ] {
        let (after, _) = sent(MESSAGES, name, &thinks(kind));
        assert_eq!(after.get("stream").is_some(), is_stream, "{name} {kind}: {after}");
    }
}
