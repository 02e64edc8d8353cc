//! Properties that hold for all streams and conversations, tested with generated ones.

use fairlead_core::Dialect;
use std::path::Path;

use bytes::Bytes;
use fairlead_dialect::openai::stream::End;
use fairlead_dialect::stream::Follow;
use fairlead_dialect::translate::{self, Pair};
use fairlead_dialect::AnswerContext;
use fairlead_dialect::UrlParams;
use proptest::prelude::*;
use serde_json::{json, Value};

const CHAT_TO_MESSAGES: Pair = Pair { caller: Dialect::Openai, provider: Dialect::Anthropic };
const MESSAGES_TO_CHAT: Pair = Pair { caller: Dialect::Anthropic, provider: Dialect::Openai };

fn recorded(form: &str) -> Vec<Bytes> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dialects/streams").join(form);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("there").map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| !path.to_string_lossy().contains(".to-"));
    paths.sort();
    paths.iter().map(|path| Bytes::from(std::fs::read(path).expect("readable"))).collect()
}

fn caller_stream(pair: Pair, upstream: &Bytes, cuts: &[usize]) -> Vec<u8> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (upstream.len() + 1)).collect();
    cuts.push(upstream.len());
    cuts.sort_unstable();
    let mut follow =
        Follow::new(pair, AnswerContext { created_s: 1, requests_usage: true, ..AnswerContext::default() });
    let mut caller = Vec::new();
    let mut from = 0;
    for to in cuts {
        let passed = follow.push(&upstream.slice(from..to));
        passed.pieces.iter().for_each(|piece| caller.extend_from_slice(piece));
        from = to;
    }
    caller.extend_from_slice(&follow.finish(End::Clean).bytes);
    caller
}

/// Arguments and texts, typical and unusual ones. Blank texts are excluded: they are dropped on the way to Claude,
/// which rejects them, and so do not return.
fn text() -> impl Strategy<Value = String> {
    let is_visible = |text: &String| text.chars().any(|char| !char.is_whitespace());
    prop_oneof!["[a-z ]{1,20}", any::<String>()].prop_filter("has a visible character", is_visible)
}

/// A user turn, an assistant turn with or without calls, and the results of the calls.
fn turns() -> impl Strategy<Value = Vec<Value>> {
    let exchange = (text(), proptest::option::of(text()), proptest::collection::vec((text(), text()), 0..3));
    proptest::collection::vec(exchange, 1..4).prop_map(|exchanges| {
        let mut messages = Vec::new();
        for (at, (question, reply, calls)) in exchanges.into_iter().enumerate() {
            messages.push(json!({"role": "user", "content": question}));
            let each = calls.iter().enumerate().map(|(number, (argument, _))| {
                let arguments = json!({ "a": argument, "n": 1.5 }).to_string();
                json!({"id": format!("call_{at}_{number}"), "type": "function",
                       "function": {"name": "f", "arguments": arguments}})
            });
            let tool_calls: Vec<Value> = each.collect();
            let reply = if tool_calls.is_empty() { Some(reply.unwrap_or_else(|| "ok".to_owned())) } else { reply };
            let mut answer = json!({"role": "assistant", "content": reply});
            if !tool_calls.is_empty() {
                answer["tool_calls"] = Value::from(tool_calls);
            }
            messages.push(answer);
            for (number, (_, result)) in calls.iter().enumerate() {
                let id = format!("call_{at}_{number}");
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
            }
        }
        messages.push(json!({"role": "user", "content": [{"type": "text", "text": "so"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}));
        messages
    })
}

fn name(form: Dialect) -> &'static str {
    match form {
        Dialect::Openai => "chat",
        Dialect::OpenaiResponses => "responses",
        Dialect::Anthropic => "messages",
        Dialect::Gemini => "gemini",
    }
}

/// A conversation that every dialect can express.
fn conversation(messages: Vec<Value>, system: &str, temperature: u32) -> Value {
    let mut all = vec![json!({"role": "system", "content": system})];
    all.extend(messages);
    json!({
        "model": "m", "messages": all, "max_completion_tokens": 99, "temperature": f64::from(temperature) / 10.0,
        "top_p": 0.5, "user": "u", "reasoning_effort": "medium", "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": {"type": "object", "additionalProperties": false}}},
    })
}

fn through(pair: Pair, body: &Bytes) -> Bytes {
    let url_params = UrlParams { model: "m", ..UrlParams::default() };
    let read = translate::read_at(pair.caller, body, url_params).expect("a request");
    Bytes::from(translate::request(pair, body, &read, "m").expect("can be said").concat())
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_same_events(which in 0_usize..64, cuts in proptest::collection::vec(any::<usize>(), 0..12)) {
        for &provider in Dialect::ALL {
            let all = recorded(name(provider));
            let upstream = &all[which % all.len()];
            for &caller in Dialect::ALL {
                let pair = Pair { caller, provider };
                let (whole, cut) = (caller_stream(pair, upstream, &[]), caller_stream(pair, upstream, &cuts));
                prop_assert_eq!(String::from_utf8_lossy(&whole), String::from_utf8_lossy(&cut));
            }
        }
    }

    #[test]
    fn a_conversation_comes_back_from_messages_as_it_was(
        messages in turns(), system in text(), temperature in 0_u32..=10, parallel in any::<Option<bool>>(),
    ) {
        let mut all = vec![json!({"role": "system", "content": system})];
        all.extend(messages);
        let mut chat = json!({
            "model": "m", "messages": all, "max_completion_tokens": 99, "temperature": f64::from(temperature) / 10.0,
            "stop": ["x"], "user": "u", "reasoning_effort": "medium", "tool_choice": "auto",
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": {"type": "object", "additionalProperties": false}}},
        });
        if parallel == Some(false) {
            chat["parallel_tool_calls"] = Value::from(false);
        }
        let there = through(CHAT_TO_MESSAGES, &Bytes::from(chat.to_string()));
        let back = through(MESSAGES_TO_CHAT, &there);
        let back: Value = serde_json::from_slice(&back).expect("JSON");
        prop_assert_eq!(chat, back);
    }

    #[test]
    fn a_conversation_comes_back_from_responses_as_it_was(
        messages in turns(), system in text(), temperature in 0_u32..=20, parallel in any::<Option<bool>>(),
    ) {
        let mut chat = conversation(messages, &system, temperature);
        // The other dialect writes these members explicitly when they are absent here.
        chat["store"] = Value::from(false);
        chat["tools"][0]["function"]["strict"] = Value::from(true);
        chat["tools"][0]["function"]["parameters"] = json!({"type": "object", "additionalProperties": false});
        chat["metadata"] = json!({"berth": "7"});
        chat["verbosity"] = Value::from("low");
        if let Some(parallel) = parallel {
            chat["parallel_tool_calls"] = Value::from(parallel);
        }
        let there = through(Pair { caller: Dialect::Openai, provider: Dialect::OpenaiResponses }, &Bytes::from(chat.to_string()));
        let back = through(Pair { caller: Dialect::OpenaiResponses, provider: Dialect::Openai }, &there);
        prop_assert_eq!(chat, serde_json::from_slice::<Value>(&back).expect("JSON"));
    }

    #[test]
    fn a_conversation_comes_back_from_gemini_as_it_was(
        messages in turns(), system in text(), temperature in 0_u32..=20, seed in any::<Option<u32>>(),
    ) {
        let mut chat = conversation(messages, &system, temperature);
        chat["stop"] = json!(["x"]);
        chat["presence_penalty"] = json!(0.5);
        if let Some(seed) = seed {
            chat["seed"] = Value::from(seed);
        }
        chat.as_object_mut().expect("an object").remove("user");
        let there = through(Pair { caller: Dialect::Openai, provider: Dialect::Gemini }, &Bytes::from(chat.to_string()));
        let back = through(Pair { caller: Dialect::Gemini, provider: Dialect::Openai }, &there);
        prop_assert_eq!(chat, serde_json::from_slice::<Value>(&back).expect("JSON"));
    }

    #[test]
    fn no_bytes_of_a_provider_break_a_translation(bytes in proptest::collection::vec(any::<u8>(), 0..400), prefix in any::<bool>()) {
        let mut body = if prefix { b"data: ".to_vec() } else { Vec::new() };
        body.extend(bytes);
        for &caller in Dialect::ALL {
            for &provider in Dialect::ALL {
                let pair = Pair { caller, provider };
                if (caller, provider) == (Dialect::Openai, Dialect::Openai) {
                    continue;
                }
                let translated = caller_stream(pair, &Bytes::from(body.clone()), &[3, 17]);
                let translated = String::from_utf8_lossy(&translated).into_owned();
                let end = match caller {
                    Dialect::Openai => "data: [DONE]",
                    Dialect::OpenaiResponses => "event: response.failed",
                    Dialect::Anthropic => "event: error",
                    Dialect::Gemini => "data: {\"error\":",
                };
                prop_assert_eq!(translated.matches(end).count(), 1, "{:?}: {}", pair, translated);
            }
        }
    }

    #[test]
    fn no_body_of_a_caller_breaks_a_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200), open in 0_usize..4) {
        let openings: [&[u8]; 4] =
            [b"", b"{\"model\":\"m\",\"messages\":[", b"{\"model\":\"m\",\"input\":[{\"type\":", b"{\"contents\":[{\"parts\":["];
        let body = Bytes::from([openings[open], &bytes].concat());
        for &caller in Dialect::ALL {
            let url_params = UrlParams { model: "m", ..UrlParams::default() };
            if let Ok(read) = translate::read_at(caller, &body, url_params) {
                for &provider in Dialect::ALL {
                    // Only the absence of a panic is tested.
                    let _said = translate::request(Pair { caller, provider }, &body, &read, "m");
                }
            }
        }
    }
}
