//! Properties of every body: the output is valid JSON, structure and protected spans are unchanged, a second run
//! changes nothing, and frozen turns stay.

use fairlead_core::Dialect;
use proptest::prelude::*;
use serde_json::{json, Value};

use crate::{compress, engine_ids, fuzz, growth, hostile, protect, Level, Mode, Plan, Stage};

/// The size of the smaller hostile texts.
const SMALL_BYTES: usize = 1 << 14;

/// Fragments that engines react to, joined in any order.
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

/// The body with the text of every message removed.
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
                // Lines of a structure may lose their trailing white space.
                let span = before[span].trim_end();
                let found = after[at..].find(span);
                prop_assert!(found.is_some(), "{:?} is not in {:?}", span, after);
                at += found.unwrap_or_default() + span.len();
            }
        }
        prop_assert_eq!(after_text(&once, mode), String::from_utf8_lossy(&once), "twice is once: {:?}", mode);
        Ok(())
    });
}

/// Words before backticks may be removed only if no code fence results: a later stage would treat the code after it as
/// prose.
#[test]
fn words_before_backticks_make_no_fence() {
    let half = "```\nthe of and to \n\n\n```\nCould you please ```\n";
    let before = body(&[(0, half.repeat(2)), (2, String::new())]);
    let shorter = after_text(&before, Mode::Ultra);
    assert_eq!(shorter.matches("the of and to").count(), 2, "{shorter}");
}

/// Conversations in every dialect with these texts, including a tool call and its result.
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

/// The body with every text that a model reads removed, in any dialect. No engine may change the rest.
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

/// Every mode, and every engine separately.
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

/// Any engines in any order, each at any level.
fn pipelines() -> impl Strategy<Value = Plan> {
    let ids: Vec<&str> = engine_ids().collect();
    let stage = (prop::sample::select(ids), prop::sample::select(&Level::ALL[..]));
    prop::collection::vec(stage, 1..7).prop_map(|stages| Plan {
        stages: stages.into_iter().filter_map(|(id, level)| Stage::new(id, level)).collect(),
        ..Plan::default()
    })
}

/// The body after a plan, and after running the plan on it again.
fn once_and_twice(dialect: Dialect, before: &[u8], plan: &Plan) -> (String, String) {
    let run = |bytes: &[u8]| {
        let after = compress(dialect, bytes, plan, None, || 0).body;
        assert!(after != Err(crate::Unchanged::Unsettled), "real engines come to rest: {:?}", plan.stages);
        after.unwrap_or_else(|_| bytes.to_vec())
    };
    let once = run(before);
    let twice = run(&once);
    (String::from_utf8_lossy(&once).into_owned(), String::from_utf8_lossy(&twice).into_owned())
}

#[test]
fn fuzz_twice_is_once_for_every_pipeline() {
    fuzz::check(&(messages(), pipelines(), any::<bool>()), |(messages, plan, keeps_raw)| {
        let plan = Plan { keeps_raw, ..plan };
        for (dialect, before) in bodies(&messages) {
            let (once, twice) = once_and_twice(dialect, &before, &plan);
            prop_assert_eq!(twice, once, "{:?} {:?}", dialect, plan.stages);
        }
        Ok(())
    });
}

#[test]
fn fuzz_twice_is_once_for_hostile_texts() {
    let texts = hostile::texts(4_000);
    let text = prop::collection::vec((prop::sample::select(texts), 0..4_000_usize), 1..4).prop_map(|parts| {
        let cut = |(text, end): &(String, usize)| text.chars().take(*end).collect::<String>();
        parts.iter().map(|((_, text), end)| cut(&(text.clone(), *end))).collect::<String>()
    });
    let messages = prop::collection::vec((0..4_usize, text), 1..6);
    fuzz::check(&(messages, pipelines()), |(messages, plan)| {
        let (once, twice) = once_and_twice(Dialect::Openai, &body(&messages), &plan);
        prop_assert_eq!(twice, once, "{:?}", plan.stages);
        Ok(())
    });
}

/// Results that differ only in white space are repeats in the first run, and not only in the second.
#[test]
fn results_that_become_equal_are_repeats_at_once() {
    let line = "a result of a tool that is long enough to be worth a note about it ".repeat(4);
    let before = body(&[(2, format!("{line}\n\n\nend")), (3, format!("{line}  \n\nend  "))]);
    let (once, twice) = once_and_twice(Dialect::Openai, &before, &engine("lite"));
    assert!(once.contains("the text of an earlier message again"), "{once}");
    assert_eq!(twice, once);
}

/// A filter may recognize output by its beginning, without terminal colours.
#[test]
fn an_output_in_colours_is_known_by_its_text() {
    let files: Vec<String> = (0..120).map(|at| format!("-rw-r--r-- 1 u u {at} {at}.rs")).collect();
    let plain = format!("total 40\n{}", files.join("\n"));
    let colours = "\u{1b}[0m".repeat(200);
    let with = |text: String| {
        let call = json!({"id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}});
        let list = json!([{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": text}]);
        let outcome =
            compress(Dialect::Openai, json!({ "messages": list }).to_string().as_bytes(), &engine("rtk"), None, || 0);
        let sent: Value = serde_json::from_slice(&outcome.body.expect("shorter")).expect("JSON");
        sent["messages"][1]["content"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(with(format!("{colours}{plain}")), with(plain));
}

/// Two stages that each remove a character from the other's output: such a body is sent unchanged.
#[test]
fn what_never_settles_goes_out_as_it_came() {
    use crate::engines::{Context, Engine, Loss, Proposal};
    fn shorter(pieces: &[crate::Piece<'_>], context: &Context<'_>) -> Vec<Proposal> {
        let free = pieces.iter().enumerate().filter(|(_, piece)| context.is_new(piece) && piece.text.len() > 1);
        free.map(|(piece, of)| Proposal { piece, text: of.text[1..].to_owned(), raw_id: None }).collect()
    }
    static GREEDY: Engine = Engine { id: "greedy", loss: Loss::Nothing, is_stable: true, propose: shorter };
    let stage = Stage { engine: &GREEDY, level: Level::Standard };
    let before = body(&[(0, "x".repeat(100))]);
    let alone = Plan { stages: vec![stage], ..Plan::default() };
    assert!(compress(Dialect::Openai, &before, &alone, None, || 0).body.is_ok());
    let both = Plan { stages: vec![stage, stage], ..Plan::default() };
    let outcome = compress(Dialect::Openai, &before, &both, None, || 0);
    assert_eq!(outcome.body, Err(crate::Unchanged::Unsettled));
    assert_eq!(outcome.report.tokens_after, outcome.report.tokens_before);
}

/// Documents that are designed to be slow or misleading, as a tool's output and as a user's message.
#[test]
fn hostile_documents_leave_valid_bodies() {
    for (seed, text) in hostile::texts(40_000) {
        for (dialect, before) in
            bodies(&[(0, text.clone()), (2, text.clone()), (2, text.clone()), (1, text), (0, "?".into())])
        {
            for (name, plan) in plans() {
                let (once, twice) = once_and_twice(dialect, &before, &plan);
                assert!(serde_json::from_str::<Value>(&once).is_ok(), "{name} {dialect:?} {seed}");
                assert!(twice == once, "{name} {dialect:?} {seed}");
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
        // Excludes the brackets that close the list and the body.
        let list_end = sent_body.windows(12).rposition(|end| end == b"],\"model\":\"m").unwrap_or(sent_body.len() - 2);
        prop_assert_eq!(&next_body[..list_end], &sent_body[..list_end]);
        Ok(())
    });
}

#[test]
fn hostile_text_takes_linear_time() {
    let small = hostile::texts(SMALL_BYTES);
    let large = hostile::texts(SMALL_BYTES * growth::GROWTH);
    for ((seed, small), (_, large)) in small.into_iter().zip(large) {
        let bodies = [small, large].map(|text| body(&[(0, text.clone()), (2, text)]));
        for mode in Mode::ALL {
            growth::check(&format!("{seed} {mode:?}"), |times| {
                let _ = after(&bodies[usize::from(times > 1)], mode);
            });
        }
    }
}
