//! The facts of a candidate at the moment of a decision, and the demand of the request that asks for it.

use super::pack::Pack;
use smallvec::SmallVec;

/// The facts of a candidate that are known before any request. Each from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prior {
    pub cheapness: f32,
    pub fit: f32,
    /// An operator's own machines and preferred connections stand high.
    pub tier: f32,
}

impl Prior {
    /// Where what is not known of a candidate stands.
    pub const UNKNOWN: f32 = 0.5;

    pub fn merit(self, pack: Pack) -> f32 {
        let weights = pack.weights();
        weights.cost * self.cheapness + weights.fit * self.fit + weights.tier * self.tier
    }

    /// The better of each part.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            cheapness: self.cheapness.max(other.cheapness),
            fit: self.fit.max(other.fit),
            tier: self.tier.max(other.tier),
        }
    }
}

/// Whether a candidate may be tried. The order is one of preference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    #[default]
    Able,
    /// The candidate's rest is over and nobody has tried it since: the next request is the probe.
    Probing,
    /// Failed lately. Tried when nothing better is left.
    Resting,
    /// Must not be tried: told to wait, out of quota, blocked, or switched off.
    Closed,
}

impl Standing {
    pub fn is_able(self) -> bool {
        self <= Self::Probing
    }
}

/// One quota window of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaWindow {
    /// 0 to 1: what is left.
    pub remaining: f32,
    pub resets_in_ms: u64,
}

/// The facts of a candidate at the moment of a decision. One that is not known is `None`, and
/// each strategy says where the unknown stands.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Facts {
    /// Tells this candidate from every other, the same in every snapshot and worker.
    pub id: u64,
    pub standing: Standing,
    /// Until it is able again; 0 for one that is.
    pub rest_ms: u64,
    pub weight: f32,
    /// The candidate's fit, price and tier, which `auto` knows beforehand.
    pub prior: Prior,
    pub in_flight: u32,
    /// Requests sent to it since the process started.
    pub used: u64,
    /// As many requests at once as it takes well.
    pub capacity: Option<u32>,
    /// 0 to 1: what is left of the tightest of the rates that the operator set for it.
    pub rate_left: Option<f32>,
    /// The candidate's own limits are reached and nobody may wait for it: a request that came now would be turned away.
    pub is_shut: bool,
    /// Exponentially weighted mean.
    pub latency_ms: Option<f32>,
    /// 0 to 1.
    pub success_rate: Option<f32>,
    /// Micro-dollars per million tokens.
    pub price_input: Option<u64>,
    pub price_output: Option<u64>,
    /// Tokens.
    pub context_window: Option<u64>,
    /// Whether its model reads pictures, as the catalogue tells.
    pub takes_pictures: Option<bool>,
    pub session: Option<QuotaWindow>,
    pub weekly: Option<QuotaWindow>,
    pub monthly: Option<QuotaWindow>,
}

impl Facts {
    /// The part that is left of the tightest quota window; all of it where no window is known.
    pub fn headroom(&self) -> f32 {
        [self.session, self.weekly, self.monthly]
            .into_iter()
            .flatten()
            .fold(1.0, |least, window| least.min(window.remaining))
    }

    /// The part that is left of the tightest of all windows: the provider's quotas and the operator's rates.
    pub fn room(&self) -> f32 {
        self.rate_left.map_or_else(|| self.headroom(), |left| left.min(self.headroom()))
    }

    /// Able, and a request may come now.
    pub fn is_open(&self) -> bool {
        self.standing.is_able() && !self.is_shut
    }

    /// What the request would cost here, in pico-dollars; `None` without both prices.
    pub fn cost(&self, ask: &Demand) -> Option<u128> {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        Some(part(ask.input_tokens, self.price_input?) + part(ask.output_tokens, self.price_output?))
    }

    pub fn is_full(&self) -> bool {
        self.capacity.is_some_and(|capacity| self.in_flight >= capacity)
    }

    /// What several candidates come to as one, in the eyes of the combo that they are nested in: as able as the most able of
    /// them, as cheap as the cheapest, and as busy as all of them together.
    pub fn together(id: u64, weight: f32, members: impl Iterator<Item = Facts>) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let most = |a: Option<QuotaWindow>, b: Option<QuotaWindow>| match (a, b) {
            (Some(a), Some(b)) => Some(if b.remaining > a.remaining { b } else { a }),
            (one, other) => one.or(other),
        };
        let mut members = members;
        let Some(mut all) = members.next() else {
            return Self { id, weight, standing: Standing::Closed, ..Self::default() };
        };
        for one in members {
            if (one.standing, one.rest_ms) < (all.standing, all.rest_ms) {
                (all.standing, all.rest_ms) = (one.standing, one.rest_ms);
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

/// The demand of a request, as far as it is known before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Estimated.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Requests with the same one profit from the same provider-side cache.
    pub affinity: Option<u64>,
    /// The candidate that served this session before.
    pub last_target: Option<u64>,
    pub has_picture: bool,
    /// `auto`: the weights that the caller wants in place of the combo's.
    pub pack: Option<Pack>,
}

impl Default for Demand {
    /// A request of which nothing is known weighs input three times as much as output, as chats do on average.
    fn default() -> Self {
        Self { input_tokens: 3, output_tokens: 1, affinity: None, last_target: None, has_picture: false, pack: None }
    }
}

/// Places in the list of candidates, first to be tried first.
pub type CandidateOrder = SmallVec<[u16; 32]>;
