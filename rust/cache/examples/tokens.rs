//! Prints the tokens of each text, for `benches/semantic.py`: reads a JSON string per line and prints a JSON list per
//! line.

use fairlead_cache::{VectorFiles, Vectors};
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
        let text: String = serde_json::from_str(&line?)?;
        writeln!(out, "{}", serde_json::to_string(&vectors.tokens(&text))?)?;
    }
    Ok(())
}
