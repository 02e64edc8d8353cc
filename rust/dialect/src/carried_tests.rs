//! Tests the parts of a conversation that are translated: earlier answers, reasoning, tool names, and tools that only
//! one provider has.

use bytes::Bytes;
use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};

use crate::answer_context::AnswerContext;
use crate::facts_tests::{
    chat, known, messages, messages_tools, parsed, refusal, responses, sent, with, written, CHAT, MESSAGES,
};
use crate::fit::Fit;
use crate::openai::stream::End;
use crate::stream::Follow;
use crate::translate::{self, Pair};

#[test]
fn a_provider_that_wants_reasoning_back_gets_what_the_caller_sent() {
    let call = json!({"type": "tool_use", "id": "toolu_01", "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_01", "content": "x"});
    let talk = |thought: Option<&str>| {
        let thought = thought.map(|text| json!({"type": "thinking", "thinking": text, "signature": ""}));
        let parts: Vec<Value> = thought.into_iter().chain([call.clone()]).collect();
        messages(&json!({"tools": messages_tools(), "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": parts}, {"role": "user", "content": [result]},
        ]}))
    };
    let pair = Pair { caller: MESSAGES, provider: CHAT };
    let wants = Fit { replays_reasoning: true, ..Fit::default() };
    for (thought, fit, expected) in [
        (Some("Let me see."), &wants, json!("Let me see.")),
        (None, &wants, json!(" ")),
        (Some("Let me see."), &Fit::default(), Value::Null),
    ] {
        let body = parsed(&written(pair, &talk(thought), &ModelFacts::default(), fit).expect("written"));
        let reasoning = body["messages"][1].get("reasoning_content").unwrap_or(&Value::Null);
        assert_eq!(reasoning, &expected, "{thought:?}");
    }
}

#[test]
fn members_of_earlier_answers_are_no_reason_to_refuse() {
    let details = json!([{"type": "reasoning.text", "text": "Hm.", "signature": "sig", "format": "anthropic-claude-v1"},
        {"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1"}]);
    let call = json!({"id": "call_1", "index": 0, "type": "function", "function": {"name": "f", "arguments": "{}", "parsed": {}},
        "extra_content": {"google": {}}});
    let answer = json!({"role": "assistant", "content": "So.", "annotations": [{"type": "url_citation"}], "parsed": {"a": 1},
        "images": [{"type": "image_url"}], "audio": {"id": "a"}, "prefix": true, "tool_calls": [call], "reasoning_details": details});
    let body = chat(&json!({"messages": [{"role": "user", "content": "hi"}, answer,
        {"role": "tool", "tool_call_id": "call_1", "content": "1"}]}));
    for provider in [MESSAGES, Dialect::OpenaiResponses, Dialect::Gemini] {
        let pair = Pair { caller: CHAT, provider };
        let body = parsed(&written(pair, &body, &ModelFacts::default(), &Fit::default()).expect("written"));
        if provider == MESSAGES {
            let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "sig"});
            assert_eq!(body["messages"][1]["content"][0], thinking);
        }
    }
    let steering = chat(&json!({"messages": [{"role": "user", "content": "hi", "colour": "red"}]}));
    let pair = Pair { caller: CHAT, provider: MESSAGES };
    let error = written(pair, &steering, &ModelFacts::default(), &Fit::default()).expect_err("refused");
    assert_eq!(error.param.as_deref(), Some("messages[0].colour"));

    let body = responses(&json!({"input": [
        {"role": "user", "content": "hi"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "phase": "final", "novel": 1,
         "content": [{"type": "output_text", "text": "So.", "annotations": [], "logprobs": []}]},
        {"role": "user", "content": "more"},
    ]}));
    for provider in [MESSAGES, CHAT, Dialect::Gemini] {
        let pair = Pair { caller: Dialect::OpenaiResponses, provider };
        written(pair, &body, &ModelFacts::default(), &Fit::default()).expect("written");
    }
}

#[test]
fn tools_that_another_provider_runs_are_left_out_and_named() {
    let function = json!({"type": "function", "name": "f", "parameters": {"type": "object"}});
    for kind in ["web_search", "web_search_preview", "image_generation", "tool_search"] {
        let body = responses(&json!({"tools": [function, {"type": kind}], "tool_choice": "auto"}));
        for provider in [MESSAGES, CHAT, Dialect::Gemini] {
            let pair = Pair { caller: Dialect::OpenaiResponses, provider };
            let sent = written(pair, &body, &ModelFacts::default(), &Fit::default()).expect("written");
            assert_eq!(sent.left_out, [kind.trim_end_matches("_preview")], "{provider:?}");
            assert!(parsed(&sent)["tools"].to_string().contains(r#""name":"f""#));
        }
    }
    let alone = messages(
        &json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "auto"}}),
    );
    let (body, left_out) = sent(MESSAGES, "openai/gpt-4o", &alone);
    assert_eq!((body.get("tools"), body.get("tool_choice"), left_out), (None, None, vec!["web_search".to_owned()]));
    let forced = with(alone, &json!({"tool_choice": {"type": "tool", "name": "web_search"}}));
    assert_eq!(refusal(MESSAGES, "openai/gpt-4o", &forced), "tool_choice");
    let search =
        json!({"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"googleSearch": {}}, {"urlContext": {}}]});
    assert_eq!(sent(Dialect::Gemini, "openai/gpt-4o", &search).1, ["googleSearch", "urlContext"]);
}

#[test]
fn a_long_name_of_a_tool_is_sent_short_and_comes_back() {
    let name = format!("mcp__server/{}", "x".repeat(80));
    let tools =
        json!([{"name": name, "input_schema": {"type": "object"}}, {"name": "f", "input_schema": {"type": "object"}}]);
    let body = messages(&json!({"tools": tools, "tool_choice": {"type": "tool", "name": name}}));
    let pair = Pair { caller: MESSAGES, provider: CHAT };
    let sent = written(pair, &body, &ModelFacts::default(), &Fit::default()).expect("written");
    let body = parsed(&sent);
    let short = body["tools"][0]["function"]["name"].as_str().expect("a name");
    assert!(short.len() == 64 && short.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
    assert_eq!(body["tool_choice"]["function"]["name"], short);
    assert_eq!(body["tools"][1]["function"]["name"], "f");

    let context = AnswerContext { tool_names: sent.tool_names.clone(), ..AnswerContext::default() };
    let call = json!({"index": 0, "id": "c", "type": "function", "function": {"name": short, "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let answer = json!({"id": "a", "object": "chat.completion", "model": "m", "created": 1,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    let whole = translate::answer(pair, &Bytes::from(answer.to_string()), &context).expect("an answer");
    let whole: Value = serde_json::from_slice(&whole.body).expect("JSON");
    assert_eq!(whole["content"][0]["name"], name);

    let chunk = json!({"id": "a", "object": "chat.completion.chunk", "model": "m", "created": 1,
        "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let mut follow = Follow::new(pair, context);
    let mut stream = Vec::new();
    for piece in follow.push(&Bytes::from(format!("data: {chunk}\n\ndata: [DONE]\n\n"))).pieces {
        stream.extend_from_slice(&piece);
    }
    stream.extend_from_slice(&follow.finish(End::Clean).bytes);
    let stream = String::from_utf8(stream).expect("text");
    assert!(stream.contains(&format!(r#""name":"{name}""#)) && !stream.contains(short), "{stream}");
}

#[test]
fn a_body_that_the_gateway_wrote_is_written_by_the_facts_too() {
    let body = chat(&json!({"max_completion_tokens": 5, "seed": 1, "stream": true}));
    let pair = Pair { caller: CHAT, provider: CHAT };
    let ours = Fit { is_rewritten: true, ..Fit::default() };
    let body = parsed(&written(pair, &body, &known("mistral/any"), &ours).expect("written"));
    assert_eq!((&body["max_tokens"], &body["random_seed"]), (&json!(5), &json!(1)));
    assert!(body.get("max_completion_tokens").is_none() && body.get("stream_options").is_none(), "{body}");
}
