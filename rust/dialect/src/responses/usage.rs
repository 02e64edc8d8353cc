//! The `usage` object of a response.

use fairlead_core::Usage;
use serde::Deserialize;

use crate::text::Writer;

/// Counts above this are no counts, as in the chat dialect.
const MAX_TOKENS: u64 = 1_000_000_000_000;

#[derive(Deserialize)]
struct UsageIn {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<InputIn>,
    #[serde(default)]
    output_tokens_details: Option<OutputIn>,
}

#[derive(Deserialize)]
struct InputIn {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputIn {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// `None` for what is no usage. A part is never more than its whole.
pub(crate) fn read(object: &[u8]) -> Option<Usage> {
    let usage: UsageIn = serde_json::from_slice(object).ok()?;
    let count = |tokens: Option<u64>| tokens.filter(|count| *count <= MAX_TOKENS).unwrap_or(0);
    let (input, output) = (count(usage.input_tokens), count(usage.output_tokens));
    let (cached, written) =
        usage.input_tokens_details.map_or((None, None), |of| (of.cached_tokens, of.cache_write_tokens));
    let cached = count(cached).min(input);
    let reasoning = count(usage.output_tokens_details.and_then(|of| of.reasoning_tokens)).min(output);
    let cache_write = count(written).min(input - cached);
    Some(Usage { input, output, cached, reasoning, cache_write, ..Usage::default() })
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
        let odd = br#"{"input_tokens":5,"input_tokens_details":{"cached_tokens":9},"output_tokens":null}"#;
        assert_eq!(read(odd), Some(Usage { input: 5, cached: 5, ..Usage::default() }));
        assert_eq!(read(b"null"), None);
    }
}
