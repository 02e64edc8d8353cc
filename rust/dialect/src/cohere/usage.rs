//! The counts of an answer.

use serde::Deserialize;

use crate::text::Writer;

/// Cohere's counts are JSON numbers with a fraction.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct UsageIn {
    /// The tokens that are charged.
    billed_units: Option<Counts>,
    /// All tokens, with those of Cohere's own instructions.
    tokens: Option<Counts>,
    cached_tokens: Option<f64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

impl UsageIn {
    /// Writes the member `usage` of a message, whose input excludes the cache's tokens.
    pub(super) fn write(self, out: &mut Writer) {
        let count = |of: fn(Counts) -> Option<f64>| {
            whole(self.billed_units.and_then(of).or_else(|| self.tokens.and_then(of)).unwrap_or_default())
        };
        let (input, output) = (count(|counts| counts.input_tokens), count(|counts| counts.output_tokens));
        let cached = whole(self.cached_tokens.unwrap_or_default()).min(input);
        out.key("usage").open(b'{').key("input_tokens").number(input - cached);
        if self.cached_tokens.is_some() {
            out.key("cache_read_input_tokens").number(cached);
        }
        out.key("output_tokens").number(output).close(b'}');
    }
}

/// A count without its fraction. Negative numbers, which are no counts, become zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a conversion to integers saturates")]
fn whole(count: f64) -> u64 {
    count as u64
}
