//! Measures the cost of a routing decision and of an idempotency check on this machine, and prints one line of JSON for
//! each: `cargo run --release -p fairlead-engine --example decisions`. `make bench` runs it.
//!
//! The engine's own combos make the decisions, with the states of real connections: 50 combos of 20 targets each and
//! 1,000 keys, and `auto` with 2,000 candidates. Each figure is the minimum of several rounds.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "its output is what it is for")]

use fairlead_core::strategy::{Demand, Strategy};
use fairlead_core::{Sealer, Snapshot};
use fairlead_engine::decisions::{digest, ActiveConfig, Name, PipelineChoice, Recordings};
use std::hint::black_box;
use std::time::Instant;

const COMBOS: usize = 50;
/// The candidates of `auto`, on connections of separate providers.
const POOL: usize = 2_000;
const POOL_CONNECTIONS: usize = 40;
const TARGETS: usize = 20;
const KEYS: usize = 1_000;
/// Many short rounds, so that at least one of them runs undisturbed on a busy machine.
const ROUNDS: usize = 35;
const DECISIONS: usize = 1_000;
const CHECKS: usize = 1_000;
const BODY_BYTES: usize = 1_024;

fn main() {
    for &(strategy, name) in Strategy::ALL {
        let active = active(name);
        let ask = Demand { affinity: (strategy == Strategy::CacheOptimized).then_some(7), ..Demand::default() };
        let key = active.snapshot.keys().next().map(AsRef::as_ref);
        let each_us = least(DECISIONS, |at| {
            let combo = active.combos.book.find(&format!("combo/combo {}", at % COMBOS)).expect("there");
            let choice = active.combos.choose(active.reach(), combo, &ask, key).expect("a choice");
            assert_eq!(choice.targets.len(), TARGETS);
        });
        println!(r#"{{"name":"decision {name}","us":{each_us:.3}}}"#);
    }
    let pool = pool();
    let ask = Demand::default();
    for channel in ["auto", "auto/cheap", "auto/coding", "auto/claude"] {
        let each_us = least(DECISIONS, |_| {
            let combo = pool.combos.book.find(channel).expect("there");
            let choice = pool.combos.choose(pool.reach(), combo, &ask, None).expect("a choice");
            assert!(choice.targets.len() > 8);
        });
        println!(r#"{{"name":"decision {channel} over {POOL} candidates","us":{each_us:.3}}}"#);
    }
    let active = active("priority");
    let wish = PipelineChoice { header: None, key_allows: true, combo: Some("combo 7"), bytes: BODY_BYTES };
    let off_us = least(CHECKS, |_| assert!(black_box(wish).plan(black_box(&active)).expect("no fault").is_none()));
    println!(r#"{{"name":"choice of a pipeline, compression off","us":{off_us:.4}}}"#);
    let wanted = PipelineChoice { header: Some("stacked"), ..wish };
    let wanted_us = least(CHECKS, |_| assert!(black_box(wanted).plan(black_box(&active)).expect("no fault").is_some()));
    println!(r#"{{"name":"choice of a pipeline, asked for","us":{wanted_us:.4}}}"#);
    let body = vec![b'x'; BODY_BYTES];
    let each_us = {
        let recordings = Recordings::default();
        let mut number = 0;
        least(CHECKS, |at| {
            number += 1;
            let name = Name { principal: "key".to_owned(), key: format!("idempotency-{number}") };
            let role = recordings.enter(name, digest(&[b"/v1/chat/completions", &body]), at as u64);
            drop(role.expect("a role"));
        })
    };
    println!(r#"{{"name":"idempotency check, body of {BODY_BYTES} bytes","us":{each_us:.3}}}"#);
}

/// Returns the microseconds of one call of `work`: the lowest mean of several rounds.
fn least(calls: usize, mut work: impl FnMut(usize)) -> f64 {
    let mut least_us = f64::INFINITY;
    for _ in 0..ROUNDS {
        let before = Instant::now();
        for at in 0..calls {
            work(at);
        }
        least_us = least_us.min(before.elapsed().as_secs_f64() * 1e6 / calls as f64);
    }
    least_us
}

fn list(count: usize, of: &dyn Fn(usize) -> String) -> String {
    (0..count).map(of).collect::<Vec<_>>().join(",")
}

/// Every fourth model belongs to one family, and all prices differ.
fn pool() -> ActiveConfig {
    let name = |at: usize| {
        let family = ["claude", "gpt", "qwen-coder", "mistral"][at / POOL_CONNECTIONS % 4];
        format!("p{}/{family}-{at}", at % POOL_CONNECTIONS)
    };
    let connections = list(POOL_CONNECTIONS, &|at| {
        format!(
            r#"{{"id":"c{at}","provider":"p{at}","prefixes":["p{at}"],"dialect":"openai","base_url":"http://h{at}.example","auth":"none"}}"#
        )
    });
    let models = list(POOL, &|at| format!(r#"{{"id":"{}","provider":"p{}"}}"#, name(at), at % POOL_CONNECTIONS));
    let prices = list(POOL, &|at| format!(r#"{{"model":"{}","input":{at},"output":{}}}"#, name(at), 4 * at));
    let json = format!(r#"{{"version":1,"connections":[{connections}],"models":[{models}],"prices":[{prices}]}}"#);
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    ActiveConfig::build(snapshot, &ActiveConfig::default(), &Sealer::new(&[0; 32]).expect("a key"), "0")
}

fn active(strategy: &str) -> ActiveConfig {
    let connections = list(TARGETS, &|at| {
        format!(
            r#"{{"id":"c{at}","provider":"p{at}","prefixes":["p{at}"],"dialect":"openai","base_url":"http://h{at}.example","auth":"none"}}"#
        )
    });
    let models =
        list(TARGETS, &|at| format!(r#"{{"id":"p{at}/m","provider":"p{at}","context_length":{}}}"#, 1_000 * (at + 1)));
    let prices = list(TARGETS, &|at| format!(r#"{{"model":"p{at}/m","input":{at},"output":{}}}"#, 100 - at));
    let steps = list(TARGETS, &|at| format!(r#"{{"kind":"model","model":"p{at}/m","weight":{}}}"#, at + 1));
    let combos = list(COMBOS, &|at| {
        format!(r#"{{"id":"id{at}","name":"combo {at}","strategy":"{strategy}","steps":[{steps}]}}"#)
    });
    let keys = list(KEYS, &|at| format!(r#"{{"id":"k{at}","hash":"{at:064x}","is_active":true}}"#));
    let json = format!(
        r#"{{"version":1,"keys":[{keys}],"connections":[{connections}],"models":[{models}],"prices":[{prices}],"combos":[{combos}]}}"#
    );
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    ActiveConfig::build(snapshot, &ActiveConfig::default(), &Sealer::new(&[0; 32]).expect("a key"), "0")
}
