//! The cost of a call. Prices are integer micro-dollars per million tokens, so one token at a price of 1 costs one
//! pico-dollar, and rounding happens only at the end. Other units have a price each: an image, a second, a page. A
//! price may have tiers, for inputs above a size and for the service tier that the provider reports.

use crate::usage::{ServiceTier, Units, Usage};
use serde::Deserialize;
use smallvec::SmallVec;

/// The prices of a model, in micro-dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Price {
    #[serde(default)]
    pub input: u64,
    #[serde(default)]
    pub output: u64,
    /// Absent: cached input costs as much as input.
    #[serde(default)]
    pub cached_input: Option<u64>,
    /// Absent: writing to the provider's cache costs as much as input.
    #[serde(default)]
    pub cache_write: Option<u64>,
    /// The price of writing a cache entry that lasts an hour. Absent: the price of one that lasts minutes.
    #[serde(default)]
    pub cache_write_hour: Option<u64>,
    /// Micro-dollars per image.
    #[serde(default)]
    pub per_image: u64,
    /// Micro-dollars per second of audio.
    #[serde(default)]
    pub per_second: u64,
    /// Micro-dollars per page.
    #[serde(default)]
    pub per_page: u64,
    /// Micro-dollars per search.
    #[serde(default)]
    pub per_query: u64,
    /// Micro-dollars per million characters of speech input.
    #[serde(default)]
    pub per_million_characters: u64,
    /// Other token prices, for long inputs and for other service tiers.
    #[serde(default)]
    pub tiers: Vec<PriceTier>,
}

/// Token prices above an input size, in one service tier, or both. A price that the tier does not set stays as without
/// the tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct PriceTier {
    #[serde(default)]
    pub service: ServiceTier,
    /// The tier applies to calls with more input tokens than this, including cached ones, and then to all of their
    /// tokens.
    #[serde(default)]
    pub above: u64,
    #[serde(default)]
    pub input: Option<u64>,
    #[serde(default)]
    pub output: Option<u64>,
    #[serde(default)]
    pub cached_input: Option<u64>,
    #[serde(default)]
    pub cache_write: Option<u64>,
    #[serde(default)]
    pub cache_write_hour: Option<u64>,
}

impl PriceTier {
    fn is_reached(&self, input: u64) -> bool {
        self.above == 0 || input > self.above
    }
}

/// A kind of token, and where its prices are stored.
#[derive(Clone, Copy)]
struct TokenKind {
    name: &'static str,
    base: fn(&Price) -> Option<u64>,
    tier: fn(&PriceTier) -> Option<u64>,
}

const INPUT: TokenKind = TokenKind { name: "input", base: |price| Some(price.input), tier: |tier| tier.input };
const OUTPUT: TokenKind = TokenKind { name: "output", base: |price| Some(price.output), tier: |tier| tier.output };
const CACHED_INPUT: TokenKind =
    TokenKind { name: "cached_input", base: |price| price.cached_input, tier: |tier| tier.cached_input };
const CACHE_WRITE: TokenKind =
    TokenKind { name: "cache_write", base: |price| price.cache_write, tier: |tier| tier.cache_write };
const CACHE_WRITE_HOUR: TokenKind =
    TokenKind { name: "cache_write_hour", base: |price| price.cache_write_hour, tier: |tier| tier.cache_write_hour };

/// The rate of one kind of token in a call, and where it comes from.
#[derive(Debug, Clone, Copy)]
struct Rate {
    usd_micros: u64,
    /// The kind that the price was set for, which may be a more general one.
    name: &'static str,
    service: ServiceTier,
    above: u64,
}

/// Which of a model's prices a call used. Empty for the plain prices of input and output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PricesInUse {
    service: ServiceTier,
    above: u64,
    /// Prices other than input and output, such as `cached_input` and `per_image`.
    parts: SmallVec<[&'static str; 4]>,
}

impl PricesInUse {
    /// For a call with a part that has no known price.
    #[must_use]
    pub fn unpriced() -> Self {
        Self::of_thing("unpriced")
    }

    /// Whether a part of the call had no price, so that its cost is unknown.
    #[must_use]
    pub fn is_unpriced(&self) -> bool {
        self.parts.contains(&"unpriced")
    }

    /// For a cost that has a single price.
    #[must_use]
    pub fn of_thing(name: &'static str) -> Self {
        Self { parts: SmallVec::from_slice(&[name]), ..Self::default() }
    }

    /// Merges the prices of another call, for several calls of one request.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        if self.service == ServiceTier::Standard {
            self.service = other.service;
        }
        self.above = self.above.max(other.above);
        for part in &other.parts {
            if !self.parts.contains(part) {
                self.parts.push(part);
            }
        }
        self
    }

    fn note(&mut self, rate: &Rate) {
        if rate.service != ServiceTier::Standard {
            self.service = rate.service;
        }
        self.above = self.above.max(rate.above);
        if !matches!(rate.name, "input" | "output") && !self.parts.contains(&rate.name) {
            self.parts.push(rate.name);
        }
    }

    /// The text in records, such as `flex,above_272000,cached_input`; `None` if empty.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let mut names: SmallVec<[String; 6]> = SmallVec::new();
        if self.service != ServiceTier::Standard {
            names.push(self.service.name().to_owned());
        }
        if self.above > 0 {
            names.push(format!("above_{}", self.above));
        }
        names.extend(self.parts.iter().map(|part| (*part).to_owned()));
        (!names.is_empty()).then(|| names.join(","))
    }
}

/// The maximum recorded cost of one call: a thousand million USD. Neither a provider's counts nor an operator's prices
/// are bounded, and sums over records must fit into 64 bits.
pub const MAX_USD_MICROS: u64 = 1_000_000_000_000_000;

/// A cost in pico-dollars (1e-12 USD).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

impl Price {
    /// Returns whether reading from the provider's prompt cache costs less than sending the input again.
    pub fn has_cheap_reads(&self) -> bool {
        self.cached_input.is_some_and(|cached| cached < self.input)
    }

    /// Returns whether a prompt that is written to the cache and read once costs less than one that is sent twice.
    pub fn caching_pays(&self) -> bool {
        let write = self.cache_write.unwrap_or(self.input);
        self.cached_input.is_some_and(|cached| write.saturating_add(cached) < self.input.saturating_mul(2))
    }

    /// The cost of the tokens. Reasoning tokens are part of `output` and are not charged twice.
    pub fn cost(&self, usage: &Usage) -> Cost {
        self.parts(usage).map(|(tokens, rate)| Cost(u128::from(tokens) * u128::from(rate.usd_micros))).sum()
    }

    /// The number of tokens of each kind, without counting any twice, and their rates.
    fn parts(&self, usage: &Usage) -> impl Iterator<Item = (u64, Rate)> {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_write.min(usage.input - cached);
        let hour = usage.cache_write_hour.min(written);
        let input = self.rate(usage, INPUT).unwrap_or(Rate::FREE);
        let own = |kind, wider: Rate| self.rate(usage, kind).unwrap_or(wider);
        let short = own(CACHE_WRITE, input);
        [
            (usage.input - cached - written, input),
            (cached, own(CACHED_INPUT, input)),
            (written - hour, short),
            (hour, own(CACHE_WRITE_HOUR, short)),
            (usage.output, self.rate(usage, OUTPUT).unwrap_or(Rate::FREE)),
        ]
        .into_iter()
    }

    /// The rate of this kind of token in such a call; `None` if no price is set. The price of the service tier applies,
    /// at the highest threshold that the input exceeds. If the standard tier has a higher threshold, the more expensive
    /// of both applies, so that no call is underpriced.
    fn rate(&self, usage: &Usage, kind: TokenKind) -> Option<Rate> {
        let best = |service: ServiceTier| {
            let reached = self.tiers.iter().filter(|tier| tier.service == service && tier.is_reached(usage.input));
            let rates = reached.filter_map(|tier| {
                Some(Rate { usd_micros: (kind.tier)(tier)?, name: kind.name, service, above: tier.above })
            });
            rates.max_by_key(|rate| rate.above)
        };
        let base = || (kind.base)(self).map(|usd_micros| Rate { usd_micros, name: kind.name, ..Rate::FREE });
        if self.tiers.is_empty() {
            return base();
        }
        let standard = best(ServiceTier::Standard).or_else(base);
        if usage.service == ServiceTier::Standard {
            return standard;
        }
        match (best(usage.service), standard) {
            (Some(own), Some(standard)) if own.above < standard.above && own.usd_micros < standard.usd_micros => {
                Some(standard)
            }
            (own, standard) => own.or(standard),
        }
    }

    /// The cost of units other than tokens.
    pub fn units(&self, units: &Units) -> Cost {
        self.things(units).map(|(count, price, picos, _)| each(count, price, picos)).sum()
    }

    /// The number of each unit, its price, the pico-dollars per unit at a price of 1, and the name of the price.
    fn things(&self, units: &Units) -> impl Iterator<Item = (u64, u64, u128, &'static str)> {
        [
            (units.images, self.per_image, 1_000_000, "per_image"),
            (units.pages, self.per_page, 1_000_000, "per_page"),
            (units.queries, self.per_query, 1_000_000, "per_query"),
            (units.audio_ms, self.per_second, 1_000, "per_second"),
            (units.characters, self.per_million_characters, 1, "per_million_characters"),
        ]
        .into_iter()
    }

    /// The cost of a call. A model has a price for tokens or for other units. One with both has two prices for the same
    /// thing, so tokens apply if the provider reported them.
    pub fn charge(&self, usage: &Usage, units: &Units) -> Cost {
        let tokens = self.cost(usage);
        if tokens == Cost::default() {
            self.units(units)
        } else {
            tokens
        }
    }

    /// The prices that [`Self::charge`] uses.
    pub fn tiers_of(&self, usage: &Usage, units: &Units) -> PricesInUse {
        let mut tiers = PricesInUse::default();
        if self.cost(usage) == Cost::default() {
            let paid = self.things(units).filter(|(count, price, ..)| *count > 0 && *price > 0);
            tiers.parts.extend(paid.map(|(.., name)| name));
        } else {
            self.parts(usage).filter(|(tokens, _)| *tokens > 0).for_each(|(_, rate)| tiers.note(&rate));
        }
        tiers
    }

    /// The most that a call can cost.
    pub fn most_of(&self, usage: &Usage, units: &Units) -> Cost {
        self.most(usage).max(self.units(units))
    }

    /// The most that the usage can cost, whatever part of its input is cached or written to a cache, and whether the
    /// requested or the standard service tier serves it.
    pub fn most(&self, usage: &Usage) -> Cost {
        let may_hold = |tier: &&PriceTier| {
            tier.is_reached(usage.input) && (tier.service == usage.service || tier.service == ServiceTier::Standard)
        };
        let dearest = |kinds: &[TokenKind]| {
            let tiers = self.tiers.iter().filter(may_hold);
            let in_tiers = tiers.flat_map(|tier| kinds.iter().filter_map(|kind| (kind.tier)(tier)));
            kinds.iter().filter_map(|kind| (kind.base)(self)).chain(in_tiers).max().unwrap_or(0)
        };
        let input = dearest(&[INPUT, CACHED_INPUT, CACHE_WRITE, CACHE_WRITE_HOUR]);
        Cost(u128::from(usage.input) * u128::from(input))
            + Cost(u128::from(usage.output) * u128::from(dearest(&[OUTPUT])))
    }
}

impl Rate {
    const FREE: Self = Self { usd_micros: 0, name: "input", service: ServiceTier::Standard, above: 0 };
}

fn each(count: u64, price: u64, picos: u128) -> Cost {
    Cost((u128::from(count) * u128::from(price)).saturating_mul(picos))
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |sum, cost| sum + cost)
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Cost {
    /// Pico-dollars, at most `u64::MAX`.
    pub fn picos(self) -> u64 {
        u64::try_from(self.0).unwrap_or(u64::MAX)
    }

    pub fn from_usd_micros(micros: u64) -> Self {
        Self(u128::from(micros) * 1_000_000)
    }

    pub fn from_picos(picos: u64) -> Self {
        Self(u128::from(picos))
    }

    /// Micro-dollars, rounded half up, at most [`MAX_USD_MICROS`].
    pub fn usd_micros(self) -> u64 {
        let micros = self.0.saturating_add(500_000) / 1_000_000;
        u64::try_from(micros).unwrap_or(u64::MAX).min(MAX_USD_MICROS)
    }

    /// USD with exactly ten decimals, as in the cost header.
    pub fn usd_text(self) -> String {
        const A_DOLLAR: u64 = 10_000_000_000;
        // Every answer has this header, and formatting 128-bit numbers takes several times as long. Almost all costs
        // fit into 64 bits.
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
#[path = "price_tests.rs"]
mod tests;
