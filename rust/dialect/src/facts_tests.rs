//! Tests the requests that are sent to the models of the catalogue. For each fact, one request is sent whose body the
//! fact changes.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fairlead_core::{Dialect, Error, FactTable, ModelFacts};
use serde_json::{json, Value};

use crate::api::ApiNeed;
use crate::fit::{Destination, Fit};
use crate::translate::{read_at, request_for, Pair, SentRequest};
use crate::url_params::UrlParams;

/// Returns the catalogue's facts of a model, named `provider/model`.
pub(super) fn known(name: &str) -> Arc<ModelFacts> {
    let (provider, model) = name.split_once('/').expect("a provider and a model");
    let file = format!("../../python/fairlead/data/catalogue/{provider}.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let catalogue: Value = serde_json::from_slice(&std::fs::read(path).expect("readable")).expect("JSON");
    let table: FactTable = serde_json::from_value(catalogue["facts"].clone()).expect("facts");
    Arc::clone(table.of(model))
}

fn dialect_of(name: &str) -> Dialect {
    match name.split_once('/').map(|(provider, _)| provider) {
        Some("anthropic") => Dialect::Anthropic,
        Some("gemini") => Dialect::Gemini,
        _ => Dialect::Openai,
    }
}

pub(super) fn written(pair: Pair, body: &Value, facts: &ModelFacts, fit: &Fit) -> Result<SentRequest, Error> {
    let body = Bytes::from(body.to_string());
    let read = read_at(pair.caller, &body, UrlParams { model: "m", ..UrlParams::default() }).expect("a request");
    // The engine chooses the API in the same way.
    let is_responses = facts.api_type.is_some() && ApiNeed::of(pair.caller, &body, &read, facts) == ApiNeed::Responses;
    let provider = if is_responses { Dialect::OpenaiResponses } else { pair.provider };
    let pair = Pair { provider, ..pair };
    request_for(pair, &body, &read, Destination { model: "m", fit, facts })
}

pub(super) fn parsed(sent: &SentRequest) -> Value {
    serde_json::from_slice(&sent.pieces.concat()).expect("JSON")
}

/// Returns the body sent to a model of the catalogue, and the members that were dropped.
pub(super) fn sent(caller: Dialect, name: &str, body: &Value) -> (Value, Vec<String>) {
    let pair = Pair { caller, provider: dialect_of(name) };
    let sent = written(pair, body, &known(name), &Fit::default()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    (parsed(&sent), sent.left_out)
}

pub(super) fn refusal(caller: Dialect, name: &str, body: &Value) -> String {
    let pair = Pair { caller, provider: dialect_of(name) };
    let error = written(pair, body, &known(name), &Fit::default()).expect_err("refused");
    error.param.expect("a member").into_owned()
}

pub(super) fn with(mut body: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    body
}

pub(super) fn messages(more: &Value) -> Value {
    with(json!({"model": "m", "max_tokens": 9000, "messages": [{"role": "user", "content": "hi"}]}), more)
}

pub(super) fn chat(more: &Value) -> Value {
    with(json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}), more)
}

pub(super) fn responses(more: &Value) -> Value {
    with(json!({"model": "m", "input": "hi", "store": false}), more)
}

pub(super) fn gemini(config: &Value) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": config})
}

pub(super) fn chat_tools() -> Value {
    json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}])
}

pub(super) fn messages_tools() -> Value {
    json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}])
}

pub(super) const MESSAGES: Dialect = Dialect::Anthropic;
pub(super) const CHAT: Dialect = Dialect::Openai;

#[test]
fn a_long_user_is_cut_to_what_each_provider_takes() {
    let body = messages(&json!({"metadata": {"user_id": "u".repeat(186)}}));
    for (name, most) in [("openai/gpt-5.1", 64), ("openrouter/any", 128), ("zai/glm-4.6", 128)] {
        let (body, _) = sent(MESSAGES, name, &body);
        assert_eq!(body["user"].as_str().map(str::len), Some(most), "{name}");
    }
    for name in ["mistral/mistral-large-latest", "nvidia/any"] {
        let (body, left_out) = sent(MESSAGES, name, &body);
        assert_eq!((body.get("user"), left_out), (None, vec!["metadata.user_id".to_owned()]), "{name}");
    }
}

#[test]
fn the_cap_is_written_as_each_provider_names_it() {
    for (name, member, other) in [
        ("mistral/mistral-large-latest", "max_tokens", "max_completion_tokens"),
        ("deepseek/deepseek-chat", "max_tokens", "max_completion_tokens"),
        ("zai/glm-4.6", "max_tokens", "max_completion_tokens"),
        ("together/any", "max_tokens", "max_completion_tokens"),
        ("openai/gpt-5.1", "max_completion_tokens", "max_tokens"),
        ("groq/openai/gpt-oss-20b", "max_completion_tokens", "max_tokens"),
    ] {
        let (body, _) = sent(MESSAGES, name, &messages(&json!({})));
        assert_eq!((&body[member], body.get(other)), (&json!(9000), None), "{name}");
    }
}

#[test]
fn a_cap_of_the_operator_has_the_name_that_the_provider_takes() {
    let fit = Fit { cap: Some(7), ..Fit::default() };
    let pair = Pair { caller: CHAT, provider: CHAT };
    for (facts, member) in [(known("mistral/any"), "max_tokens"), (known("openai/gpt-5.1"), "max_completion_tokens")] {
        let body = parsed(&written(pair, &chat(&json!({})), &facts, &fit).expect("passes"));
        assert_eq!(body.as_object().expect("an object").len(), 3, "{body}");
        assert_eq!(body[member], 7);
    }
}

#[test]
fn usage_is_asked_for_only_where_the_provider_takes_that() {
    let body = chat(&json!({"stream": true}));
    let same = Pair { caller: CHAT, provider: CHAT };
    let asks = |name: &str, body: &Value, pair| {
        let sent = written(pair, body, &known(name), &Fit::default()).expect("written");
        parsed(&sent).get("stream_options").is_some()
    };
    assert!(asks("openai/gpt-5.1", &body, same) && asks("groq/any", &body, same));
    assert!(!asks("mistral/any", &body, same));
    let body = messages(&json!({"stream": true}));
    let other = Pair { caller: MESSAGES, provider: CHAT };
    assert!(asks("openai/gpt-5.1", &body, other) && !asks("mistral/any", &body, other));
}

#[test]
fn reasoning_is_asked_for_as_the_model_takes_it() {
    let effort = |level: &str| responses(&json!({"reasoning": {"effort": level}}));
    let caller = Dialect::OpenaiResponses;
    for (name, requested, member, expected) in [
        ("openai/gpt-5", "high", "reasoning_effort", json!("high")),
        ("openai/gpt-5", "xhigh", "reasoning_effort", json!("high")),
        ("openai/gpt-5.1", "minimal", "reasoning_effort", json!("low")),
        ("openai/gpt-5.4", "xhigh", "reasoning_effort", json!("xhigh")),
        ("openai/gpt-5.5", "none", "reasoning_effort", json!("none")),
        ("openai/gpt-6-sol", "minimal", "reasoning_effort", json!("low")),
        ("openai/o3", "minimal", "reasoning_effort", json!("low")),
        ("openai/gpt-4o", "high", "reasoning_effort", Value::Null),
        ("mistral/mistral-medium-latest", "low", "reasoning_effort", json!("high")),
        ("mistral/codestral-latest", "low", "reasoning_effort", Value::Null),
        ("deepseek/deepseek-v4-pro", "medium", "reasoning_effort", json!("high")),
        ("deepseek/deepseek-v4-pro", "medium", "thinking", json!({"type": "enabled"})),
        ("deepseek/deepseek-v4-pro", "none", "thinking", json!({"type": "disabled"})),
        ("moonshot/kimi-k2.6", "high", "thinking", json!({"type": "enabled"})),
        ("moonshot/kimi-k2.6", "high", "reasoning_effort", Value::Null),
        ("moonshot/kimi-k3", "medium", "reasoning_effort", json!("high")),
        ("dashscope/qwen3.6-plus", "high", "enable_thinking", json!(true)),
        ("dashscope/qwen3.6-plus", "none", "enable_thinking", json!(false)),
        ("zai/glm-5.3", "xhigh", "reasoning_effort", json!("max")),
        ("groq/qwen/qwen3.8-27b", "none", "reasoning_effort", json!("none")),
        ("groq/qwen/qwen3.8-27b", "high", "reasoning_effort", json!("high")),
        ("xai/grok-4.3", "xhigh", "reasoning_effort", json!("high")),
        ("xai/grok-4-latest", "high", "reasoning_effort", Value::Null),
        ("anthropic/claude-haiku-4-5", "high", "thinking", json!({"type": "enabled", "budget_tokens": 2048})),
        ("anthropic/claude-haiku-4-5", "high", "output_config", Value::Null),
        ("anthropic/claude-opus-4-5", "xhigh", "output_config", json!({"effort": "high"})),
        ("anthropic/claude-opus-4-8", "xhigh", "output_config", json!({"effort": "max"})),
        ("anthropic/claude-opus-4-8", "low", "thinking", json!({"type": "adaptive"})),
        ("anthropic/claude-fable-5", "low", "thinking", Value::Null),
        ("anthropic/claude-3-5-haiku-20241022", "low", "thinking", Value::Null),
    ] {
        let (body, _) = sent(caller, name, &effort(requested));
        assert_eq!(body.get(member).unwrap_or(&Value::Null), &expected, "{name} {requested}");
    }
}

#[test]
fn reasoning_that_the_model_cannot_switch_is_reported_as_left_out() {
    let request = |effort: &str| responses(&json!({"reasoning": {"effort": effort}}));
    for (name, effort, is_reported) in [
        ("xai/grok-4-latest", "high", true),
        ("openai/gpt-5", "none", true),
        ("openai/gpt-5", "high", false),
        ("openai/gpt-5.1", "none", false),
        ("anthropic/claude-fable-5", "none", true),
        ("anthropic/claude-opus-4-8", "none", false),
    ] {
        let (_, left_out) = sent(Dialect::OpenaiResponses, name, &request(effort));
        assert_eq!(!left_out.is_empty(), is_reported, "{name} {effort}: {left_out:?}");
    }
    let short = responses(&json!({"reasoning": {"effort": "high"}, "max_output_tokens": 1_000}));
    let (body, left_out) = sent(Dialect::OpenaiResponses, "anthropic/claude-haiku-4-5", &short);
    assert!(body.get("thinking").is_none() && !left_out.is_empty(), "the least budget is above the limit");
}

#[test]
fn a_classifier_is_not_switched_at_models_that_always_reason() {
    let body = messages(&json!({"system": "You are a security monitor for autonomous AI coding agents."}));
    for (name, expected) in [
        ("anthropic/claude-opus-5-5", Value::Null),
        ("anthropic/claude-3-5-haiku-20241022", Value::Null),
        ("anthropic/claude-opus-4-8", json!({"type": "disabled"})),
    ] {
        let (body, _) = sent(MESSAGES, name, &body);
        assert_eq!(body.get("thinking").unwrap_or(&Value::Null), &expected, "{name}");
    }
}

#[test]
fn log_probabilities_are_refused_while_the_model_reasons() {
    let request = |effort: &str| responses(&json!({"reasoning": {"effort": effort}, "top_logprobs": 2}));
    assert_eq!(refusal(Dialect::OpenaiResponses, "openai/gpt-5.1", &request("high")), "top_logprobs");
    let (body, _) = sent(Dialect::OpenaiResponses, "openai/gpt-5.1", &request("none"));
    assert_eq!(body["top_logprobs"], json!(2));
}

#[test]
fn reasoning_of_gemini_is_in_the_range_of_the_model() {
    let effort = |level: &str| chat(&json!({"reasoning_effort": level}));
    for (name, requested, expected) in [
        ("gemini/gemini-2.5-pro", "none", json!({"thinkingBudget": 128})),
        ("gemini/gemini-2.5-flash", "none", json!({"thinkingBudget": 0})),
        ("gemini/gemini-2.5-flash-lite", "minimal", json!({"thinkingBudget": 512, "includeThoughts": true})),
        ("gemini/gemini-2.5-flash", "xhigh", json!({"thinkingBudget": 24576, "includeThoughts": true})),
        ("gemini/gemini-3-pro-preview", "minimal", json!({"thinkingLevel": "LOW", "includeThoughts": true})),
        ("gemini/gemini-3-flash", "minimal", json!({"thinkingLevel": "MINIMAL", "includeThoughts": true})),
        ("gemini/gemini-3.8-flash", "none", json!({"thinkingLevel": "LOW"})),
        ("gemini/gemini-2.0-flash", "high", Value::Null),
    ] {
        let (body, _) = sent(CHAT, name, &effort(requested));
        let config = body.get("generationConfig").map_or(&Value::Null, |config| &config["thinkingConfig"]);
        // `none` in a chat request leaves the reasoning configuration unset.
        if requested == "none" && config.is_null() {
            continue;
        }
        assert_eq!(config, &expected, "{name} {requested}");
    }
    let body = chat(&json!({"frequency_penalty": 0.5}));
    let (body, left_out) = sent(CHAT, "gemini/gemini-2.5-flash", &body);
    assert_eq!((body.get("generationConfig"), left_out), (None, vec!["frequency_penalty".to_owned()]));
}

#[test]
fn samplers_are_left_out_where_the_model_refuses_them() {
    let warm = |effort: Value| chat(&json!({"temperature": 0.2, "reasoning_effort": effort}));
    for (name, effort, is_sent) in [
        ("anthropic/claude-opus-4-6", json!("high"), false),
        ("anthropic/claude-opus-4-6", Value::Null, true),
        ("anthropic/claude-opus-4-7", Value::Null, false),
        ("anthropic/claude-3-5-haiku-20241022", Value::Null, true),
    ] {
        let (body, left_out) = sent(CHAT, name, &warm(effort.clone()));
        assert_eq!(body.get("temperature").is_some(), is_sent, "{name} {effort}");
        assert_eq!(left_out.contains(&"temperature".to_owned()), !is_sent, "{name} {effort}");
    }
    for (name, thinking, is_sent) in [
        ("openai/gpt-5", json!(null), false),
        ("openai/gpt-5.1", json!(null), true),
        ("openai/gpt-5.1", json!({"type": "enabled", "budget_tokens": 2000}), false),
        ("openai/gpt-5.5", json!(null), false),
        ("openai/gpt-5.5", json!({"type": "disabled"}), true),
        ("openai/gpt-4o", json!(null), true),
        ("moonshot/kimi-k2.6", json!(null), false),
    ] {
        let (body, _) = sent(MESSAGES, name, &messages(&json!({"temperature": 0.2, "thinking": thinking})));
        assert_eq!(body.get("temperature").is_some(), is_sent, "{name} {thinking}");
    }
}

#[test]
fn a_forced_tool_switches_reasoning_off_where_they_exclude_each_other() {
    let forced = messages(&json!({"tools": messages_tools(), "tool_choice": {"type": "any"}}));
    for (name, member, expected) in [
        ("deepseek/deepseek-v4-flash", "thinking", json!({"type": "disabled"})),
        ("moonshot/kimi-k2.5", "thinking", json!({"type": "disabled"})),
        ("dashscope/qwen3-30b-a3b", "enable_thinking", json!(false)),
    ] {
        let (body, left_out) = sent(MESSAGES, name, &forced);
        assert_eq!((&body[member], &body["tool_choice"]), (&expected, &json!("required")), "{name}");
        assert!(left_out.is_empty(), "the caller did not ask for reasoning");
        let thinks =
            with(forced.clone(), &json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}));
        let (body, left_out) = sent(MESSAGES, name, &thinks);
        assert_eq!((&body[member], left_out), (&expected, vec!["thinking".to_owned()]), "{name}");
    }
    assert_eq!(refusal(MESSAGES, "moonshot/kimi-k2.7-code", &forced), "tool_choice");
    let forced = chat(&json!({"tools": chat_tools(), "tool_choice": "required"}));
    assert_eq!(refusal(CHAT, "anthropic/claude-opus-5-5", &forced), "tool_choice");
}

#[test]
fn strict_providers_get_no_member_that_they_refuse() {
    let body = responses(&json!({
        "user": "u", "store": true, "metadata": {"a": "b"}, "service_tier": "flex", "prompt_cache_key": "k",
        "prompt_cache_retention": "24h", "text": {"verbosity": "low"}, "stream": true, "parallel_tool_calls": true,
    }));
    let caller = Dialect::OpenaiResponses;
    for (name, refused) in [
        ("mistral/any", &["user", "store", "stream_options", "service_tier", "verbosity", "seed"][..]),
        ("groq/any", &["store", "metadata", "verbosity", "prompt_cache_key", "prompt_cache_retention"]),
        ("cerebras/any", &["store", "metadata", "verbosity"]),
        ("fireworks/any", &["store", "verbosity"]),
        ("nvidia/any", &["store", "metadata", "service_tier", "prompt_cache_key", "user"]),
        ("perplexity/sonar", &["user", "store", "metadata", "prompt_cache_key"]),
    ] {
        let (body, left_out) = sent(caller, name, &body);
        for member in refused {
            assert!(body.get(member).is_none(), "{name} {member}: {body}");
        }
        assert!(left_out.iter().any(|member| member == "store"), "{name}: {left_out:?}");
    }
    let (body, left_out) = sent(caller, "openai/gpt-5.1", &body);
    assert_eq!((&body["prompt_cache_key"], &body["service_tier"]), (&json!("k"), &json!("flex")));
    assert!(left_out.is_empty(), "{left_out:?}");
    let (body, _) = sent(Dialect::Gemini, "mistral/any", &gemini(&json!({"seed": 7})));
    assert_eq!((&body["random_seed"], body.get("seed")), (&json!(7), None));
}

#[test]
fn sequences_that_the_model_refuses_are_refused_or_dropped() {
    let body = messages(&json!({"stop_sequences": ["END"]}));
    for name in ["openai/gpt-5.1", "xai/grok-4.6"] {
        assert_eq!(refusal(MESSAGES, name, &body), "stop_sequences", "{name}");
        let fit = Fit { drops: true, ..Fit::default() };
        let pair = Pair { caller: MESSAGES, provider: CHAT };
        let sent = written(pair, &body, &known(name), &fit).expect("dropped");
        assert_eq!((parsed(&sent).get("stop"), &*sent.left_out), (None, &["stop_sequences".to_owned()][..]));
    }
    assert_eq!(sent(MESSAGES, "openai/gpt-4o", &body).0["stop"], json!(["END"]));
}

#[test]
fn an_answer_is_continued_only_by_models_that_do() {
    let body =
        json!({"model": "m", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "He"}]});
    assert_eq!(refusal(CHAT, "anthropic/claude-opus-4-6", &body), "messages");
    let (older, _) = sent(CHAT, "anthropic/claude-opus-4-5", &body);
    assert_eq!(older["messages"][1]["content"], "He");
    let body = with(body, &json!({"max_tokens": 5}));
    assert_eq!(sent(MESSAGES, "mistral/any", &body).0["messages"][1]["prefix"], true);
    assert_eq!(sent(MESSAGES, "openai/gpt-5.1", &body).0["messages"][1].get("prefix"), None);
}

#[test]
fn schemas_are_what_the_model_takes() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let body = messages(&json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}}));
    for name in ["deepseek/deepseek-chat", "zai/glm-4.6"] {
        let (body, _) = sent(MESSAGES, name, &body);
        assert_eq!(body["response_format"], json!({"type": "json_object"}), "{name}");
        let system = body["messages"][0]["content"].as_str().expect("a text");
        assert!(system.contains(r#""minimum":1"#), "{name}: {system}");
    }
    let body =
        chat(&json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}));
    let (body, _) = sent(CHAT, "anthropic/claude-sonnet-4-5", &body);
    assert_eq!(body["output_config"]["format"]["schema"]["additionalProperties"], false);
}

#[test]
fn ids_and_names_are_spelled_as_the_provider_takes_them() {
    let body = messages(&json!({"tools": messages_tools(), "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_01", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "x"}]},
    ]}));
    let (sent_body, _) = sent(MESSAGES, "mistral/any", &body);
    let id = sent_body["messages"][1]["tool_calls"][0]["id"].as_str().expect("an id");
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    assert_eq!(sent_body["messages"][2]["tool_call_id"], id);
    for (name, has_id) in [("gemini/gemini-2.5-flash", false), ("gemini/gemini-3-flash", true)] {
        let (body, _) = sent(MESSAGES, name, &body);
        assert_eq!(body["contents"][1]["parts"][0]["functionCall"].get("id").is_some(), has_id, "{name}");
        assert_eq!(body["contents"][2]["parts"][0]["functionResponse"].get("id").is_some(), has_id, "{name}");
    }
}
