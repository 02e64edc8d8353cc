//! Measures the relay's hot path for a body and a stream.
//!
//! Run it with `cargo run --release --example scan_speed -p fairlead-dialect`.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_core::{json, Dialect};
use fairlead_dialect::openai::{answer, request, stream};
use fairlead_dialect::stream::Follow;
use fairlead_dialect::translate::{self, Pair};
use fairlead_dialect::AnswerContext;

/// Each figure is the best of this many rounds, because the machine is shared.
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(60);

/// Nanoseconds per call in the best round.
fn best_ns(mut call: impl FnMut()) -> f64 {
    let round = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        let mut calls = 0_u32;
        while start.elapsed() < ROUND {
            for _ in 0..16 {
                call();
            }
            calls += 16;
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    };
    (0..ROUNDS).map(|_| round(&mut call)).fold(f64::INFINITY, f64::min)
}

fn report(what: &str, bytes: usize, ns: f64) {
    println!("{what:<44} {bytes:>9} bytes {ns:>12.0} ns {:>8.2} GB/s", bytes as f64 / ns);
}

fn main() {
    let small = Bytes::from_static(
        br#"{"model":"demo/standin-small","messages":[{"role":"user","content":"Say hello to the harbour master, please."}],"max_tokens":64,"temperature":0.2}"#,
    );
    let long = Bytes::from(format!(
        r#"{{"model":"demo/m","stream":true,"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "A long line of plain text without any escapes. ".repeat(22_000)
    ));
    let code = Bytes::from(format!(
        r#"{{"model":"demo/m","stream":true,"messages":[{{"role":"user","content":"{}"}}]}}"#,
        r#"    if (a == \"b\") {\n        return c;\n    }\n"#.repeat(20_000)
    ));
    let turn = r#"{"role":"user","content":"What is a fairlead? A ring that a line runs through."}"#;
    let turns = Bytes::from(format!(r#"{{"model":"demo/m","messages":[{}]}}"#, vec![turn; 2_000].join(",")));

    for (what, body) in
        [("small body", &small), ("long plain text", &long), ("code", &code), ("2,000 messages", &turns)]
    {
        let wanted = ["model", "messages", "stream", "stream_options"];
        let ns = best_ns(|| {
            black_box(json::scan_object(black_box(body), &wanted, json::MAX_DEPTH).is_ok());
        });
        report(&format!("scan, {what}"), body.len(), ns);
        let ns = best_ns(|| {
            let read = request::read(black_box(body)).expect("valid");
            black_box(request::rewrite(body, &read, "m"));
        });
        report(&format!("read and rewrite, {what}"), body.len(), ns);
    }

    let reply = Bytes::from_static(
        br#"{"id":"c-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":0}}}"#,
    );
    report(
        "inspect an answer",
        reply.len(),
        best_ns(|| {
            black_box(answer::inspect(black_box(&reply)).is_ok());
        }),
    );

    let event = "data: {\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" line\"},\"finish_reason\":null}],\"usage\":null}\n\n";
    let used = "data: {\"id\":\"c-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":100}}\n\n";
    let finish = "data: {\"id\":\"c-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let whole: Vec<Bytes> = vec![Bytes::from(event); 100];
    let last = Bytes::from(format!("{finish}{used}data: [DONE]\n\n"));
    let joined = Bytes::from(event.repeat(100));
    let halves: Vec<Bytes> = whole.iter().flat_map(|event| [event.slice(..90), event.slice(90..)]).collect();
    for (what, chunks) in [("chunk per event", whole), ("one chunk", vec![joined]), ("events in halves", halves)] {
        let ns = best_ns(|| {
            let mut scan = stream::StreamScan::new(false);
            for chunk in chunks.iter().chain([&last]) {
                black_box(scan.push(black_box(chunk)));
            }
            black_box(scan.finish(stream::End::Clean));
        });
        report(&format!("stream of 100 events, {what}"), event.len() * 100 + last.len(), ns);
        let pair = Pair { caller: Dialect::Anthropic, provider: Dialect::Openai };
        let ns = best_ns(|| {
            let mut follow = Follow::new(pair, AnswerContext { created_s: 1, ..AnswerContext::default() });
            for chunk in chunks.iter().chain([&last]) {
                black_box(follow.push(black_box(chunk)));
            }
            black_box(follow.finish(stream::End::Clean));
        });
        report(&format!("translated to messages, {what}"), event.len() * 100 + last.len(), ns);
    }

    let pair = Pair { caller: Dialect::Openai, provider: Dialect::Anthropic };
    let paragraph = r#"A line that says something, and \"quotes\" a little.\n"#.repeat(35);
    let talk = format!(r#"{{"role":"user","content":"{paragraph}"}},{{"role":"assistant","content":"{paragraph}"}}"#);
    let talk = Bytes::from(format!(r#"{{"model":"demo/m","messages":[{}]}}"#, vec![talk; 25].join(",")));
    let ns = best_ns(|| {
        let read = translate::read(Dialect::Openai, black_box(&talk)).expect("valid");
        black_box(translate::request(pair, &talk, &read, "m").is_ok());
    });
    report("translate a request of 50 messages", talk.len(), ns);

    let message = r#"{"role":"user","content":"A line that says something, and \"quotes\" a little."}"#;
    let large = Bytes::from(format!(r#"{{"model":"demo/m","messages":[{}]}}"#, vec![message; 1_250].join(",")));
    let ns = best_ns(|| {
        let read = translate::read(Dialect::Openai, black_box(&large)).expect("valid");
        black_box(translate::request(pair, &large, &read, "m").is_ok());
    });
    report("translate a request of 1,250 messages", large.len(), ns);
}
