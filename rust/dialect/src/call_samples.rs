//! Sample answers with one call, and access to the tools and calls of requests and answers in each dialect, for tests.

use bytes::Bytes;
use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};

use crate::answer_context::AnswerContext;
use crate::facts_tests::{parsed, written, CHAT, MESSAGES};
use crate::fit::Fit;
use crate::openai::stream::End;
use crate::stream::Follow;
use crate::tool_names::ToolNames;
use crate::translate::{self, Pair};

pub(super) const RESPONSES: Dialect = Dialect::OpenaiResponses;
pub(super) const GEMINI: Dialect = Dialect::Gemini;
const ALL: [Dialect; 4] = [CHAT, RESPONSES, MESSAGES, GEMINI];

/// The providers whose dialect differs from the caller's.
pub(super) fn others(caller: Dialect) -> impl Iterator<Item = Pair> {
    ALL.into_iter().filter(move |provider| *provider != caller).map(move |provider| Pair { caller, provider })
}

/// A request as the provider receives it.
pub(super) struct ProviderRequest {
    pub(super) body: Value,
    pub(super) left_out: Vec<String>,
    pub(super) names: ToolNames,
}

pub(super) fn send(pair: Pair, body: &Value) -> ProviderRequest {
    let sent = written(pair, body, &ModelFacts::default(), &Fit::default());
    let sent = sent.unwrap_or_else(|error| panic!("{pair:?}: {error:?}"));
    ProviderRequest { body: parsed(&sent), left_out: sent.left_out, names: sent.tool_names }
}

pub(super) fn refused(pair: Pair, body: &Value) -> String {
    let error = written(pair, body, &ModelFacts::default(), &Fit::default()).expect_err("refused");
    error.param.expect("a member").into_owned()
}

pub(super) fn dropped(pair: Pair, body: &Value) -> Vec<String> {
    let drops = Fit { drops: true, ..Fit::default() };
    written(pair, body, &ModelFacts::default(), &drops).expect("dropped").left_out
}

/// The functions that a provider is offered: each name, its parameters and its description.
pub(super) fn offered(pair: Pair, body: &Value) -> Vec<(String, Value, String)> {
    let list = match pair.provider {
        GEMINI => &body["tools"][0]["functionDeclarations"],
        _ => &body["tools"],
    };
    let each = list.as_array().map_or(&[][..], Vec::as_slice).iter().map(|tool| {
        let tool = if pair.provider == CHAT { &tool["function"] } else { tool };
        let schema = ["parameters", "input_schema", "parametersJsonSchema"].iter().find_map(|name| tool.get(name));
        let text = |name: &str| tool[name].as_str().unwrap_or_default().to_owned();
        (text("name"), schema.cloned().unwrap_or_default(), text("description"))
    });
    each.collect()
}

/// The name and the arguments of the first call in the conversation that a provider receives.
pub(super) fn first_call(provider: Dialect, body: &Value) -> (Value, Value) {
    let of_json = |text: &Value| serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
    match provider {
        CHAT => {
            let call = &body["messages"][1]["tool_calls"][0]["function"];
            (call["name"].clone(), of_json(&call["arguments"]))
        }
        RESPONSES => (body["input"][1]["name"].clone(), of_json(&body["input"][1]["arguments"])),
        MESSAGES => {
            let block = &body["messages"][1]["content"][0];
            (block["name"].clone(), block["input"].clone())
        }
        GEMINI => {
            let call = &body["contents"][1]["parts"][0]["functionCall"];
            (call["name"].clone(), call["args"].clone())
        }
    }
}

/// Returns the result of the first call as the provider receives it.
pub(super) fn first_result(provider: Dialect, body: &Value) -> String {
    match provider {
        CHAT | MESSAGES => body["messages"][2].to_string(),
        RESPONSES => body["input"][2].to_string(),
        GEMINI => body["contents"][2].to_string(),
    }
}

fn whole_answer(provider: Dialect, name: &str, arguments: &str) -> String {
    let args = serde_json::from_str::<Value>(arguments).unwrap_or_default();
    let answer = match provider {
        CHAT => json!({"id": "a", "object": "chat.completion", "model": "m", "created": 1, "choices": [{"index": 0,
            "message": {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
                "function": {"name": name, "arguments": arguments}}]}, "finish_reason": "tool_calls"}]}),
        RESPONSES => json!({"id": "resp_a", "object": "response", "model": "m", "status": "completed", "output": [
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": name, "arguments": arguments}]}),
        MESSAGES => json!({"id": "msg_a", "type": "message", "role": "assistant", "model": "m", "content": [
            {"type": "tool_use", "id": "c", "name": name, "input": args}], "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1}}),
        GEMINI => json!({"candidates": [{"content": {"role": "model", "parts": [
            {"functionCall": {"id": "c", "name": name, "args": args}}]}, "finishReason": "STOP"}]}),
    };
    answer.to_string()
}

/// A stream whose arguments come in pieces of three characters, where the dialect has pieces.
fn streamed_answer(provider: Dialect, name: &str, arguments: &str) -> String {
    let chars: Vec<char> = arguments.chars().collect();
    let pieces: Vec<String> = chars.chunks(3).map(|piece| piece.iter().collect()).collect();
    let chunk = |delta: Value, reason: Option<&str>| {
        json!({"id": "a", "object": "chat.completion.chunk", "model": "m", "created": 1,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let mut events = Vec::new();
    match provider {
        CHAT => {
            let call = json!({"index": 0, "id": "c", "type": "function", "function": {"name": name, "arguments": ""}});
            events.push(chunk(json!({"role": "assistant", "tool_calls": [call]}), None));
            for piece in pieces {
                events.push(chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}), None));
            }
            events.push(chunk(json!({}), Some("tool_calls")));
        }
        RESPONSES => {
            let item = |arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": name, "arguments": arguments});
            events.push(json!({"type": "response.created", "response": {"id": "resp_a", "model": "m"}}));
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}));
            for piece in pieces {
                events
                    .push(json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": piece}));
            }
            events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item(arguments)}));
            let response = json!({"id": "resp_a", "status": "completed", "output": [item(arguments)]});
            events.push(json!({"type": "response.completed", "response": response}));
        }
        MESSAGES => {
            let message = json!({"id": "msg_a", "type": "message", "role": "assistant", "model": "m", "content": [],
                "usage": {"input_tokens": 1, "output_tokens": 1}});
            events.push(json!({"type": "message_start", "message": message}));
            let block = json!({"type": "tool_use", "id": "c", "name": name, "input": {}});
            events.push(json!({"type": "content_block_start", "index": 0, "content_block": block}));
            for piece in pieces {
                let delta = json!({"type": "input_json_delta", "partial_json": piece});
                events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
            }
            events.push(json!({"type": "content_block_stop", "index": 0}));
            events.push(
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}),
            );
            events.push(json!({"type": "message_stop"}));
        }
        GEMINI => events.push(serde_json::from_str(&whole_answer(provider, name, arguments)).expect("JSON")),
    }
    let done = if provider == CHAT { "data: [DONE]\n\n" } else { "" };
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    events.concat() + done
}

fn context(names: &ToolNames) -> AnswerContext {
    AnswerContext { tool_names: names.clone(), id: "x".to_owned(), ..AnswerContext::default() }
}

/// The call of a complete answer, as the caller gets it.
pub(super) fn whole_call(pair: Pair, names: &ToolNames, name: &str, arguments: &str) -> Value {
    let body = Bytes::from(whole_answer(pair.provider, name, arguments));
    let whole = translate::answer(pair, &body, &context(names)).expect("an answer");
    let answer: Value = serde_json::from_slice(&whole.body).expect("JSON");
    match pair.caller {
        CHAT => answer["choices"][0]["message"]["tool_calls"][0].clone(),
        RESPONSES => answer["output"][0].clone(),
        MESSAGES => answer["content"][0].clone(),
        GEMINI => answer["candidates"][0]["content"]["parts"][0]["functionCall"].clone(),
    }
}

/// The events of a streamed answer, as the caller gets them.
pub(super) fn streamed_events(pair: Pair, names: &ToolNames, name: &str, arguments: &str) -> Vec<Value> {
    let mut follow = Follow::new(pair, context(names));
    let mut stream = Vec::new();
    for piece in follow.push(&Bytes::from(streamed_answer(pair.provider, name, arguments))).pieces {
        stream.extend_from_slice(&piece);
    }
    stream.extend_from_slice(&follow.finish(End::Clean).bytes);
    let stream = String::from_utf8(stream).expect("text");
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"))).collect()
}

/// The streamed item of a responses caller: the finished item, and the joined deltas of this name.
pub(super) fn streamed_item(events: &[Value], delta: &str) -> (Value, String) {
    let done: Vec<&Value> = events.iter().filter(|event| event["type"] == "response.output_item.done").collect();
    let pieces = events.iter().filter(|event| event["type"] == delta);
    assert_eq!(done.len(), 1, "{events:?}");
    let last = events.last().expect("an event");
    assert_eq!((&last["type"], &last["response"]["output"][0]), (&json!("response.completed"), &done[0]["item"]));
    (done[0]["item"].clone(), pieces.filter_map(|event| event["delta"].as_str()).collect())
}
