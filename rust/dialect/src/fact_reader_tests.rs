//! Tests that every fact of the catalogue changes a request.

use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};

use crate::cache_hints::CacheHints;
use crate::facts_tests::{
    chat, chat_tools, gemini, messages, messages_tools, parsed, responses, with, written, CHAT, MESSAGES,
};
use crate::fit::Fit;
use crate::translate::Pair;

/// Returns one value for each fact, with a request that the value changes.
fn differences() -> Vec<(&'static str, Value, Pair, Value)> {
    let to_chat = Pair { caller: MESSAGES, provider: CHAT };
    let from_responses = Pair { caller: Dialect::OpenaiResponses, provider: CHAT };
    let to_messages = Pair { caller: CHAT, provider: MESSAGES };
    let from_gemini = Pair { caller: Dialect::Gemini, provider: CHAT };
    let thinks = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}});
    let forced = messages(&json!({"tools": messages_tools(), "tool_choice": {"type": "any"}}));
    let talk = messages(&json!({"messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_01", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "x"}]},
        {"role": "assistant", "content": "So"},
    ]}));
    let effort = chat(&json!({"reasoning_effort": "high", "max_tokens": 9000}));
    let shared = responses(&json!({"prompt_cache_key": "key", "service_tier": "flex", "user": "user"}));
    let schema = json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
    let blank = chat(
        &json!({"messages": [{"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "a"}]}]}),
    );
    let to_gemini = Pair { caller: CHAT, provider: Dialect::Gemini };
    let user = json!({"role": "user", "content": "hi"});
    let json = json!({"type": "json_object"});
    let picture = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let pictures = [picture("data:image/gif;base64,AAAA"), picture("https://example.org/a.gif")];
    let pictures = chat(&json!({"messages": [{"role": "user", "content": pictures}]}));
    let block = json!({"type": "thinking", "thinking": "Hm.", "signature": "EuYB"});
    let answer = json!({"role": "assistant", "content": "So.", "thinking_blocks": [block]});
    let thought = chat(&json!({"messages": [user, answer, user]}));
    vec![
        ("api_type", json!("responses"), to_chat, messages(&json!({}))),
        ("output_least", json!(9999), Pair { caller: CHAT, provider: Dialect::OpenaiResponses }, effort.clone()),
        ("cap_member", json!("max_tokens"), to_chat, messages(&json!({}))),
        ("seed_member", json!("random_seed"), from_gemini, gemini(&json!({"seed": 1}))),
        ("user_most", json!(3), from_responses, shared.clone()),
        (
            "tool_names",
            json!({"most": 20, "letters": "word"}),
            to_chat,
            messages(&json!({"tools": [{"name": "a_name_of_25_characters__", "input_schema": {"type": "object"}}]})),
        ),
        ("call_ids", json!({"most": 9, "letters": "alphanumeric"}), to_chat, talk.clone()),
        ("refused", json!(["user"]), from_responses, shared.clone()),
        ("strips_refused", json!(true), Pair { caller: CHAT, provider: CHAT }, chat(&json!({"user": "u"}))),
        ("refused_in_turns", json!(["thinking_blocks"]), Pair { caller: CHAT, provider: CHAT }, thought.clone()),
        ("thinking", json!("switch"), to_chat, messages(&thinks)),
        ("efforts", json!(["low"]), to_chat, messages(&thinks)),
        ("budget_least", json!(5000), Pair { caller: CHAT, provider: MESSAGES }, effort.clone()),
        ("budget_most", json!(2000), Pair { caller: CHAT, provider: MESSAGES }, effort),
        ("thinks_by_default", json!(true), to_chat, messages(&json!({"temperature": 0.5}))),
        (
            "tools_need_thinking_off",
            json!(true),
            to_chat,
            messages(&with(thinks.clone(), &json!({"tools": messages_tools()}))),
        ),
        ("thinking_needs_stream", json!(true), to_chat, messages(&thinks)),
        (
            "parameters_required",
            json!(true),
            from_responses,
            responses(&json!({"tools": [{"type": "function", "name": "f"}]})),
        ),
        ("logprobs", json!("count"), from_responses, responses(&json!({"top_logprobs": 2}))),
        ("metadata_needs_store", json!(true), from_responses, responses(&json!({"metadata": {"a": "b"}}))),
        ("samplers", json!("refused"), to_chat, messages(&json!({"temperature": 0.5}))),
        ("forced_tools", json!("without_thinking"), to_chat, with(forced, &thinks)),
        ("prefill", json!("prefix"), to_chat, talk.clone()),
        ("blank_texts", json!("accepted"), to_messages, blank),
        ("schemas", json!("json_object"), to_chat, messages(&json!({"output_config": schema}))),
        ("cache_marks", json!(4), to_chat, talk),
        ("cache_least", json!(0), to_messages, chat(&json!({}))),
        ("prompt_cache_key_most", json!(0), from_responses, shared.clone()),
        (
            "cache_retentions",
            json!(["24h"]),
            from_responses,
            responses(&json!({"prompt_cache_retention": "in_memory"})),
        ),
        ("service_tiers", json!(["auto"]), from_responses, shared),
        ("streaming_usage", json!("always"), to_chat, messages(&json!({"stream": true}))),
        ("media", json!(["image/png"]), to_messages, pictures.clone()),
        ("media_urls", json!(false), to_messages, pictures),
        ("system", json!(false), to_messages, chat(&json!({"messages": [{"role": "system", "content": "a"}, user]}))),
        ("stop_most", json!(1), to_messages, chat(&json!({"stop": ["a", "b"]}))),
        ("tools_with_schema", json!(false), to_gemini, chat(&json!({"tools": chat_tools(), "response_format": json}))),
        ("outputs", json!(["audio"]), to_gemini, chat(&json!({}))),
        ("binds_thinking", json!(true), to_messages, thought),
    ]
}

#[test]
fn every_fact_has_a_reader() {
    let mut names = Vec::new();
    for (name, value, pair, body) in differences() {
        // Some facts have an effect only together with others.
        let beside = match name {
            "budget_least" | "budget_most" => json!({"thinking": "budget"}),
            "thinks_by_default" => json!({"samplers": "without_thinking"}),
            "strips_refused" => json!({"refused": ["user"]}),
            _ => json!({}),
        };
        let facts = |members: Value| serde_json::from_value::<ModelFacts>(members).expect("facts");
        let cache = CacheHints { key: None, pays: name == "cache_least" };
        let fit = Fit { is_edited: name == "binds_thinking", cache, ..Fit::default() };
        let without = written(pair, &body, &facts(beside.clone()), &fit).expect("written");
        let with_fact = facts(with(beside, &json!({ name: value })));
        match written(pair, &body, &with_fact, &fit) {
            Ok(with_fact) => assert_ne!(parsed(&without), parsed(&with_fact), "nothing reads `{name}`"),
            Err(refused) => assert!(refused.param.is_some(), "`{name}` refuses the request without a member"),
        }
        names.push(name.to_owned());
    }
    let facts = serde_json::to_value(ModelFacts::default()).expect("JSON");
    let mut fields: Vec<String> = facts.as_object().expect("an object").keys().cloned().collect();
    fields.sort();
    names.sort();
    assert_eq!(names, fields, "each fact has a request that shows its effect");
}
