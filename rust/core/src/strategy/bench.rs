//! What a decision costs, on the machine at hand: `cargo test --release -p fairlead-core -- --ignored --nocapture decision_cost`.

use super::{expand, Ask, Book, Candidate, Facts, Look, Memory, Random, Strategy, To};
use crate::snapshot::Snapshot;
use std::fmt::Write as _;
use std::time::Instant;

const COMBOS: usize = 50;
const TARGETS: usize = 20;
const KEYS: usize = 1_000;
const DECISIONS: usize = 20_000;

/// 50 combos of one strategy with 20 targets each, over 20 connections, beside 1,000 keys.
fn document(strategy: &str) -> String {
    let mut connections = Vec::new();
    let mut models = Vec::new();
    let mut prices = Vec::new();
    for at in 0..TARGETS {
        connections.push(format!(
            r#"{{"id":"c{at}","provider":"p{at}","prefixes":["p{at}"],"dialect":"openai","base_url":"http://h{at}","auth":"none"}}"#
        ));
        models.push(format!(r#"{{"id":"p{at}/m","provider":"p{at}","context_length":{}}}"#, 1_000 * (at + 1)));
        prices.push(format!(r#"{{"model":"p{at}/m","input":{at},"output":{}}}"#, 100 - at));
    }
    let steps: Vec<String> =
        (0..TARGETS).map(|at| format!(r#"{{"kind":"model","model":"p{at}/m","weight":{}}}"#, at + 1)).collect();
    let steps = steps.join(",");
    let combos: Vec<String> = (0..COMBOS)
        .map(|at| format!(r#"{{"id":"id{at}","name":"combo {at}","strategy":"{strategy}","steps":[{steps}]}}"#))
        .collect();
    let keys: Vec<String> =
        (0..KEYS).map(|at| format!(r#"{{"id":"k{at}","hash":"{at:064x}","is_active":true}}"#)).collect();
    let mut text = String::new();
    let (connections, models, prices) = (connections.join(","), models.join(","), prices.join(","));
    let (combos, keys) = (combos.join(","), keys.join(","));
    write!(
        text,
        r#"{{"version":1,"keys":[{keys}],"connections":[{connections}],"models":[{models}],"prices":[{prices}],"combos":[{combos}]}}"#
    )
    .expect("a text");
    text
}

struct Desk {
    memory: Vec<Memory>,
    random: Random,
}

impl Look for Desk {
    fn facts(&mut self, candidate: &Candidate) -> Facts {
        let To::Connection { index, .. } = candidate.to else { return candidate.known };
        Facts {
            in_flight: index as u32 % 7,
            used: index as u64,
            latency_ms: Some(index as f32),
            success_rate: Some(0.99),
            ..candidate.known
        }
    }

    fn remember<T>(&mut self, combo: usize, work: impl FnOnce(&mut Memory, &mut Random) -> T) -> T {
        work(&mut self.memory[combo], &mut self.random)
    }
}

#[test]
#[ignore = "prints times; run it in release"]
#[expect(clippy::print_stdout, reason = "its output is what it is for")]
fn decision_cost() {
    for &(_, name) in Strategy::ALL {
        let snapshot = Snapshot::parse(document(name).as_bytes()).expect("a snapshot");
        let before = Instant::now();
        let book = Book::compile(&snapshot, &|_, _| true);
        let compiled = before.elapsed();
        let mut desk = Desk { memory: vec![Memory::default(); book.all().len()], random: Random::seeded(1) };
        let ask = Ask { affinity: Some(7), ..Ask::default() };
        let before = Instant::now();
        let mut targets = 0;
        for at in 0..DECISIONS {
            let combo = book.find(&format!("combo/combo {}", at % COMBOS)).expect("there");
            targets += expand(&book, combo, &ask, &mut desk).picks.len();
        }
        let each_us = before.elapsed().as_secs_f64() * 1e6 / DECISIONS as f64;
        assert_eq!(targets, DECISIONS * TARGETS);
        println!("{name:>18}: {each_us:6.2} us a decision; book compiled in {:.1} ms", compiled.as_secs_f64() * 1e3);
    }
}
