//! Tests the conversion of complete answers to streams of the same dialect, and back.

use bytes::Bytes;
use fairlead_core::Dialect;
use serde_json::{json, Value};

use crate::answer_context::AnswerContext;
use crate::openai::stream::{End, Outcome};
use crate::stream::Follow;
use crate::stream_of_whole::stream_of_whole;
use crate::translate::{self, Pair};
use crate::whole_of_stream::whole_of_stream;

const ALL: [Dialect; 4] = [Dialect::Openai, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini];

/// An answer with reasoning, a text, a call and usage.
fn answer(form: Dialect) -> Value {
    match form {
        Dialect::Openai => {
            json!({"id": "a", "object": "chat.completion", "created": 1, "model": "m", "novel": true, "choices": [{"index": 0,
            "message": {"role": "assistant", "content": "So é.", "reasoning_content": "Hm.", "tool_calls": [{"id": "c", "type": "function",
                "function": {"name": "f", "arguments": "{\"a\":1}"}}]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
        }
        Dialect::OpenaiResponses => {
            json!({"id": "resp_a", "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "So é.", "annotations": [], "logprobs": []}]},
                {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{\"a\":1}", "status": "completed"}],
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}})
        }
        Dialect::Anthropic => json!({"id": "msg_a", "type": "message", "role": "assistant", "model": "m", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"}, {"type": "text", "text": "So é."},
            {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}], "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 2}}),
        Dialect::Gemini => {
            json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "Hm.", "thought": true}, {"text": "So é."},
            {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}]}, "finishReason": "STOP"}], "modelVersion": "m", "responseId": "a",
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}})
        }
    }
}

fn follow(pair: Pair, stream: &Bytes) -> (String, Outcome, u64) {
    let context = AnswerContext { id: "x".to_owned(), requests_usage: true, ..AnswerContext::default() };
    let mut follow = Follow::new(pair, context);
    let mut out = Vec::new();
    follow.push(stream).pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    let closing = follow.finish(End::Clean);
    out.extend_from_slice(&closing.bytes);
    (String::from_utf8(out).expect("text"), closing.outcome, closing.usage.unwrap_or_default().output)
}

#[test]
fn a_complete_answer_becomes_a_stream_with_all_of_it() {
    for provider in ALL {
        let stream = stream_of_whole(provider, answer(provider).to_string().as_bytes()).expect("a stream");
        for caller in ALL {
            let (text, outcome, output) = follow(Pair { caller, provider }, &stream);
            assert_eq!((outcome, output), (Outcome::Completed, 2), "{caller:?} {provider:?} {text}");
            for expected in ["Hm.", "So é.", "\"f\""] {
                assert!(text.contains(expected), "{caller:?} {provider:?} {text}");
            }
        }
    }
}

#[test]
fn a_stream_becomes_the_answer_that_it_was() {
    for form in ALL {
        let own = answer(form);
        let stream = stream_of_whole(form, own.to_string().as_bytes()).expect("a stream");
        let whole = whole_of_stream(form, &stream).expect("an answer");
        assert_eq!(serde_json::from_slice::<Value>(&whole).expect("JSON"), own, "{form:?}");
        translate::answer(Pair { caller: Dialect::Openai, provider: form }, &whole, &AnswerContext::default())
            .expect("read");
    }
}

#[test]
fn pieces_of_a_stream_are_joined() {
    let chunk = |delta: Value, reason: Value| json!({"id": "a", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let call = |more: Value| json!({"tool_calls": [more]});
    let events = [
        chunk(json!({"role": "assistant", "content": "a"}), Value::Null),
        chunk(json!({"content": "b", "reasoning_content": "r1"}), Value::Null),
        chunk(json!({"reasoning_content": "r2"}), Value::Null),
        chunk(
            call(json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}})),
            Value::Null,
        ),
        chunk(
            call(json!({"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{"}})),
            Value::Null,
        ),
        chunk(call(json!({"index": 0, "function": {"name": "f", "arguments": "{}"}})), Value::Null),
        chunk(call(json!({"index": 1, "function": {"arguments": "}"}})), Value::Null),
    ];
    let stream = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
    let whole = whole_of_stream(Dialect::Openai, &Bytes::from(format!("{stream}data: [DONE]"))).expect("an answer");
    let whole: Value = serde_json::from_slice(&whole).expect("JSON");
    let function =
        |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": "ab", "reasoning_content": "r1r2", "tool_calls": [function("c1", "f"), function("c2", "g")]});
    assert_eq!(
        (&whole["object"], &whole["choices"][0]),
        (&json!("chat.completion"), &json!({"index": 0, "message": message, "finish_reason": "tool_calls"}))
    );
    assert_eq!(whole_of_stream(Dialect::Openai, &Bytes::from(stream)), None, "it broke off");

    let part = |text: &str, reason: Value| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": reason}]});
    let list = json!([part("a", Value::Null), part("b", json!("STOP"))]).to_string();
    for stream in [list.clone(), format!("data: {}\n\ndata: {}\n\n", part("a", Value::Null), part("b", json!("STOP")))]
    {
        let whole = whole_of_stream(Dialect::Gemini, &Bytes::from(stream)).expect("an answer");
        let whole: Value = serde_json::from_slice(&whole).expect("JSON");
        assert_eq!(whole["candidates"][0]["content"]["parts"], json!([{"text": "ab"}]));
    }
    let stream = stream_of_whole(Dialect::Gemini, list.as_bytes()).expect("a stream");
    assert_eq!(follow(Pair { caller: Dialect::Gemini, provider: Dialect::Gemini }, &stream).1, Outcome::Completed);

    let item = json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "a"}]});
    let events = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
    ];
    let stream = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
    let whole: Value =
        serde_json::from_slice(&whole_of_stream(Dialect::OpenaiResponses, &Bytes::from(stream)).expect("an answer"))
            .expect("JSON");
    assert_eq!(whole["output"], json!([item]));
}

#[test]
fn an_error_stays_one() {
    let error = json!({"error": {"message": "Too much.", "type": "rate_limit_error", "code": "x"}});
    let of_messages = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Too much."}});
    for provider in ALL {
        let body = if provider == Dialect::Anthropic { &of_messages } else { &error };
        let stream = stream_of_whole(provider, body.to_string().as_bytes()).expect("a stream");
        let (text, outcome, _) = follow(Pair { caller: Dialect::Openai, provider }, &stream);
        assert!(outcome == Outcome::UpstreamFailed && text.contains("Too much."), "{provider:?} {text}");
        let whole = whole_of_stream(provider, &stream).expect("the error");
        let read = translate::answer(Pair { caller: Dialect::Openai, provider }, &whole, &AnswerContext::default());
        assert!(matches!(read, Err(translate::NoAnswer::ProviderError(_))), "{provider:?} {read:?}");
    }
}

#[test]
fn odd_values_break_nothing() {
    for odd in ["\"x\"", "[]", "5", "null", "{\"content\":\"x\",\"parts\":5,\"delta\":\"x\",\"type\":\"text\"}"] {
        for event in [
            format!(r#"{{"choices":[{odd},{odd}],"candidates":[{odd}],"usage":{odd}}}"#),
            format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{odd},{odd}],"content":{odd}}},"message":{odd}}}]}}"#),
            format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"function":{odd}}},{{"function":{{"arguments":{odd}}}}}]}}}}]}}"#
            ),
            format!(r#"{{"type":"content_block_start","index":0,"content_block":{odd}}}"#),
            format!(r#"{{"type":"content_block_delta","index":0,"delta":{odd}}}"#),
            format!(r#"{{"type":"message_delta","delta":{odd},"usage":{odd}}}"#),
            format!(r#"{{"type":"response.completed","response":{odd}}}"#),
            format!(r#"{{"candidates":[{{"content":{odd}}},{odd}],"content":[{odd}],"output":[{odd}]}}"#),
        ] {
            for form in ALL {
                let stream = format!("data: {event}\n\ndata: {event}\n\ndata: [DONE]\n\n");
                let _answer = whole_of_stream(form, &Bytes::from(stream));
                let _stream = stream_of_whole(form, event.as_bytes());
            }
        }
    }
}

fn chat_stream(chunks: &[Value], end: &str) -> Bytes {
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    Bytes::from(events.concat() + end)
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn collected(stream: &Bytes) -> Option<Value> {
    whole_of_stream(Dialect::Openai, stream).map(|body| serde_json::from_slice(&body).expect("JSON"))
}

#[test]
fn texts_reasoning_calls_and_usage_become_one_answer() {
    let call = |part: Value| json!({"tool_calls": [part]});
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 4});
    let chunks = [
        chunk(&json!({"role": "assistant", "content": ""}), None),
        chunk(&json!({"reasoning_content": "Let me "}), None),
        chunk(&json!({"reasoning_content": "see."}), None),
        chunk(&json!({"content": "Now"}), None),
        chunk(
            &call(json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}})),
            None,
        ),
        chunk(
            &call(json!({"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{"}})),
            None,
        ),
        chunk(&call(json!({"index": 0, "function": {"name": "f", "arguments": "{\"x\":1"}})), None),
        chunk(&call(json!({"index": 1, "function": {"arguments": "}"}})), None),
        chunk(&call(json!({"index": 0, "function": {"arguments": "}"}})), None),
        chunk(&json!({}), Some("tool_calls")),
        json!({"id": "c", "model": "m", "choices": [], "usage": usage}),
    ];
    let answer = collected(&chat_stream(&chunks, "data: [DONE]\n\n")).expect("whole");
    let message = &answer["choices"][0]["message"];
    assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("Now"), &json!("Let me see.")));
    let calls: Vec<_> = message["tool_calls"].as_array().expect("calls").iter().map(|call| &call["function"]).collect();
    assert_eq!(calls, [&json!({"name": "f", "arguments": "{\"x\":1}"}), &json!({"name": "g", "arguments": "{}"})]);
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!((&answer["usage"], &answer["object"], &answer["id"]), (&usage, &json!("chat.completion"), &json!("c")));
}

#[test]
fn a_stream_that_breaks_off_is_no_answer() {
    let text = chunk(&json!({"content": "a"}), None);
    assert_eq!(collected(&chat_stream(std::slice::from_ref(&text), "")), None);
    let ended = collected(&chat_stream(std::slice::from_ref(&text), "data: [DONE]\n\n")).expect("whole");
    assert_eq!(ended["choices"][0]["finish_reason"], "stop");
    let last = chunk(&json!({"content": "b"}), Some("length"));
    let answer = collected(&chat_stream(&[text.clone(), last], "")).expect("whole");
    assert_eq!(answer["choices"][0]["message"]["content"], "ab");
    let failure = json!({"error": {"message": "no"}});
    assert_eq!(collected(&chat_stream(&[text, failure.clone()], "")), Some(failure));
}
