//! Rates of a provider's, as its answers tell them: of so many requests or tokens so many are left, and then and then all of them are
//! there again. What is left grows evenly until that moment, as providers who send such headers say of themselves; afterwards the
//! reading says nothing any more. Pure: the caller brings the time.

use crate::quota::WindowReading;
use std::collections::HashMap;

/// Models of one connection whose rates are remembered.
const MAX_MODELS: usize = 64;

/// What a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateName {
    Requests,
    Tokens,
    InputTokens,
}

impl RateName {
    pub const ALL: [Self; 3] = [Self::Requests, Self::Tokens, Self::InputTokens];

    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::InputTokens => "input-tokens",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// How much of it a request of so many tokens takes.
    fn amount(self, tokens: u64) -> u64 {
        match self {
            Self::Requests => 1,
            Self::Tokens | Self::InputTokens => tokens,
        }
    }
}

/// A rate of one model's as an answer told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderRate {
    pub limit: u64,
    /// The amount that was left when the provider told it.
    left: u64,
    read_ms: u64,
    /// When everything is there again; what was told is forgotten then.
    pub full_ms: u64,
    /// The amount that calls have begun since.
    begun: u64,
}

impl ProviderRate {
    /// `None` for a quota, and where it was not told how much of what is left until when.
    fn of(window: &WindowReading, now_ms: u64) -> Option<(RateName, Self)> {
        let name = RateName::of(&window.name).filter(|_| !window.is_quota && window.resets_in_ms > 0)?;
        let (limit, left) = window.amounts.filter(|(limit, _)| *limit > 0)?;
        Some((
            name,
            Self { limit, left, read_ms: now_ms, full_ms: now_ms.saturating_add(window.resets_in_ms), begun: 0 },
        ))
    }

    fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.full_ms
    }

    /// The amount that comes back until the limit is full.
    fn missing(&self) -> u64 {
        self.limit - self.left
    }

    fn span_ms(&self) -> u64 {
        self.full_ms.saturating_sub(self.read_ms).max(1)
    }

    pub fn remaining(&self, now_ms: u64) -> u64 {
        let passed_ms = now_ms.saturating_sub(self.read_ms).min(self.span_ms());
        let back = share(self.missing(), passed_ms, self.span_ms());
        (self.left + back).saturating_sub(self.begun)
    }

    /// The amount that comes back in a minute; `None` where nothing was missing.
    pub fn per_minute(&self) -> Option<u64> {
        (self.missing() > 0).then(|| share(self.missing(), 60_000, self.span_ms()))
    }

    /// Milliseconds until there is room for so many; one that is larger than the limit waits until nothing is missing.
    fn wait_ms(&self, amount: u64, now_ms: u64) -> u64 {
        if self.is_over(now_ms) {
            return 0;
        }
        let needed = amount.min(self.limit).saturating_add(self.begun);
        let lacking = needed.saturating_sub(self.left);
        if lacking == 0 {
            return 0;
        }
        if lacking >= self.missing() {
            return self.full_ms - now_ms;
        }
        let after_ms = (u128::from(lacking) * u128::from(self.span_ms())).div_ceil(u128::from(self.missing()));
        (self.read_ms + u64::try_from(after_ms).unwrap_or(u64::MAX)).saturating_sub(now_ms)
    }
}

/// `whole * part / of`, without overflow.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    let share = u128::from(whole) * u128::from(part) / u128::from(of.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The rates of one connection, by the model as its provider knows it: providers tell each model's own.
#[derive(Debug, Default)]
pub struct ProviderRates(HashMap<Box<str>, [Option<ProviderRate>; 3]>);

impl ProviderRates {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes over what an answer told; a rate that it does not tell stays.
    pub fn learn(&mut self, model: &str, windows: &[WindowReading], now_ms: u64) {
        for (name, rate) in windows.iter().filter_map(|one| ProviderRate::of(one, now_ms)) {
            if !self.0.contains_key(model) {
                if self.0.len() >= MAX_MODELS {
                    self.0.retain(|_, rates| rates.iter().flatten().any(|rate| !rate.is_over(now_ms)));
                }
                if self.0.len() >= MAX_MODELS {
                    return;
                }
                self.0.insert(model.into(), [None; 3]);
            }
            if let Some(rates) = self.0.get_mut(model) {
                rates[name as usize] = Some(rate);
            }
        }
    }

    /// A request of so many tokens begins.
    pub fn begin(&mut self, model: &str, tokens: u64) {
        for (rate, name) in self.0.get_mut(model).into_iter().flatten().zip(RateName::ALL) {
            if let Some(rate) = rate {
                rate.begun = rate.begun.saturating_add(name.amount(tokens));
            }
        }
    }

    /// Milliseconds until a request of so many tokens may begin.
    pub fn wait_ms(&self, model: &str, tokens: u64, now_ms: u64) -> u64 {
        let waits = self.of(model).map(|(name, rate)| rate.wait_ms(name.amount(tokens), now_ms));
        waits.max().unwrap_or(0)
    }

    /// 0 to 1: what is left of the tightest; `None` where nothing is known.
    pub fn left(&self, model: &str, now_ms: u64) -> Option<f32> {
        let rates = self.of(model).filter(|(_, rate)| !rate.is_over(now_ms));
        rates.map(|(_, rate)| rate.remaining(now_ms) as f32 / rate.limit as f32).reduce(f32::min)
    }

    fn of(&self, model: &str) -> impl Iterator<Item = (RateName, &ProviderRate)> {
        let rates = self.0.get(model).into_iter().flatten();
        RateName::ALL.into_iter().zip(rates).filter_map(|(name, rate)| Some((name, rate.as_ref()?)))
    }

    /// Every rate that still says something.
    pub fn all(&self, now_ms: u64) -> impl Iterator<Item = (&str, RateName, &ProviderRate)> {
        self.0.iter().flat_map(move |(model, rates)| {
            let rates = RateName::ALL.into_iter().zip(rates);
            rates
                .filter_map(move |(name, rate)| Some((&**model, name, rate.as_ref().filter(|it| !it.is_over(now_ms))?)))
        })
    }
}

#[cfg(test)]
#[path = "provider_rate_tests.rs"]
mod tests;
