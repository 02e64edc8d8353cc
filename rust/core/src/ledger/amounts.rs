//! The amounts of a call: what it requests under its limits, what it holds, and what it used.

use crate::limit::{Limit, LimitScope, LimitUnit, Served};
use smallvec::SmallVec;

/// The amounts that a request may use at most, or has used.
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

/// The properties of a request that limits depend on.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The model name that the caller used.
    pub model: &'a str,
    /// The provider and model that served the request; empty until that is known.
    pub served: Served<'a>,
}

/// The capacity that a request needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeededCapacity {
    /// `None` for a request that uses nothing, to which only limits on requests apply.
    pub most: Option<Amounts>,
    /// Limits on requests already counted this request when it was accepted.
    pub is_counted: bool,
}

impl From<Option<Amounts>> for NeededCapacity {
    fn from(most: Option<Amounts>) -> Self {
        Self { most, is_counted: false }
    }
}

impl NeededCapacity {
    /// The amount that counts under a limit; `None` if the limit does not apply.
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

/// Reserved capacity. It must be released through [`crate::Ledger::settle`].
#[derive(Debug, Default)]
pub struct Hold {
    pub parts: SmallVec<[HeldPart; 4]>,
    /// The most that the call, or the next answer of a conversation, may use.
    pub most: Amounts,
    /// The request itself was counted when it was accepted.
    pub is_counted: bool,
    /// The amounts of the call that were counted before its end.
    pub counted: Amounts,
}

/// The part of a hold in one window of one account.
#[derive(Debug, Clone, Copy)]
pub struct HeldPart {
    pub account: u64,
    pub epoch: u64,
    pub reserved: u64,
    /// The part of the account's `used` that has no record yet.
    pub counted: u64,
}

/// A request that was counted when it was accepted.
#[derive(Debug, Default)]
pub struct Accepted {
    pub(super) parts: SmallVec<[HeldPart; 4]>,
}

/// The final amounts of a request.
#[derive(Debug)]
pub struct Charge {
    /// The capacity that was reserved for it.
    pub hold: Option<Hold>,
    pub spent: Amounts,
    /// The segment that holds its record.
    pub segment: u64,
}

/// The result of a reservation.
#[derive(Debug, Default)]
pub struct Reservation {
    pub hold: Option<Hold>,
    /// The exhausted limits on a model or provider. The targets that they apply to are left out.
    pub without: Vec<Limit>,
}

impl Reservation {
    /// Whether one of these limits leaves this target out.
    pub fn leaves_out(&self, model: &str, served: &Served<'_>) -> bool {
        self.without.iter().any(|limit| limit.applies_to(model, served))
    }

    /// Whether the request needs capacity under this limit. It does not if all targets of the limit are left out.
    pub fn is_under(&self, limit: &Limit, model: &str, targets: &[Served<'_>]) -> bool {
        self.without.is_empty()
            || limit.scope == LimitScope::All
            || limit.scope.is_model(model)
            || targets.iter().any(|served| !self.leaves_out(model, served) && limit.applies_to(model, served))
    }
}

/// A question to the control plane about the earlier use under a limit: the sum over the records of the key, or of all
/// keys in the group, since `from_ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitQuestion {
    /// The id of the key, or of the limit's group.
    pub owner_id: String,
    pub limit: Limit,
    pub from_ms: u64,
}
