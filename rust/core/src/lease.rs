//! A node's part of a limit that several nodes hold together: what it may use before it asks again.
//!
//! The store that the nodes share knows of each node what it has used of a limit in a window, and up to where it may go
//! (its *ceiling*). The ceilings together never pass the limit, so a node lets requests through up to its own without asking.
//! Both are totals of the window rather than differences: told twice they count once, and a store that was emptied is told
//! them anew.
//!
//! ```text
//! used by A | leased to A |  pool: nobody's yet  | leased to B | used by B
//! ----------------------->|                      |<-----------------------
//!            ceiling of A                          ceiling of B
//! ```
//!
//! A lease is sized by the rate of use, and no grant is more than half a fair part of the pool: towards the end of a limit
//! leases shrink to the requests that wait for them, each of which is then decided exactly.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A lease is to last this long at the present rate.
const HORIZON_MS: u64 = 20_000;
/// A lease is to last for this many requests like the last one, at least.
const REQUESTS_AHEAD: u64 = 128;
/// Room that was not used for this long is given back, where others may soon want it.
pub const IDLE_MS: u64 = 1_000;
/// A limit is scarce, so that others may soon want room, where less than this part of it is nobody's. Else room is kept for some
/// time, so that who calls seldom does not ask the store for each call.
const SCARCE_PARTS: u64 = 2;
/// A top-up comes no sooner after the last answer, where nobody waits for it.
const REST_MS: u64 = 50;
/// For so long an answer of the store is taken for the present where it says that there is no room.
const FRESH_MS: u64 = 200;
/// A lease with no more than this part of its last grant is topped up before it ends: one of a single request at once, so that
/// the next need not wait.
const LOW_PARTS: u64 = 4;

/// Where the store cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreLoss {
    /// Each node goes on with its fair part.
    #[default]
    FairShare,
    /// Requests under the limit are refused.
    Refuse,
}

/// The settings and state that all leases of one node share.
#[derive(Debug)]
pub struct LeaseTerms {
    /// A lease whose holder was not heard of for so long is over.
    pub ttl_ms: u64,
    pub on_loss: StoreLoss,
    is_lost: AtomicBool,
    nodes: AtomicU64,
    now_ms: AtomicU64,
    /// A lease is low, so that the store should be asked soon.
    is_low: AtomicBool,
    /// The node ends, and gives back what it does not use.
    is_leaving: AtomicBool,
}

impl LeaseTerms {
    #[must_use]
    pub fn new(ttl_ms: u64, on_loss: StoreLoss) -> Self {
        Self {
            ttl_ms,
            on_loss,
            // Until it has answered once.
            is_lost: AtomicBool::new(true),
            nodes: AtomicU64::new(1),
            now_ms: AtomicU64::new(0),
            is_low: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// From here on nothing is leased any more.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    /// The latest look at the monotonic clock.
    pub fn note_time(&self, now_ms: u64) {
        self.now_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    pub fn set_lost(&self, is_lost: bool) {
        self.is_lost.store(is_lost, Ordering::Release);
    }

    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// How many nodes are there, this one too.
    pub fn set_nodes(&self, nodes: u64) {
        self.nodes.store(nodes.max(1), Ordering::Relaxed);
    }

    pub fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// Whether a lease got low since this was asked before.
    pub fn take_low(&self) -> bool {
        self.is_low.load(Ordering::Relaxed) && self.is_low.swap(false, Ordering::AcqRel)
    }

    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }
}

/// Whether there is room under a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Enough,
    /// The store must be asked; that somebody waits is noted.
    Ask,
    /// The limit has none left.
    Full,
    /// The store cannot be asked, and nothing may be let through without it.
    Lost,
}

/// The use of a limit by this node: what is used, and what requests under way may use at most.
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

/// A node's report to the store of one limit in one window, and the room that it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseClaim {
    pub used: u64,
    /// The node has used so much, may yet for requests under way, or was granted it.
    pub floor: u64,
    /// Requests wait for so much.
    pub need: u64,
    /// A good lease above the floor.
    pub want: u64,
}

/// The store's answer for one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseGrant {
    /// Used and held together may come to this.
    pub ceiling: u64,
    /// Used by or leased to other nodes.
    pub others: u64,
    /// Used by other nodes.
    pub others_used: u64,
    /// Of `others`, what nodes had that are not heard of any more.
    pub orphaned: u64,
}

/// Sums of use by node, each with whether that node is known to have ended.
pub type UseByNode = Vec<(String, u64, bool)>;

/// This node's part of one limit in the present window.
#[derive(Debug, Default)]
pub struct Lease {
    ceiling: u64,
    /// Monotonic; a lease is good until then.
    valid_until_ms: u64,
    grant: Option<LeaseGrant>,
    /// Monotonic.
    answered_ms: u64,
    asked_ms: u64,
    used_when_asked: u64,
    /// Of the last grant, above what was taken then.
    granted: u64,
    /// Units for each second, of late.
    rate: f64,
    wanted: Cell<u64>,
    last_amount: Cell<u64>,
    /// A request was refused that is larger than the room here, which others may have a use for.
    is_too_little: Cell<bool>,
    used_at_ms: Cell<u64>,
    /// The use from before the store began to count, once it is known and until the store has it.
    pub past: Option<UseByNode>,
    /// Monotonic: when control was asked last what nodes that have ended used.
    pub(crate) asked_orphans_ms: u64,
}

impl Lease {
    /// One whose past is known, or is not.
    #[must_use]
    pub fn with_past(past: Option<UseByNode>) -> Self {
        Self { past, ..Self::default() }
    }

    /// Whether so much more fits. `is_exact`: nothing may be let through that the store has not granted.
    pub fn room(&self, terms: &LeaseTerms, limit: u64, now: NodeUse, amount: u64, is_exact: bool) -> Room {
        let now_ms = terms.now_ms();
        let taken = now.taken();
        let fits = |ceiling: u64| taken < ceiling && taken.saturating_add(amount) <= ceiling;
        if terms.is_lost() {
            return self.room_alone(terms, limit, is_exact, fits);
        }
        let ceiling = self.ceiling_at(now_ms).min(limit);
        if fits(ceiling) {
            self.last_amount.set(amount.max(1));
            self.used_at_ms.set(now_ms);
            if (ceiling - taken - amount) <= self.granted / LOW_PARTS {
                terms.is_low.store(true, Ordering::Relaxed);
            }
            return Room::Enough;
        }
        if let Some(grant) = self.grant {
            let is_spent = grant.others_used.saturating_add(now.used) >= limit;
            let is_fresh = now_ms < self.answered_ms + FRESH_MS;
            // What the pool had is somebody's now, or too little.
            if is_spent || (is_fresh && !fits(limit.saturating_sub(grant.others))) {
                if taken < ceiling {
                    self.is_too_little.set(true);
                    terms.is_low.store(true, Ordering::Relaxed);
                }
                return Room::Full;
            }
        }
        self.wanted.set(self.wanted.get().saturating_add(amount.max(1)));
        Room::Ask
    }

    /// Takes note of what a request has used: one may use more than it was given room for.
    pub fn note_use(&self, terms: &LeaseTerms, limit: u64, now: NodeUse) {
        if !terms.is_lost() && self.is_overdrawn(limit, now) {
            terms.is_low.store(true, Ordering::Relaxed);
        }
    }

    /// Without the store. Money goes no further than what was leased, and only while that is surely good; of anything else a
    /// node adds its part of what was nobody's when it last heard, or of a whole new window.
    fn room_alone(&self, terms: &LeaseTerms, limit: u64, is_exact: bool, fits: impl Fn(u64) -> bool) -> Room {
        if terms.on_loss == StoreLoss::Refuse {
            return Room::Lost;
        }
        if is_exact {
            return if fits(self.ceiling_at(terms.now_ms()).min(limit)) { Room::Enough } else { Room::Lost };
        }
        let nodes = terms.nodes();
        let ceiling = if let Some(grant) = self.grant {
            // Half, because others may have taken of it since.
            let pool = limit.saturating_sub(grant.others).saturating_sub(self.ceiling);
            self.ceiling.saturating_add(pool / (2 * nodes))
        } else {
            let past = self.past.iter().flatten().map(|(_, used, _)| *used).fold(0, u64::saturating_add);
            limit.saturating_sub(past) / nodes
        };
        if fits(ceiling.min(limit)) {
            Room::Enough
        } else {
            Room::Full
        }
    }

    fn ceiling_at(&self, now_ms: u64) -> u64 {
        if now_ms < self.valid_until_ms {
            self.ceiling
        } else {
            0
        }
    }

    /// Used, and used or leased, by other nodes as this one last heard.
    pub fn others(&self) -> (u64, u64) {
        self.grant.map_or((0, 0), |grant| (grant.others_used, grant.others))
    }

    /// Whether nodes that are not heard of any more left room that is nobody's now.
    pub fn has_orphans(&self) -> bool {
        self.grant.is_some_and(|grant| grant.orphaned > 0)
    }

    /// What to ask the store now; `None` where nothing is due. `is_all`: everything is told, to a store that has come back.
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
        let is_low = !is_idle && self.granted > 0 && unused <= self.granted / LOW_PARTS && since_ms >= REST_MS;
        // What is used needs no lease any more.
        let is_due = (unused > 0 || now.reserved > 0) && since_ms >= terms.ttl_ms / 3;
        // Use that ended after the room was given back is told soon, too.
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
            // From here on it is not this node's.
            self.ceiling = now.taken();
        }
        let floor = self.ceiling_at(now_ms).max(now.taken());
        Some(LeaseClaim { used: now.used, floor, need, want })
    }

    /// More was used than was granted, and others could be given what is gone: the store should hear of it at once.
    fn is_overdrawn(&self, limit: u64, now: NodeUse) -> bool {
        now.taken() > self.ceiling && self.grant.is_some() && self.leaves_little(limit, now.taken())
    }

    fn is_scarce(&self, limit: u64) -> bool {
        self.leaves_little(limit, self.ceiling)
    }

    /// Whether little of the limit is nobody's where `own` is this node's.
    fn leaves_little(&self, limit: u64, own: u64) -> bool {
        let free = |grant: LeaseGrant| limit.saturating_sub(grant.others).saturating_sub(own);
        self.grant.is_none_or(|grant| free(grant) < limit / SCARCE_PARTS)
    }

    /// Takes the store's answer to a question that was asked at `asked_ms`.
    pub fn take(&mut self, terms: &LeaseTerms, grant: LeaseGrant, now: NodeUse, asked_ms: u64) {
        self.ceiling = grant.ceiling;
        // The store counts from when it heard, which was later.
        self.valid_until_ms = asked_ms + terms.ttl_ms - terms.ttl_ms / 10;
        self.answered_ms = terms.now_ms();
        let unused = grant.ceiling.saturating_sub(now.taken());
        self.granted = unused;
        self.grant = Some(grant);
    }

    /// The store may have none of it any more: what is good goes on and is told again.
    pub fn retell(&mut self) {
        self.asked_ms = 0;
    }

    /// Begins a new window.
    pub fn renew(&mut self) {
        *self = Self { rate: self.rate, last_amount: Cell::new(self.last_amount.get()), ..Self::default() };
    }
}

/// What the store does with a claim, as its script does it: kept here to be tested against many orders of events.
///
/// `others`: used, ceiling and whether the holder is still heard of, of every other node.
#[must_use]
pub fn grant_lease(limit: u64, claim: LeaseClaim, others: &[(u64, u64, bool)], is_exact: bool) -> LeaseGrant {
    // Of what lost nodes had and did not report a hundredth of the limit may be given to others; of money nothing.
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
