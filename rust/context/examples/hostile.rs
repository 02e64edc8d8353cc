//! Measures every mode and engine on ten megabytes of text that is designed to be slow, and prints one JSON object per
//! line: `name`, `text`, `bytes`, `ms`. Times are CPU time of the thread. `benches/context/run.py --hostile` evaluates
//! them.

use fairlead_context::{compress, engine_ids, Level, Mode, Plan, Stage};
use fairlead_core::Dialect;
use rustix::time::{clock_gettime, ClockId};
use serde_json::json;

#[path = "../src/hostile.rs"]
mod hostile;

const TEXT_BYTES: usize = 5 << 20;

fn now_ms() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// A user message and a tool result, five megabytes each.
fn body(text: &str) -> Vec<u8> {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "shell", "arguments": "{\"command\":\"git log\"}"}});
    let messages = json!([
        {"role": "system", "content": "You help."},
        {"role": "user", "content": text},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": text},
        {"role": "user", "content": "What now?"},
        {"role": "assistant", "content": "Wait."},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "Wait."},
        {"role": "user", "content": "And now?"},
    ]);
    json!({"model": "m", "messages": messages}).to_string().into_bytes()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Write as _;
    let modes = Mode::ALL.into_iter().map(|mode| (mode.name().to_owned(), Plan::from(mode)));
    let engines = engine_ids().map(|id| {
        let stages = Stage::new(id, Level::Standard).into_iter().collect();
        (format!("engine:{id}"), Plan { stages, ..Plan::default() })
    });
    let plans: Vec<(String, Plan)> = modes.chain(engines).collect();
    let mut out = std::io::stdout().lock();
    for (text, content) in hostile::texts(TEXT_BYTES) {
        let body = body(&content);
        for (name, plan) in &plans {
            let before = now_ms();
            let outcome = compress(Dialect::Openai, &body, plan, None, || 0);
            let ms = now_ms() - before;
            if let Ok(written) = &outcome.body {
                serde_json::from_slice::<serde::de::IgnoredAny>(written)?;
            }
            writeln!(out, "{}", json!({"name": name, "text": text, "bytes": body.len(), "ms": ms}))?;
        }
    }
    Ok(())
}
