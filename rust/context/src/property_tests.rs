//! Properties that hold for every body: valid JSON out, structure and protected spans as they were, twice is once for lite, frozen turns stay.

use fairlead_core::dialect::Dialect;
use proptest::prelude::*;
use serde_json::{json, Value};

use crate::{compress, fuzz, protect, Mode, Plan};

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
