//! Compares pairs of questions for `benches/semantic.py`: prints one JSON line for each line `first<TAB>second` of
//! standard input.
//!
//! `cargo run --release -p fairlead-cache --example semantic -- WEIGHTS TOKENIZER < pairs.tsv`

use fairlead_cache::{similarity, Reading, VectorFiles, Vectors};
use std::error::Error;
use std::io::{BufRead as _, Write as _};

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args().skip(1).map(std::path::PathBuf::from);
    let (Some(weights), Some(tokenizer)) = (paths.next(), paths.next()) else {
        return Err("give the paths of the weights and of the tokenizer".into());
    };
    let vectors = Vectors::load(&VectorFiles { weights, tokenizer })?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (first, second) = line.split_once('\t').ok_or("a line without a tab")?;
        let near = match (vectors.embed(first), vectors.embed(second)) {
            (Some(a), Some(b)) => similarity(&a, &b),
            _ => 0.0,
        };
        let cause = Reading::of(first).differs(&Reading::of(second)).map(|cause| format!("{cause:?}"));
        let report = serde_json::json!({"similarity": near, "cause": cause});
        writeln!(out, "{report}")?;
    }
    Ok(())
}
