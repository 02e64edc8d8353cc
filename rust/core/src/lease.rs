//! A node's lease on a limit that several nodes share: the amount that the node may use before it asks the shared store
//! again.
//!
//! For each node and window the shared store knows the amount used and the total that the node may reach (its
//! *ceiling*). The ceilings together never exceed the limit, so a node admits requests up to its own ceiling without
//! asking. Both values are totals of the window and not differences, so a repeated report counts once, and an emptied
//! store gets the totals again.
//!
//! ```text
//!  used by A | leased to A |      free pool       | leased to B | used by B
//!  ----------------------->|                      |<-----------------------
//!             ceiling of A                          ceiling of B
//! ```
//!
//! The size of a lease follows the rate of use, and no grant exceeds half of an equal share of the pool. Near the end
//! of a limit, leases shrink to the requests that wait for them, so each of those is decided exactly.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A lease should last this long at the current rate.
const HORIZON_MS: u64 = 20_000;
/// A lease should last for at least this many requests of the size of the last one.
const REQUESTS_AHEAD: u64 = 128;
/// Capacity that was not used for this long is returned if other nodes may soon need it.
pub const IDLE_MS: u64 = 1_000;
/// A limit is scarce when less than this fraction of it is free. Only then is idle capacity returned early. Otherwise
/// the node keeps it longer, so that infrequent callers do not cause a store request for each call.
const SCARCE_PARTS: u64 = 2;
/// The minimum time between the store's last answer and a top-up that no request waits for.
const TOP_UP_AFTER_MS: u64 = 50;
/// An answer that reports no free capacity is considered current for this long.
const FRESH_MS: u64 = 200;
/// A lease is topped up early when no more than this fraction of its last grant is left. A lease for a single request
/// is topped up at once, so that the next request need not wait.
const LOW_PARTS: u64 = 4;

/// How a node decides while the shared store is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreLoss {
    /// Each node continues with its share of the limit.
    #[default]
    FairShare,
    /// Requests with a limit are refused.
    Refuse,
}

/// The settings and state that all leases of one node share.
#[derive(Debug)]
pub struct LeaseTerms {
    /// A lease expires when its holder has not reported for this long.
    pub ttl_ms: u64,
    pub on_loss: StoreLoss,
    is_lost: AtomicBool,
    nodes: AtomicU64,
    now_ms: AtomicU64,
    /// A lease is low, so the store should be asked soon.
    is_low: AtomicBool,
    /// The node is shutting down and returns what it does not use.
    is_leaving: AtomicBool,
}

impl LeaseTerms {
    #[must_use]
    pub fn new(ttl_ms: u64, on_loss: StoreLoss) -> Self {
        Self {
            ttl_ms,
            on_loss,
            // True until the store has answered once.
            is_lost: AtomicBool::new(true),
            nodes: AtomicU64::new(1),
            now_ms: AtomicU64::new(0),
            is_low: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// Marks the node as shutting down. From now on it leases nothing.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    /// Stores the latest reading of the monotonic clock.
    pub fn note_time(&self, now_ms: u64) {
        self.now_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    pub fn set_lost(&self, is_lost: bool) {
        self.is_lost.store(is_lost, Ordering::Release);
    }

    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Sets the number of nodes, including this one.
    pub fn set_nodes(&self, nodes: u64) {
        self.nodes.store(nodes.max(1), Ordering::Relaxed);
    }

    pub fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// Whether a lease became low since the last call.
    pub fn take_low(&self) -> bool {
        self.is_low.load(Ordering::Relaxed) && self.is_low.swap(false, Ordering::AcqRel)
    }

    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }
}

/// Whether a lease has capacity for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseCapacity {
    Enough,
    /// The store must be asked. The waiting amount is recorded.
    AskStore,
    /// The limit is exhausted.
    Full,
    /// The store is unavailable, and nothing may be admitted without it.
    Lost,
}

/// The use of a limit by this node: the amount used, and the maximum that running requests may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeUse {
    pub used: u64,
    pub reserved: u64,
}

impl NodeUse {
    #[must_use]
    pub fn taken(self) -> u64 {
        self.used.saturating_add(self.reserved)
    }
}

/// A node's report to the store for one limit in one window, with the capacity that it requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseClaim {
    pub used: u64,
    /// The minimum ceiling: the amount used, reserved for running requests or already granted.
    pub floor: u64,
    /// The amount that waiting requests need.
    pub need: u64,
    /// The amount above the floor that makes a lease of the desired size.
    pub want: u64,
}

/// The store's answer for one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseGrant {
    /// The maximum of used and reserved together.
    pub ceiling: u64,
    /// Used by or leased to other nodes.
    pub others: u64,
    /// Used by other nodes.
    pub others_used: u64,
    /// The part of `others` that belongs to nodes that no longer report.
    pub orphaned: u64,
}

/// Use by node, each with whether that node is known to have stopped.
pub type UseByNode = Vec<(String, u64, bool)>;

/// This node's lease on one limit in the current window.
#[derive(Debug, Default)]
pub struct Lease {
    ceiling: u64,
    /// When the lease expires, on the monotonic clock.
    valid_until_ms: u64,
    grant: Option<LeaseGrant>,
    /// When the store last answered, on the monotonic clock.
    answered_ms: u64,
    asked_ms: u64,
    used_when_asked: u64,
    /// The part of the last grant that was unused when it arrived.
    granted: u64,
    /// The recent rate of use, in units per second.
    rate: f64,
    wanted: Cell<u64>,
    last_amount: Cell<u64>,
    /// A request was refused because it is larger than the capacity left here. Other nodes may be able to use that
    /// capacity.
    is_too_little: Cell<bool>,
    used_at_ms: Cell<u64>,
    /// The use before the store began to count, from when it is known until the store has it.
    pub past: Option<UseByNode>,
    /// When the control plane was last asked for the use of stopped nodes, on the monotonic clock.
    pub(crate) asked_orphans_ms: u64,
}

impl Lease {
    /// A lease with the earlier use, if it is known.
    #[must_use]
    pub fn with_past(past: Option<UseByNode>) -> Self {
        Self { past, ..Self::default() }
    }

    /// Whether the amount fits. With `is_exact`, nothing is admitted that the store has not granted.
    pub fn check_capacity(
        &self,
        terms: &LeaseTerms,
        limit: u64,
        now: NodeUse,
        amount: u64,
        is_exact: bool,
    ) -> LeaseCapacity {
        let now_ms = terms.now_ms();
        let taken = now.taken();
        let fits = |ceiling: u64| taken < ceiling && taken.saturating_add(amount) <= ceiling;
        if terms.is_lost() {
            return self.check_capacity_alone(terms, limit, is_exact, fits);
        }
        let ceiling = self.ceiling_at(now_ms).min(limit);
        if fits(ceiling) {
            self.last_amount.set(amount.max(1));
            self.used_at_ms.set(now_ms);
            if (ceiling - taken - amount) <= self.granted / LOW_PARTS {
                terms.is_low.store(true, Ordering::Relaxed);
            }
            return LeaseCapacity::Enough;
        }
        if let Some(grant) = self.grant {
            let is_spent = grant.others_used.saturating_add(now.used) >= limit;
            let is_fresh = now_ms < self.answered_ms + FRESH_MS;
            // The pool has since been leased to other nodes, or is too small.
            if is_spent || (is_fresh && !fits(limit.saturating_sub(grant.others))) {
                if taken < ceiling {
                    self.is_too_little.set(true);
                    terms.is_low.store(true, Ordering::Relaxed);
                }
                return LeaseCapacity::Full;
            }
        }
        self.wanted.set(self.wanted.get().saturating_add(amount.max(1)));
        LeaseCapacity::AskStore
    }

    /// Records the actual use of a request, which may exceed what was reserved for it.
    pub fn note_use(&self, terms: &LeaseTerms, limit: u64, now: NodeUse) {
        if !terms.is_lost() && self.is_overdrawn(limit, now) {
            terms.is_low.store(true, Ordering::Relaxed);
        }
    }

    /// Decides while the store is unavailable. A limit in money admits only what was leased, and only while the lease
    /// is certainly valid. For any other limit the node also uses its share of the pool as last reported, or of a whole
    /// new window.
    fn check_capacity_alone(
        &self,
        terms: &LeaseTerms,
        limit: u64,
        is_exact: bool,
        fits: impl Fn(u64) -> bool,
    ) -> LeaseCapacity {
        if terms.on_loss == StoreLoss::Refuse {
            return LeaseCapacity::Lost;
        }
        if is_exact {
            return if fits(self.ceiling_at(terms.now_ms()).min(limit)) {
                LeaseCapacity::Enough
            } else {
                LeaseCapacity::Lost
            };
        }
        let nodes = terms.nodes();
        let ceiling = if let Some(grant) = self.grant {
            // Half of the share, because other nodes may have used some of the pool since.
            let pool = limit.saturating_sub(grant.others).saturating_sub(self.ceiling);
            self.ceiling.saturating_add(pool / (2 * nodes))
        } else {
            let past = self.past.iter().flatten().map(|(_, used, _)| *used).fold(0, u64::saturating_add);
            limit.saturating_sub(past) / nodes
        };
        if fits(ceiling.min(limit)) {
            LeaseCapacity::Enough
        } else {
            LeaseCapacity::Full
        }
    }

    fn ceiling_at(&self, now_ms: u64) -> u64 {
        if now_ms < self.valid_until_ms {
            self.ceiling
        } else {
            0
        }
    }

    /// The amounts used, and used or leased, by other nodes, as last reported.
    pub fn others(&self) -> (u64, u64) {
        self.grant.map_or((0, 0), |grant| (grant.others_used, grant.others))
    }

    /// Whether nodes that no longer report have left unused capacity.
    pub fn has_orphans(&self) -> bool {
        self.grant.is_some_and(|grant| grant.orphaned > 0)
    }

    /// The claim to send to the store now; `None` if nothing is due. With `is_all`, everything is reported, because the
    /// store has come back.
    pub fn claim(&mut self, terms: &LeaseTerms, limit: u64, now: NodeUse, is_all: bool) -> Option<LeaseClaim> {
        let now_ms = terms.now_ms();
        let need = self.wanted.get();
        let ceiling = self.ceiling_at(now_ms);
        let unused = ceiling.saturating_sub(now.taken());
        let since_ms = now_ms.saturating_sub(self.asked_ms);
        let is_touched = now.taken() > 0 || self.ceiling > 0;
        let is_leaving = terms.is_leaving.load(Ordering::Acquire);
        let idle_ms = if self.is_scarce(limit) { IDLE_MS } else { terms.ttl_ms / 3 };
        let is_unneeded = self.is_too_little.take() || is_leaving;
        let is_idle = unused > 0 && (is_unneeded || now_ms.saturating_sub(self.used_at_ms.get()) >= idle_ms);
        let is_low = !is_idle && self.granted > 0 && unused <= self.granted / LOW_PARTS && since_ms >= TOP_UP_AFTER_MS;
        // Capacity that is already used needs no lease.
        let is_due = (unused > 0 || now.reserved > 0) && since_ms >= terms.ttl_ms / 3;
        // Use that is recorded after the capacity was returned is also reported soon.
        let is_unsaid = now.used != self.used_when_asked
            && self.ceiling <= now.taken()
            && (since_ms >= IDLE_MS || self.is_overdrawn(limit, now));
        let is_new = self.past.is_some() && is_touched;
        if need == 0 && !is_idle && !is_low && !is_due && !is_unsaid && !is_new && !(is_all && is_touched) {
            return None;
        }
        let used = now.used.saturating_sub(self.used_when_asked);
        if since_ms > 0 {
            let rate = used as f64 * 1e3 / since_ms as f64;
            self.rate = if self.rate > 0.0 { f64::midpoint(self.rate, rate) } else { rate };
        }
        let ahead = (self.rate * HORIZON_MS as f64 / 1e3) as u64;
        let want = if is_idle || (need == 0 && !is_low) {
            0
        } else {
            ahead.max(self.last_amount.get().max(need).saturating_mul(REQUESTS_AHEAD)).max(need)
        };
        (self.asked_ms, self.used_when_asked) = (now_ms, now.used);
        self.wanted.set(0);
        if is_idle && need == 0 {
            // From now on this capacity belongs to the pool.
            self.ceiling = now.taken();
        }
        let floor = self.ceiling_at(now_ms).max(now.taken());
        Some(LeaseClaim { used: now.used, floor, need, want })
    }

    /// Whether the node used more than it was granted while little is free, so that the store needs a report at once to
    /// stop it from granting the excess to others.
    fn is_overdrawn(&self, limit: u64, now: NodeUse) -> bool {
        now.taken() > self.ceiling && self.grant.is_some() && self.leaves_little(limit, now.taken())
    }

    fn is_scarce(&self, limit: u64) -> bool {
        self.leaves_little(limit, self.ceiling)
    }

    /// Whether little of the limit is free if this node has `own`.
    fn leaves_little(&self, limit: u64, own: u64) -> bool {
        let free = |grant: LeaseGrant| limit.saturating_sub(grant.others).saturating_sub(own);
        self.grant.is_none_or(|grant| free(grant) < limit / SCARCE_PARTS)
    }

    /// Applies the store's answer to a request that was sent at `asked_ms`.
    pub fn take(&mut self, terms: &LeaseTerms, grant: LeaseGrant, now: NodeUse, asked_ms: u64) {
        self.ceiling = grant.ceiling;
        // The store's clock for the lease started later, when the request arrived.
        self.valid_until_ms = asked_ms + terms.ttl_ms - terms.ttl_ms / 10;
        self.answered_ms = terms.now_ms();
        let unused = grant.ceiling.saturating_sub(now.taken());
        self.granted = unused;
        self.grant = Some(grant);
    }

    /// Reports everything again, because the store may have lost it. A valid lease stays valid.
    pub fn retell(&mut self) {
        self.asked_ms = 0;
    }

    /// Begins a new window.
    pub fn renew(&mut self) {
        *self = Self { rate: self.rate, last_amount: Cell::new(self.last_amount.get()), ..Self::default() };
    }
}

/// The decision of the store about a claim, equal to the store's script. It is in Rust so that tests can try many
/// orders of events.
///
/// `others` lists, for every other node, the amount used, the ceiling, and whether the node still reports.
#[must_use]
pub fn grant_lease(limit: u64, claim: LeaseClaim, others: &[(u64, u64, bool)], is_exact: bool) -> LeaseGrant {
    // Up to a hundredth of the limit may be granted from unreported leases of lost nodes. For money it is
    // nothing.
    let mut spare = if is_exact { 0 } else { limit / 100 };
    let (mut claimed, mut others_used, mut orphaned, mut nodes) = (0_u64, 0_u64, 0_u64, 1_u64);
    for &(used, ceiling, is_heard) in others {
        let mut own = used.max(ceiling);
        if is_heard {
            nodes += 1;
        } else {
            let freed = spare.min(own - used);
            spare -= freed;
            own -= freed;
            orphaned = orphaned.saturating_add(own - used);
        }
        claimed = claimed.saturating_add(own);
        others_used = others_used.saturating_add(used);
    }
    let pool = limit.saturating_sub(claimed).saturating_sub(claim.floor);
    let extra = claim.want.min(pool / (2 * nodes)).max(claim.need.min(pool));
    LeaseGrant { ceiling: claim.floor.saturating_add(extra), others: claimed, others_used, orphaned }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
