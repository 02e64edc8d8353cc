//! How long a question takes to be looked up among 10,000 of one partition, with its embedding. Tells one JSON line.
//!
//! `cargo run --release -p fairlead-cache --example lookup -- WEIGHTS TOKENIZER < texts`, one text a line.

use fairlead_cache::guard::Reading;
use fairlead_cache::key::digest;
use fairlead_cache::near::{Near, Probe};
use fairlead_cache::vectors::{VectorFiles, Vectors};
use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

const ENTRIES: usize = 10_000;
const ROUNDS: usize = 5;
const LOOKUPS: usize = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args().skip(1).map(std::path::PathBuf::from);
    let (Some(weights), Some(tokenizer)) = (paths.next(), paths.next()) else {
        return Err("give the paths of the weights and of the tokenizer".into());
    };
    let threshold: f32 = 0.8;
    let vectors = Vectors::load(&VectorFiles { weights, tokenizer })?;
    let texts: Vec<String> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;
    let probe = |text: &str| Some(Probe { vector: vectors.embed(text)?, reading: Reading::of(text) });
    let mut near = Near::default();
    // Each text several times, each time about something else, so that all of them are different and many are near.
    for at in 0..ENTRIES {
        let text = format!("{} Part {}.", texts[at % texts.len()], at / texts.len());
        near.add(digest(&[text.as_bytes()]), probe(&text).ok_or("a text without a direction")?);
    }
    let (mut embedding_us, mut reading_us, mut whole_us): (Vec<f64>, Vec<f64>, Vec<f64>) = Default::default();
    for _ in 0..ROUNDS {
        let (mut embedding, mut reading, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..LOOKUPS {
            let text = &texts[(at * 7) % texts.len()];
            let began = Instant::now();
            black_box(vectors.embed(text));
            embedding.push(began.elapsed());
            let began = Instant::now();
            black_box(Reading::of(text));
            reading.push(began.elapsed());
            let began = Instant::now();
            black_box(near.find(&probe(text).ok_or("a text without a direction")?, threshold));
            whole.push(began.elapsed());
        }
        for (times, medians) in
            [(&mut embedding, &mut embedding_us), (&mut reading, &mut reading_us), (&mut whole, &mut whole_us)]
        {
            times.sort_unstable();
            medians.push(times[times.len() / 2].as_secs_f64() * 1e6);
        }
    }
    let least = |medians: &[f64]| medians.iter().copied().fold(f64::INFINITY, f64::min);
    let told = serde_json::json!({
        "entries": near.len(), "threshold": threshold, "rounds": ROUNDS, "lookups": LOOKUPS,
        "embedding_us": least(&embedding_us), "reading_us": least(&reading_us), "lookup_us": least(&whole_us),
        "lookup_us_of_each_round": whole_us,
    });
    writeln!(std::io::stdout().lock(), "{told}")?;
    Ok(())
}
