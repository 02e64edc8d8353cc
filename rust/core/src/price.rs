//! What a call cost. Prices are integer micro-dollars per million tokens, so that one token at one such price is one
//! pico-dollar and no rounding happens before the end. What is no token has a price for each: a picture, a second, a page.
//! A price may have tiers: for inputs above a size, and for the service tier that a provider says it served in.

use crate::usage::{ServiceTier, Units, Usage};
use serde::Deserialize;
use smallvec::SmallVec;

/// A model's prices, micro-dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
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
    /// The price of a cache entry that is kept for an hour; absent: that of one kept for minutes.
    #[serde(default)]
    pub cache_write_hour: Option<u64>,
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
    /// Other prices of tokens, for long inputs and for other service tiers.
    #[serde(default)]
    pub tiers: Vec<PriceTier>,
}

/// Prices of tokens that hold from a size of the input on, in one service tier, or both. What it does not name costs what it
/// costs without it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct PriceTier {
    #[serde(default)]
    pub service: ServiceTier,
    /// The tier holds for calls with more input tokens than this, cached ones included, and then for all of their tokens.
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

/// One kind of token, and where its prices stand.
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

/// What one kind of token costs in a call, and by whose word.
#[derive(Debug, Clone, Copy)]
struct Rate {
    usd_micros: u64,
    /// The kind whose price it is, which may be that of a wider one.
    name: &'static str,
    service: ServiceTier,
    above: u64,
}

/// Which of a model's prices a call was paid by. Empty: by those of input and output, as they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PricesInUse {
    service: ServiceTier,
    above: u64,
    /// Prices of their own, as `cached_input` and `per_image`.
    parts: SmallVec<[&'static str; 4]>,
}

impl PricesInUse {
    /// Of a call that used what nobody has told a price for.
    #[must_use]
    pub fn unpriced() -> Self {
        Self::of_thing("unpriced")
    }

    /// Whether a part of the call had no price, so that its cost is not known.
    #[must_use]
    pub fn is_unpriced(&self) -> bool {
        self.parts.contains(&"unpriced")
    }

    /// Of a cost that is by one price alone.
    #[must_use]
    pub fn of_thing(name: &'static str) -> Self {
        Self { parts: SmallVec::from_slice(&[name]), ..Self::default() }
    }

    /// With those of another call, for several calls of one request.
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

    /// As records have it: `flex,above_272000,cached_input`; `None` where it is empty.
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

/// The most that one call is written down with: a thousand million USD. What a provider counts times what an operator set as
/// a price may be any number, and sums over records must stay within 64 bits.
pub const MAX_USD_MICROS: u64 = 1_000_000_000_000_000;

/// A cost in pico-dollars (1e-12 USD).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

impl Price {
    /// Reasoning tokens are inside `output` and are not charged twice.
    pub fn cost(&self, usage: &Usage) -> Cost {
        self.parts(usage).map(|(tokens, rate)| Cost(u128::from(tokens) * u128::from(rate.usd_micros))).sum()
    }

    /// How many tokens of which kind there are, none of them twice, and what each costs.
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

    /// What this kind of token costs in such a call; `None` where nothing tells a price of it. The price of the service tier
    /// counts, at the highest threshold that the input passes; where the standard service has a higher one, the dearer of both,
    /// so that no call is counted too cheap.
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

    /// The cost of units that are no tokens.
    pub fn units(&self, units: &Units) -> Cost {
        self.things(units).map(|(count, price, picos, _)| each(count, price, picos)).sum()
    }

    /// How many of each thing there are, its price, the pico-dollars that one of that price is, and the price's name.
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

    /// Which prices [`Self::charge`] counts with.
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

    /// The most that a call can come to.
    pub fn most_of(&self, usage: &Usage, units: &Units) -> Cost {
        self.most(usage).max(self.units(units))
    }

    /// The most that the usage can cost, whatever part of its input turns out cached or written to a cache, and whether it is
    /// served in the tier that was asked for or in the standard one.
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
#[path = "price_tests.rs"]
mod tests;
