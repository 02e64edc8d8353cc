//! Reads the `usage` object of an answer.

use fairlead_core::json::{self, JsonFault, Kind};
use fairlead_core::{ServiceTier, Usage};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::lenient;

/// Larger counts are treated as invalid. No model processes a trillion tokens.
const MAX_TOKENS: u64 = 1_000_000_000_000;
const MAX_DEPTH: usize = 16;

/// Reads a `usage` object. A count that is absent, negative, fractional or too large is 0, and a part is at most its
/// whole. Returns `None` if `object` is not an object.
pub(super) fn read(object: &[u8]) -> Option<Usage> {
    lenient::read(object, read_strictly).ok()
}

fn read_strictly(object: &[u8]) -> Result<Usage, JsonFault> {
    let wanted = ["prompt_tokens", "completion_tokens", "completion_tokens_details"];
    let scan = json::scan_object(object, &wanted, MAX_DEPTH)?;
    let count = |name| scan.get(name).and_then(|value| tokens(object, value));
    let input = count("prompt_tokens").unwrap_or(0);
    let output = count("completion_tokens").unwrap_or(0);
    let reasoning = inside(object, scan.get("completion_tokens_details")).and_then(|inner| {
        let scan = json::scan_object(inner, &["reasoning_tokens"], MAX_DEPTH).ok()?;
        tokens(inner, scan.get("reasoning_tokens")?)
    });
    let Cached { read, written } = Cached::of(object);
    let cached = read.min(input);
    Ok(Usage {
        input,
        output,
        cached,
        reasoning: reasoning.unwrap_or(0).min(output),
        cache_write: written.min(input - cached),
        ..Usage::default()
    })
}

/// Reads the usage in Groq's own member of a chunk, `x_groq`.
pub(super) fn inside_groq(member: &[u8]) -> Option<Usage> {
    let scan = json::scan_object(member, &["usage"], MAX_DEPTH).ok()?;
    inside(member, scan.get("usage")).and_then(read)
}

fn inside(object: &[u8], value: Option<json::Value>) -> Option<&[u8]> {
    object.get(value.filter(|value| value.kind == Kind::Object)?.span())
}

/// The tokens of a prompt that were read from the provider's cache and written to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cached {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// The members with the counts of the cache, at any maker of OpenAI's dialects. They are in the usage itself or in the
/// details of the prompt, and some makers write 0 in one place and the count in the other.
const CACHED: [&str; 10] = [
    // OpenAI, Mistral, Groq and xAI in the details, Moonshot in the usage.
    "cached_tokens",
    // DeepSeek.
    "prompt_cache_hit_tokens",
    // Anthropic, and gateways that speak both dialects.
    "cache_read_input_tokens",
    "cache_read_tokens",
    // The tokens that were written begin here: OpenAI, Anthropic, gateways.
    "cache_write_tokens",
    "cache_creation_input_tokens",
    "cache_creation_tokens",
    // The details of the prompt begin here: chat, responses, realtime.
    "prompt_tokens_details",
    "input_tokens_details",
    "input_token_details",
];
const WRITTEN_AT: usize = 4;
const DETAILS_AT: usize = 7;

impl Cached {
    /// Reads the counts of a `usage` object and of the details in it.
    pub(crate) fn of(usage: &[u8]) -> Self {
        let Ok(scan) = json::scan_object(usage, &CACHED, MAX_DEPTH) else { return Self::default() };
        let most = |names: &[&str]| {
            let counts = names.iter().filter_map(|name| scan.get(name).and_then(|value| tokens(usage, value)));
            counts.max().unwrap_or(0)
        };
        let flat = Self { read: most(&CACHED[..WRITTEN_AT]), written: most(&CACHED[WRITTEN_AT..DETAILS_AT]) };
        let details = CACHED[DETAILS_AT..].iter().filter_map(|name| inside(usage, scan.get(name)));
        details
            .map(Self::of)
            .fold(flat, |one, other| Self { read: one.read.max(other.read), written: one.written.max(other.written) })
    }
}

/// Returns the tier that served an answer, from the JSON of its `service_tier`. The standard tier if absent.
pub(crate) fn service(tier: Option<&[u8]>) -> ServiceTier {
    let text = tier.and_then(|token| std::str::from_utf8(token).ok()).unwrap_or_default();
    ServiceTier::of(text.trim_matches('"'))
}

/// Returns the tier in the `service_tier` of a scanned request or answer. A value that is not a string is left for the
/// provider to reject.
pub(crate) fn service_of(body: &[u8], tier: Option<json::Value>) -> ServiceTier {
    service(tier.and_then(|tier| body.get(tier.span())))
}

/// Reads a count from scanned bytes.
pub(crate) fn tokens(bytes: &[u8], value: json::Value) -> Option<u64> {
    if value.kind != Kind::Number {
        return None;
    }
    count(std::str::from_utf8(bytes.get(value.span())?).ok()?)
}

/// Parses a count. Servers with a single number type write `12.0`.
fn count(json: &str) -> Option<u64> {
    let fraction = || json.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.fract() == 0.0);
    // An overflow saturates, which exceeds every limit.
    let count = json.parse::<u64>().ok().or_else(|| fraction().map(|number| number as u64));
    count.filter(|count| *count <= MAX_TOKENS)
}

/// A count in a deserialized object. Anything that is not a count is 0.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tokens(pub(crate) u64);

impl<'de> Deserialize<'de> for Tokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(count(raw.get()).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_counts_and_their_parts() {
        let object = br#"{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,
            "prompt_tokens_details":{"cached_tokens":60,"audio_tokens":0,"cache_write_tokens":30},
            "completion_tokens_details":{"reasoning_tokens":20}}"#;

        let usage = Usage { input: 100, output: 50, cached: 60, reasoning: 20, cache_write: 30, ..Usage::default() };
        assert_eq!(Some(usage), read(object));
    }

    #[test]
    fn reads_the_flat_spellings() {
        let object =
            br#"{"prompt_tokens":9,"completion_tokens":1,"prompt_cache_hit_tokens":4,"cache_creation_input_tokens":2}"#;

        assert_eq!(Some(Usage { input: 9, output: 1, cached: 4, cache_write: 2, ..Usage::default() }), read(object));
    }

    #[test]
    fn reads_cached_counts_wherever_makers_put_them() {
        for members in [
            r#""prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2}"#,
            r#""prompt_tokens_details":{"cached_tokens":4,"cache_creation_tokens":2}"#,
            r#""prompt_tokens_details":{"cache_read_input_tokens":4,"cache_creation_input_tokens":2}"#,
            r#""prompt_tokens_details":{"cached_tokens":0},"cache_read_input_tokens":4,"cache_creation_input_tokens":2"#,
            r#""prompt_tokens_details":null,"cache_read_input_tokens":4,"cache_creation_input_tokens":2"#,
            r#""cached_tokens":4,"cache_creation_input_tokens":2"#,
            r#""prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5,"cache_creation_input_tokens":2"#,
        ] {
            let object = format!(r#"{{"prompt_tokens":9,"completion_tokens":1,{members}}}"#);
            let wanted = Usage { input: 9, output: 1, cached: 4, cache_write: 2, ..Usage::default() };
            assert_eq!(Some(wanted), read(object.as_bytes()), "{members}");
        }
    }

    #[test]
    fn ignores_what_is_no_count() {
        for wrong in ["-1", "1.5", "1e13", "\"7\"", "null", "[1]", "1000000000001", "99999999999999999999"] {
            let object = format!(r#"{{"prompt_tokens":{wrong},"completion_tokens":3}}"#);
            assert_eq!(Some(Usage { output: 3, ..Usage::default() }), read(object.as_bytes()), "{wrong}");
        }
        assert_eq!(Some(Usage::default()), read(b"{}"));
        assert_eq!(None, read(b"null"));
        assert_eq!(None, read(br#"{"prompt_tokens":1"#));
    }

    #[test]
    fn reads_whole_numbers_however_they_are_written() {
        let object = br#"{"prompt_tokens":12.0,"completion_tokens":1e3}"#;

        assert_eq!(Some(Usage { input: 12, output: 1000, ..Usage::default() }), read(object));
    }

    #[test]
    fn a_part_is_never_more_than_its_whole() {
        let object = br#"{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":4},
            "completion_tokens_details":{"reasoning_tokens":9}}"#;

        assert_eq!(
            Some(Usage { input: 5, output: 2, cached: 4, reasoning: 2, cache_write: 1, ..Usage::default() }),
            read(object)
        );
    }
}
