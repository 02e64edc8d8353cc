//! Translating takes time that grows with the length of the body, whatever is in it: callers choose how many tools, calls
//! and parts they send.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_core::Dialect;
use serde_json::{json, Value};

use crate::translate::{self, Pair};

const COUNT: usize = 30_000;
/// Far more than a linear translation takes without optimisation, and far less than a quadratic one.
const MOST: Duration = Duration::from_secs(15);

/// Bodies with a member of which there are many.
fn bodies(caller: Dialect) -> Vec<Value> {
    let all = |make: &dyn Fn(usize) -> Value| (0..COUNT).map(make).collect::<Vec<Value>>();
    let schema = json!({"type": "object"});
    match caller {
        Dialect::Openai => {
            let one = json!({"role": "user", "content": "hi"});
            let function =
                |n: usize| json!({"type": "function", "function": {"name": format!("f.{n}"), "parameters": schema}});
            let custom = |n: usize| json!({"type": "custom", "custom": {"name": format!("f.{n}")}});
            let call = |n: usize| json!({"id": format!("c{n}"), "type": "function", "function": {"name": format!("g.{n}"), "arguments": "{}"}});
            let allowed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": all(&function)}});
            let mut talk = vec![one.clone(), json!({"role": "assistant", "content": null, "tool_calls": all(&call)})];
            talk.extend((0..2000).map(|n| json!({"role": "tool", "tool_call_id": format!("x{n}"), "content": "r"})));
            vec![
                json!({"model": "m", "messages": [one], "tools": all(&function)}),
                json!({"model": "m", "messages": [one], "tools": all(&custom)}),
                json!({"model": "m", "messages": [one], "tools": all(&function), "tool_choice": allowed}),
                json!({"model": "m", "messages": talk}),
                json!({"model": "m", "messages": [one], "stop": all(&|n| json!(format!("s{n}")))}),
                json!({"model": "m", "messages": [{"role": "user", "content": all(&|_| json!({"type": "text", "text": "a"}))}]}),
            ]
        }
        Dialect::OpenaiResponses => {
            let function = |n: usize| json!({"type": "function", "name": format!("f{n}"), "parameters": schema});
            let custom = |n: usize| json!({"type": "custom", "name": format!("f{n}")});
            let mut items = all(
                &|n| json!({"type": "custom_tool_call", "call_id": format!("c{n}"), "name": format!("f{n}"), "input": "x"}),
            );
            items.extend(all(
                &|n| json!({"type": "custom_tool_call_output", "call_id": format!("c{n}"), "output": "y"}),
            ));
            vec![
                json!({"model": "m", "input": "hi", "tools": all(&function)}),
                json!({"model": "m", "input": "hi", "tools": all(&custom)}),
                json!({"model": "m", "input": "hi", "tools": [{"type": "namespace", "name": "n", "description": "d", "tools": all(&function)}]}),
                json!({"model": "m", "input": items, "tools": all(&custom)}),
                json!({"model": "m", "input": all(&|_| json!({"role": "user", "content": "a"}))}),
            ]
        }
        Dialect::Anthropic => {
            let one = json!({"role": "user", "content": "hi"});
            let calls = all(&|n| json!({"type": "tool_use", "id": "c", "name": format!("g{n}"), "input": {}}));
            let results = all(&|_| json!({"type": "tool_result", "tool_use_id": "c", "content": "r"}));
            let talk = json!([one, {"role": "assistant", "content": calls}, {"role": "user", "content": results}]);
            vec![
                json!({"model": "m", "max_tokens": 9, "messages": [one], "tools": all(&|n| json!({"name": format!("f{n}"), "input_schema": schema}))}),
                json!({"model": "m", "max_tokens": 9, "messages": talk}),
                json!({"model": "m", "max_tokens": 9, "messages": [one], "system": all(&|_| json!({"type": "text", "text": "a"}))}),
            ]
        }
        Dialect::Gemini => {
            let calls = all(&|n| json!({"functionCall": {"name": format!("f{n}"), "args": {}}}));
            let results = all(&|n| json!({"functionResponse": {"name": format!("g{n}"), "response": {}}}));
            let answered =
                all(&|n| json!({"functionResponse": {"name": format!("f{}", COUNT - 1 - n), "response": {}}}));
            let talk = |results: Vec<Value>| {
                json!({"model": "m", "contents": [{"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": calls}, {"role": "user", "parts": results}]})
            };
            vec![
                talk(results),
                talk(answered),
                json!({"model": "m", "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
                    "tools": [{"functionDeclarations": all(&|n| json!({"name": format!("f-{n}"), "parameters": schema}))}]}),
            ]
        }
    }
}

#[test]
fn many_of_anything_take_linear_time() {
    for caller in Dialect::ALL.iter().copied() {
        for (number, body) in bodies(caller).into_iter().enumerate() {
            let body = Bytes::from(body.to_string());
            let read = translate::read(caller, &body);
            for provider in Dialect::ALL.iter().copied() {
                let begun = Instant::now();
                if let Ok(read) = &read {
                    // Some pairs refuse such a body, which is fine if they do it soon.
                    let _refused = translate::request(Pair { caller, provider }, &body, read, "m").is_err();
                }
                let took = begun.elapsed();
                assert!(took < MOST, "{caller:?} {number} for {provider:?} took {took:?}");
            }
        }
    }
}
