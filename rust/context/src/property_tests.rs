//! Properties that hold for every body: valid JSON out, structure and protected spans as they were, twice is once for lite, frozen turns stay.

use fairlead_core::Dialect;
use proptest::prelude::*;
use serde_json::{json, Value};

use crate::{compress, engine_ids, fuzz, protect, Level, Mode, Plan, Stage};

/// Parts of texts that engines look at, joined in any order.
const PARTS: [&str; 26] = [
    "Could you please ",
    "basically, ",
    "thank you very much. ",
    "not ",
    "in order to see https://a.example/b?c=1 ",
    "`x  y` ",
    "\n\n\n",
    "  \n",
    "error: no such file\n",
    "test a::b ... ok\n",
    "GET /item/7 200 3ms\n",
    "GET /item/91 200 8ms\n",
    "\"quoted please\" ",
    "```\n",
    "src/a.rs:4 ",
    "3.14 ",
    "{\"a\": 1}\n",
    "[{\"a\":1},{\"a\":2},{\"a\":3},{\"a\":4}]",
    "data:image/png;base64,",
    "\u{1b}[31m",
    "\r",
    "\u{304a}\u{4e16}\u{8a71} ",
    "the of and to ",
    "\t",
    "diff --git a/x b/x\n",
    "the order that is with you and ",
];

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![8 => prop::sample::select(&PARTS[..]).prop_map(str::to_owned), 1 => any::<String>()];
    let parts = prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat());
    (parts, 1..4_usize).prop_map(|(parts, times)| parts.repeat(times))
}

fn messages() -> impl Strategy<Value = Vec<(usize, String)>> {
    prop::collection::vec((0..4_usize, text()), 1..8)
}

fn body(messages: &[(usize, String)]) -> Vec<u8> {
    let commands = ["git status", "cargo test", "cat a.rs", "curl x"];
    let mut list = vec![json!({"role": "system", "content": "You help."})];
    for (at, (kind, text)) in messages.iter().enumerate() {
        match kind {
            0 => list.push(json!({"role": "user", "content": text})),
            1 => list.push(json!({"role": "assistant", "content": [{"type": "text", "text": text}]})),
            _ => {
                let call = json!({"id": format!("call_{at}"), "type": "function", "function": {
                    "name": "shell", "arguments": json!({"command": commands[at % 4]}).to_string()}});
                list.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
                list.push(json!({"role": "tool", "tool_call_id": format!("call_{at}"), "content": text}));
            }
        }
    }
    json!({"model": "m", "messages": list}).to_string().into_bytes()
}

fn after(body: &[u8], mode: Mode) -> Vec<u8> {
    compress(Dialect::Openai, body, &Plan::from(mode), None, || 0).body.unwrap_or_else(|_| body.to_vec())
}

/// The body with every text of a message replaced by nothing.
fn structure(body: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(body).expect("JSON");
    for message in value["messages"].as_array_mut().expect("messages") {
        match &mut message["content"] {
            Value::Array(parts) => parts.iter_mut().for_each(|part| part["text"] = Value::Null),
            content => *content = Value::Null,
        }
    }
    value
}

fn prose(body: &[u8]) -> Vec<String> {
    let value: Value = serde_json::from_slice(body).expect("JSON");
    let is_prose = |message: &&Value| message["role"] == "user";
    let messages = value["messages"].as_array().expect("messages");
    messages.iter().filter(is_prose).filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
}

#[test]
fn fuzz_compression() {
    fuzz::check(&(messages(), prop::sample::select(&Mode::ALL[..])), |(messages, mode)| {
        let before = body(&messages);
        let once = after(&before, mode);
        prop_assert!(once.len() <= before.len());
        prop_assert_eq!(structure(&once), structure(&before));
        for (before, after) in prose(&before).iter().zip(prose(&once)) {
            let mut at = 0;
            for span in protect::spans(before) {
                // Lines that hang together lose the white space at their ends.
                let span = before[span].trim_end();
                let found = after[at..].find(span);
                prop_assert!(found.is_some(), "{:?} is not in {:?}", span, after);
                at += found.unwrap_or_default() + span.len();
            }
        }
        let twice = after_text(&once, mode);
        // Lines that one engine brings together may be a sample for another on a second run, in pipelines of several.
        if mode == Mode::Lite {
            prop_assert_eq!(twice, String::from_utf8_lossy(&once));
        } else {
            prop_assert!(twice.len() <= once.len(), "{:?}", mode);
        }
        Ok(())
    });
}

/// The words before backticks may go only where no fence comes to be: a later stage would take the code after it for prose.
#[test]
fn words_before_backticks_make_no_fence() {
    let half = "```\nthe of and to \n\n\n```\nCould you please ```\n";
    let before = body(&[(0, half.repeat(2)), (2, String::new())]);
    let shorter = after_text(&before, Mode::Ultra);
    assert_eq!(shorter.matches("the of and to").count(), 2, "{shorter}");
}

/// Conversations in every dialect, with a call and its result, around these texts.
fn bodies(messages: &[(usize, String)]) -> Vec<(Dialect, Vec<u8>)> {
    let (mut anthropic, mut responses, mut gemini) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (kind, text)) in messages.iter().enumerate() {
        let id = format!("call_{at}");
        match kind {
            0 => {
                anthropic.push(json!({"role": "user", "content": text}));
                responses.push(json!({"role": "user", "content": [{"type": "input_text", "text": text}]}));
                gemini.push(json!({"role": "user", "parts": [{"text": text}]}));
            }
            1 => {
                anthropic.push(json!({"role": "assistant", "content": [{"type": "text", "text": text}]}));
                responses.push(json!({"role": "assistant", "content": text}));
                gemini.push(json!({"role": "model", "parts": [{"text": text}]}));
            }
            _ => {
                let input = json!({"command": "git status"});
                anthropic.push(json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": id, "name": "shell", "input": input}]}));
                anthropic.push(json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": id, "content": text}]}));
                responses.push(json!({"type": "function_call", "call_id": id, "name": "shell",
                    "arguments": input.to_string()}));
                responses.push(json!({"type": "function_call_output", "call_id": id, "output": text}));
                gemini.push(json!({"role": "model", "parts": [{"functionCall": {"name": "shell", "args": input}}]}));
                gemini.push(json!({"role": "user", "parts": [
                    {"functionResponse": {"name": "shell", "response": {"output": text}}}]}));
            }
        }
    }
    let written = |value: Value| value.to_string().into_bytes();
    vec![
        (Dialect::Openai, body(messages)),
        (Dialect::Anthropic, written(json!({"model": "m", "system": "You help.", "messages": anthropic}))),
        (Dialect::OpenaiResponses, written(json!({"model": "m", "instructions": "You help.", "input": responses}))),
        (Dialect::Gemini, written(json!({"contents": gemini}))),
    ]
}

/// The body with every text that a model reads replaced by nothing, in any dialect: what is left is what no engine may touch.
fn bones(value: &mut Value) {
    const TEXTS: [&str; 6] = ["content", "text", "output", "system", "instructions", "parts"];
    match value {
        Value::Array(list) => list.iter_mut().for_each(bones),
        Value::Object(members) => {
            for (name, member) in members {
                if member.is_string() && TEXTS.contains(&name.as_str()) {
                    *member = Value::Null;
                } else {
                    bones(member);
                }
            }
        }
        _ => {}
    }
}

fn engine(id: &str) -> Plan {
    Plan { stages: Stage::new(id, Level::Standard).into_iter().collect(), ..Plan::default() }
}

/// Every mode, and every engine by itself.
fn plans() -> Vec<(&'static str, Plan)> {
    let modes = Mode::ALL.into_iter().map(|mode| (mode.name(), Plan::from(mode)));
    modes.chain(engine_ids().map(|id| (id, engine(id)))).collect()
}

#[test]
fn fuzz_every_engine_in_every_dialect() {
    let plans = plans();
    fuzz::check(&(messages(), 0..plans.len()), |(messages, at)| {
        let (name, plan) = &plans[at];
        for (dialect, before) in bodies(&messages) {
            let once = compress(dialect, &before, plan, None, || 0).body.unwrap_or_else(|_| before.clone());
            prop_assert!(once.len() <= before.len(), "{name} {dialect:?}");
            let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
            let (was, is) = (read(&before), read(&once));
            prop_assert!(is.is_ok(), "{name} {dialect:?}: {is:?}");
            let (mut was, mut is) = (was.expect("JSON"), is.expect("JSON"));
            bones(&mut was);
            bones(&mut is);
            prop_assert_eq!(was, is, "{} {:?}", name, dialect);
        }
        Ok(())
    });
}

#[test]
fn fuzz_an_engine_that_has_worked_finds_nothing_more() {
    let ids: Vec<&str> = engine_ids().collect();
    fuzz::check(&(messages(), 0..ids.len()), |(messages, at)| {
        let plan = engine(ids[at]);
        let run =
            |bytes: &[u8]| compress(Dialect::Openai, bytes, &plan, None, || 0).body.unwrap_or_else(|_| bytes.to_vec());
        let once = run(&body(&messages));
        let twice = run(&once);
        prop_assert_eq!(String::from_utf8_lossy(&twice), String::from_utf8_lossy(&once), "{}", ids[at]);
        Ok(())
    });
}

/// Documents that no reader of ours may be slow or wrong about, in the place of a tool's output and of a person's words.
#[test]
fn hostile_documents_leave_valid_bodies() {
    let deep = |open: &str, close: &str| open.repeat(20_000) + &close.repeat(20_000);
    let texts = [
        deep("[", "]"),
        deep("{\"a\":", "}"),
        "\0".repeat(100_000),
        "\u{202e}\u{2066}please \u{2069}".repeat(20_000),
        "x".repeat(2_000_000),
        format!("{}\n", "y".repeat(500)).repeat(2_000),
        "\u{1f468}\u{200d}\u{1f469}".repeat(50_000),
        "[\u{2026} 3 lines left out]\n".repeat(20_000),
        "```\n~~~\n".repeat(50_000),
        "{\"a\":1}\n{\"a\":".repeat(20_000),
    ];
    for text in texts {
        for (dialect, before) in
            bodies(&[(0, text.clone()), (2, text.clone()), (2, text.clone()), (1, text), (0, "?".into())])
        {
            for (name, plan) in plans() {
                let start = std::time::Instant::now();
                let outcome = compress(dialect, &before, &plan, None, || 0);
                let allowed_ms = 1_000 + 2_000 * before.len() as u128 / (1 << 20);
                let took = start.elapsed().as_millis();
                // Far above the 100 ms a MB of a free core: a test shares its core with others.
                assert!(took < allowed_ms, "{name} {dialect:?} {took} ms");
                if let Ok(body) = outcome.body {
                    assert!(serde_json::from_slice::<Value>(&body).is_ok(), "{name} {dialect:?}");
                }
            }
        }
    }
}

#[test]
fn an_output_is_named_as_it_came_and_the_name_stays() {
    let lines: Vec<String> = (0..60).map(|n| format!("Collecting package-{n}==1.{n}.0")).collect();
    let before = body(&[(2, lines.join("\n"))]);
    for mode in [Mode::Standard, Mode::Rtk, Mode::Stacked, Mode::Ultra] {
        let plan = Plan { keeps_raw: true, ..Plan::from(mode) };
        let outcome = compress(Dialect::Openai, &before, &plan, None, || 0);
        let [raw] = outcome.raw_outputs.as_slice() else { panic!("{mode:?} {:?}", outcome.raw_outputs) };
        assert_eq!((raw.text.as_str(), raw.command.as_str()), (lines.join("\n").as_str(), "git status"));
        let sent = outcome.body.expect("shorter");
        assert!(String::from_utf8_lossy(&sent).contains(&format!("raw-output/{}]", raw.id)), "{mode:?}");
        let again = compress(Dialect::Openai, &before, &plan, None, || 0);
        assert_eq!((again.body.as_deref(), again.raw_outputs), (Ok(sent.as_slice()), outcome.raw_outputs));
    }
    let silent = compress(Dialect::Openai, &before, &Plan::from(Mode::Rtk), None, || 0);
    assert!(silent.raw_outputs.is_empty());
    assert!(!String::from_utf8_lossy(&silent.body.expect("shorter")).contains("raw-output"));
}

fn after_text(body: &[u8], mode: Mode) -> String {
    String::from_utf8_lossy(&after(body, mode)).into_owned()
}

#[test]
fn fuzz_frozen_sessions() {
    fuzz::check(&(messages(), messages()), |(mut messages, more)| {
        let plan = Plan::from(Mode::Ultra);
        let first = body(&messages);
        let sent = compress(Dialect::Openai, &first, &plan, None, || 0);
        let sent_body = sent.body.unwrap_or(first);
        let count = body(&messages).len() - 2;
        messages.extend(more);
        let longer = body(&messages);
        prop_assert!(longer.len() >= count);
        let next = compress(Dialect::Openai, &longer, &plan, Some(&sent.session), || 0);
        let next_body = next.body.unwrap_or(longer);
        // Without the brackets that close the list and the body.
        let list_end = sent_body.windows(12).rposition(|end| end == b"],\"model\":\"m").unwrap_or(sent_body.len() - 2);
        prop_assert_eq!(&next_body[..list_end], &sent_body[..list_end]);
        Ok(())
    });
}

#[test]
fn hostile_text_takes_linear_time() {
    for seed in [
        "a",
        "\"",
        "` ",
        "please ",
        "\n",
        "error\n",
        "[{\"a\":1},",
        "\u{1b}[",
        "\r",
        ";base64,",
        "diff --git\n",
        "\u{4f60}",
        "\u{201c}",
        "\u{ab} ",
    ] {
        let text = seed.repeat((1 << 20) / seed.len());
        let before = body(&[(0, text.clone()), (2, text)]);
        for mode in Mode::ALL {
            let start = std::time::Instant::now();
            let _ = after(&before, mode);
            // Far above the 100 ms a MB of a free core: a test shares its core with others.
            assert!(start.elapsed().as_millis() < 2_000, "{seed:?} {mode:?} {:?}", start.elapsed());
        }
    }
}
