//! The account of one limit: the amounts used and reserved in its window, and how much of the earlier use is known.

use super::amounts::HeldPart;
use super::refusal::{exceeded, limits_lost, limits_unknown};
use crate::error::Error;
use crate::lease::{Lease, LeaseCapacity, LeaseTerms, NodeUse};
use crate::limit::{Limit, LimitUnit, Window};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// `used` covers the whole window.
    All,
    /// `used` covers the use recorded from this segment on.
    Since(u64),
}

#[derive(Debug)]
pub struct Account {
    /// The account's number in this ledger, which holds refer to.
    pub number: u64,
    pub limit: Limit,
    pub window: Window,
    /// Incremented with each window, so that a hold of an earlier window returns nothing, even if the clock enters the
    /// same window twice.
    pub epoch: u64,
    /// The start of the latest window that the account has been in.
    pub reached_ms: u64,
    pub used: u64,
    pub reserved: u64,
    /// The part of `used` without a record, which no sum of the control plane can include.
    pub unrecorded: u64,
    pub known: Coverage,
    /// This node's lease, if several nodes share the limit. `used` and `reserved` then belong to this node alone.
    pub lease: Option<Box<Lease>>,
}

/// The earlier use has not been requested, so nothing is counted.
pub const NEVER: Coverage = Coverage::Since(u64::MAX);

/// Windows up to this length need no earlier use, because they end before it is known.
pub const SHORT_WINDOW_MS: u64 = 60_000;

impl Account {
    pub fn new(number: u64, limit: &Limit, now_ms: u64, known: Coverage) -> Self {
        let window = limit.window(now_ms);
        Self {
            number,
            limit: limit.clone(),
            window,
            epoch: 0,
            reached_ms: window.starts_ms,
            used: 0,
            reserved: 0,
            unrecorded: 0,
            known,
            lease: None,
        }
    }

    /// Moves to the current window, never backwards. The use of a window that began while the ledger was counting is
    /// fully known.
    pub fn roll(&mut self, now_ms: u64) {
        if now_ms >= self.window.ends_ms {
            self.enter(now_ms);
        }
    }

    /// Begins a window that the clock was set back to. Its use is unknown.
    pub fn put_back(&mut self, now_ms: u64) {
        if now_ms < self.window.starts_ms {
            self.enter(now_ms);
        }
    }

    pub fn enter(&mut self, now_ms: u64) {
        self.window = self.limit.window(now_ms);
        self.epoch += 1;
        (self.used, self.reserved, self.unrecorded) = (0, 0, 0);
        let is_new = self.window.starts_ms > self.reached_ms;
        self.reached_ms = self.reached_ms.max(self.window.starts_ms);
        self.known = if is_new || needs_no_past(&self.limit, self.window) { Coverage::All } else { NEVER };
        if let Some(lease) = &mut self.lease {
            lease.renew();
            // The shared store decides whether there is earlier use.
            self.known = Coverage::All;
        }
    }

    /// Checks that the amount fits.
    pub fn check_capacity(
        &self,
        limit: &Limit,
        amount: u64,
        now_ms: u64,
        terms: Option<&LeaseTerms>,
    ) -> Result<(), Error> {
        if self.known != Coverage::All {
            return Err(limits_unknown());
        }
        if let (Some(lease), Some(terms)) = (&self.lease, terms) {
            let is_exact = limit.unit == LimitUnit::UsdMicros;
            return match lease.check_capacity(terms, limit.amount, self.own_use(), amount, is_exact) {
                LeaseCapacity::Enough => Ok(()),
                LeaseCapacity::AskStore => Err(limits_unknown()),
                LeaseCapacity::Full => Err(self.exceeded(limit, amount, now_ms)),
                LeaseCapacity::Lost => Err(limits_lost()),
            };
        }
        let taken = self.used.saturating_add(self.reserved);
        if taken >= limit.amount || taken.saturating_add(amount) > limit.amount {
            return Err(self.exceeded(limit, amount, now_ms));
        }
        Ok(())
    }

    /// Checks that the amount fits for work that begins later. Questions that only the shared store can answer are
    /// asked then.
    pub fn check_capacity_later(
        &self,
        limit: &Limit,
        amount: u64,
        now_ms: u64,
        terms: Option<&LeaseTerms>,
    ) -> Result<(), Error> {
        if self.lease.is_none() || self.known != Coverage::All {
            return self.check_capacity(limit, amount, now_ms, terms);
        }
        let (used, taken) = self.known_use();
        if used >= limit.amount || taken.saturating_add(amount) > limit.amount {
            return Err(self.exceeded(limit, amount, now_ms));
        }
        Ok(())
    }

    fn exceeded(&self, limit: &Limit, amount: u64, now_ms: u64) -> Error {
        exceeded(limit, self.window, self.known_use(), amount, now_ms)
    }

    /// Takes the amount for an admitted request. A limit on requests counts it as used at once, whatever the outcome.
    pub fn take(&mut self, amount: u64) -> HeldPart {
        let mut part = HeldPart { account: self.number, epoch: self.epoch, reserved: 0, counted: 0 };
        if self.limit.is_counted_at_once() {
            self.used = self.used.saturating_add(amount);
            self.unrecorded = self.unrecorded.saturating_add(amount);
            part.counted = amount;
        } else {
            self.reserved = self.reserved.saturating_add(amount);
            part.reserved = amount;
        }
        part
    }

    /// If the limit is shared, requests an early report to the store when the use exceeds this node's lease.
    pub fn note_use(&self, terms: Option<&LeaseTerms>) {
        if let (Some(lease), Some(terms)) = (&self.lease, terms) {
            lease.note_use(terms, self.limit.amount, self.own_use());
        }
    }

    pub fn own_use(&self) -> NodeUse {
        NodeUse { used: self.used, reserved: self.reserved }
    }

    /// The amounts used, and used or reserved, as far as this node knows.
    pub fn known_use(&self) -> (u64, u64) {
        let (others_used, others) = self.lease.as_ref().map_or((0, 0), |lease| lease.others());
        let used = self.used.saturating_add(others_used);
        (used, self.used.saturating_add(self.reserved).saturating_add(others))
    }

    pub fn is(&self, limit: &Limit) -> bool {
        self.limit.id == limit.id && self.limit.counts_like(limit)
    }
}

impl HeldPart {
    pub fn is_of(&self, account: &Account) -> bool {
        (self.account, self.epoch) == (account.number, account.epoch)
    }
}

/// Whether the limit's windows end before their earlier use would be known.
pub fn needs_no_past(limit: &Limit, window: Window) -> bool {
    limit.unit == LimitUnit::Requests && window.ends_ms - window.starts_ms < SHORT_WINDOW_MS
}
