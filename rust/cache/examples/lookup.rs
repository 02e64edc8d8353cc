//! Measures a lookup among the questions of one partition, with embedding and guard, and a comparison with all of them.
//! Prints one JSON line. Times are CPU time of the thread, so other load on the machine matters little.
//!
//! `cargo run --release -p fairlead-cache --example lookup -- WEIGHTS TOKENIZER < texts`, one text per line.

use fairlead_cache::{digest, similarity, Digest, Near, Probe, Reading, VectorFiles, Vectors};
use rustix::time::{clock_gettime, ClockId};
use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead as _, Write as _};

const SIZES: [usize; 4] = [10_000, 50_000, 200_000, 500_000];
const ROUNDS: usize = 5;
const LOOKUPS: usize = 2_000;
/// The number of lookups that are compared with a scan. A scan of half a million questions takes tens of milliseconds.
const SCANS: usize = 40;
const THRESHOLD: f32 = 0.8;

type Fault = Box<dyn Error>;

/// The CPU time of this thread, in microseconds.
fn now_us() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

/// The smallest mean of several rounds.
fn least_us(mut once: impl FnMut(usize)) -> f64 {
    let round = |once: &mut dyn FnMut(usize)| {
        let began = now_us();
        (0..LOOKUPS).for_each(&mut *once);
        (now_us() - began) / LOOKUPS as f64
    };
    (0..ROUNDS).map(|_| round(&mut once)).fold(f64::INFINITY, f64::min)
}

fn probe(vectors: &Vectors, text: &str) -> Option<Probe> {
    Some(Probe { vector: vectors.embed(text)?, form: Reading::of(text).form()? })
}

/// Finds the nearest equivalent question by comparing with all of them.
fn scan(rows: &[(Digest, Probe)], wanted: &Probe) -> Option<f32> {
    let near = rows.iter().map(|(_, row)| (row, similarity(&row.vector, &wanted.vector)));
    let found = near.filter(|(row, near)| *near >= THRESHOLD && row.form.agrees(&wanted.form));
    found.map(|(_, near)| near).max_by(f32::total_cmp)
}

fn main() -> Result<(), Fault> {
    let mut paths = std::env::args().skip(1).map(std::path::PathBuf::from);
    let (Some(weights), Some(tokenizer)) = (paths.next(), paths.next()) else {
        return Err("give the paths of the weights and of the tokenizer".into());
    };
    let vectors = Vectors::load(&VectorFiles { weights, tokenizer })?;
    let texts: Vec<String> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;
    let (mut near, mut rows) = (Near::default(), Vec::new());
    let mut of_sizes = Vec::new();
    for size in SIZES {
        // Repeats each text with another number, so that all texts differ and many are near each other.
        for at in rows.len()..size {
            let text = format!("{} Part {}.", texts[at % texts.len()], at / texts.len());
            let (key, probe) =
                (digest(&[text.as_bytes()]), probe(&vectors, &text).ok_or("a text without a direction")?);
            near.add(key, probe.clone());
            rows.push((key, probe));
        }
        let question =
            |at: usize| format!("{} Part {}.", texts[at * 7 % texts.len()], at % (size / texts.len()).max(1));
        let questions: Vec<String> = (0..LOOKUPS).map(question).collect();
        let lookup_us = least_us(|at| {
            black_box(probe(&vectors, &questions[at]).map(|probe| near.find(&probe, THRESHOLD)));
        });
        let probes: Vec<Probe> = questions.iter().take(SCANS).filter_map(|text| probe(&vectors, text)).collect();
        let began = now_us();
        let scanned: Vec<Option<f32>> = probes.iter().map(|wanted| scan(&rows, wanted)).collect();
        let scan_us = (now_us() - began) / probes.len() as f64;
        let first = |wanted: &Probe| near.find(wanted, THRESHOLD).first().map(|(_, near)| *near);
        let equal = probes.iter().zip(&scanned).filter(|(wanted, best)| first(wanted) == **best).count();
        of_sizes.push(serde_json::json!({
            "entries": near.len(), "lookup_us": lookup_us, "scan_us": scan_us,
            "recall_at_1": equal as f64 / probes.len() as f64, "found": scanned.iter().flatten().count(), "asked": probes.len(),
        }));
    }
    let embedding_us = least_us(|at| {
        black_box(vectors.embed(&texts[at * 7 % texts.len()]));
    });
    let reading_us = least_us(|at| {
        black_box(Reading::of(&texts[at * 7 % texts.len()]).form());
    });
    let report = serde_json::json!({
        "threshold": THRESHOLD, "rounds": ROUNDS, "lookups": LOOKUPS, "clock": "processor time of the thread",
        "embedding_us": embedding_us, "reading_us": reading_us, "sizes": of_sizes,
    });
    writeln!(std::io::stdout().lock(), "{report}")?;
    Ok(())
}
