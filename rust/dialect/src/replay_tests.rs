use super::*;
use serde_json::json;

fn chat(message: &Value, reason: &str) -> Vec<u8> {
    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
    json!({"id": "c1", "model": "m", "created": 5, "choices": [choice],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
    .to_string()
    .into_bytes()
}

fn messages(content: &Value, reason: &str) -> Vec<u8> {
    json!({"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": reason, "usage": {"input_tokens": 3, "output_tokens": 2}})
    .to_string()
    .into_bytes()
}

#[test]
fn a_text_that_ended_by_itself_is_fit_and_nothing_else() {
    let message = json!({"role": "assistant", "content": "Hi", "refusal": null, "tool_calls": []});
    assert!(is_fit(Dialect::Openai, &chat(&message, "stop")));
    for reason in ["length", "content_filter", "tool_calls", "error", "abort", ""] {
        assert!(!is_fit(Dialect::Openai, &chat(&message, reason)), "{reason}");
    }
    for message in [
        json!({"content": ""}),
        json!({"content": null}),
        json!({"content": "Hi", "refusal": "No."}),
        json!({"content": "Hi", "tool_calls": [{"id": "t"}]}),
        json!({"content": "Hi", "function_call": {"name": "f"}}),
        json!({"content": "Hi", "audio": {"id": "a"}}),
    ] {
        assert!(!is_fit(Dialect::Openai, &chat(&message, "stop")), "{message}");
    }
    let text = json!([{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "text", "text": "Hi"}]);
    assert!(is_fit(Dialect::Anthropic, &messages(&text, "end_turn")));
    for reason in ["max_tokens", "tool_use", "refusal", "pause_turn", "model_context_window_exceeded"] {
        assert!(!is_fit(Dialect::Anthropic, &messages(&text, reason)), "{reason}");
    }
    let call = json!([{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]);
    assert!(!is_fit(Dialect::Anthropic, &messages(&call, "end_turn")));
    for body in [&b"{}"[..], b"[]", b"", b"{\"choices\":[]}", b"{\"error\":{\"message\":\"x\"},\"choices\":[]}"] {
        assert!(!is_fit(Dialect::Openai, body) && !is_fit(Dialect::Anthropic, body));
    }
}

#[test]
fn a_whole_answer_becomes_a_fit_stream_and_that_the_answer_again() {
    let message = json!({"role": "assistant", "content": "H\u{e9}llo \"you\"\n"});
    let blocks = json!([{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "text", "text": "Hi"}]);
    for (form, body) in [(Dialect::Openai, chat(&message, "stop")), (Dialect::Anthropic, messages(&blocks, "end_turn"))]
    {
        let stream = as_stream(form, &body, true, 9).expect("can be streamed");
        assert_eq!(fit_stream(form, &stream).as_ref(), Some(&stream));
        let again = as_complete(form, &stream, 5).expect("can be joined");
        let (before, after): (Value, Value) =
            (serde_json::from_slice(&body).expect("JSON"), serde_json::from_slice(&again).expect("JSON"));
        for path in
            ["/id", "/model", "/content", "/stop_reason", "/choices/0/message/content", "/choices/0/finish_reason"]
        {
            assert_eq!(before.pointer(path), after.pointer(path), "{path}");
        }
        for path in ["/usage/prompt_tokens", "/usage/completion_tokens", "/usage/output_tokens"] {
            assert_eq!(before.pointer(path), after.pointer(path), "{path}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_or_calls_or_tells_an_error_is_not_fit() {
    let whole = as_stream(Dialect::Openai, &chat(&json!({"content": "Hi there"}), "stop"), false, 9).expect("a stream");
    for end in 0..whole.len() {
        assert_eq!(fit_stream(Dialect::Openai, &whole.slice(..end)), None, "cut at {end}");
    }
    let text = String::from_utf8(whole.to_vec()).expect("text");
    for (from, to) in [
        ("\"stop\"", "\"length\""),
        ("\"stop\"", "\"content_filter\""),
        ("\"stop\"", "\"tool_calls\""),
        ("\"content\":\"Hi there\"", "\"tool_calls\":[{\"index\":0}]"),
        ("\"content\":\"Hi there\"", "\"refusal\":\"no\""),
        ("data: [DONE]", "data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        assert_eq!(fit_stream(Dialect::Openai, &Bytes::from(changed)), None, "{to}");
    }
}

#[test]
fn comments_are_left_out() {
    let whole = as_stream(Dialect::Openai, &chat(&json!({"content": "Hi"}), "stop"), false, 9).expect("a stream");
    let beaten = [b": heartbeat\n\n", &whole[..]].concat();
    assert_eq!(fit_stream(Dialect::Openai, &Bytes::from(beaten)), Some(whole));
}

#[test]
fn odds_are_not_lost_in_silence() {
    let body = chat(&json!({"content": "Hi"}), "stop");
    let mut answer: Value = serde_json::from_slice(&body).expect("JSON");
    answer["choices"][0]["logprobs"] = json!({"content": []});
    assert_eq!(as_stream(Dialect::Openai, answer.to_string().as_bytes(), false, 0), None);
}

fn response(items: &Value, status: &str) -> Vec<u8> {
    json!({"id": "resp_1", "object": "response", "status": status, "error": null, "incomplete_details": null,
        "model": "m", "output": items, "temperature": 0, "usage": {"input_tokens": 3, "output_tokens": 2}})
    .to_string()
    .into_bytes()
}

fn said_in_response() -> Value {
    json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "H\u{e9}llo", "annotations": [], "logprobs": []}]},
    ])
}

#[test]
fn a_response_is_fit_when_it_is_text_and_whole() {
    assert!(is_fit(Dialect::OpenaiResponses, &response(&said_in_response(), "completed")));
    for status in ["incomplete", "failed", "in_progress", "cancelled", "queued"] {
        assert!(!is_fit(Dialect::OpenaiResponses, &response(&said_in_response(), status)), "{status}");
    }
    let text = json!({"type": "output_text", "text": "Hi", "annotations": []});
    let message = |content: Value| json!({"type": "message", "id": "m", "content": content});
    for items in [
        json!([]),
        json!([message(json!([]))]),
        json!([message(json!([{"type": "refusal", "refusal": "No."}]))]),
        json!([message(json!([text, {"type": "refusal", "refusal": "No."}]))]),
        json!([message(json!([{"type": "output_text", "text": "Hi", "annotations": [{"type": "url_citation"}]}]))]),
        json!([message(json!([text])), {"type": "function_call", "id": "f", "name": "f", "arguments": "{}"}]),
        json!([message(json!([text])), {"type": "web_search_call", "id": "w"}]),
    ] {
        assert!(!is_fit(Dialect::OpenaiResponses, &response(&items, "completed")), "{items}");
    }
}

#[test]
fn a_response_becomes_its_stream_and_that_the_response_again() {
    let body = response(&said_in_response(), "completed");
    let stream = as_stream(Dialect::OpenaiResponses, &body, false, 9).expect("can be streamed");
    assert_eq!(fit_stream(Dialect::OpenaiResponses, &stream).as_ref(), Some(&stream));
    let again = as_complete(Dialect::OpenaiResponses, &stream, 5).expect("can be joined");
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
    assert_eq!(read(&again), read(&body));
    let text = String::from_utf8(stream.to_vec()).expect("text");
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for end in 0..stream.len() {
        assert_eq!(fit_stream(Dialect::OpenaiResponses, &stream.slice(..end)), None, "cut at {end}");
    }
    for (from, to) in [("response.completed", "response.incomplete"), ("\"output_text\"", "\"refusal\"")] {
        assert_eq!(fit_stream(Dialect::OpenaiResponses, &Bytes::from(text.replace(from, to))), None, "{to}");
    }
}

fn generated(parts: &Value, reason: &str) -> Vec<u8> {
    let candidate = json!({"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0});
    let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5});
    let answer = json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"});
    serde_json::to_vec_pretty(&answer).expect("JSON")
}

#[test]
fn generated_content_is_fit_when_it_is_text_and_whole() {
    let text = json!([{"text": "hm", "thought": true}, {"text": "Hi"}]);
    assert!(is_fit(Dialect::Gemini, &generated(&text, "STOP")));
    for reason in ["MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", ""] {
        assert!(!is_fit(Dialect::Gemini, &generated(&text, reason)), "{reason}");
    }
    for parts in [
        json!([]),
        json!([{"text": ""}]),
        json!([{"text": "hm", "thought": true}]),
        json!([{"text": "Hi"}, {"functionCall": {"name": "f", "args": {}}}]),
        json!([{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": ""}}]),
        json!([{"text": "Hi"}, {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]),
        json!([{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": ""}, "thoughtSignature": "c2ln"}]),
    ] {
        assert!(!is_fit(Dialect::Gemini, &generated(&parts, "STOP")), "{parts}");
    }
    assert!(!is_fit(Dialect::Gemini, br#"{"promptFeedback":{"blockReason":"SAFETY"}}"#));
}

#[test]
fn generated_content_becomes_a_stream_a_list_and_whole_again() {
    let body = generated(&json!([{"text": "H\u{e9}llo\n\"you\""}]), "STOP");
    let stream = as_stream(Dialect::Gemini, &body, false, 9).expect("can be streamed");
    assert_eq!(fit_stream(Dialect::Gemini, &stream).as_ref(), Some(&stream));
    let list = list_of(&stream);
    let elements: Vec<Value> = serde_json::from_slice(&list).expect("a list");
    assert_eq!(elements, [serde_json::from_slice::<Value>(&body).expect("JSON")]);
    assert_eq!(events_of(&list), Some(stream.clone()));
    assert_eq!(events_of(b"{}"), None);
    let again = as_complete(Dialect::Gemini, &stream, 5).expect("can be joined");
    let (before, after): (Value, Value) =
        (serde_json::from_slice(&body).expect("JSON"), serde_json::from_slice(&again).expect("JSON"));
    for path in ["/candidates/0/content/parts/0/text", "/candidates/0/finishReason", "/responseId", "/modelVersion"] {
        assert_eq!(before.pointer(path), after.pointer(path), "{path}");
    }
    assert_eq!(after.pointer("/usageMetadata/totalTokenCount"), Some(&json!(5)));

    let two = [
        br#"data: {"candidates":[{"content":{"parts":[{"text":"H"}]}}]}"#.as_slice(),
        br#"data: {"candidates":[{"content":{"parts":[{"text":"i"}]},"finishReason":"STOP"}]}"#,
    ];
    let unended = Bytes::from([two[0], b"\n\n"].concat());
    assert_eq!(fit_stream(Dialect::Gemini, &unended), None);
    let whole = Bytes::from([two[0], b"\n\n", two[1], b"\n\n"].concat());
    assert_eq!(fit_stream(Dialect::Gemini, &whole).as_ref(), Some(&whole));
    let again = as_complete(Dialect::Gemini, &whole, 5).expect("can be joined");
    let again: Value = serde_json::from_slice(&again).expect("JSON");
    assert_eq!(again.pointer("/candidates/0/content/parts/0/text"), Some(&json!("Hi")));
}
