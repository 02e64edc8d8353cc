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
    let said = json!({"role": "assistant", "content": "Hi", "refusal": null, "tool_calls": []});
    assert!(is_fit(Form::Chat, &chat(&said, "stop")));
    for reason in ["length", "content_filter", "tool_calls", "error", "abort", ""] {
        assert!(!is_fit(Form::Chat, &chat(&said, reason)), "{reason}");
    }
    for message in [
        json!({"content": ""}),
        json!({"content": null}),
        json!({"content": "Hi", "refusal": "No."}),
        json!({"content": "Hi", "tool_calls": [{"id": "t"}]}),
        json!({"content": "Hi", "function_call": {"name": "f"}}),
        json!({"content": "Hi", "audio": {"id": "a"}}),
    ] {
        assert!(!is_fit(Form::Chat, &chat(&message, "stop")), "{message}");
    }
    let text = json!([{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "text", "text": "Hi"}]);
    assert!(is_fit(Form::Messages, &messages(&text, "end_turn")));
    for reason in ["max_tokens", "tool_use", "refusal", "pause_turn", "model_context_window_exceeded"] {
        assert!(!is_fit(Form::Messages, &messages(&text, reason)), "{reason}");
    }
    let call = json!([{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]);
    assert!(!is_fit(Form::Messages, &messages(&call, "end_turn")));
    for body in [&b"{}"[..], b"[]", b"", b"{\"choices\":[]}", b"{\"error\":{\"message\":\"x\"},\"choices\":[]}"] {
        assert!(!is_fit(Form::Chat, body) && !is_fit(Form::Messages, body));
    }
}

#[test]
fn a_whole_answer_becomes_a_fit_stream_and_that_the_answer_again() {
    let said = json!({"role": "assistant", "content": "H\u{e9}llo \"you\"\n"});
    let blocks = json!([{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "text", "text": "Hi"}]);
    for (form, body) in [(Form::Chat, chat(&said, "stop")), (Form::Messages, messages(&blocks, "end_turn"))] {
        let stream = as_stream(form, &body, true, 9).expect("can be streamed");
        assert_eq!(fit_stream(form, &stream).as_ref(), Some(&stream));
        let again = as_whole(form, &stream, 5).expect("can be joined");
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
    let whole = as_stream(Form::Chat, &chat(&json!({"content": "Hi there"}), "stop"), false, 9).expect("a stream");
    for end in 0..whole.len() {
        assert_eq!(fit_stream(Form::Chat, &whole.slice(..end)), None, "cut at {end}");
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
        assert_eq!(fit_stream(Form::Chat, &Bytes::from(changed)), None, "{to}");
    }
}

#[test]
fn comments_are_left_out() {
    let whole = as_stream(Form::Chat, &chat(&json!({"content": "Hi"}), "stop"), false, 9).expect("a stream");
    let beaten = [b": heartbeat\n\n", &whole[..]].concat();
    assert_eq!(fit_stream(Form::Chat, &Bytes::from(beaten)), Some(whole));
}

#[test]
fn odds_are_not_lost_in_silence() {
    let body = chat(&json!({"content": "Hi"}), "stop");
    let mut answer: Value = serde_json::from_slice(&body).expect("JSON");
    answer["choices"][0]["logprobs"] = json!({"content": []});
    assert_eq!(as_stream(Form::Chat, answer.to_string().as_bytes(), false, 0), None);
}
