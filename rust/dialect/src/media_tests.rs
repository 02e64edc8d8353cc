//! Tests images and audio in answers, in every pair of dialects, complete and streamed, and in later turns.

use bytes::Bytes;
use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};
use Dialect::{Anthropic, Gemini, Openai, OpenaiResponses};

use crate::answer_context::AnswerContext;
use crate::facts_tests::{chat, messages, parsed, responses, with, written};
use crate::fit::Fit;
use crate::openai::stream::End;
use crate::stream::Follow;
use crate::translate::{self, Pair};
use crate::{ollama, replay};

const PNG: &str = "iVBORw0KGgo=";
const URL: &str = "data:image/png;base64,iVBORw0KGgo=";
const PCM: &str = "AAAAAAAA";

/// Returns an answer of the provider: a text and an image.
fn with_image(provider: Dialect) -> Value {
    match provider {
        Openai => json!({"id": "a", "object": "chat.completion", "model": "m", "created": 1, "choices": [{"index": 0,
            "finish_reason": "stop", "message": {"role": "assistant", "content": "Here.",
                "images": [{"type": "image_url", "image_url": {"url": URL}}]}}]}),
        OpenaiResponses => {
            json!({"id": "resp_a", "object": "response", "model": "m", "status": "completed", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Here."}]},
            {"type": "image_generation_call", "id": "ig_1", "status": "completed", "output_format": "png", "result": PNG}]})
        }
        Gemini => json!({"responseId": "a", "modelVersion": "m", "candidates": [{"index": 0, "finishReason": "STOP",
            "content": {"role": "model", "parts": [{"text": "Here."},
                {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "c2ln"}]}}]}),
        Anthropic => unreachable!("Claude does not generate images"),
    }
}

/// Returns the events of the same answer.
fn events_with_image(provider: Dialect) -> Vec<Value> {
    match provider {
        Openai => {
            let chunk = |delta: Value, reason: Value| {
                json!({"id": "a", "object": "chat.completion.chunk", "model": "m", "created": 1,
                    "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
            };
            let images = with_image(Openai)["choices"][0]["message"]["images"].clone();
            vec![
                chunk(json!({"role": "assistant", "content": "Here."}), Value::Null),
                chunk(json!({"images": images}), Value::Null),
                chunk(json!({}), json!("stop")),
            ]
        }
        OpenaiResponses => {
            let whole = with_image(OpenaiResponses);
            vec![
                json!({"type": "response.created", "response": {"id": "resp_a", "model": "m", "status": "in_progress"}}),
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "msg"}}),
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Here."}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]}),
                json!({"type": "response.output_item.added", "output_index": 1,
                    "item": {"type": "image_generation_call", "id": "ig_1", "status": "in_progress", "result": null}}),
                json!({"type": "response.image_generation_call.partial_image", "output_index": 1, "partial_image_b64": "eA=="}),
                json!({"type": "response.output_item.done", "output_index": 1, "item": whole["output"][1]}),
                json!({"type": "response.completed", "response": whole}),
            ]
        }
        _ => {
            let mut whole = with_image(Gemini);
            let parts = whole["candidates"][0]["content"]["parts"].take();
            let chunk = |part: &Value| {
                let mut chunk = whole.clone();
                chunk["candidates"][0]["finishReason"].take();
                chunk["candidates"][0]["content"]["parts"] = json!([part]);
                chunk
            };
            let mut last = whole.clone();
            last["candidates"][0]["content"]["parts"] = json!([]);
            vec![chunk(&parts[0]), chunk(&parts[1]), last]
        }
    }
}

fn context() -> AnswerContext {
    AnswerContext { id: "0a".to_owned(), ..AnswerContext::default() }
}

fn whole(provider: Dialect, caller: Dialect, body: &Value) -> Value {
    let body = Bytes::from(body.to_string());
    let whole = translate::answer(Pair { caller, provider }, &body, &context()).expect("an answer");
    serde_json::from_slice(&whole.body).expect("JSON")
}

/// Returns the data of the caller's events.
fn streamed(provider: Dialect, caller: Dialect, events: &[Value]) -> Vec<Value> {
    let mut follow = Follow::new(Pair { caller, provider }, context());
    let mut out = Vec::new();
    for event in events {
        for piece in follow.push(&Bytes::from(format!("data: {event}\n\n"))).pieces {
            out.extend_from_slice(&piece);
        }
    }
    if provider == Openai {
        for piece in follow.push(&Bytes::from_static(b"data: [DONE]\n\n")).pieces {
            out.extend_from_slice(&piece);
        }
    }
    out.extend_from_slice(&follow.finish(End::Clean).bytes);
    let text = String::from_utf8(out).expect("text");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

/// Returns the media of a complete answer, with their types.
fn media_of(caller: Dialect, answer: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match caller {
        Openai => {
            let images = list(&answer["choices"][0]["message"]["images"]);
            images.iter().map(|image| text(&image["image_url"]["url"])).collect()
        }
        Anthropic => {
            let blocks = list(&answer["content"]);
            let images = blocks.iter().filter(|block| block["type"] == "image").map(|block| &block["source"]);
            images.map(|from| format!("data:{};base64,{}", text(&from["media_type"]), text(&from["data"]))).collect()
        }
        OpenaiResponses => {
            let items = list(&answer["output"]);
            let calls = items.iter().filter(|item| item["type"] == "image_generation_call");
            calls
                .map(|it| format!("data:image/{};base64,{}", text(&it["output_format"]), text(&it["result"])))
                .collect()
        }
        Gemini => {
            let parts = list(&answer["candidates"][0]["content"]["parts"]);
            let inline = parts.iter().map(|part| &part["inlineData"]).filter(|data| !data.is_null());
            inline.map(|it| format!("data:{};base64,{}", text(&it["mimeType"]), text(&it["data"]))).collect()
        }
    }
}

const PAIRS: [(Dialect, &[Dialect]); 3] = [
    (Openai, &[Anthropic, OpenaiResponses, Gemini]),
    (OpenaiResponses, &[Openai, Anthropic, Gemini]),
    (Gemini, &[Openai, OpenaiResponses, Anthropic]),
];

#[test]
fn an_image_of_an_answer_reaches_callers_of_every_dialect() {
    for (provider, callers) in PAIRS {
        for &caller in callers {
            let answer = whole(provider, caller, &with_image(provider));
            assert_eq!(media_of(caller, &answer), [URL], "{provider:?} to {caller:?}: {answer}");
            assert!(answer.to_string().contains("Here."), "{answer}");
        }
    }
}

#[test]
fn an_image_of_a_stream_reaches_callers_of_every_dialect() {
    for (provider, callers) in PAIRS {
        for &caller in callers {
            let events = streamed(provider, caller, &events_with_image(provider));
            let all = Value::from(events.clone()).to_string();
            assert!(
                all.contains("Here.") && all.contains(PNG) && !all.contains("eA=="),
                "{provider:?} {caller:?}: {all}"
            );
            let images: Vec<&Value> = match caller {
                Openai => {
                    events.iter().filter(|event| event["choices"][0]["delta"]["images"][0]["index"] == 0).collect()
                }
                Anthropic => events.iter().filter(|event| event["content_block"]["type"] == "image").collect(),
                OpenaiResponses => events
                    .iter()
                    .filter(|it| it["type"] == "response.output_item.done" && it["item"]["result"] == PNG)
                    .collect(),
                Gemini => events.iter().filter(|event| media_of(Gemini, event) == [URL]).collect(),
            };
            assert_eq!(images.len(), 1, "{provider:?} to {caller:?}: {all}");
        }
    }
}

#[test]
fn a_generated_image_has_its_events_in_a_responses_stream() {
    let events = streamed(Gemini, OpenaiResponses, &events_with_image(Gemini));
    let of_image: Vec<&str> = events
        .iter()
        .filter(|event| {
            event["item_id"].as_str().or(event["item"]["id"].as_str()).is_some_and(|id| id.starts_with("ig_"))
        })
        .filter_map(|event| event["type"].as_str())
        .collect();
    let name = |name: &str| format!("response.image_generation_call.{name}");
    let expected = [
        "response.output_item.added".to_owned(),
        name("in_progress"),
        name("generating"),
        name("completed"),
        "response.output_item.done".to_owned(),
    ];
    assert_eq!(of_image, expected);
    let last = events.last().expect("an end");
    assert_eq!(media_of(OpenaiResponses, &last["response"]), [URL]);
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], at, "{event}");
    }
}

#[test]
fn an_image_by_address_keeps_its_address() {
    let mut body = with_image(Openai);
    body["choices"][0]["message"]["images"][0]["image_url"]["url"] = "https://example.org/a.png".into();
    for (caller, place) in
        [(Anthropic, "/content/1/source/url"), (Gemini, "/candidates/0/content/parts/1/fileData/fileUri")]
    {
        let answer = whole(Openai, caller, &body);
        assert_eq!(answer.pointer(place), Some(&json!("https://example.org/a.png")), "{answer}");
    }
    let answer = whole(Openai, OpenaiResponses, &body);
    assert_eq!(answer["output"][1]["content"][0]["text"], "![image](https://example.org/a.png)", "{answer}");
}

#[test]
fn audio_of_an_answer_reaches_callers_of_every_dialect() {
    let part = json!({"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": PCM}});
    let mut spoken = with_image(Gemini);
    spoken["candidates"][0]["content"]["parts"] = json!([part, part]);
    let answer = whole(Gemini, Openai, &spoken);
    let audio = &answer["choices"][0]["message"]["audio"];
    assert_eq!((&audio["data"], &audio["id"]), (&json!("AAAAAAAAAAAAAAAA"), &json!("audio_a")), "{answer}");
    let speech = json!({"id": "a", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": null, "audio": {"id": "x", "data": "UklGRgAA", "transcript": "Hi."}}}]});
    let answer = whole(Openai, Gemini, &speech);
    let parts = &answer["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0]["text"], "Hi.");
    assert_eq!(parts[1]["inlineData"], json!({"mimeType": "audio/wav", "data": "UklGRgAA"}));
    for caller in [Anthropic, OpenaiResponses] {
        let answer = whole(Openai, caller, &speech).to_string();
        assert!(answer.contains("[audio](data:audio/wav;base64,UklGRgAA)") && answer.contains("Hi."), "{answer}");
    }
    let chunk = json!({"responseId": "a", "candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]});
    for caller in [Openai, OpenaiResponses, Anthropic] {
        let events = Value::from(streamed(Gemini, caller, std::slice::from_ref(&chunk))).to_string();
        assert!(events.contains(PCM), "{caller:?}: {events}");
    }
}

#[test]
fn other_files_of_an_answer_are_links_where_the_dialect_has_no_place_for_them() {
    let mut body = with_image(Gemini);
    body["candidates"][0]["content"]["parts"] = json!([{"inlineData": {"mimeType": "text/csv", "data": "YSxi"}}]);
    for caller in [Openai, OpenaiResponses, Anthropic] {
        let link = "[file](data:text/csv;base64,YSxi)";
        let answer = whole(Gemini, caller, &body).to_string();
        assert!(answer.contains(link), "{caller:?}: {answer}");
        let events = Value::from(streamed(Gemini, caller, std::slice::from_ref(&body))).to_string();
        assert!(events.contains(link), "{caller:?}: {events}");
    }
    let form = ollama::AnswerForm { call: ollama::OllamaCall::Chat, model: "m".to_owned(), shows_thinking: true };
    let mut chat = with_image(Openai);
    chat["choices"][0]["message"]["images"][0]["image_url"]["url"] = "https://example.org/a.png".into();
    let answer = ollama::answer(&form, chat.to_string().as_bytes(), ollama::AnswerTime::default()).expect("an answer");
    assert!(String::from_utf8_lossy(&answer).contains("![image](https://example.org/a.png)"));
}

#[test]
fn drafts_in_the_reasoning_are_not_part_of_the_answer() {
    let mut body = with_image(Gemini);
    let draft = json!({"thought": true, "inlineData": {"mimeType": "image/png", "data": "ZHJhZnQ="}});
    body["candidates"][0]["content"]["parts"] = json!([draft, {"text": "Here."}]);
    assert!(!whole(Gemini, Openai, &body).to_string().contains("ZHJhZnQ="));
    body["candidates"][0]["finishReason"] = json!("STOP");
    assert!(!Value::from(streamed(Gemini, Openai, &[body])).to_string().contains("ZHJhZnQ="));
}

#[test]
fn an_image_waits_for_the_arguments_of_an_open_call() {
    let delta = |delta: Value| {
        json!({"id": "a", "object": "chat.completion.chunk", "model": "m", "created": 1,
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    };
    let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
    let events = [
        delta(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{\"a\""}}]})),
        delta(json!({"images": [{"type": "image_url", "image_url": {"url": URL}}]})),
        delta(call(":1}")),
        json!({"id": "a", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let events = streamed(Openai, Anthropic, &events);
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["content_block"]["type"].as_str()).collect();
    assert_eq!(kinds, ["tool_use", "image"], "{events:?}");
}

#[test]
fn an_answer_with_an_image_is_not_cached() {
    for provider in [Openai, OpenaiResponses, Gemini] {
        assert!(!replay::is_fit(provider, with_image(provider).to_string().as_bytes()), "{provider:?}");
        let events: Vec<String> =
            events_with_image(provider).iter().map(|event| format!("data: {event}\n\n")).collect();
        let end = if provider == Openai { "data: [DONE]\n\n" } else { "" };
        let stream = Bytes::from(events.concat() + end);
        assert_eq!(replay::fit_stream(provider, &stream), None, "{provider:?}");
    }
}

#[test]
fn ollama_callers_get_images_in_their_own_member() {
    let form = ollama::AnswerForm { call: ollama::OllamaCall::Chat, model: "m".to_owned(), shows_thinking: true };
    let body = Bytes::from(with_image(Openai).to_string());
    let answer = ollama::answer(&form, &body, ollama::AnswerTime::default()).expect("an answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(answer["message"]["images"], json!([PNG]), "{answer}");
    let mut lines = ollama::Lines::new(form);
    let mut out = Vec::new();
    for event in events_with_image(Openai) {
        out.extend_from_slice(&lines.push(&Bytes::from(format!("data: {event}\n\n")), ollama::AnswerTime::default()));
    }
    let out = String::from_utf8(out).expect("text");
    assert!(out.contains(r#""images":["iVBORw0KGgo="]"#), "{out}");
}

/// Returns the second turn of a conversation whose first answer had an image, in the caller's dialect.
fn second_turn(caller: Dialect) -> Value {
    match caller {
        Openai => {
            let mut answer = whole(Gemini, Openai, &with_image(Gemini))["choices"][0]["message"].take();
            answer["thinking_blocks"].take();
            chat(
                &json!({"messages": [{"role": "user", "content": "Draw."}, answer, {"role": "user", "content": "Bluer."}]}),
            )
        }
        OpenaiResponses => {
            let mut input = vec![json!({"role": "user", "content": "Draw."})];
            input.extend(
                whole(Gemini, caller, &with_image(Gemini))["output"].as_array().expect("items").iter().cloned(),
            );
            input.push(json!({"role": "user", "content": "Bluer."}));
            responses(&json!({"input": input}))
        }
        Anthropic => {
            let content = whole(Gemini, caller, &with_image(Gemini))["content"].take();
            messages(&json!({"messages": [{"role": "user", "content": "Draw."},
                {"role": "assistant", "content": content}, {"role": "user", "content": "Bluer."}]}))
        }
        Gemini => {
            let content = with_image(Gemini)["candidates"][0]["content"].take();
            json!({"contents": [{"role": "user", "parts": [{"text": "Draw."}]}, content,
                {"role": "user", "parts": [{"text": "Bluer."}]}]})
        }
    }
}

#[test]
fn an_image_of_an_earlier_answer_goes_back_to_gemini_as_it_came() {
    for caller in [Openai, OpenaiResponses, Anthropic] {
        let pair = Pair { caller, provider: Gemini };
        let body =
            parsed(&written(pair, &second_turn(caller), &ModelFacts::default(), &Fit::default()).expect("written"));
        let turn = &body["contents"][1];
        assert_eq!(turn["role"], "model");
        let parts = turn["parts"].as_array().expect("parts");
        let image = parts.iter().find(|part| part.get("inlineData").is_some()).expect("an image");
        assert_eq!(image["inlineData"], json!({"mimeType": "image/png", "data": PNG}), "{caller:?}: {body}");
        if caller != Openai {
            assert_eq!(image["thoughtSignature"], "c2ln", "{caller:?}: {body}");
        }
    }
}

#[test]
fn an_image_of_an_earlier_answer_moves_to_the_user_elsewhere() {
    for caller in [Openai, OpenaiResponses, Anthropic, Gemini] {
        for provider in [Openai, OpenaiResponses, Anthropic] {
            if caller == provider {
                continue;
            }
            let sent =
                written(Pair { caller, provider }, &second_turn(caller), &ModelFacts::default(), &Fit::default());
            let sent = sent.unwrap_or_else(|error| panic!("{caller:?} to {provider:?}: {error:?}"));
            assert_eq!(sent.left_out, Vec::<String>::new(), "{caller:?} to {provider:?}");
            let body = parsed(&sent);
            let turns = body.get("messages").or(body.get("input")).and_then(Value::as_array).expect("turns");
            let last = turns.last().expect("a turn");
            assert_eq!(last["role"], "user", "{body}");
            let last = last.to_string();
            assert!(last.contains(PNG) && last.contains("Bluer."), "{caller:?} to {provider:?}: {body}");
            let rest = Value::from(turns.get(..turns.len() - 1).expect("earlier turns").to_vec()).to_string();
            assert!(!rest.contains(PNG) && rest.contains("Here."), "{caller:?} to {provider:?}: {body}");
        }
    }
}

#[test]
fn an_image_without_a_later_turn_of_the_user_is_named() {
    let mut body = second_turn(Openai);
    body["messages"].as_array_mut().expect("messages").pop();
    let pair = Pair { caller: Openai, provider: OpenaiResponses };
    let sent = written(pair, &body, &ModelFacts::default(), &Fit::default()).expect("written");
    assert_eq!(sent.left_out, ["images"]);
    let user = with(
        chat(&json!({})),
        &json!({"messages": [{"role": "user", "content": "hi", "images": [{"image_url": {"url": URL}}]}]}),
    );
    let error = written(pair, &user, &ModelFacts::default(), &Fit::default()).expect_err("refused");
    assert_eq!(error.param.as_deref(), Some("messages[0].images"));
}
