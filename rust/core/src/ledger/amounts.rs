//! What a call asks of limits, what it holds of them, and what it came to.

use crate::limit::{Limit, LimitScope, LimitUnit, Served};
use smallvec::SmallVec;

/// The most that a request can come to, or what it came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    pub tokens: u64,
    pub usd_micros: u64,
}

impl Amounts {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            usd_micros: self.usd_micros.saturating_add(other.usd_micros),
        }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            usd_micros: self.usd_micros.saturating_sub(other.usd_micros),
        }
    }

    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { tokens: self.tokens.max(other.tokens), usd_micros: self.usd_micros.max(other.usd_micros) }
    }

    pub fn of(self, unit: LimitUnit) -> u64 {
        match unit {
            LimitUnit::Requests => 1,
            LimitUnit::Tokens => self.tokens,
            LimitUnit::UsdMicros => self.usd_micros,
        }
    }
}

/// What a request is about, as far as limits ask.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// As the caller named it.
    pub model: &'a str,
    /// What served it; nothing before that is known.
    pub served: Served<'a>,
}

/// What a request asks room for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask {
    /// `None` for a request that uses nothing: only limits of requests hold.
    pub most: Option<Amounts>,
    /// Limits of requests counted the request when it was accepted.
    pub is_counted: bool,
}

impl From<Option<Amounts>> for Ask {
    fn from(most: Option<Amounts>) -> Self {
        Self { most, is_counted: false }
    }
}

impl Ask {
    /// The amount under a limit; `None` where the limit does not hold.
    pub fn under(self, limit: &Limit) -> Option<u64> {
        if self.is_counted && limit.is_counted_at_once() {
            return None;
        }
        match self.most {
            Some(most) => Some(most.of(limit.unit)),
            None => (limit.unit == LimitUnit::Requests).then_some(1),
        }
    }
}

/// Room that was reserved. It must come back through [`crate::Ledger::settle`].
#[derive(Debug, Default)]
pub struct Hold {
    pub parts: SmallVec<[HeldPart; 4]>,
    /// The most that the call, or the next answer of a conversation, comes to.
    pub most: Amounts,
    /// The request itself was counted when it was accepted.
    pub is_counted: bool,
    /// The amounts that were counted of the call before its end.
    pub counted: Amounts,
}

/// What one call has in one window of one account.
#[derive(Debug, Clone, Copy)]
pub struct HeldPart {
    pub account: u64,
    pub epoch: u64,
    pub reserved: u64,
    /// In the account's `used` before there is a record of it.
    pub counted: u64,
}

/// What a request came to.
#[derive(Debug)]
pub struct Charge {
    /// The room that was reserved for it.
    pub hold: Option<Hold>,
    pub spent: Amounts,
    /// The segment that its record is in.
    pub segment: u64,
}

/// The outcome of asking for room.
#[derive(Debug, Default)]
pub struct Reservation {
    pub hold: Option<Hold>,
    /// Limits of a model or a provider under which there is no room: what they apply to is left out.
    pub without: Vec<Limit>,
}

impl Reservation {
    /// Whether one of these limits leaves it out.
    pub fn leaves_out(&self, model: &str, served: &Served<'_>) -> bool {
        self.without.iter().any(|limit| limit.applies_to(model, served))
    }

    /// Whether the request holds room under this limit: a limit whose targets are all left out is not its.
    pub fn is_under(&self, limit: &Limit, model: &str, targets: &[Served<'_>]) -> bool {
        self.without.is_empty()
            || limit.scope == LimitScope::All
            || limit.scope.is_model(model)
            || targets.iter().any(|served| !self.leaves_out(model, served) && limit.applies_to(model, served))
    }
}

/// One limit whose past control is asked for: the sum over the records of the key, or of all keys in the group, since `from_ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitQuestion {
    /// The key's id, or that of the limit's group.
    pub owner_id: String,
    pub limit: Limit,
    pub from_ms: u64,
}
