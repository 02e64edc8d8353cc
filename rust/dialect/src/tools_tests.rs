//! Tests the tools that only the caller's dialect has: sent to each provider as functions, and called by its answer,
//! complete and streamed.

use bytes::Bytes;
use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};

use crate::answer_context::AnswerContext;
use crate::facts_tests::{chat, messages, parsed, responses, with, written, CHAT, MESSAGES};
use crate::fit::Fit;
use crate::openai::stream::End;
use crate::stream::Follow;
use crate::tool_names::ToolNames;
use crate::translate::{self, Pair};

const RESPONSES: Dialect = Dialect::OpenaiResponses;
const GEMINI: Dialect = Dialect::Gemini;
const ALL: [Dialect; 4] = [CHAT, RESPONSES, MESSAGES, GEMINI];

/// The providers whose dialect differs from the caller's.
fn others(caller: Dialect) -> impl Iterator<Item = Pair> {
    ALL.into_iter().filter(move |provider| *provider != caller).map(move |provider| Pair { caller, provider })
}

/// A request as the provider receives it.
struct Sent {
    body: Value,
    left_out: Vec<String>,
    names: ToolNames,
}

fn send(pair: Pair, body: &Value) -> Sent {
    let sent = written(pair, body, &ModelFacts::default(), &Fit::default());
    let sent = sent.unwrap_or_else(|error| panic!("{pair:?}: {error:?}"));
    Sent { body: parsed(&sent), left_out: sent.left_out, names: sent.tool_names }
}

fn refused(pair: Pair, body: &Value) -> String {
    let error = written(pair, body, &ModelFacts::default(), &Fit::default()).expect_err("refused");
    error.param.expect("a member").into_owned()
}

fn dropped(pair: Pair, body: &Value) -> Vec<String> {
    let drops = Fit { drops: true, ..Fit::default() };
    written(pair, body, &ModelFacts::default(), &drops).expect("dropped").left_out
}

/// The functions that a provider is offered: each name, its parameters and its description.
fn offered(pair: Pair, body: &Value) -> Vec<(String, Value, String)> {
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
fn first_call(provider: Dialect, body: &Value) -> (Value, Value) {
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

/// What a provider receives after the first call, as text.
fn first_result(provider: Dialect, body: &Value) -> String {
    match provider {
        CHAT => body["messages"][2].to_string(),
        RESPONSES => body["input"][2].to_string(),
        MESSAGES => body["messages"][2].to_string(),
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
fn whole_call(pair: Pair, names: &ToolNames, name: &str, arguments: &str) -> Value {
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
fn streamed_events(pair: Pair, names: &ToolNames, name: &str, arguments: &str) -> Vec<Value> {
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
fn streamed_item(events: &[Value], delta: &str) -> (Value, String) {
    let done: Vec<&Value> = events.iter().filter(|event| event["type"] == "response.output_item.done").collect();
    let pieces = events.iter().filter(|event| event["type"] == delta);
    assert_eq!(done.len(), 1, "{events:?}");
    let last = events.last().expect("an event");
    assert_eq!((&last["type"], &last["response"]["output"][0]), (&json!("response.completed"), &done[0]["item"]));
    (done[0]["item"].clone(), pieces.filter_map(|event| event["delta"].as_str()).collect())
}

const PATCH: &str = "*** Begin Patch\n+\"a\\b\"\té😀\n*** End Patch";

fn custom_tool() -> Value {
    json!({"type": "custom", "name": "apply_patch", "description": "Edits files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: PATCH"}})
}

#[test]
fn a_custom_tool_of_responses_is_a_function_with_one_text_and_its_call_comes_back() {
    let body = responses(
        &json!({"tools": [custom_tool()], "tool_choice": {"type": "custom", "name": "apply_patch"}, "input": [
            {"role": "user", "content": "hi"},
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "apply_patch", "input": PATCH, "status": "completed"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done."},
        ]}),
    );
    for pair in others(RESPONSES) {
        let sent = send(pair, &body);
        let [(name, schema, description)] = &*offered(pair, &sent.body) else { panic!("{}", sent.body) };
        assert_eq!((name.as_str(), &schema["required"]), ("apply_patch", &json!(["input"])));
        assert!(description.contains("Edits files.") && description.contains("start: PATCH"), "{description}");
        assert_eq!(first_call(pair.provider, &sent.body), (json!("apply_patch"), json!({"input": PATCH})));
        assert!(first_result(pair.provider, &sent.body).contains("Done."), "{}", sent.body);
        assert!(sent.left_out.is_empty());

        let arguments = json!({"input": PATCH}).to_string();
        let item = whole_call(pair, &sent.names, "apply_patch", &arguments);
        let expected = json!({"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": PATCH,
            "status": "completed", "id": "ctc_x_0"});
        assert_eq!(item, expected, "{pair:?}");

        let events = streamed_events(pair, &sent.names, "apply_patch", &arguments);
        let (item, text) = streamed_item(&events, "response.custom_tool_call_input.delta");
        assert_eq!((item, text.as_str()), (expected, PATCH), "{pair:?}");
        let done = events.iter().find(|event| event["type"] == "response.custom_tool_call_input.done");
        assert_eq!(done.expect("an event")["input"], PATCH);
        assert!(!events.iter().any(|event| event["type"].as_str().is_some_and(|kind| kind.contains("function_call"))));
    }
}

#[test]
fn a_custom_tool_of_chat_is_a_function_with_one_text_and_its_call_comes_back() {
    let grammar = json!({"type": "grammar", "grammar": {"syntax": "regex", "definition": "^a$"}});
    let tool = json!({"type": "custom", "custom": {"name": "run", "description": "Runs.", "format": grammar}});
    let call = json!({"id": "c1", "type": "custom", "custom": {"name": "run", "input": PATCH}});
    let body =
        chat(&json!({"tools": [tool], "tool_choice": {"type": "custom", "custom": {"name": "run"}}, "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "Done."},
        ]}));
    for pair in others(CHAT) {
        let sent = send(pair, &body);
        let [(name, schema, description)] = &*offered(pair, &sent.body) else { panic!("{}", sent.body) };
        assert_eq!((name.as_str(), &schema["required"]), ("run", &json!(["input"])));
        assert!(description.contains("regex") && description.contains("^a$"), "{description}");
        assert_eq!(first_call(pair.provider, &sent.body), (json!("run"), json!({"input": PATCH})));

        let arguments = json!({"input": PATCH}).to_string();
        let expected = json!({"id": "c", "type": "custom", "custom": {"name": "run", "input": PATCH}});
        assert_eq!(whole_call(pair, &sent.names, "run", &arguments), expected, "{pair:?}");

        let events = streamed_events(pair, &sent.names, "run", &arguments);
        let calls: Vec<&Value> = events
            .iter()
            .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
            .filter(|call| !call.is_null())
            .collect();
        assert_eq!(
            (&calls[0]["id"], &calls[0]["type"], &calls[0]["custom"]["name"]),
            (&json!("c"), &json!("custom"), &json!("run"))
        );
        let text: String = calls.iter().filter_map(|call| call["custom"]["input"].as_str()).collect();
        assert_eq!(text, PATCH, "{pair:?}");
        assert!(calls.iter().all(|call| call["index"] == 0 && call.get("function").is_none()));
    }
}

#[test]
fn a_namespace_is_flat_at_the_provider_and_comes_back() {
    let function =
        |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object"}, "defer_loading": true});
    let group = json!({"type": "namespace", "name": "agents", "description": "Starts agents.", "tools": [function("spawn"), custom_tool()]});
    let body = responses(&json!({"tools": [function("spawn"), function("agents__spawn"), group], "input": [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c1", "name": "spawn", "namespace": "agents", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "Done."},
    ]}));
    for pair in others(RESPONSES) {
        let sent = send(pair, &body);
        let offered = offered(pair, &sent.body);
        let names: Vec<&str> = offered.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["spawn", "agents__spawn", "agents__spawn_", "agents__apply_patch"]);
        assert!(offered[2].2.contains("Starts agents.") && !offered[3].2.contains("Starts agents."));
        assert_eq!(first_call(pair.provider, &sent.body).0, "agents__spawn_");
        for (called, name, namespace, kind) in [
            ("spawn", "spawn", Value::Null, "function_call"),
            ("agents__spawn", "agents__spawn", Value::Null, "function_call"),
            ("agents__spawn_", "spawn", json!("agents"), "function_call"),
            ("agents__apply_patch", "apply_patch", json!("agents"), "custom_tool_call"),
        ] {
            let whole = whole_call(pair, &sent.names, called, r#"{"input":"x"}"#);
            let events = streamed_events(pair, &sent.names, called, r#"{"input":"x"}"#);
            let (streamed, _) = streamed_item(&events, "");
            assert_eq!(whole, streamed, "{pair:?}");
            assert_eq!((&whole["name"], &whole["namespace"], &whole["type"]), (&json!(name), &namespace, &json!(kind)));
        }
    }
    let long = json!({"type": "namespace", "name": "n".repeat(70), "tools": [function("f")]});
    let pair = Pair { caller: RESPONSES, provider: CHAT };
    let sent = send(pair, &responses(&json!({"tools": [long]})));
    let (short, ..) = offered(pair, &sent.body).remove(0);
    assert_eq!(short.len(), 64);
    let item = whole_call(pair, &sent.names, &short, "{}");
    assert_eq!((&item["name"], &item["namespace"]), (&json!("f"), &json!("n".repeat(70))));
}

#[test]
fn tools_that_the_caller_runs_are_functions_and_their_calls_have_the_form_of_their_items() {
    let search = json!({"type": "tool_search", "execution": "client", "description": "Finds tools.",
        "parameters": {"type": "object", "properties": {"goal": {"type": "string"}}}});
    for (tool, name, arguments, kind, member, value, output) in [
        (
            json!({"type": "local_shell"}),
            "local_shell",
            json!({"command": ["ls"], "timeout_ms": 5}),
            "local_shell_call",
            "action",
            json!({"type": "exec", "command": ["ls"], "timeout_ms": 5, "env": {}}),
            json!({"type": "local_shell_call_output", "id": "c1", "output": "Done."}),
        ),
        (
            json!({"type": "shell", "environment": {"type": "local"}}),
            "shell",
            json!({"commands": ["ls"]}),
            "shell_call",
            "action",
            json!({"commands": ["ls"]}),
            json!({"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "Done.", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
        ),
        (
            json!({"type": "apply_patch"}),
            "apply_patch",
            json!({"type": "delete_file", "path": "a"}),
            "apply_patch_call",
            "operation",
            json!({"type": "delete_file", "path": "a"}),
            json!({"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "Done."}),
        ),
        (
            search,
            "tool_search",
            json!({"goal": "send mail"}),
            "tool_search_call",
            "arguments",
            json!({"goal": "send mail"}),
            json!({"type": "tool_search_output", "call_id": "c1", "execution": "client", "status": "completed",
                "tools": [{"type": "function", "name": "mail", "description": "Done.", "parameters": {"type": "object"}}]}),
        ),
    ] {
        let call = with(
            json!({"type": kind, "call_id": "c1", "id": "x1", "status": "completed", "execution": "client"}),
            &json!({member: value}),
        );
        let body = responses(
            &json!({"tools": [tool], "tool_choice": {"type": name}, "input": [{"role": "user", "content": "hi"}, call, output]}),
        );
        for pair in others(RESPONSES) {
            let sent = send(pair, &body);
            let offered = offered(pair, &sent.body);
            assert_eq!((offered[0].0.as_str(), &offered[0].1["type"]), (name, &json!("object")), "{pair:?}");
            assert_eq!(offered.get(1).map(|tool| tool.0.as_str()), (name == "tool_search").then_some("mail"));
            assert_eq!(first_call(pair.provider, &sent.body), (json!(name), value.clone()), "{pair:?}");
            let result = first_result(pair.provider, &sent.body);
            assert!(result.contains("Done."), "{result}");
            assert!(sent.left_out.is_empty(), "{:?}", sent.left_out);

            let arguments = arguments.to_string();
            let whole = whole_call(pair, &sent.names, name, &arguments);
            assert_eq!(
                (&whole["type"], &whole["call_id"], &whole[member]),
                (&json!(kind), &json!("c"), &value),
                "{pair:?}"
            );
            let (streamed, deltas) = streamed_item(
                &streamed_events(pair, &sent.names, name, &arguments),
                "response.function_call_arguments.delta",
            );
            assert_eq!((streamed, deltas.as_str()), (whole, ""), "{pair:?}");
        }
    }
}

#[test]
fn tools_that_nobody_else_runs_are_left_out_and_a_choice_of_one_is_refused() {
    let function = json!({"type": "function", "name": "f", "parameters": {"type": "object"}});
    for (tool, name) in [
        (json!({"type": "web_search", "external_web_access": false}), "web_search"),
        (json!({"type": "image_generation", "output_format": "png"}), "image_generation"),
        (json!({"type": "tool_search"}), "tool_search"),
        (json!({"type": "shell", "environment": {"type": "container_auto"}}), "shell"),
        (json!({"type": "code_interpreter", "container": {"type": "auto"}}), "code_interpreter"),
    ] {
        let body = responses(&json!({"tools": [function, tool]}));
        for pair in others(RESPONSES) {
            let sent = send(pair, &body);
            assert_eq!((sent.left_out, offered(pair, &sent.body).len()), (vec![name.to_owned()], 1), "{pair:?}");
        }
    }
    for (caller, body, member) in [
        (
            RESPONSES,
            responses(
                &json!({"tools": [function, {"type": "image_generation"}], "tool_choice": {"type": "image_generation"}}),
            ),
            "tool_choice",
        ),
        (RESPONSES, responses(&json!({"tools": [function, {"type": "mcp", "server_label": "x"}]})), "tools[1].type"),
        (RESPONSES, responses(&json!({"tools": [function, {"type": "computer_use_preview"}]})), "tools[1].type"),
        (
            MESSAGES,
            messages(
                &json!({"tools": [{"name": "f", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "web_search"}],
            "tool_choice": {"type": "tool", "name": "web_search"}}),
            ),
            "tool_choice",
        ),
        (
            MESSAGES,
            messages(
                &json!({"tools": [{"name": "f", "input_schema": {"type": "object"}}, {"type": "computer_toolset_20260801"}]}),
            ),
            "tools[1].type",
        ),
        (CHAT, chat(&json!({"tools": [{"type": "retrieval"}]})), "tools[0].type"),
    ] {
        for pair in others(caller) {
            assert_eq!(refused(pair, &body), member, "{pair:?}");
            assert!(dropped(pair, &body).contains(&member.to_owned()), "{pair:?}");
        }
    }
    let searching = chat(&json!({"web_search_options": {"search_context_size": "low"}}));
    for pair in others(CHAT) {
        assert_eq!(send(pair, &searching).left_out, ["web_search_options"]);
    }
    let parts = json!([{"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, {"text": "One."}]);
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": parts}, {"role": "user", "parts": [{"text": "more"}]}],
        "tools": [{"googleSearch": {}, "codeExecution": {}}, {"googleMaps": {}}]});
    for pair in others(GEMINI) {
        assert_eq!(send(pair, &body).left_out, ["googleSearch", "codeExecution", "googleMaps"], "{pair:?}");
    }
}

#[test]
fn a_choice_of_several_tools_offers_only_those() {
    let function = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object"}});
    let several = json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}, {"type": "custom", "name": "apply_patch"}]});
    let of_responses =
        responses(&json!({"tools": [function("a"), function("b"), custom_tool()], "tool_choice": several}));
    let function =
        |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    let custom = json!({"type": "custom", "custom": {"name": "apply_patch"}});
    let several = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
        {"type": "function", "function": {"name": "b"}}, {"type": "custom", "custom": {"name": "apply_patch"}}]}});
    let of_chat = chat(&json!({"tools": [function("a"), function("b"), custom], "tool_choice": several}));
    let declared = |name: &str| json!({"name": name, "parameters": {"type": "OBJECT"}});
    let of_gemini = json!({"contents": [{"parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [declared("a"), declared("b"), declared("apply_patch")]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b", "apply_patch"]}}});
    for (caller, body) in [(RESPONSES, of_responses), (CHAT, of_chat), (GEMINI, of_gemini)] {
        for pair in others(caller) {
            let sent = send(pair, &body);
            let names: Vec<String> = offered(pair, &sent.body).into_iter().map(|(name, ..)| name).collect();
            assert_eq!(names, ["b", "apply_patch"], "{pair:?}");
            let forced = match pair.provider {
                GEMINI => sent.body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY",
                MESSAGES => sent.body["tool_choice"]["type"] == "any",
                _ => sent.body["tool_choice"] == "required",
            };
            assert!(forced, "{}", sent.body);
        }
    }
}

#[test]
fn anthropics_tools_that_the_caller_runs_are_functions_with_their_schema() {
    for (tool, name, parameter) in [
        (json!({"type": "bash_20250124", "name": "bash"}), "bash", "restart"),
        (json!({"type": "text_editor_20250124", "name": "str_replace_editor"}), "str_replace_editor", "old_str"),
        (
            json!({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9}),
            "str_replace_based_edit_tool",
            "insert_text",
        ),
        (
            json!({"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}),
            "memory",
            "new_path",
        ),
        (
            json!({"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600}),
            "computer",
            "scroll_amount",
        ),
    ] {
        let body = messages(&json!({"tools": [tool], "tool_choice": {"type": "tool", "name": name}}));
        for pair in others(MESSAGES) {
            let sent = send(pair, &body);
            let [(offered, schema, description)] = &*offered(pair, &sent.body) else { panic!("{}", sent.body) };
            assert_eq!(offered, name);
            assert!(schema["properties"].get(parameter).is_some(), "{schema}");
            assert!(
                !description.is_empty() && (name != "computer" || description.contains("800 x 600")),
                "{description}"
            );
            let block = whole_call(pair, &sent.names, name, r#"{"command":"ls"}"#);
            assert_eq!(
                block,
                json!({"type": "tool_use", "id": "c", "name": name, "input": {"command": "ls"}}),
                "{pair:?}"
            );
        }
    }
}

#[test]
fn members_about_the_loading_of_tools_are_no_reason_to_refuse() {
    let tool = json!({"name": "f", "description": "Does.", "input_schema": {"type": "object"}, "defer_loading": true, "strict": true,
        "allowed_callers": ["direct", "code_execution_20250825"], "eager_input_streaming": true, "input_examples": [{"a": 1}]});
    let body = messages(
        &json!({"tools": [{"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, tool], "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "t1", "name": "find", "input": {}, "caller": {"type": "direct"}},
                {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_regex", "input": {"query": "f"}},
                {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": {"type": "tool_search_tool_search_result", "tool_references": []}},
                {"type": "web_search_tool_result", "tool_use_id": "s2", "content": [{"type": "web_search_result", "url": "u", "encrypted_content": "x"}]},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "tool_reference", "tool_name": "f"}]}]},
        ]}),
    );
    for pair in others(MESSAGES) {
        let sent = send(pair, &body);
        assert_eq!(sent.left_out, ["tool_search_tool"], "{pair:?}");
        let [(name, _, description)] = &*offered(pair, &sent.body) else { panic!("{}", sent.body) };
        assert_eq!(name, "f");
        assert!(description.contains(r#"[{"a":1}]"#), "{description}");
        assert_eq!(first_call(pair.provider, &sent.body), (json!("find"), json!({})));
        assert!(first_result(pair.provider, &sent.body).contains("\"f\""), "{}", sent.body);
    }
}

#[test]
fn a_picture_inside_the_text_of_a_result_is_sent_as_a_picture() {
    let url = "data:image/png;base64,AAAA";
    for text in [
        json!([{"type": "input_text", "text": "Here."}, {"type": "input_image", "image_url": url}]),
        json!([{"type": "text", "text": "Here."}, {"type": "image_url", "image_url": {"url": url}}]),
        json!({"content": [{"type": "text", "text": "Here."}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}], "isError": false}),
        json!([{"type": "text", "text": "Here."}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]),
    ] {
        let body = responses(&json!({"input": [{"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": text.to_string()}]}));
        for pair in others(RESPONSES) {
            let sent = send(pair, &body).body;
            let (part, at) = match pair.provider {
                CHAT => (json!({"type": "image_url", "image_url": {"url": url}}), "/messages/3/content/1"),
                MESSAGES => (
                    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}),
                    "/messages/2/content/0/content/1",
                ),
                _ => (
                    json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
                    "/contents/2/parts/0/functionResponse/parts/0",
                ),
            };
            assert_eq!(sent.pointer(at), Some(&part), "{sent}");
            assert_eq!(sent.to_string().matches("Here.").count(), 1, "{sent}");
        }
        let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let body =
            chat(&json!({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": text.to_string()}]}));
        let sent = send(Pair { caller: CHAT, provider: RESPONSES }, &body).body;
        assert_eq!(sent["input"][2]["output"][1], json!({"type": "input_image", "image_url": url}), "{sent}");
    }
    for text in [
        json!({"image": "AAAA"}),
        json!([{"type": "image", "url": "x"}]),
        json!([{"type": "input_image", "image_url": "https://x/y.png"}]),
        json!("image"),
    ] {
        let body = responses(&json!({"input": [{"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": text.to_string()}]}));
        let sent = send(Pair { caller: RESPONSES, provider: CHAT }, &body).body;
        assert_eq!(sent["messages"][2]["content"], text.to_string(), "as it was");
    }
}
