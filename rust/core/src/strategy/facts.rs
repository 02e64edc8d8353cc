//! The facts about a candidate at the time of a decision, and the demand of the request.

use super::pack::Pack;
use smallvec::SmallVec;

/// The static parts of a candidate's score, each from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prior {
    pub cheapness: f32,
    pub fit: f32,
    /// Higher for local providers and for connections with a high priority.
    pub tier: f32,
}

impl Prior {
    /// The value for an unknown part.
    pub const UNKNOWN: f32 = 0.5;

    pub fn merit(self, pack: Pack) -> f32 {
        let weights = pack.weights();
        weights.cost * self.cheapness + weights.fit * self.fit + weights.tier * self.tier
    }

    /// Returns the maximum of each part.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            cheapness: self.cheapness.max(other.cheapness),
            fit: self.fit.max(other.fit),
            tier: self.tier.max(other.tier),
        }
    }
}

/// Whether a candidate can be tried, in order of preference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Availability {
    #[default]
    Able,
    /// The cooldown has ended and no request has tried the candidate since. The next request is the probe.
    Probing,
    /// Failed recently and in cooldown. Tried only after all better candidates.
    Cooling,
    /// Must not be tried: rate limited by the provider, out of quota, blocked, or disabled.
    Closed,
}

impl Availability {
    pub fn is_able(self) -> bool {
        self <= Self::Probing
    }
}

/// One quota window of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaWindow {
    /// The share of quota left, 0 to 1.
    pub remaining: f32,
    pub resets_in_ms: u64,
}

/// The facts about a candidate at the time of a decision. An unknown value is `None`, and each strategy defines how it
/// ranks unknown values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Facts {
    /// Unique to the candidate, and equal in every snapshot and worker.
    pub id: u64,
    pub availability: Availability,
    /// Milliseconds until the candidate is able again; 0 if it is able.
    pub cooldown_ms: u64,
    pub weight: f32,
    /// The static fit, price and tier, for `auto`.
    pub prior: Prior,
    pub in_flight: u32,
    /// Requests sent to the candidate since the process started.
    pub used: u64,
    /// The number of concurrent requests above which the candidate counts as full.
    pub capacity: Option<u32>,
    /// The share left of the tightest operator-configured rate limit, 0 to 1.
    pub rate_left: Option<f32>,
    /// The connection is at its own limits and its queue is full: a new request would be rejected.
    pub is_shut: bool,
    /// Exponentially weighted moving average.
    pub latency_ms: Option<f32>,
    /// 0 to 1.
    pub success_rate: Option<f32>,
    /// Micro-dollars per million tokens.
    pub price_input: Option<u64>,
    pub price_output: Option<u64>,
    /// Tokens.
    pub context_window: Option<u64>,
    /// Whether the model accepts images, according to the catalogue.
    pub takes_pictures: Option<bool>,
    pub session: Option<QuotaWindow>,
    pub weekly: Option<QuotaWindow>,
    pub monthly: Option<QuotaWindow>,
}

impl Facts {
    /// Returns the share left of the tightest quota window; 1 if no window is known.
    pub fn headroom(&self) -> f32 {
        [self.session, self.weekly, self.monthly]
            .into_iter()
            .flatten()
            .fold(1.0, |least, window| least.min(window.remaining))
    }

    /// Returns the share left of the tightest of the provider's quota windows and the operator's rate limits.
    pub fn free_share(&self) -> f32 {
        self.rate_left.map_or_else(|| self.headroom(), |left| left.min(self.headroom()))
    }

    /// Returns whether the candidate is able and accepts a request now.
    pub fn is_open(&self) -> bool {
        self.availability.is_able() && !self.is_shut
    }

    /// Returns the estimated cost of the request in pico-dollars. `None` unless both prices are known.
    pub fn cost(&self, demand: &Demand) -> Option<u128> {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        Some(part(demand.input_tokens, self.price_input?) + part(demand.output_tokens, self.price_output?))
    }

    pub fn is_full(&self) -> bool {
        self.capacity.is_some_and(|capacity| self.in_flight >= capacity)
    }

    /// Combines the members of a nested combo into one candidate: as able as the most able member, as cheap as the
    /// cheapest, and as busy as all of them together.
    pub fn together(id: u64, weight: f32, members: impl Iterator<Item = Facts>) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let most = |a: Option<QuotaWindow>, b: Option<QuotaWindow>| match (a, b) {
            (Some(a), Some(b)) => Some(if b.remaining > a.remaining { b } else { a }),
            (one, other) => one.or(other),
        };
        let mut members = members;
        let Some(mut all) = members.next() else {
            return Self { id, weight, availability: Availability::Closed, ..Self::default() };
        };
        for one in members {
            if (one.availability, one.cooldown_ms) < (all.availability, all.cooldown_ms) {
                (all.availability, all.cooldown_ms) = (one.availability, one.cooldown_ms);
            }
            all.prior = all.prior.max(one.prior);
            all.in_flight = all.in_flight.saturating_add(one.in_flight);
            all.used = all.used.saturating_add(one.used);
            all.rate_left = all.rate_left.zip(one.rate_left).map(|(a, b)| a.max(b));
            all.is_shut &= one.is_shut;
            all.capacity = all.capacity.zip(one.capacity).map(|(a, b)| a.saturating_add(b));
            all.latency_ms = all.latency_ms.into_iter().chain(one.latency_ms).reduce(f32::min);
            all.success_rate = all.success_rate.into_iter().chain(one.success_rate).reduce(f32::max);
            all.price_input = least(all.price_input, one.price_input);
            all.price_output = least(all.price_output, one.price_output);
            all.context_window = all.context_window.max(one.context_window);
            all.session = most(all.session, one.session);
            all.weekly = most(all.weekly, one.weekly);
            all.monthly = most(all.monthly, one.monthly);
        }
        Self { id, weight, ..all }
    }
}

/// The demand of a request, estimated before the request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Estimated.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Requests with the same affinity share the provider's prompt cache.
    pub affinity: Option<u64>,
    /// The candidate that served the session last.
    pub last_target: Option<u64>,
    pub has_picture: bool,
    /// `auto`: the weight pack from the request, which overrides the combo's.
    pub pack: Option<Pack>,
}

impl Default for Demand {
    /// Without any data, a request has three times as many input tokens as output tokens, the average ratio of chats.
    fn default() -> Self {
        Self { input_tokens: 3, output_tokens: 1, affinity: None, last_target: None, has_picture: false, pack: None }
    }
}

/// Indices into the list of candidates, in the order to try them.
pub type CandidateOrder = SmallVec<[u16; 32]>;
