//! Answers that deviate from their protocol the way real providers do. Callers of every dialect receive them anyway,
//! complete and streamed.

use bytes::Bytes;
use fairlead_core::{Dialect, Usage};
use fairlead_dialect::openai::stream::{End, Outcome};
use fairlead_dialect::stream::Follow;
use fairlead_dialect::translate::{self, NoAnswer, Pair};
use fairlead_dialect::{AnswerContext, UrlParams};
use serde_json::{json, Value};
use Dialect::{Anthropic, Gemini, Openai, OpenaiResponses};

fn answer(provider: Dialect, caller: Dialect, body: &str) -> Result<(Value, Usage), NoAnswer> {
    let context = AnswerContext { id: "0a1b".to_owned(), ..AnswerContext::default() };
    let body = Bytes::from(body.to_owned());
    let whole = translate::answer(Pair { caller, provider }, &body, &context)?;
    if caller == provider {
        assert_eq!(whole.body, body, "nothing is changed for a caller of the provider's own dialect");
        // The body passes unchanged, so the caller's own parser handles it.
        return Ok((Value::Null, whole.usage.unwrap_or_default()));
    }
    let value = serde_json::from_slice(&whole.body).unwrap_or_else(|error| panic!("{error}: {:?}", whole.body));
    Ok((value, whole.usage.unwrap_or_default()))
}

/// Returns the answer in each other dialect.
fn answers(provider: Dialect, body: &str) -> Vec<(Dialect, Value)> {
    let each = Dialect::ALL.iter().map(|&caller| match answer(provider, caller, body) {
        Ok((value, _)) => (caller, value),
        Err(no) => panic!("{provider:?} to {caller:?}: {no:?}: {body}"),
    });
    each.filter(|(caller, _)| *caller != provider).collect()
}

/// Returns the caller's stream and its outcome.
fn stream(provider: Dialect, caller: Dialect, events: &[&str]) -> (String, Outcome) {
    let context = AnswerContext { id: "0a1b".to_owned(), ..AnswerContext::default() };
    let mut follow = Follow::new(Pair { caller, provider }, context);
    let mut translated = Vec::new();
    for event in events {
        let pieces = follow.push(&Bytes::from(format!("data: {event}\n\n"))).pieces;
        pieces.iter().for_each(|piece| translated.extend_from_slice(piece));
    }
    let closing = follow.finish(End::Clean);
    translated.extend_from_slice(&closing.bytes);
    (String::from_utf8(translated).expect("text"), closing.outcome)
}

fn parts(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn joined(list: &Value, member: &str, is_one: impl Fn(&Value) -> bool) -> String {
    parts(list).iter().filter(|part| is_one(part)).filter_map(|part| part[member].as_str()).collect()
}

/// Returns the text of an answer in a dialect.
fn text(form: Dialect, answer: &Value) -> String {
    match form {
        Openai => answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned(),
        Anthropic => joined(&answer["content"], "text", |part| part["type"] == "text"),
        OpenaiResponses => {
            let messages = parts(&answer["output"]).iter().filter(|item| item["type"] == "message");
            messages.map(|item| joined(&item["content"], "text", |_| true)).collect()
        }
        Gemini => joined(&answer["candidates"][0]["content"]["parts"], "text", |part| part["thought"] != true),
    }
}

/// Returns the reasoning of an answer in a dialect.
fn thoughts(form: Dialect, answer: &Value) -> String {
    match form {
        Openai => answer["choices"][0]["message"]["reasoning_content"].as_str().unwrap_or_default().to_owned(),
        Anthropic => joined(&answer["content"], "thinking", |part| part["type"] == "thinking"),
        OpenaiResponses => {
            let items = parts(&answer["output"]).iter().filter(|item| item["type"] == "reasoning");
            items.map(|item| joined(&item["summary"], "text", |_| true)).collect()
        }
        Gemini => joined(&answer["candidates"][0]["content"]["parts"], "text", |part| part["thought"] == true),
    }
}

/// Returns the names and arguments of an answer's calls. Arguments are a string or a value, depending on the dialect.
/// Checks that each call has an id.
fn calls(form: Dialect, answer: &Value) -> Vec<(String, Value)> {
    let list: Vec<(&Value, &Value, &Value)> = match form {
        Openai => parts(&answer["choices"][0]["message"]["tool_calls"])
            .iter()
            .map(|call| (&call["id"], &call["function"]["name"], &call["function"]["arguments"]))
            .collect(),
        Anthropic => {
            let calls = parts(&answer["content"]).iter().filter(|part| part["type"] == "tool_use");
            calls.map(|call| (&call["id"], &call["name"], &call["input"])).collect()
        }
        OpenaiResponses => {
            let calls = parts(&answer["output"]).iter().filter(|part| part["type"] == "function_call");
            calls.map(|call| (&call["call_id"], &call["name"], &call["arguments"])).collect()
        }
        Gemini => {
            let parts = parts(&answer["candidates"][0]["content"]["parts"]).iter();
            let calls = parts.map(|part| &part["functionCall"]).filter(|call| call.is_object());
            calls.map(|call| (&call["id"], &call["name"], &call["args"])).collect()
        }
    };
    let each = list.into_iter().map(|(id, name, arguments)| {
        assert!(id.as_str().is_some_and(|id| !id.is_empty()), "a call without an id: {answer}");
        (name.as_str().unwrap_or_default().to_owned(), arguments.clone())
    });
    each.collect()
}

/// An answer of a provider. `inner` is the text as the content of a JSON string.
fn says(provider: Dialect, inner: &str) -> String {
    match provider {
        Openai => format!(
            r#"{{"id":"c","model":"m","choices":[{{"message":{{"content":"{inner}"}},"finish_reason":"stop"}}]}}"#
        ),
        OpenaiResponses => format!(
            r#"{{"id":"r","model":"m","status":"completed","output":[{{"type":"message","content":[{{"type":"output_text","text":"{inner}"}}]}}]}}"#
        ),
        Anthropic => format!(
            r#"{{"id":"m","model":"m","content":[{{"type":"text","text":"{inner}"}}],"stop_reason":"end_turn"}}"#
        ),
        Gemini => {
            format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{inner}"}}]}},"finishReason":"STOP"}}]}}"#)
        }
    }
}

/// A chat answer with this message.
fn chat(message: &str, reason: &str) -> String {
    format!(r#"{{"id":"c","model":"m","choices":[{{"message":{message},"finish_reason":"{reason}"}}]}}"#)
}

/// A chat answer with one call. `arguments` is JSON.
fn chat_call(arguments: &str, reason: &str) -> String {
    let call = format!(r#"{{"id":"a","type":"function","function":{{"name":"f","arguments":{arguments}}}}}"#);
    chat(&format!(r#"{{"content":"so","tool_calls":[{call}]}}"#), reason)
}

#[test]
fn half_of_a_pair_of_surrogates_is_told_as_a_replacement_character() {
    for &provider in Dialect::ALL {
        for (caller, translated) in answers(provider, &says(provider, r"a\ud83d b\ud83d\ude00")) {
            assert_eq!(text(caller, &translated), "a\u{fffd} b\u{1f600}", "{provider:?} to {caller:?}");
        }
    }
}

#[test]
fn a_stream_whose_only_text_is_half_of_a_pair_is_an_answer() {
    let events: [(Dialect, &[&str]); 2] = [
        (
            Anthropic,
            &[
                r#"{"type":"message_start","message":{"id":"m","model":"m"}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        ),
        (Gemini, &[r#"{"candidates":[{"content":{"parts":[{"text":"\ud83d"}]},"finishReason":"STOP"}]}"#]),
    ];
    for (provider, events) in events {
        for &caller in Dialect::ALL {
            let (translated, outcome) = stream(provider, caller, events);
            assert_eq!(outcome, Outcome::Completed, "{provider:?} to {caller:?}: {translated}");
        }
    }
}

#[test]
fn of_a_member_that_comes_twice_the_last_counts() {
    let usage =
        r#""usage":{"prompt_tokens":1,"completion_tokens":1},"usage":{"prompt_tokens":7,"completion_tokens":1}"#;
    for body in [
        format!(r#"{{"id":"c","choices":[{{"message":{{"content":"a"}},"finish_reason":"stop"}}],{usage}}}"#),
        r#"{"choices":[{"message":{"content":"no","content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"prompt_tokens":7}}"#.to_owned(),
    ] {
        for &caller in Dialect::ALL {
            let (translated, used) =
                answer(Openai, caller, &body).unwrap_or_else(|no| panic!("{caller:?}: {no:?}: {body}"));
            assert_eq!(used.input, 7, "{caller:?}: {body}");
            if caller != Openai {
                assert_eq!(text(caller, &translated), "a", "{caller:?}: {body}");
            }
        }
    }
    let twice = r#"{"type":"text","text":"no","text":"a"}"#;
    let message = format!(r#"{{"id":"m","id":"m","content":[{twice}],"stop_reason":"end_turn"}}"#);
    for (caller, translated) in answers(Anthropic, &message) {
        assert_eq!(text(caller, &translated), "a", "{caller:?}");
    }
}

#[test]
fn an_error_is_found_behind_a_member_that_comes_twice() {
    let body = r#"{"id":"c","id":"d","error":{"message":"no quota"}}"#;
    for &caller in Dialect::ALL {
        match answer(Openai, caller, body) {
            Err(NoAnswer::ProviderError(error)) => assert_eq!(error.message, "no quota"),
            other => panic!("{caller:?}: {other:?}"),
        }
    }
}

#[test]
fn an_event_with_a_member_that_comes_twice_ends_no_stream() {
    let events = [
        r#"{"id":"c","id":"c","choices":[{"index":0,"delta":{"content":"no","content":"a"}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    for &caller in Dialect::ALL {
        let (translated, outcome) = stream(Openai, caller, &events);
        assert_eq!(outcome, Outcome::Completed, "{caller:?}: {translated}");
        assert!(translated.contains("\"a\""), "{caller:?}: {translated}");
    }
}

#[test]
fn a_content_of_parts_is_told_as_its_texts() {
    let content = r#"[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}],"closed":true},
        {"type":"text","text":"a"},{"type":"reference","reference_ids":[1]},"b",{"type":"text","text":"c","annotations":[]}]"#;
    for (caller, translated) in answers(Openai, &chat(&format!(r#"{{"content":{content}}}"#), "stop")) {
        assert_eq!(text(caller, &translated), "abc", "{translated}");
        assert_eq!(thoughts(caller, &translated), "hm", "{translated}");
    }
    let thinking = r#"{"content":[{"type":"thinking","thinking":"hm"}],"tool_calls":null}"#;
    for (caller, translated) in answers(Openai, &chat(thinking, "stop")) {
        assert_eq!(thoughts(caller, &translated), "hm", "{translated}");
    }
}

#[test]
fn a_stream_of_parts_is_told_as_their_texts() {
    let events = [
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    for &caller in Dialect::ALL {
        let (translated, outcome) = stream(Openai, caller, &events);
        assert_eq!(outcome, Outcome::Completed, "{translated}");
        for piece in ["\"hm\"", "\"one\"", "\"two\""] {
            assert!(translated.contains(piece), "{caller:?}: {translated}");
        }
    }
}

#[test]
fn arguments_of_a_call_are_taken_as_they_come() {
    for (arguments, as_text, as_value) in [
        (r#"{"a":1}"#, r#"{"a":1}"#, json!({"a": 1})),
        (r#""{\"a\":1}""#, r#"{"a":1}"#, json!({"a": 1})),
        (r#""""#, "{}", json!({})),
        ("null", "{}", json!({})),
        (r#""null""#, "null", json!({})),
    ] {
        for (caller, translated) in answers(Openai, &chat_call(arguments, "tool_calls")) {
            let expected = if caller == OpenaiResponses { Value::from(as_text) } else { as_value.clone() };
            assert_eq!(calls(caller, &translated), [("f".to_owned(), expected)], "{caller:?}: {arguments}");
        }
    }
    let without = r#"{"tool_calls":[{"id":"a","function":{"name":"f"}}]}"#;
    for (caller, translated) in answers(Openai, &chat(without, "tool_calls")) {
        let expected = if caller == OpenaiResponses { Value::from("{}") } else { json!({}) };
        assert_eq!(calls(caller, &translated), [("f".to_owned(), expected)], "{caller:?}");
    }
}

#[test]
fn arguments_that_are_no_object_reach_those_whose_form_can_hold_them() {
    let body = chat_call(r#""[1]""#, "tool_calls");
    let translated = |caller| answer(Openai, caller, &body).map(|(translated, _)| calls(caller, &translated));
    assert_eq!(translated(OpenaiResponses).expect("translated"), [("f".to_owned(), json!("[1]"))]);
    assert_eq!(translated(Anthropic).expect("translated"), [("f".to_owned(), json!([1]))]);
    assert_eq!(translated(Gemini), Err(NoAnswer::Strange));
    let body = chat_call(r#""{\"a\":""#, "tool_calls");
    let translated = |caller| answer(Openai, caller, &body).map(|(translated, _)| calls(caller, &translated));
    assert_eq!(translated(OpenaiResponses).expect("translated"), [("f".to_owned(), json!("{\"a\":"))]);
    assert_eq!(translated(Anthropic), Err(NoAnswer::Strange));
    assert_eq!(translated(Gemini), Err(NoAnswer::Strange));
}

#[test]
fn a_call_that_the_limit_of_output_cut_costs_nothing_of_the_answer() {
    let body = chat_call(r#""{\"city\":\"Be""#, "length");
    for (caller, translated) in answers(Openai, &body) {
        assert_eq!(text(caller, &translated), "so", "{translated}");
        // A dialect whose arguments are objects cannot express a truncated one.
        let expected: &[(String, Value)] = match caller {
            OpenaiResponses => &[("f".to_owned(), json!("{\"city\":\"Be"))],
            _ => &[],
        };
        assert_eq!(calls(caller, &translated), expected, "{translated}");
        let reason = match caller {
            OpenaiResponses => &translated["incomplete_details"]["reason"],
            Anthropic => &translated["stop_reason"],
            _ => &translated["candidates"][0]["finishReason"],
        };
        assert!(["max_output_tokens", "max_tokens", "MAX_TOKENS"].iter().any(|word| reason == word), "{translated}");
    }
    let events = [
        r#"{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"city\""}}]}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#,
        "[DONE]",
    ];
    for &caller in Dialect::ALL {
        let (translated, outcome) = stream(Openai, caller, &events);
        assert_eq!(outcome, Outcome::Completed, "{caller:?}: {translated}");
    }
}

#[test]
fn a_stream_takes_arguments_that_are_no_text() {
    let events = [
        r#"{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"a":1}}}]}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ];
    for &caller in Dialect::ALL {
        let (translated, outcome) = stream(Openai, caller, &events);
        assert_eq!(outcome, Outcome::Completed, "{translated}");
        assert!(translated.replace('\\', "").contains(r#"{"a":1}"#), "{translated}");
    }
}

#[test]
fn members_and_parts_that_nobody_knows_are_passed_over() {
    let call = r#"{"id":"a","index":0,"type":null,"function":{"name":"f","arguments":"{}","parsed":null},"extra_content":{"google":{}}}"#;
    let message =
        format!(r#"{{"role":"assistant","content":"a","annotations":[],"audio":null,"tool_calls":[{call}]}}"#);
    let body = chat(&message, "tool_calls");
    let blocks = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"text","text":"a","new":1},
        {"type":"tool_use","id":"t","name":"f","input":{},"caller":{"type":"direct"},"new":{}}"#;
    let message = format!(r#"{{"id":"m","content":[{blocks}],"stop_reason":"tool_use"}}"#);
    let parts = r#"{"executableCode":{"code":"1"}},{"text":"a","partMetadata":{}},{"functionCall":{"name":"f","args":{},"willContinue":false}}"#;
    let content = format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"STOP"}}]}}"#);
    for (provider, body) in [(Openai, &body), (Anthropic, &message), (Gemini, &content)] {
        for (caller, translated) in answers(provider, body) {
            assert_eq!(text(caller, &translated), "a", "{translated}");
            assert_eq!(calls(caller, &translated).len(), 1, "{translated}");
        }
    }
    for &caller in Dialect::ALL {
        let (translated, outcome) = stream(Gemini, caller, &[&content]);
        assert_eq!(outcome, Outcome::Completed, "{caller:?}: {translated}");
    }
}

#[test]
fn calls_without_an_id_get_one_each() {
    let call = r#"{"function":{"name":"f","arguments":"{}"}},{"id":"","function":{"name":"g","arguments":"{}"}},{"id":null,"function":{"name":"h","arguments":"{}"}}"#;
    for (caller, translated) in answers(Openai, &chat(&format!(r#"{{"tool_calls":[{call}]}}"#), "stop")) {
        let names: Vec<String> = calls(caller, &translated).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["f", "g", "h"], "{translated}");
    }
    let numbered = r#"[{"index":"0","id":7,"function":{"name":"f"}}]"#;
    for (caller, translated) in answers(Openai, &chat(&format!(r#"{{"tool_calls":{numbered}}}"#), "stop")) {
        assert_eq!(calls(caller, &translated).len(), 1, "{translated}");
    }
    let item = r#"{"type":"function_call","id":"fc","name":"f"}"#;
    for (caller, translated) in answers(OpenaiResponses, &format!(r#"{{"status":"completed","output":[{item}]}}"#)) {
        assert_eq!(calls(caller, &translated).len(), 1, "{translated}");
    }
}

#[test]
fn an_empty_refusal_is_none() {
    for (caller, translated) in answers(Openai, &chat(r#"{"content":"a","refusal":""}"#, "stop")) {
        let reason = match caller {
            OpenaiResponses => &translated["status"],
            Anthropic => &translated["stop_reason"],
            _ => &translated["candidates"][0]["finishReason"],
        };
        assert!(["completed", "end_turn", "STOP"].iter().any(|word| reason == word), "{translated}");
    }
}

#[test]
fn what_is_missing_or_null_costs_no_answer() {
    for body in [
        r#"{"choices":[{"message":{"content":"a"}}]}"#,
        r#"{"id":null,"model":null,"choices":[{"index":0,"message":{"content":"a","tool_calls":null,"reasoning":null},"finish_reason":null,"logprobs":null}],"usage":null}"#,
        r#"{"id":7,"model":7,"choices":[{"message":{"content":"a"},"finish_reason":"eos"},{"message":null}],"usage":{"prompt_tokens":null}}"#,
        r#"{"choices":[{"message":{"content":"a"},"finish_reason":7,"logprobs":[]}],"usage":[]}"#,
        r#"{"choices":[{"index":"0","message":{"content":"a","reasoning":{},"refusal":false}}]}"#,
    ] {
        for (caller, translated) in answers(Openai, body) {
            assert_eq!(text(caller, &translated), "a", "{body}: {translated}");
        }
    }
    for (provider, body) in [
        (
            Anthropic,
            r#"{"id":7,"content":[{"type":"text","text":"a","citations":null}],"stop_reason":null,"usage":null}"#,
        ),
        (
            OpenaiResponses,
            r#"{"id":7,"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"new"}],"usage":null}"#,
        ),
        (Gemini, r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":null}],"usageMetadata":null}"#),
    ] {
        for (caller, translated) in answers(provider, body) {
            assert_eq!(text(caller, &translated), "a", "{body}: {translated}");
        }
    }
    for (caller, translated) in
        answers(Gemini, r#"{"candidates":[{"content":{"parts":null},"finishReason":"MAX_TOKENS"}]}"#)
    {
        assert_eq!(text(caller, &translated), "", "{translated}");
    }
    assert_eq!(answer(Openai, Anthropic, r#"{"choices":[]}"#).map(drop), Err(NoAnswer::Empty));
}

#[test]
fn counts_are_read_with_a_fraction_of_nought_too() {
    let text = r#"[{"type":"message","content":[{"type":"output_text","text":"a"}]}]"#;
    for (provider, body) in [
        (Openai, r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":12.0,"completion_tokens":3.0}}"#.to_owned()),
        (OpenaiResponses, format!(r#"{{"output":{text},"usage":{{"input_tokens":12.0,"output_tokens":3,"input_tokens_details":null}}}}"#)),
        (Anthropic, r#"{"content":[{"type":"text","text":"a"}],"usage":{"input_tokens":12.0,"output_tokens":3.0}}"#.to_owned()),
        (Gemini, r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":12.0,"candidatesTokenCount":3.0}}"#.to_owned()),
    ] {
        for &caller in Dialect::ALL {
            let (_, used) = answer(provider, caller, &body).expect("an answer");
            assert_eq!((used.input, used.output), (12, 3), "{provider:?} to {caller:?}");
        }
    }
}

/// Translates a request for a provider.
fn request(caller: Dialect, provider: Dialect, body: &Value) -> Value {
    let body = Bytes::from(body.to_string());
    let read = translate::read_at(caller, &body, UrlParams { model: "m", ..UrlParams::default() }).expect("a request");
    let sent = translate::request(Pair { caller, provider }, &body, &read, "m").expect("can be said").concat();
    serde_json::from_slice(&sent).expect("JSON")
}

#[test]
fn system_messages_alone_are_the_users_where_system_stands_apart() {
    let chat = json!({"model": "m", "messages": [{"role": "system", "content": "Say hi."}, {"role": "developer", "content": "Now."}]});
    let texts = json!([{"type": "text", "text": "Say hi."}, {"type": "text", "text": "Now."}]);
    let sent = request(Openai, Anthropic, &chat);
    assert_eq!(sent["messages"], json!([{"role": "user", "content": texts}]));
    assert_eq!(sent["system"], Value::Null);
    let sent = request(Openai, Gemini, &chat);
    assert_eq!(sent["contents"], json!([{"role": "user", "parts": [{"text": "Say hi."}, {"text": "Now."}]}]));
    assert_eq!(sent["systemInstruction"], Value::Null);
    let sent = request(Openai, OpenaiResponses, &chat);
    assert_eq!(sent["instructions"], Value::Null);
    assert_eq!(sent["input"][0]["role"], "user");
    let responses = json!({"model": "m", "input": [{"role": "developer", "content": "Say hi."}]});
    assert_eq!(request(OpenaiResponses, Anthropic, &responses)["messages"][0]["role"], "user");
    assert_eq!(request(OpenaiResponses, Openai, &responses)["messages"][0]["role"], "system");
}

#[test]
fn a_data_url_may_be_in_capitals() {
    let part = json!({"type": "image_url", "image_url": {"url": "DATA:IMAGE/PNG;BASE64,iVBORw0KGgo"}});
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": [part]}]});
    let source = &request(Openai, Anthropic, &chat)["messages"][0]["content"][0]["source"];
    assert_eq!(*source, json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo"}));
    let part = &request(Openai, Gemini, &chat)["contents"][0]["parts"][0];
    assert_eq!(part["inlineData"], json!({"mimeType": "image/png", "data": "iVBORw0KGgo"}));
}
