//! Tests the tools that only the caller's dialect has: sent to each provider as functions, and called by its answer,
//! complete and streamed.

use serde_json::{json, Value};

use crate::call_samples::{
    dropped, first_call, first_result, offered, others, refused, send, streamed_events, streamed_item, whole_call,
    GEMINI, RESPONSES,
};
use crate::facts_tests::{chat, messages, responses, with, CHAT, MESSAGES};
use crate::translate::Pair;

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
    let tool = json!({"type": "function", "function": {"name": "f"}, "defer_loading": true});
    let searching = chat(&json!({"tools": [tool, {"type": "web_search", "web_search": {"enable": true}}]}));
    for pair in others(CHAT) {
        let sent = send(pair, &searching);
        assert_eq!((sent.left_out, offered(pair, &sent.body).len()), (vec!["web_search".to_owned()], 1), "{pair:?}");
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
