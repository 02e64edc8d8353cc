//! Tests what is sent to families of models of Anthropic and Google.

use fairlead_core::{Dialect, ModelFacts};
use serde_json::{json, Value};
use Dialect::{Anthropic, Gemini, Openai, OpenaiResponses};

use crate::facts_tests::{
    chat, chat_tools, gemini, known, messages, messages_tools, parsed, refusal, responses, sent, with, written,
};
use crate::fit::Fit;
use crate::translate::Pair;

/// Returns a user's message in the chat dialect with a part, and a text.
fn with_part(part: &Value) -> Value {
    chat(&json!({"messages": [{"role": "user", "content": [part, {"type": "text", "text": "What is it?"}]}]}))
}

fn image(media_type: &str) -> Value {
    with_part(&json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,AAAA")}}))
}

fn file(media_type: &str, data: &str) -> Value {
    let data = format!("data:{media_type};base64,{data}");
    with_part(&json!({"type": "file", "file": {"filename": "a.txt", "file_data": data}}))
}

#[test]
fn an_image_type_that_the_model_does_not_accept_is_refused_with_its_place() {
    for (name, refused, accepted) in [
        (
            "anthropic/claude-sonnet-4-6",
            &["image/heic", "image/svg+xml", "image/bmp"][..],
            &["image/gif", "image/webp"][..],
        ),
        ("gemini/gemini-2.5-flash", &["image/gif", "image/svg+xml", "image/bmp"], &["image/heic", "image/png"]),
        ("openai/gpt-5.1", &["image/heic", "image/svg+xml"], &["image/gif", "image/png"]),
    ] {
        let caller = if name.starts_with("openai") { Gemini } else { Openai };
        let body = |media_type: &str| match caller {
            Gemini => {
                json!({"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": media_type, "data": "AAAA"}}]}]})
            }
            _ => image(media_type),
        };
        let place = if caller == Gemini { "contents[0].parts[0]" } else { "messages[0].content[0]" };
        for media_type in refused {
            assert_eq!(refusal(caller, name, &body(media_type)), place, "{name} {media_type}");
        }
        for media_type in accepted {
            sent(caller, name, &body(media_type));
        }
    }
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AAAA"}}]});
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]});
    let body = messages(&json!({"tools": messages_tools(), "messages": [
        {"role": "user", "content": "hi"}, call, {"role": "user", "content": [result]}]}));
    assert_eq!(refusal(Anthropic, "gemini/gemini-3-flash", &body), "messages[2].content[0].content[0]");
}

#[test]
fn a_common_alias_of_jpeg_is_sent_by_its_registered_name() {
    let (body, left_out) = sent(Openai, "anthropic/claude-sonnet-4-6", &image("image/jpg"));
    assert_eq!(body["messages"][0]["content"][0]["source"]["media_type"], "image/jpeg");
    let (body, _) = sent(Openai, "gemini/gemini-2.5-flash", &image("image/jpg"));
    assert_eq!(body["contents"][0]["parts"][0]["inlineData"]["mimeType"], "image/jpeg");
    assert!(left_out.is_empty(), "nothing was lost");
}

#[test]
fn a_plain_text_file_becomes_a_text_where_files_are_not_accepted() {
    let (body, _) = sent(Openai, "anthropic/claude-sonnet-4-6", &file("text/plain", "SGk="));
    let source = &body["messages"][0]["content"][0]["source"];
    assert_eq!((&source["type"], &source["data"]), (&json!("text"), &json!("Hi")), "{body}");
    let markdown = json!({"type": "input_file", "filename": "a.md", "file_data": "data:text/markdown;base64,SGk="});
    let body = responses(&json!({"input": [{"role": "user", "content": [markdown]}]}));
    let (body, _) = sent(OpenaiResponses, "openai/gpt-5.1", &body);
    assert_eq!(body["messages"][0]["content"][0]["text"], "a.md\n\nHi", "{body}");
    let word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    assert_eq!(refusal(Openai, "anthropic/claude-sonnet-4-6", &file(word, "AAAA")), "messages[0].content[0]");
    sent(Openai, "anthropic/claude-sonnet-4-6", &file("application/pdf", "AAAA"));
}

#[test]
fn an_address_is_refused_where_only_data_is_accepted() {
    let body = messages(&json!({"messages": [{"role": "user", "content": [
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}]}]}));
    assert_eq!(refusal(Anthropic, "moonshot/kimi-k2.6", &body), "messages[0].content[0]");
    sent(Anthropic, "openai/gpt-5.1", &body);
}

#[test]
fn a_temperature_above_claudes_scale_is_lowered_and_named() {
    let haiku = "anthropic/claude-haiku-4-5";
    for (caller, body, name) in [
        (Openai, chat(&json!({"temperature": 1.7})), "temperature"),
        (OpenaiResponses, responses(&json!({"temperature": 2})), "temperature"),
        (Gemini, gemini(&json!({"temperature": 1.01})), "generationConfig.temperature"),
    ] {
        let (body, left_out) = sent(caller, haiku, &body);
        assert_eq!((&body["temperature"], left_out), (&json!(1), vec![name.to_owned()]), "{caller:?}");
    }
    let (body, left_out) = sent(Openai, haiku, &chat(&json!({"temperature": 1.0})));
    assert_eq!((&body["temperature"], left_out.len()), (&json!(1.0), 0));
    let (body, left_out) = sent(Openai, "anthropic/claude-opus-5", &chat(&json!({"temperature": 1.7})));
    assert_eq!((body.get("temperature"), left_out.len()), (None, 1), "refused at all values");
}

#[test]
fn a_schema_is_an_instruction_for_claude_before_4_5() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let body = chat(&json!({"response_format": format}));
    for old in ["claude-3-7-sonnet-latest", "claude-opus-4-1", "claude-sonnet-4-20250514", "claude-3-haiku-20240307"] {
        let (body, _) = sent(Openai, &format!("anthropic/{old}"), &body);
        assert!(body.get("output_config").is_none(), "{old}: {body}");
        let system = body["system"][0]["text"].as_str().expect("an instruction");
        assert!(system.contains(r#""a""#) && system.contains("JSON schema"), "{old}: {system}");
    }
    for new in
        ["claude-haiku-4-5", "claude-sonnet-4-5-20250929", "claude-opus-4-5", "claude-fable-5", "claude-opus-5-5"]
    {
        let (body, _) = sent(Openai, &format!("anthropic/{new}"), &body);
        assert_eq!(body["output_config"]["format"]["type"], "json_schema", "{new}: {body}");
        assert!(body.get("system").is_none(), "{new}");
    }
}

#[test]
fn one_call_at_a_time_is_asked_for_with_each_choice_of_a_tool() {
    let one = json!({"type": "function", "function": {"name": "f"}});
    for (choice, kind) in
        [(json!("auto"), "auto"), (json!("required"), "any"), (one.clone(), "tool"), (Value::Null, "auto")]
    {
        let body = chat(&json!({"tools": chat_tools(), "tool_choice": choice, "parallel_tool_calls": false}));
        let (body, _) = sent(Openai, "anthropic/claude-opus-4-8", &body);
        assert_eq!(body["tool_choice"]["type"], kind, "{body}");
        assert_eq!(body["tool_choice"]["disable_parallel_tool_use"], true, "{body}");
    }
    let body = chat(&json!({"tools": chat_tools(), "tool_choice": one, "parallel_tool_calls": false}));
    assert_eq!(refusal(Openai, "anthropic/claude-opus-5-5", &body), "tool_choice");
    let drops = Fit { drops: true, ..Fit::default() };
    let pair = Pair { caller: Openai, provider: Anthropic };
    let sent = written(pair, &body, &known("anthropic/claude-opus-5-5"), &drops).expect("written");
    assert_eq!(sent.left_out, ["tool_choice"]);
    assert_eq!(parsed(&sent)["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
}

#[test]
fn a_choice_without_tools_is_refused_if_it_forces_one_and_left_out_otherwise() {
    for provider in [Anthropic, Gemini, OpenaiResponses] {
        let pair = Pair { caller: Openai, provider };
        let none = ModelFacts::default();
        let error =
            written(pair, &chat(&json!({"tool_choice": "required"})), &none, &Fit::default()).expect_err("refused");
        assert_eq!(error.param.as_deref(), Some("tool_choice"), "{provider:?}");
        for choice in ["auto", "none"] {
            let body = chat(&json!({"tool_choice": choice, "parallel_tool_calls": false}));
            let body = parsed(&written(pair, &body, &none, &Fit::default()).expect("written"));
            for name in ["tool_choice", "toolConfig", "parallel_tool_calls"] {
                assert!(body.get(name).is_none(), "{provider:?}: {body}");
            }
        }
    }
}

/// Returns a conversation whose first answer has reasoning.
fn with_reasoning() -> Value {
    messages(&json!({"messages": [{"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "EuYB"},
            {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "So."}]},
        {"role": "user", "content": "and?"}]}))
}

#[test]
fn bound_reasoning_is_removed_from_a_conversation_that_the_gateway_changed() {
    let chat_form = chat(&json!({"messages": [{"role": "user", "content": "hi"},
        {"role": "assistant", "content": "So.", "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "EuYB"}]},
        {"role": "user", "content": "and?"}]}));
    let edited = Fit { is_edited: true, ..Fit::default() };
    for (caller, body) in [(Anthropic, with_reasoning()), (Openai, chat_form)] {
        for (name, fit, stays) in [
            ("anthropic/claude-fable-5-1", &edited, false),
            ("anthropic/claude-opus-5-5", &edited, false),
            ("anthropic/claude-haiku-5-5", &edited, false),
            ("anthropic/claude-opus-5-5", &Fit::default(), true),
            ("anthropic/claude-opus-5", &edited, true),
            ("anthropic/claude-sonnet-4-6", &edited, true),
        ] {
            let pair = Pair { caller, provider: Anthropic };
            let body = parsed(&written(pair, &body, &known(name), fit).expect("written"));
            let text = body.to_string();
            assert_eq!(text.contains("Hm."), stays, "{caller:?} {name}: {text}");
            assert!(text.contains("So.") && (stays || !text.contains("redacted")), "{text}");
        }
    }
}

#[test]
fn at_most_four_cache_marks_reach_claude() {
    let mark = json!({"type": "ephemeral"});
    let part = |text: &str| json!({"type": "text", "text": text, "cache_control": mark});
    let body = chat(&json!({"messages": [{"role": "system", "content": [part("a"), part("b")]},
        {"role": "user", "content": [part("c"), part("d"), part("e"), part("f")]}]}));
    let (body, left_out) = sent(Openai, "anthropic/claude-sonnet-4-6", &body);
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
    assert_eq!(left_out, ["cache_control"]);
}

#[test]
fn gemma_3_gets_its_instructions_in_the_first_turn() {
    let gemma = "gemini/gemma-3-27b-it";
    let system = json!({"role": "system", "content": "Be brief."});
    let body = chat(&json!({"messages": [system, {"role": "user", "content": "hi"}], "presence_penalty": 1,
        "reasoning_effort": "high", "response_format": {"type": "json_object"}}));
    let (body, left_out) = sent(Openai, gemma, &body);
    assert!(body.get("systemInstruction").is_none(), "{body}");
    let parts = &body["contents"][0]["parts"];
    assert_eq!(parts.as_array().map(Vec::len), Some(3), "{body}");
    assert!(parts.to_string().contains("JSON") && parts.to_string().contains("Be brief."), "{body}");
    assert!(body.get("generationConfig").is_none(), "{body}");
    assert_eq!(left_out, ["presence_penalty", "reasoning_effort"]);
    assert_eq!(refusal(Openai, gemma, &chat(&json!({"tools": chat_tools()}))), "tools");
    let (body, _) =
        sent(Openai, "gemini/gemma-4-31b-it", &chat(&json!({"messages": [system, {"role": "user", "content": "hi"}]})));
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
}

#[test]
fn each_gemini_family_gets_reasoning_as_it_accepts_it() {
    let level = |name: &str, effort: &str| {
        let (body, _) = sent(Openai, &format!("gemini/{name}"), &chat(&json!({"reasoning_effort": effort})));
        body["generationConfig"]["thinkingConfig"].clone()
    };
    for (name, effort, expected) in [
        ("gemini-flash-latest", "minimal", "LOW"),
        ("gemini-pro-latest", "none", "LOW"),
        ("gemini-4-argon", "xhigh", "HIGH"),
        ("gemini-4-hydrogen", "xhigh", "XHIGH"),
        ("gemini-4-hydrogen", "minimal", "LOW"),
        ("gemini-3-pro-preview", "medium", "HIGH"),
        ("gemini-3.7-flash", "minimal", "LOW"),
        ("gemini-3-flash-preview", "minimal", "MINIMAL"),
    ] {
        let config = level(name, effort);
        assert_eq!(config["thinkingLevel"], expected, "{name} {effort}");
        assert!(config.get("thinkingBudget").is_none(), "{name}");
    }
    for (name, effort, budget) in [("gemini-2.5-pro", "none", 128), ("gemini-2.5-flash-lite", "minimal", 512)] {
        let config = level(name, effort);
        assert_eq!((&config["thinkingBudget"], config.get("thinkingLevel")), (&json!(budget), None), "{name}");
    }
    for name in ["gemini-2.5-flash-image", "gemini-2.5-flash-preview-tts", "gemini-2.0-flash"] {
        assert_eq!(level(name, "high"), Value::Null, "{name}");
    }
}

#[test]
fn penalties_reach_no_gemini_model_that_refuses_them() {
    let body = chat(&json!({"presence_penalty": 1, "frequency_penalty": 1, "seed": 3}));
    for name in [
        "gemini-2.5-flash-image",
        "gemini-2.5-flash-preview-tts",
        "gemini-flash-latest",
        "gemini-4-argon",
        "gemini-3-flash",
    ] {
        let (body, left_out) = sent(Openai, &format!("gemini/{name}"), &body);
        let config = &body["generationConfig"];
        assert!(config.get("presencePenalty").is_none() && config.get("frequencyPenalty").is_none(), "{name}: {body}");
        assert_eq!((&config["seed"], left_out.len()), (&json!(3), 2), "{name}");
    }
    let (body, _) = sent(Openai, "gemini/gemini-2.0-flash", &body);
    assert_eq!(body["generationConfig"]["presencePenalty"], 1);
}

#[test]
fn outputs_other_than_text_are_asked_for_in_both_dialects() {
    let body = chat(&json!({"modalities": ["image", "text"]}));
    let (body, _) = sent(Openai, "gemini/gemini-2.5-flash-image", &body);
    assert_eq!(body["generationConfig"]["responseModalities"], json!(["IMAGE", "TEXT"]));
    let body = chat(&json!({"modalities": ["audio"], "audio": {"voice": "Kore", "format": "pcm16"}}));
    let (body, _) = sent(Openai, "gemini/gemini-2.5-flash-preview-tts", &body);
    let config = &body["generationConfig"];
    assert_eq!(config["responseModalities"], json!(["AUDIO"]));
    assert_eq!(config["speechConfig"]["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"], "Kore");
    let (body, _) = sent(Openai, "gemini/gemini-2.5-flash-preview-tts", &chat(&json!({})));
    assert_eq!(body["generationConfig"]["responseModalities"], json!(["AUDIO"]), "the model generates nothing else");
    let asks = gemini(&json!({"responseModalities": ["TEXT", "IMAGE"]}));
    let (body, _) = sent(Gemini, "openrouter/google/gemini-2.5-flash-image", &asks);
    assert_eq!(body["modalities"], json!(["text", "image"]));
    assert_eq!(refusal(Gemini, "anthropic/claude-sonnet-4-6", &asks), "generationConfig.responseModalities");
    let mp3 = chat(&json!({"modalities": ["audio"], "audio": {"voice": "Kore", "format": "mp3"}}));
    let read = crate::translate::read_request(Openai, mp3.to_string().as_bytes(), false).expect_err("refused");
    assert_eq!(read.param.as_deref(), Some("audio.format"));
}

#[test]
fn a_schema_beside_tools_is_an_instruction_for_gemini_2() {
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}});
    let body = chat(&json!({"tools": chat_tools(), "response_format": format}));
    let (old, _) = sent(Openai, "gemini/gemini-2.5-flash", &body);
    assert!(old.get("generationConfig").is_none(), "{old}");
    assert!(
        old["systemInstruction"]["parts"][0]["text"].as_str().is_some_and(|text| text.contains("JSON schema")),
        "{old}"
    );
    assert!(old["tools"].is_array());
    let (new, _) = sent(Openai, "gemini/gemini-3-flash-preview", &body);
    assert_eq!(new["generationConfig"]["responseMimeType"], "application/json");
    let (alone, _) = sent(Openai, "gemini/gemini-2.5-flash", &with(body, &json!({"tools": []})));
    assert_eq!(alone["generationConfig"]["responseMimeType"], "application/json");
}

#[test]
fn gemini_gets_at_most_five_stop_sequences() {
    let stops = |count: usize| messages(&json!({"stop_sequences": vec!["x"; count]}));
    let (body, _) = sent(Anthropic, "gemini/gemini-2.5-flash", &stops(5));
    assert_eq!(body["generationConfig"]["stopSequences"].as_array().map(Vec::len), Some(5));
    let (body, left_out) = sent(Anthropic, "gemini/gemini-2.5-flash", &stops(6));
    assert_eq!(left_out, ["stop_sequences"]);
    assert_eq!(body["generationConfig"]["stopSequences"].as_array().map(Vec::len), Some(5));
}

#[test]
fn a_const_of_a_schema_becomes_an_enum_for_gemini() {
    let schema = json!({"type": "object", "properties": {"const": {"type": "string", "const": "a"}, "n": {"const": 1}},
        "anyOf": [{"properties": {"kind": {"const": "b"}}}]});
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": schema}}]);
    let (body, _) = sent(Openai, "gemini/gemini-3-flash", &chat(&json!({"tools": tools})));
    let sent = &body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"];
    assert_eq!(sent["properties"]["const"], json!({"type": "string", "enum": ["a"]}));
    assert_eq!(sent["anyOf"][0]["properties"]["kind"], json!({"enum": ["b"]}));
    assert_eq!(sent["properties"]["n"], json!({"const": 1}), "an enum holds texts only");
}

#[test]
fn the_first_call_of_a_step_has_the_signature_of_its_message() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let answer = json!({"role": "assistant", "content": "Let me see.", "tool_calls": [call("a"), call("b")],
        "thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "gemini:c2ln"}]});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
    let unsigned = json!({"role": "assistant", "content": null, "tool_calls": [call("c")]});
    let body = chat(&json!({"tools": chat_tools(), "messages": [{"role": "user", "content": "hi"}, answer,
        result("a"), result("b"), unsigned, result("c")]}));
    let (body, _) = sent(Openai, "gemini/gemini-3-flash", &body);
    let parts = &body["contents"][1]["parts"];
    assert!(parts[0].get("thoughtSignature").is_none(), "{parts}");
    assert_eq!(parts[1]["thoughtSignature"], "c2ln", "{parts}");
    assert!(parts[2].get("thoughtSignature").is_none(), "{parts}");
    assert_eq!(body["contents"][3]["parts"][0]["thoughtSignature"], "skip_thought_signature_validator");
}
