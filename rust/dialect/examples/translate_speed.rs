//! Measures translation for each pair of dialects: a stream of 100 chunks compared with passing it through, and a
//! request of 100 KB. Each figure is the best of many rounds, because the machine is shared.
//!
//! Run it with `cargo run --profile fast --example translate_speed -p fairlead-dialect`.

#![allow(clippy::print_stdout)]

use fairlead_core::Dialect;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_dialect::openai::stream::End;
use fairlead_dialect::stream::Follow;
use fairlead_dialect::translate::{self, Pair};
use fairlead_dialect::AnswerContext;
use fairlead_dialect::UrlParams;

const ROUNDS: usize = 30;
const ROUND: Duration = Duration::from_millis(15);

/// The CPU time of this thread in nanoseconds, if the system reports it.
fn on_processor_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

/// Microseconds of CPU time per call in the best round.
fn best_us(mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (start, began_ns) = (Instant::now(), on_processor_ns());
        let mut calls = 0_u32;
        while start.elapsed() < ROUND {
            for _ in 0..4 {
                call();
            }
            calls += 4;
        }
        let spent_ns = on_processor_ns().zip(began_ns).map(|(now, began)| (now - began) as f64);
        let spent_ns = spent_ns.unwrap_or_else(|| start.elapsed().as_secs_f64() * 1e9);
        best = best.min(spent_ns / 1e3 / f64::from(calls));
    }
    best
}

/// The chunks of a stream as they arrive.
fn stream(form: Dialect) -> Vec<Bytes> {
    let (before, piece, after): (&str, &str, &str) = match form {
        Dialect::Openai => (
            "",
            r#"data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" line"},"finish_reason":null}],"usage":null}"#,
            "data: {\"id\":\"c-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"c-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":100}}\n\ndata: [DONE]\n\n",
        ),
        Dialect::OpenaiResponses => (
            "data: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"model\":\"m\",\"output\":[]}}\n\n",
            r#"data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" line","logprobs":[]}"#,
            "data: {\"type\":\"response.completed\",\"sequence_number\":5,\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":100}}}\n\n",
        ),
        Dialect::Anthropic => (
            "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"usage\":{\"input_tokens\":9}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" line"}}"#,
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":100}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        Dialect::Gemini => (
            "",
            r#"data: {"candidates":[{"content":{"parts":[{"text":" line"}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}"#,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":100}}\n\n",
        ),
    };
    let mut chunks = vec![Bytes::from(before.to_owned())];
    chunks.extend(vec![Bytes::from(format!("{piece}\n\n")); 100]);
    chunks.push(Bytes::from(after.to_owned()));
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}

fn follow(pair: Pair, chunks: &[Bytes]) {
    let context = AnswerContext { created_s: 1, id: "0a1b".to_owned(), ..AnswerContext::default() };
    let mut follow = Follow::new(pair, context);
    for chunk in chunks {
        black_box(follow.push(black_box(chunk)));
    }
    black_box(follow.finish(End::Clean));
}

/// A request with this many turns, each with this text.
fn request(form: Dialect, turns: usize, text: &str) -> Bytes {
    let turn = |at: usize| {
        let (user, model) = if form == Dialect::Gemini { ("user", "model") } else { ("user", "assistant") };
        let role = if at.is_multiple_of(2) { user } else { model };
        match form {
            Dialect::Gemini => format!(r#"{{"role":"{role}","parts":[{{"text":"{text}"}}]}}"#),
            _ => format!(r#"{{"role":"{role}","content":"{text}"}}"#),
        }
    };
    let all = (0..turns).map(turn).collect::<Vec<_>>().join(",");
    Bytes::from(match form {
        Dialect::Openai | Dialect::Anthropic => format!(r#"{{"model":"m","max_tokens":64,"messages":[{all}]}}"#),
        Dialect::OpenaiResponses => format!(r#"{{"model":"m","input":[{all}]}}"#),
        Dialect::Gemini => format!(r#"{{"contents":[{all}]}}"#),
    })
}

fn main() {
    println!("stream of 100 pieces: microseconds, and the ratio to passing it through");
    for &provider in Dialect::ALL {
        let chunks = stream(provider);
        let passed = best_us(|| follow(Pair { caller: provider, provider }, &chunks));
        println!("{provider:?} passed through: {passed:.1}");
        for &caller in Dialect::ALL.iter().filter(|&&caller| caller != provider) {
            let translated = best_us(|| follow(Pair { caller, provider }, &chunks));
            println!("{provider:?} to {caller:?}: {translated:.1} ({:.2} x)", translated / passed);
        }
    }
    let short = r#"A line that says something, and \"quotes\" a little."#;
    let long = r#"A line that says something, and \"quotes\" a little.\n"#.repeat(35);
    for (what, turns, text) in [("1,250 messages", 1_250, short), ("50 messages", 50, long.as_str())] {
        println!("request of 100 KB, {what}: microseconds to read and translate");
        for &caller in Dialect::ALL {
            let body = request(caller, turns, text);
            for &provider in Dialect::ALL {
                let pair = Pair { caller, provider };
                let us = best_us(|| {
                    let url_params = UrlParams { model: "m", ..UrlParams::default() };
                    let read = translate::read_at(caller, black_box(&body), url_params).expect("valid");
                    black_box(translate::request(pair, &body, &read, "m").expect("can be said"));
                });
                println!("{caller:?} to {provider:?}, {} bytes: {us:.0}", body.len());
            }
        }
    }
}
