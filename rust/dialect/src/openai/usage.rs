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
    let wanted = [
        "prompt_tokens",
        "completion_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "prompt_cache_hit_tokens",
        "cached_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ];
    let scan = json::scan_object(object, &wanted, MAX_DEPTH)?;
    let count = |name| scan.get(name).and_then(|value| tokens(object, value));
    let inside = |outer| object.get(scan.get(outer).filter(|value| value.kind == Kind::Object)?.span());
    let input = count("prompt_tokens").unwrap_or(0);
    let output = count("completion_tokens").unwrap_or(0);
    // Vendors place these counts differently, and some write 0 in one place and the count in another.
    let inner = inside("prompt_tokens_details").map(cached_of).unwrap_or_default();
    let flat =
        ["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"].into_iter().filter_map(count).max();
    let cached = flat.unwrap_or(0).max(inner.0);
    let cache_write = count("cache_creation_input_tokens").unwrap_or(0).max(inner.1);
    let reasoning = inside("completion_tokens_details").and_then(|inner| {
        let scan = json::scan_object(inner, &["reasoning_tokens"], MAX_DEPTH).ok()?;
        tokens(inner, scan.get("reasoning_tokens")?)
    });
    let cached = cached.min(input);
    Ok(Usage {
        input,
        output,
        cached,
        reasoning: reasoning.unwrap_or(0).min(output),
        cache_write: cache_write.min(input - cached),
        ..Usage::default()
    })
}

/// Returns the tokens read from the cache and written to it, from the details of a prompt. Accepts OpenAI's name,
/// Anthropic's, and the short names of upstream gateways.
pub(crate) fn cached_of(details: &[u8]) -> (u64, u64) {
    let wanted = [
        "cached_tokens",
        "cache_read_input_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "cache_creation_input_tokens",
        "cache_creation_tokens",
    ];
    let Ok(scan) = json::scan_object(details, &wanted, MAX_DEPTH) else { return (0, 0) };
    let most = |names: &[&str]| {
        let counts = names.iter().filter_map(|name| scan.get(name).and_then(|value| tokens(details, value)));
        counts.max().unwrap_or(0)
    };
    (most(&wanted[..3]), most(&wanted[3..]))
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
