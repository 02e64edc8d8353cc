//! Events of each dialect after the guardrails: which of them change, and in which order they are sent.

use super::stream_tests::{all, REDACT};
use super::*;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Returns the events of a stream after the guardrails.
fn through(events: &[Value], actions: Actions) -> Vec<Value> {
    let mut guard = StreamGuard::new(actions);
    let mut out = Vec::new();
    for event in events {
        let data = event.to_string().into_bytes();
        let passed = guard.event(&data);
        out.extend(passed.before);
        out.push(passed.event.unwrap_or(data));
    }
    out.extend(guard.finish());
    out.iter().map(|event| serde_json::from_slice(event).expect("JSON")).collect()
}

#[test]
fn whole_texts_are_judged_whole_and_come_once() {
    let text = "word ".repeat(40) + "ada@example.org";
    let arguments = r#"{"to":"ada@example.org"}"#;
    let response = |status: &str, text: &str| {
        json!({"id": "resp_1", "status": status, "instructions": "mail ada@example.org",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]},
                   {"type": "function_call", "arguments": arguments}]})
    };
    let events = [
        json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", "")}),
        json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {"id": "msg_1", "content": []}}),
        json!({"type": "response.output_text.delta", "sequence_number": 2, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text}),
        json!({"type": "response.output_text.done", "sequence_number": 3, "item_id": "msg_1", "output_index": 0, "content_index": 0, "text": text}),
        json!({"type": "response.content_part.done", "sequence_number": 4, "output_index": 0, "content_index": 0, "part": {"type": "output_text", "text": text}}),
        json!({"type": "response.function_call_arguments.delta", "sequence_number": 5, "output_index": 1, "delta": arguments}),
        json!({"type": "response.function_call_arguments.done", "sequence_number": 6, "output_index": 1, "arguments": arguments}),
        json!({"type": "response.completed", "sequence_number": 7, "response": response("completed", &text)}),
    ];
    assert_eq!(through(&events, all(Action::Warn)), events);
    let out = through(&events, REDACT);
    let wanted = "word ".repeat(40) + "[REDACTED:email]";
    let kinds: Vec<&str> = out.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.output_item.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.completed",
        ]
    );
    let numbers: Vec<u64> = out.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, (0..9).collect::<Vec<_>>());
    let text: String = out
        .iter()
        .filter(|event| event["type"] == "response.output_text.delta")
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert_eq!(text, wanted);
    assert_eq!(out[0]["response"]["instructions"], "mail [REDACTED:email]");
    assert_eq!(out[4]["text"], wanted);
    assert_eq!(out[5]["part"]["text"], wanted);
    assert_eq!(out[7]["arguments"], r#"{"to":"[REDACTED:email]"}"#);
    assert_eq!(out[8]["response"]["output"][0]["content"][0]["text"], wanted);
    assert_eq!(out[8]["response"]["output"][1]["arguments"], r#"{"to":"[REDACTED:email]"}"#);
    assert_eq!(out[8]["response"]["id"], "resp_1");
}

#[test]
fn what_is_held_goes_out_before_its_block_ends() {
    let block = |index: u32, text: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}});
    let events = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        block(0, "mail ada@"),
        json!({"type": "ping"}),
        block(0, "example.org"),
        json!({"type": "content_block_stop", "index": 0}),
        block(1, "no@"),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    let out = through(&events, REDACT);
    let kinds: Vec<&str> = out.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(
        kinds,
        [
            "content_block_start",
            "content_block_delta",
            "ping",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "content_block_delta",
            "content_block_delta",
            "message_delta",
            "message_stop"
        ]
    );
    assert_eq!(out[4], block(0, "[REDACTED:email]"));
    assert_eq!(out[7], block(1, "no@"));
}

#[test]
fn an_event_that_is_added_says_one_text_and_nothing_else() {
    let events = [
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": "it is ada@", "reasoning_content": "hm"}, "finish_reason": null,
             "logprobs": {"content": [{"token": "ada"}]}},
            {"index": 1, "delta": {"tool_calls": [{"index": 0, "id": "call", "type": "function", "function": {"name": "f", "arguments": "{\"a\":\"no"}}]}}],
            "usage": {"total_tokens": 1}}),
        json!({"id": "c", "choices": [], "usage": {"total_tokens": 2}}),
        json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"id": "c", "choices": [{"index": 1, "delta": {"content": null}, "finish_reason": "tool_calls"}]}),
    ];
    let out = through(&events, REDACT);
    assert_eq!(out[1], events[1], "usage ends no text");
    assert_eq!(
        out[2],
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "ada@"}, "finish_reason": null}]})
    );
    assert_eq!(out[3]["choices"][0]["delta"], json!({"reasoning_content": "hm"}));
    assert_eq!(out[4], events[2]);
    assert_eq!(
        out[5]["choices"],
        json!([{"index": 1, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "no"}}]}}])
            .clone()
            .as_array()
            .map(|list| {
                let mut list = list.clone();
                list[0]["delta"]["tool_calls"][0]["type"] = json!("function");
                Value::Array(list)
            })
            .expect("a list")
    );
    assert_eq!(out[6], events[3]);
}

#[test]
fn parts_of_geminis_go_on_with_one_text_and_thoughts_with_another() {
    let parts = |parts: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]});
    let events = [
        parts(json!([{"text": "hm a@", "thought": true}])),
        parts(json!([{"text": "write to ad"}, {"text": "a@exam"}])),
        parts(json!([{"text": "ple.org"}, {"functionCall": {"name": "f", "args": {"to": "ada@example.org"}}}])),
        json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": " now"}]}, "finishReason": "STOP"}]}),
    ];
    let out = through(&events, REDACT);
    let mut texts = (String::new(), String::new());
    for part in
        out.iter().flat_map(|event| event["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default())
    {
        let into = if part["thought"] == json!(true) { &mut texts.0 } else { &mut texts.1 };
        into.push_str(part["text"].as_str().unwrap_or(""));
    }
    assert_eq!((texts.0.as_str(), texts.1.as_str()), ("hm a@", "write to [REDACTED:email] now"));
    let calls: Vec<&Value> = out
        .iter()
        .map(|event| &event["candidates"][0]["content"]["parts"][1]["functionCall"]["args"]["to"])
        .filter(|to| to.is_string())
        .collect();
    assert_eq!(calls, [&json!("[REDACTED:email]")], "it is called once");
}

#[test]
fn sound_is_no_text() {
    let event = json!({"type": "response.output_audio.delta", "delta": "AKIAIOSFODNN7EXAMPLE"});
    assert_eq!(through(std::slice::from_ref(&event), REDACT), [event]);
}

#[test]
fn what_comes_whole_beside_pieces_is_judged_whole() {
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let events = [
        delta(json!({"type": "text_delta", "text": "as ada"})),
        delta(
            json!({"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "it is ada@example.org", "document_title": "of ada", "start_char_index": 0}}),
        ),
        delta(json!({"type": "text_delta", "text": "@example.org. "})),
        json!({"type": "content_block_stop", "index": 0}),
    ];
    let out = through(&events, REDACT);
    assert_eq!(out.len(), 4, "nothing of a citation waits: {out:?}");
    assert_eq!(out[1]["delta"]["citation"]["cited_text"], "it is [REDACTED:email]");
    assert_eq!(out[1]["delta"]["citation"]["document_title"], "of ada");
    assert_eq!(out[2]["delta"]["text"], "[REDACTED:email]. ");
}

#[test]
fn names_and_numbers_in_events_are_judged() {
    let events = [
        json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [
            {"functionCall": {"name": "f", "args": {"ada@example.org": 4_111_111_111_111_111_u64}}},
            {"executableCode": {"language": "PYTHON", "code": "mail('ada@example.org')"}}]}}]}),
        json!({"choices": [{"index": 0, "delta": {"extra": {"4111111111111111": 5_500_000_000_000_004_u64}, "content": "no"}}]}),
    ];
    for event in events {
        let out = through(std::slice::from_ref(&event), REDACT)[0].to_string();
        assert!(!out.contains("ada@") && !out.contains("4111") && !out.contains("5500"), "{out}");
    }
}

#[test]
fn arguments_that_gemini_streams_are_texts_of_their_own() {
    let piece = |path: &str, text: &str, continues: bool| {
        let part = json!({"jsonPath": path, "stringValue": text, "willContinue": continues});
        json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"functionCall": {"partialArgs": [part]}}]}}]})
    };
    let events = [
        piece("$.to", "ada@exam", true),
        piece("$.to", "ple.org", false),
        piece("$.cc", "nobody", false),
        piece("$.bcc", "4111 1111 ", true),
        piece("$.bcc", "1111 1111", false),
    ];
    let mut texts_by_path: BTreeMap<String, String> = BTreeMap::new();
    for event in through(&events, REDACT) {
        let part = &event["candidates"][0]["content"]["parts"][0]["functionCall"]["partialArgs"][0];
        let path = part["jsonPath"].as_str().expect("a path").to_owned();
        texts_by_path.entry(path).or_default().push_str(part["stringValue"].as_str().expect("a text"));
    }
    let wanted = [("$.bcc", "[REDACTED:card]"), ("$.cc", "nobody"), ("$.to", "[REDACTED:email]")];
    assert_eq!(texts_by_path, wanted.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
}
