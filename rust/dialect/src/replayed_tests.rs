//! Tests conversations and answers that users of gateways reported, in pairs of dialects.

use bytes::Bytes;
use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};
use Dialect::{Anthropic, Gemini, Openai, OpenaiResponses};

use crate::answer_context::AnswerContext;
use crate::facts_tests::{chat, chat_tools, gemini, messages, messages_tools, parsed, responses, sent, with, written};
use crate::fit::Fit;
use crate::openai::stream::{End, Outcome};
use crate::stream::Follow;
use crate::translate::{self, NoAnswer, Pair};

const CLAUDE: &str = "anthropic/claude-sonnet-4-6";

fn plain(caller: Dialect, provider: Dialect, body: &Value) -> Value {
    parsed(&written(Pair { caller, provider }, body, &ModelFacts::default(), &Fit::default()).expect("written"))
}

/// Returns the caller's stream and its outcome.
fn streamed(provider: Dialect, caller: Dialect, events: &[Value]) -> (String, Outcome) {
    let context = AnswerContext { id: "0a".to_owned(), ..AnswerContext::default() };
    let mut follow = Follow::new(Pair { caller, provider }, context);
    let mut out = Vec::new();
    let done = (provider == Openai).then(|| "data: [DONE]\n\n".to_owned());
    for event in events.iter().map(|event| format!("data: {event}\n\n")).chain(done) {
        for piece in follow.push(&Bytes::from(event)).pieces {
            out.extend_from_slice(&piece);
        }
    }
    let closing = follow.finish(End::Clean);
    out.extend_from_slice(&closing.bytes);
    (String::from_utf8(out).expect("text"), closing.outcome)
}

fn whole(provider: Dialect, caller: Dialect, body: &Value) -> Result<Value, NoAnswer> {
    let context = AnswerContext { id: "0a".to_owned(), ..AnswerContext::default() };
    let whole = translate::answer(Pair { caller, provider }, &Bytes::from(body.to_string()), &context)?;
    Ok(serde_json::from_slice(&whole.body).expect("JSON"))
}

fn chunk(delta: &Value, reason: &Value) -> Value {
    json!({"id": "a", "object": "chat.completion.chunk", "model": "m", "created": 1,
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

#[test]
fn reasoning_of_each_maker_goes_back_to_that_maker_only() {
    for (caller, body) in [
        (
            OpenaiResponses,
            responses(&json!({"input": [{"role": "user", "content": "hi"},
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gemini:c2ln"},
            {"role": "assistant", "content": "So."}, {"role": "user", "content": "and?"}]})),
        ),
        (
            Anthropic,
            messages(&json!({"messages": [{"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "gemini:c2ln"},
                {"type": "text", "text": "So."}]}, {"role": "user", "content": "and?"}]})),
        ),
        (
            Openai,
            chat(&json!({"messages": [{"role": "user", "content": "hi"},
            {"role": "assistant", "content": "So.", "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "gemini:c2ln"}]},
            {"role": "user", "content": "and?"}]})),
        ),
    ] {
        for provider in [Openai, OpenaiResponses, Anthropic] {
            if caller == provider && caller == Openai {
                continue;
            }
            let body = plain(caller, provider, &body).to_string();
            assert!(!body.contains("c2ln") && body.contains("So."), "{caller:?} to {provider:?}: {body}");
        }
        let body = plain(caller, Gemini, &body);
        assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "c2ln", "{caller:?}: {body}");
    }
}

#[test]
fn calls_whose_pieces_are_mixed_reach_every_caller_whole() {
    let call = |index: u32, id: &str| json!({"index": index, "id": id, "function": {"name": "f", "arguments": ""}});
    let piece = |index: u32, text: &str| json!({"index": index, "function": {"arguments": text}});
    let calls = |list: Value| chunk(&json!({"tool_calls": list}), &Value::Null);
    let streams = [
        // Three calls, whose pieces come in reverse order.
        vec![
            calls(json!([call(0, "a"), call(1, "b"), call(2, "c")])),
            calls(json!([piece(2, "{\"x\":"), piece(1, "{\"x\":"), piece(0, "{\"x\":")])),
            calls(json!([piece(2, "3}"), piece(1, "2}"), piece(0, "1}")])),
        ],
        // A text and reasoning inside of the arguments.
        vec![
            calls(json!([call(0, "a"), call(1, "b")])),
            calls(json!([piece(0, "{\"x\"")])),
            chunk(&json!({"content": "Hm.", "reasoning_content": "So."}), &Value::Null),
            calls(json!([piece(1, "{\"x\":2}"), piece(0, ":1}")])),
        ],
        // The second call is complete before the first one has any arguments.
        vec![
            calls(json!([call(0, "a"), call(1, "b")])),
            calls(json!([piece(1, "{\"x\":2}")])),
            calls(json!([piece(0, "{\"x\":1}")])),
        ],
    ];
    for mut events in streams {
        events.push(chunk(&json!({}), &json!("tool_calls")));
        for caller in [Anthropic, OpenaiResponses, Gemini] {
            let (stream, outcome) = streamed(Openai, caller, &events);
            assert!(matches!(outcome, Outcome::Completed), "{caller:?}: {outcome:?}: {stream}");
            let whole = stream.replace("\\\"", "\"");
            let at = |text: &str| whole.find(text).unwrap_or_else(|| panic!("{caller:?} has no {text}: {stream}"));
            if caller == Anthropic {
                let starts: Vec<usize> = whole.match_indices("\"tool_use\"").map(|(at, _)| at).collect();
                assert!(starts.len() >= 2 && at("1}") < starts[1], "the first call ends first: {stream}");
            } else {
                assert!(at("{\"x\":1}") < at("{\"x\":2}"), "{caller:?}: {stream}");
            }
        }
    }
}

#[test]
fn reasoning_before_calls_goes_back_in_the_form_of_the_provider() {
    let wants = Fit { replays_reasoning: true, ..Fit::default() };
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let from_responses = responses(
        &json!({"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}], "input": [
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Let me"}, {"type": "summary_text", "text": "see."}]},
        call, {"type": "function_call_output", "call_id": "c", "output": "1"}]}),
    );
    let from_gemini = with(
        gemini(&json!({})),
        &json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "Let me\n\nsee.", "thought": true}, {"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "1"}}}]}]}),
    );
    let from_messages = messages(&json!({"tools": messages_tools(), "messages": [{"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Let me\n\nsee.", "signature": "responses:rs:gAAAA"},
            {"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "1"}]}]}));
    for (caller, body) in [(OpenaiResponses, from_responses), (Gemini, from_gemini), (Anthropic, from_messages)] {
        let pair = Pair { caller, provider: Openai };
        let body = parsed(&written(pair, &body, &ModelFacts::default(), &wants).expect("written"));
        assert_eq!(body["messages"][1]["reasoning_content"], "Let me\n\nsee.", "{caller:?}: {body}");
    }
}

#[test]
fn an_answer_that_was_cut_off_is_not_told_as_complete() {
    let answer_of = |reason: &str| {
        json!({"id": "a", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": reason}]})
    };
    for (reason, expected) in
        [("model_context_window_exceeded", "max_tokens"), ("max_output_tokens", "max_tokens"), ("safety", "refusal")]
    {
        assert_eq!(
            whole(Openai, Anthropic, &answer_of(reason)).expect("an answer")["stop_reason"],
            expected,
            "{reason}"
        );
    }
    for reason in ["error", "abort", "network_error"] {
        assert!(matches!(whole(Openai, Anthropic, &answer_of(reason)), Err(NoAnswer::ProviderError(_))), "{reason}");
        let events = [chunk(&json!({"content": "Hi"}), &Value::Null), chunk(&json!({}), &json!(reason))];
        let (stream, outcome) = streamed(Openai, OpenaiResponses, &events);
        assert!(stream.contains("response.failed") && !stream.contains("response.completed"), "{reason}: {stream}");
        assert!(!matches!(outcome, Outcome::Completed), "{reason}");
    }
    for reason in ["TOO_MANY_TOOL_CALLS", "IMAGE_OTHER", "MISSING_THOUGHT_SIGNATURE"] {
        let answer = json!({"responseId": "a", "candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": reason}]});
        for caller in [Openai, Gemini] {
            assert!(matches!(whole(Gemini, caller, &answer), Err(NoAnswer::ProviderError(_))), "{reason}");
        }
        let (stream, outcome) = streamed(Gemini, Anthropic, &[answer]);
        assert!(stream.contains("event: error") && !matches!(outcome, Outcome::Completed), "{reason}: {stream}");
    }
    for (status, error) in [("failed", Value::Null), ("cancelled", Value::Null)] {
        let answer = json!({"id": "resp_a", "object": "response", "model": "m", "status": status, "error": error, "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]});
        for caller in [Openai, OpenaiResponses, Anthropic] {
            assert!(matches!(whole(OpenaiResponses, caller, &answer), Err(NoAnswer::ProviderError(_))), "{status}");
        }
    }
}

#[test]
fn blank_texts_do_not_reach_claude_from_any_place() {
    let system = json!({"role": "system", "content": " \n"});
    let body = chat(&json!({"messages": [system, {"role": "user", "content": "hi"}]}));
    let (body, _) = sent(Openai, CLAUDE, &body);
    assert!(body.get("system").is_none(), "{body}");
    let input = json!([{"role": "user", "content": [{"type": "input_text", "text": "\t"}, {"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "  "}]}]);
    let tools = json!([{"type": "function", "name": "f", "parameters": {"type": "object"}}]);
    let (body, _) = sent(OpenaiResponses, CLAUDE, &responses(&json!({"input": input, "tools": tools})));
    assert_eq!(body["messages"][0]["content"], "hi");
    assert_eq!(body["messages"][2]["content"][0]["content"], json!([]), "{body}");
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "\n"}]},
        {"role": "user", "parts": [{"text": "and?"}]}]});
    let (body, _) = sent(Gemini, CLAUDE, &body);
    assert!(!body["messages"].to_string().contains("\\n"), "{body}");
}

#[test]
fn a_conversation_for_claude_begins_with_the_user() {
    let greeting = json!({"role": "assistant", "content": "How can I help?"});
    let user = json!({"role": "user", "content": "hi"});
    for body in [
        chat(&json!({"messages": [greeting, user]})),
        chat(&json!({"messages": [{"role": "user", "content": " "}, greeting, user]})),
    ] {
        let (body, _) = sent(Openai, CLAUDE, &body);
        let turns = body["messages"].as_array().expect("turns");
        let roles: Vec<&str> = turns.iter().filter_map(|turn| turn["role"].as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "user"], "{body}");
        assert!(turns[0]["content"].as_str().is_some_and(|text| !text.trim().is_empty()), "{body}");
    }
}

#[test]
fn ids_that_repeat_or_have_other_letters_are_unique_for_claude() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let answer = |id: &str| json!({"role": "assistant", "content": null, "tool_calls": [call(id)]});
    let result = |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let body = chat(&json!({"tools": chat_tools(), "messages": [{"role": "user", "content": "hi"},
        answer("functions.f:0"), result("functions.f:0", "1"), answer("functions.f:0"), result("functions.f:0", "2"),
        answer("call|x y"), result("call|x y", "3")]}));
    let (body, _) = sent(Openai, CLAUDE, &body);
    let mut ids = Vec::new();
    for (at, text) in [(1, "1"), (3, "2"), (5, "3")] {
        let id = body["messages"][at]["content"][0]["id"].as_str().expect("an id").to_owned();
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{id}");
        let result = &body["messages"][at + 1]["content"][0];
        assert_eq!((&result["tool_use_id"], &result["content"]), (&json!(id), &json!(text)), "{body}");
        ids.push(id);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
}
