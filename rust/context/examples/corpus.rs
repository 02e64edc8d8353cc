//! Runs the modes, and each engine separately, over a corpus. The arguments are files of conversations, one JSON object
//! per line. Prints one JSON object for each conversation and mode, which `benches/context/run.py` reads. Times are CPU
//! time of the thread, so other load on the machine matters little.

use fairlead_context::{compress, engine_ids, Level, Mode, Plan, Stage};
use fairlead_core::Dialect;
use rustix::time::{clock_gettime, ClockId};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// The number of rounds. The fastest one counts.
const ROUNDS: usize = 5;

#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    dialect: Dialect,
    facts: Vec<String>,
    body: Box<RawValue>,
}

/// The CPU time of this thread, in microseconds.
fn now_us() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Write as _;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let plans = plans();
    for path in std::env::args().skip(1) {
        for line in std::fs::read_to_string(path)?.lines() {
            let case: Case = serde_json::from_str(line)?;
            for (name, plan) in &plans {
                writeln!(out, "{}", figures(&case, name, plan))?;
            }
        }
    }
    Ok(())
}

/// Every mode, and every engine separately.
fn plans() -> Vec<(String, Plan)> {
    let modes = Mode::ALL.into_iter().map(|mode| (mode.name().to_owned(), Plan::from(mode)));
    let engines = engine_ids().map(|id| {
        let stages = Stage::new(id, Level::Standard).into_iter().collect();
        (format!("engine:{id}"), Plan { stages, ..Plan::default() })
    });
    modes.chain(engines).collect()
}

fn figures(case: &Case, name: &str, plan: &Plan) -> serde_json::Value {
    let body = case.body.get().as_bytes();
    let mut micros = u64::MAX;
    let mut best = None;
    for _ in 0..ROUNDS {
        let start = now_us();
        let mut last = start;
        let lap = || {
            let now = now_us();
            let passed = now - last;
            last = now;
            passed
        };
        let outcome = compress(case.dialect, body, plan, None, lap);
        let passed = now_us() - start;
        if passed < micros {
            (micros, best) = (passed, Some(outcome));
        }
    }
    let outcome = best.expect("a round was run");
    let text =
        outcome.body.map_or_else(|_| case.body.get().to_owned(), |body| String::from_utf8_lossy(&body).into_owned());
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let mut gathered = String::new();
    gather(&shown, &mut gathered);
    // White space between JSON values is not part of a fact.
    let tight = gathered.replace("\": ", "\":");
    let is_lost = |fact: &&String| !gathered.contains(fact.as_str()) && !tight.contains(&fact.replace("\": ", "\":"));
    let lost: Vec<&String> = case.facts.iter().filter(is_lost).collect();
    json!({"id": case.id, "kind": case.kind, "mode": name, "bytes": body.len(), "micros": micros,
        "facts": case.facts.len(), "lost": lost, "report": outcome.report})
}

/// Collects all strings of a body, one per line.
fn gather(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| gather(value, out)),
        serde_json::Value::Object(members) => members.values().for_each(|value| gather(value, out)),
        _ => {}
    }
}
