//! Measures the cost of the guardrails on whole bodies and on stream events, most of which hold no finding.
//!
//! `cargo run --release --package fairlead-core --example guardrail_speed`

#![allow(clippy::print_stdout)]

use fairlead_core::guardrail::{judge_body, Action, Actions, StreamGuard};
use std::hint::black_box;
use std::time::Instant;

const ALL: Actions =
    Actions { pii_masker: Action::Redact, prompt_injection: Action::Warn, credential_masker: Action::Redact };
const ANSWER: Actions =
    Actions { pii_masker: Action::Redact, prompt_injection: Action::Off, credential_masker: Action::Redact };

/// Returns the shortest time of one round over many runs, in nanoseconds.
fn best_ns(mut round: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..200 {
        let began = Instant::now();
        for _ in 0..20 {
            round();
        }
        best = best.min(began.elapsed().as_nanos() as f64 / 20.0);
    }
    best
}

fn main() {
    let text = "What is a fairlead? A ring that a line runs through, so that it does not chafe on the rail. ";
    let body =
        |content: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{content}"}}]}}"#).into_bytes();
    let many = format!(
        r#"{{"model":"m","messages":[{}]}}"#,
        vec![r#"{"role":"user","content":"What is a fairlead? A ring that a line runs through."}"#; 200].join(",")
    )
    .into_bytes();
    for (what, body) in [
        ("short body", body(text)),
        ("16 KiB of text", body(&text.repeat(180))),
        ("200 messages", many),
        ("12 findings in 4 KiB", body(&format!("{}ada@example.org 4111 1111 1111 1111 ", text.repeat(7)).repeat(6))),
    ] {
        let ns = best_ns(|| {
            black_box(judge_body(black_box(&body), ALL).body.is_some());
        });
        println!("judge, {what}: {ns:.0} ns, {:.2} GB/s", body.len() as f64 / ns);
    }
    let chat = |piece: &str| {
        format!(r#"{{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":"{piece}"}},"finish_reason":null}}]}}"#)
            .into_bytes()
    };
    let blocks = |piece: &str| {
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{piece}"}}}}"#)
            .into_bytes()
    };
    let plain: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
    let found: Vec<String> =
        format!("{text}ada@example.org 4111 1111 1111 1111 ").split_inclusive(' ').map(str::to_owned).collect();
    let token: Vec<String> = "eyJhbGciOiJIUzI1NiJ9.eyJ"
        .chars()
        .chain("aZ09".chars().cycle().take(1000))
        .collect::<Vec<_>>()
        .chunks(4)
        .map(|part| part.iter().collect())
        .collect();
    let streams: [(&str, Vec<Vec<u8>>); 4] = [
        ("chat", plain.iter().map(|piece| chat(piece)).collect()),
        ("messages", plain.iter().map(|piece| blocks(piece)).collect()),
        ("chat with findings", found.iter().map(|piece| chat(piece)).collect()),
        ("a token of 1 KiB in fours", token.iter().map(|piece| chat(piece)).collect()),
    ];
    for (what, events) in streams {
        let ns = best_ns(|| {
            let mut guard = StreamGuard::new(ANSWER);
            for event in &events {
                black_box(guard.event(black_box(event)));
            }
            black_box(guard.finish());
        });
        println!("stream, {what}: {:.0} ns an event", ns / events.len() as f64);
    }
}
