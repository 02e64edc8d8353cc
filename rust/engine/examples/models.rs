//! Measures the cost of a response to `GET /v1/models` with 20,000 models on this machine, and prints one line of JSON
//! for each kind: `cargo run --release -p fairlead-engine --example models`. `make bench` runs it.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "its output is what it is for")]

use fairlead_core::{Key, Sealer, Snapshot};
use fairlead_engine::lists::{ActiveConfig, Cursor, Document};
use std::hint::black_box;
use std::time::Instant;

const MODELS: usize = 20_000;
const PROVIDERS: usize = 60;
const ROUNDS: usize = 50;

fn main() {
    let began = Instant::now();
    let active = made_ready(snapshot(), &ActiveConfig::default());
    println!(r#"{{"name":"snapshot made ready","us":{:.1}}}"#, began.elapsed().as_secs_f64() * 1e6);
    let narrow = key(r#"{"id":"narrow","hash":"HASH","is_active":true,"blocked_models":["p1/*","*-preview"]}"#);
    for (name, rules) in [
        ("answer: first for the rules of a key", r#""blocked_models":["p1/*","*-preview"]"#),
        ("first in ten thousand parts, by five patterns", r#""blocked_models":["*0","*2","*4","*6","*8"]"#),
        (
            "answer: first where some providers are open",
            r#""model_access_mode":"restricted","allowed_models":["p1/*","p2/*","p3/*"]"#,
        ),
    ] {
        let own = key(&format!(r#"{{"id":"{name}","hash":"HASH","is_active":true,{rules}}}"#));
        let (first_us, bytes) = least(1, || bytes_of(&active.lists.for_key(Some(&own))));
        println!(r#"{{"name":"{name}","us":{first_us:.1},"bytes":{bytes}}}"#);
    }
    // Only a key or limit changes; the lists stay the same.
    let (next, before) = (snapshot(), Instant::now());
    let active = made_ready(next, &active);
    println!(r#"{{"name":"next snapshot made ready","us":{:.1}}}"#, before.elapsed().as_secs_f64() * 1e6);
    let (known_us, bytes) = least(1, || bytes_of(&active.lists.for_key(Some(&narrow))));
    println!(
        r#"{{"name":"answer: first after another snapshot, for known rules","us":{known_us:.1},"bytes":{bytes}}}"#
    );
    for (name, work) in [
        ("whole list", Box::new(|| bytes_of(&active.lists.for_key(None))) as Box<dyn Fn() -> usize>),
        ("whole list of a key with rules", Box::new(|| bytes_of(&active.lists.for_key(Some(&narrow))))),
        ("page of 1,000", Box::new(|| page(&active, None, 1_000))),
        ("page of 100 in the middle", Box::new(|| page(&active, None, 100))),
        ("page of 100 of a key with rules", Box::new(|| page(&active, Some(&narrow), 100))),
    ] {
        let (us, bytes) = least(ROUNDS, work);
        println!(r#"{{"name":"answer: {name}","us":{us:.1},"bytes":{bytes}}}"#);
    }
}

fn bytes_of(document: &Document) -> usize {
    document.parts.iter().map(bytes::Bytes::len).sum()
}

fn page(active: &ActiveConfig, key: Option<&Key>, limit: usize) -> usize {
    bytes_of(&active.lists.page_for_key(key, &Cursor::After("p30/".to_owned()), limit))
}

/// Returns the microseconds of the fastest of several calls, and the number of bytes that it returned.
fn least(rounds: usize, work: impl Fn() -> usize) -> (f64, usize) {
    let mut least_us = f64::INFINITY;
    let mut bytes = 0;
    for _ in 0..rounds {
        let before = Instant::now();
        bytes = black_box(work());
        least_us = least_us.min(before.elapsed().as_secs_f64() * 1e6);
    }
    (least_us, bytes)
}

fn key(record: &str) -> Key {
    serde_json::from_str(&record.replace("HASH", &"0".repeat(64))).expect("a key")
}

fn made_ready(snapshot: Snapshot, before: &ActiveConfig) -> ActiveConfig {
    ActiveConfig::build(snapshot, before, &Sealer::new(&[0; 32]).expect("a key"), "0")
}

fn snapshot() -> Snapshot {
    let list = |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(",");
    let connections = list(PROVIDERS, &|at| {
        format!(
            r#"{{"id":"c{at}","provider":"p{at}","prefixes":["p{at}"],"dialect":"openai","base_url":"http://h{at}.example","auth":"none"}}"#
        )
    });
    let models = list(MODELS, &|at| {
        let provider = at % PROVIDERS;
        format!(
            r#"{{"id":"p{provider}/large-language-model-{at}","provider":"p{provider}","owned_by":"p{provider}","context_length":200000,"max_output_tokens":64000,"mode":"chat","capabilities":["prompt_cache","reasoning","structured_output","tools","vision"]}}"#
        )
    });
    let json = format!(r#"{{"version":1,"connections":[{connections}],"models":[{models}]}}"#);
    Snapshot::parse(json.as_bytes()).expect("a snapshot")
}
