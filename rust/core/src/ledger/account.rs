//! The account of one limit: what is used and held in its window, and how much of that is known.

use super::amounts::HeldPart;
use super::refusal::{exceeded, limits_lost, limits_unknown};
use crate::error::Error;
use crate::lease::{Lease, LeaseTerms, NodeUse, Room};
use crate::limit::{Limit, LimitUnit, Window};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Everything of the window is in `used`.
    All,
    /// Use that was recorded in this segment and later is in `used`.
    Since(u64),
}

#[derive(Debug)]
pub struct Account {
    /// The account's number in this ledger: holds name it.
    pub number: u64,
    pub limit: Limit,
    pub window: Window,
    /// Goes up with each window, so that a hold of a window that is over gives nothing back, also where the clock brings
    /// the same window twice.
    pub epoch: u64,
    /// The beginning of the latest window that it has been in.
    pub reached_ms: u64,
    pub used: u64,
    pub reserved: u64,
    /// How much of `used` has no record yet, so that no sum of control can have it.
    pub unrecorded: u64,
    pub known: Coverage,
    /// This node's part, where several nodes hold the limit together. `used` and `reserved` are then those of this node alone.
    pub lease: Option<Box<Lease>>,
}

/// Nothing was asked yet, so nothing is counted.
pub const NEVER: Coverage = Coverage::Since(u64::MAX);

/// Windows this short need no past: by the time that it is known they are over.
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

    /// Goes on to the window of the present; never back. One that began while we were counting is known from its beginning.
    pub fn roll(&mut self, now_ms: u64) {
        if now_ms >= self.window.ends_ms {
            self.enter(now_ms);
        }
    }

    /// Begins a window that the clock came back to: its use is not known.
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
            // Whether it has a past is the shared store's to say.
            self.known = Coverage::All;
        }
    }

    /// Whether so much more fits.
    pub fn room(&self, limit: &Limit, amount: u64, now_ms: u64, terms: Option<&LeaseTerms>) -> Result<(), Error> {
        if self.known != Coverage::All {
            return Err(limits_unknown());
        }
        if let (Some(lease), Some(terms)) = (&self.lease, terms) {
            let is_exact = limit.unit == LimitUnit::UsdMicros;
            return match lease.room(terms, limit.amount, self.own_use(), amount, is_exact) {
                Room::Enough => Ok(()),
                Room::Ask => Err(limits_unknown()),
                Room::Full => Err(self.exceeded(limit, amount, now_ms)),
                Room::Lost => Err(limits_lost()),
            };
        }
        let taken = self.used.saturating_add(self.reserved);
        if taken >= limit.amount || taken.saturating_add(amount) > limit.amount {
            return Err(self.exceeded(limit, amount, now_ms));
        }
        Ok(())
    }

    /// Whether so much more fits for work that begins later: what the shared store alone can say is asked then.
    pub fn room_later(&self, limit: &Limit, amount: u64, now_ms: u64, terms: Option<&LeaseTerms>) -> Result<(), Error> {
        if self.lease.is_none() || self.known != Coverage::All {
            return self.room(limit, amount, now_ms, terms);
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

    /// Takes so much for a request that is let through. Of a limit on requests that is used at once, whatever becomes of it.
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

    /// Where others share the limit, the store should hear soon of use that goes above this node's part.
    pub fn note_use(&self, terms: Option<&LeaseTerms>) {
        if let (Some(lease), Some(terms)) = (&self.lease, terms) {
            lease.note_use(terms, self.limit.amount, self.own_use());
        }
    }

    pub fn own_use(&self) -> NodeUse {
        NodeUse { used: self.used, reserved: self.reserved }
    }

    /// The amounts used, and used or held, as far as this node knows.
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

/// Whether the windows of a limit are over by the time that their past is known.
pub fn needs_no_past(limit: &Limit, window: Window) -> bool {
    limit.unit == LimitUnit::Requests && window.ends_ms - window.starts_ms < SHORT_WINDOW_MS
}
