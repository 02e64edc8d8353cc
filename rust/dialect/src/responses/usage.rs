//! Reads the `usage` object of a response.

use fairlead_core::Usage;
use serde::Deserialize;

use crate::lenient;
use crate::openai::usage::{Cached, Tokens};
use crate::text::Writer;

#[derive(Deserialize)]
struct UsageIn {
    #[serde(default)]
    input_tokens: Tokens,
    #[serde(default)]
    output_tokens: Tokens,
    #[serde(default)]
    output_tokens_details: Option<OutputIn>,
}

#[derive(Default, Deserialize)]
struct OutputIn {
    #[serde(default)]
    reasoning_tokens: Tokens,
}

/// Returns `None` if the value is not a usage object. A part is at most its whole.
pub(crate) fn read(object: &[u8]) -> Option<Usage> {
    lenient::read(object, read_strictly).ok()
}

fn read_strictly(object: &[u8]) -> serde_json::Result<Usage> {
    let usage: UsageIn = serde_json::from_slice(object)?;
    let (Tokens(input), Tokens(output)) = (usage.input_tokens, usage.output_tokens);
    let counts = Cached::of(object);
    let cached = counts.read.min(input);
    let reasoning = usage.output_tokens_details.unwrap_or_default().reasoning_tokens.0.min(output);
    let cache_write = counts.written.min(input - cached);
    Ok(Usage { input, output, cached, reasoning, cache_write, ..Usage::default() })
}

pub(crate) fn write(out: &mut Writer, usage: &Usage) {
    out.open(b'{').key("input_tokens").number(usage.input);
    out.key("input_tokens_details").open(b'{').key("cached_tokens").number(usage.cached);
    out.key("cache_write_tokens").number(usage.cache_write).close(b'}');
    out.key("output_tokens").number(usage.output).key("output_tokens_details").open(b'{');
    out.key("reasoning_tokens").number(usage.reasoning).close(b'}');
    out.key("total_tokens").number(usage.input + usage.output).close(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_the_same() {
        let usage = Usage { input: 45, output: 40, cached: 30, reasoning: 25, cache_write: 5, ..Usage::default() };
        let mut out = Writer::default();
        write(&mut out, &usage);
        assert_eq!(read(&out.take()), Some(usage));
        let flat =
            br#"{"input_tokens":9,"output_tokens":1,"cache_read_input_tokens":4,"cache_creation_input_tokens":2}"#;
        let wanted = Usage { input: 9, output: 1, cached: 4, cache_write: 2, ..Usage::default() };
        assert_eq!(read(flat), Some(wanted));
        let deepseek = br#"{"input_tokens":9,"output_tokens":1,"prompt_cache_hit_tokens":4,"input_tokens_details":{"cache_creation_tokens":2}}"#;
        assert_eq!(read(deepseek), Some(wanted));
        let odd = br#"{"input_tokens":5,"input_tokens_details":{"cached_tokens":9},"output_tokens":null}"#;
        assert_eq!(read(odd), Some(Usage { input: 5, cached: 5, ..Usage::default() }));
        assert_eq!(read(b"null"), None);
    }
}
