//! Rate limits that a provider reports in its answers: a limit, the amount left, and the time until it is full again.
//! The amount is assumed to grow evenly until then, as providers with such headers document. After that time the
//! reading is no longer used. The caller passes the time, so the module has no side effects.

use crate::quota::WindowReading;
use std::collections::HashMap;

/// The number of models of one connection whose rate limits are stored.
const MAX_MODELS: usize = 64;

/// The unit of a rate limit.
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

    /// The amount that a request with this many tokens takes.
    fn amount(self, tokens: u64) -> u64 {
        match self {
            Self::Requests => 1,
            Self::Tokens | Self::InputTokens => tokens,
        }
    }
}

/// A rate limit of one model, as an answer reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderRate {
    pub limit: u64,
    /// The amount left when the provider reported it.
    left: u64,
    read_ms: u64,
    /// When the limit is full again. The reading expires then.
    pub full_ms: u64,
    /// The amount of the requests that started since.
    begun: u64,
}

impl ProviderRate {
    /// `None` for a quota, or if the limit, the amount left or the reset time is missing.
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

    /// The amount missing to the full limit.
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

    /// The amount that is refilled per minute; `None` if nothing was missing.
    pub fn per_minute(&self) -> Option<u64> {
        (self.missing() > 0).then(|| share(self.missing(), 60_000, self.span_ms()))
    }

    /// Milliseconds until the amount fits. An amount larger than the limit waits until nothing is missing.
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

/// The rate limits of one connection, by the provider's name of the model. Providers report them per model.
#[derive(Debug, Default)]
pub struct ProviderRates(HashMap<Box<str>, [Option<ProviderRate>; 3]>);

impl ProviderRates {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Stores the rate limits of an answer. Limits that it does not report are unchanged.
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

    /// Records the start of a request with this many tokens.
    pub fn begin(&mut self, model: &str, tokens: u64) {
        for (rate, name) in self.0.get_mut(model).into_iter().flatten().zip(RateName::ALL) {
            if let Some(rate) = rate {
                rate.begun = rate.begun.saturating_add(name.amount(tokens));
            }
        }
    }

    /// Milliseconds until a request with this many tokens may start.
    pub fn wait_ms(&self, model: &str, tokens: u64, now_ms: u64) -> u64 {
        let waits = self.of(model).map(|(name, rate)| rate.wait_ms(name.amount(tokens), now_ms));
        waits.max().unwrap_or(0)
    }

    /// The remaining share of the tightest rate limit, from 0 to 1; `None` if none is known.
    pub fn left(&self, model: &str, now_ms: u64) -> Option<f32> {
        let rates = self.of(model).filter(|(_, rate)| !rate.is_over(now_ms));
        rates.map(|(_, rate)| rate.remaining(now_ms) as f32 / rate.limit as f32).reduce(f32::min)
    }

    fn of(&self, model: &str) -> impl Iterator<Item = (RateName, &ProviderRate)> {
        let rates = self.0.get(model).into_iter().flatten();
        RateName::ALL.into_iter().zip(rates).filter_map(|(name, rate)| Some((name, rate.as_ref()?)))
    }

    /// Every rate limit that has not expired.
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
