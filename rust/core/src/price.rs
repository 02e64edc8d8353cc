//! What a call cost. Prices are integer micro-dollars per million tokens, so that one token at one such price is one
//! pico-dollar and no rounding happens before the end. What is no token has a price for each: a picture, a second, a page.

use crate::usage::{Units, Usage};
use serde::Deserialize;

/// A model's prices, micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Price {
    #[serde(default)]
    pub input: u64,
    #[serde(default)]
    pub output: u64,
    /// Absent: cached input costs what input costs.
    #[serde(default)]
    pub cached_input: Option<u64>,
    /// Absent: writing to the provider's cache costs what input costs.
    #[serde(default)]
    pub cache_write: Option<u64>,
    /// Micro-dollars for one picture.
    #[serde(default)]
    pub per_image: u64,
    /// Micro-dollars for a second of a recording.
    #[serde(default)]
    pub per_second: u64,
    /// Micro-dollars for one page.
    #[serde(default)]
    pub per_page: u64,
    /// Micro-dollars for one search.
    #[serde(default)]
    pub per_query: u64,
    /// Micro-dollars for a million characters that are read aloud.
    #[serde(default)]
    pub per_million_characters: u64,
}

/// The most that one call is written down with: a thousand million USD. What a provider counts times what an operator set as
/// a price may be any number, and sums over records must stay within 64 bits.
pub const MAX_USD_MICROS: u64 = 1_000_000_000_000_000;

/// A cost in pico-dollars (1e-12 USD).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

impl Price {
    /// Reasoning tokens are inside `output` and are not charged twice.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let cached = usage.cached.min(usage.input);
        let cache_write = usage.cache_write.min(usage.input - cached);
        let plain = usage.input - cached - cache_write;
        let part = |tokens: u64, price: u64| Cost(u128::from(tokens) * u128::from(price));
        part(plain, self.input)
            + part(cached, self.cached_input.unwrap_or(self.input))
            + part(cache_write, self.cache_write.unwrap_or(self.input))
            + part(usage.output, self.output)
    }
}

impl Price {
    /// What things cost that are no tokens.
    pub fn units(&self, units: &Units) -> Cost {
        let each =
            |count: u64, price: u64, picos: u128| Cost((u128::from(count) * u128::from(price)).saturating_mul(picos));
        each(units.images, self.per_image, 1_000_000)
            + each(units.pages, self.per_page, 1_000_000)
            + each(units.queries, self.per_query, 1_000_000)
            + each(units.audio_ms, self.per_second, 1_000)
            + each(units.characters, self.per_million_characters, 1)
    }

    /// A model has its price in tokens or in things. One with both names them for the same: what was told in tokens is paid
    /// in tokens.
    pub fn charge(&self, usage: &Usage, units: &Units) -> Cost {
        let tokens = self.cost(usage);
        if tokens == Cost::default() {
            self.units(units)
        } else {
            tokens
        }
    }

    /// The most that a call can come to.
    pub fn most_of(&self, usage: &Usage, units: &Units) -> Cost {
        self.most(usage).max(self.units(units))
    }

    /// The most that the usage can cost, whatever part of its input turns out cached or written to a cache.
    pub fn most(&self, usage: &Usage) -> Cost {
        let dearest = self.input.max(self.cached_input.unwrap_or(0)).max(self.cache_write.unwrap_or(0));
        Cost(u128::from(usage.input) * u128::from(dearest)) + Cost(u128::from(usage.output) * u128::from(self.output))
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Cost {
    /// Pico-dollars; as many as fit.
    pub fn picos(self) -> u64 {
        u64::try_from(self.0).unwrap_or(u64::MAX)
    }

    pub fn from_usd_micros(micros: u64) -> Self {
        Self(u128::from(micros) * 1_000_000)
    }

    pub fn from_picos(picos: u64) -> Self {
        Self(u128::from(picos))
    }

    /// Rounded half up, and no more than [`MAX_USD_MICROS`].
    pub fn usd_micros(self) -> u64 {
        let micros = self.0.saturating_add(500_000) / 1_000_000;
        u64::try_from(micros).unwrap_or(u64::MAX).min(MAX_USD_MICROS)
    }

    /// USD with exactly ten decimals, as the cost header shows it.
    pub fn usd_text(self) -> String {
        const A_DOLLAR: u64 = 10_000_000_000;
        // Every answer says it, and numbers of 128 bits are written several times as slowly as those that nearly all costs fit.
        let tenths_of_nanos = self.0.saturating_add(50) / 100;
        match u64::try_from(tenths_of_nanos) {
            Ok(tenths) => format!("{}.{:010}", tenths / A_DOLLAR, tenths % A_DOLLAR),
            Err(_) => {
                format!("{}.{:010}", tenths_of_nanos / u128::from(A_DOLLAR), tenths_of_nanos % u128::from(A_DOLLAR))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 2_500_000,
        output: 10_000_000,
        cached_input: Some(1_250_000),
        cache_write: None,
        per_image: 0,
        per_second: 0,
        per_page: 0,
        per_query: 0,
        per_million_characters: 0,
    };

    #[test]
    fn parts_of_the_input_are_charged_once_each() {
        let usage = Usage { input: 1000, output: 100, cached: 400, reasoning: 50, cache_write: 0 };
        assert_eq!(PRICE.cost(&usage).usd_micros(), 600 * 5 / 2 + 400 * 5 / 4 + 1000);
    }

    #[test]
    fn ten_decimals_keep_what_micros_lose() {
        let usage = Usage { input: 9, output: 12, ..Usage::default() };
        let price = Price { input: 150_000, output: 600_000, ..Price::default() };
        assert_eq!(price.cost(&usage).usd_text(), "0.0000085500");
        assert_eq!(price.cost(&usage).usd_micros(), 9);
        assert_eq!(Cost::default().usd_text(), "0.0000000000");
        assert_eq!(Cost(u128::from(u64::MAX) * 200).usd_text(), "3689348814.7419103230");
        assert_eq!(Cost(u128::from(u64::MAX)).usd_text(), "18446744.0737095516");
    }

    #[test]
    fn things_have_a_price_each() {
        let price = Price {
            per_image: 40_000,
            per_second: 31,
            per_page: 1_000,
            per_query: 2_000,
            per_million_characters: 15_000_000,
            ..Price::default()
        };
        for (units, usd_micros) in [
            (Units { images: 3, ..Units::default() }, 120_000),
            (Units { audio_ms: 1_500, ..Units::default() }, 47), // 46.5, rounded half up
            (Units { pages: 7, ..Units::default() }, 7_000),
            (Units { queries: 1, ..Units::default() }, 2_000),
            (Units { characters: 100, ..Units::default() }, 1_500),
            (Units::default(), 0),
        ] {
            assert_eq!(price.units(&units).usd_micros(), usd_micros, "{units:?}");
            assert_eq!(price.charge(&Usage::default(), &units).usd_micros(), usd_micros);
        }
        let both = Price { per_image: 134_000, ..PRICE };
        let units = Units { images: 1, ..Units::default() };
        let usage = Usage { output: 1_000, ..Usage::default() };
        assert_eq!(both.charge(&usage, &units).usd_micros(), 10_000, "tokens were told");
        assert_eq!(both.charge(&Usage::default(), &units).usd_micros(), 134_000);
        assert_eq!(both.most_of(&usage, &units).usd_micros(), 134_000);
    }

    #[test]
    fn absurd_counts_do_not_overflow() {
        let usage = Usage { input: u64::MAX, output: u64::MAX, cached: u64::MAX, reasoning: 0, cache_write: u64::MAX };
        assert!(PRICE.cost(&usage).usd_micros() > 0);
        let dearest = Price { input: u64::MAX, output: u64::MAX, per_page: u64::MAX, per_image: u64::MAX, ..PRICE };
        let units = Units { pages: u64::MAX, images: u64::MAX, ..Units::default() };
        for cost in [dearest.cost(&usage), dearest.most(&usage), dearest.units(&units), dearest.most_of(&usage, &units)]
        {
            assert_eq!(cost.usd_micros(), MAX_USD_MICROS);
            assert!(!cost.usd_text().is_empty());
        }
    }
}
