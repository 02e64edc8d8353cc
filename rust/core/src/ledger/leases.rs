//! The ledger of a node that shares limits with other nodes: its reports to the shared store, and the store's answers.

use super::account::{needs_no_past, Account, Coverage};
use super::amounts::LimitQuestion;
use super::Ledger;
use crate::clock::Moment;
use crate::lease::{LeaseClaim, LeaseGrant, LeaseTerms, UseByNode};
use crate::limit::{Limit, LimitScope, LimitUnit, Window};
use std::fmt::Write as _;
use std::sync::Arc;

/// The time before the earlier use is requested again, if stopped nodes left unused capacity.
const ORPHANS_AGAIN_MS: u64 = 5_000;

/// The control plane has not been asked. The use of this node counts already.
pub(super) const UNASKED: Coverage = Coverage::Since(0);

/// One limit as this node reports it to the store.
#[derive(Debug)]
pub struct LeaseQuestion {
    account: u64,
    epoch: u64,
    owner_id: String,
    /// Identifies the limit, its unit and its window, equally on every node.
    pub counter_name: String,
    pub window: Window,
    pub limit: u64,
    /// The limit is in money: the capacity of an expired lease is not granted again before its use is known.
    pub is_exact: bool,
    pub claim: LeaseClaim,
    /// Whether the store knows all use of this window.
    pub is_complete: bool,
    /// The use before the store began to count, by node.
    pub past: Option<UseByNode>,
    /// Set if the clock was set back into this window: a counter, so that the use from now on is added to the earlier
    /// reports.
    pub returned: Option<u64>,
    asked_ms: u64,
}

/// The store's answer to one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseAnswer {
    Grant(LeaseGrant),
    /// The store does not know the earlier use, so it grants nothing.
    PastUnknown,
}

/// A node's leases on shared limits.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LeaseSummary {
    pub leases: usize,
    /// The number of limits with used or reserved amounts.
    pub in_use: usize,
}

impl Account {
    pub(super) fn asks_for_orphans(&mut self, now: Moment) -> bool {
        let Some(lease) = &mut self.lease else { return false };
        let is_due = lease.has_orphans() && lease.asked_orphans_ms + ORPHANS_AGAIN_MS <= now.monotonic_ms;
        if is_due {
            lease.asked_orphans_ms = now.monotonic_ms;
        }
        is_due
    }

    fn counter_name(&self, owner_id: &str) -> String {
        let Limit { id, unit, scope, period, .. } = &self.limit;
        let unit = match unit {
            LimitUnit::Requests => "requests",
            LimitUnit::Tokens => "tokens",
            LimitUnit::UsdMicros => "usd_micros",
        };
        let mut counter_name = format!("{owner_id}/{id}/{unit}/");
        // Writing to a string cannot fail.
        let _ = match scope {
            LimitScope::All => write!(counter_name, "all"),
            LimitScope::Model(name) => write!(counter_name, "model={name}"),
            LimitScope::Provider(name) => write!(counter_name, "provider={name}"),
        };
        let seconds = if let crate::limit::LimitPeriod::Seconds(seconds) = period { *seconds } else { 0 };
        let Window { starts_ms, ends_ms } = self.window;
        let _ = write!(counter_name, "/{seconds}/{starts_ms}-{ends_ms}");
        counter_name
    }
}

impl Ledger {
    /// Creates a ledger whose limits are shared with other nodes.
    #[must_use]
    pub fn shared(terms: Arc<LeaseTerms>) -> Self {
        Self { terms: Some(terms), ..Self::default() }
    }

    pub(super) fn terms_at(&self, now: Moment) -> Option<&LeaseTerms> {
        let terms = self.terms.as_deref()?;
        terms.note_time(now.monotonic_ms);
        Some(terms)
    }

    /// The reports and questions that are due now, for at most `max` limits. The store knows all use from `since_ms`
    /// (UTC) on. With `is_all`, everything is reported, because the store has come back.
    pub fn lease_questions(&self, now: Moment, since_ms: u64, max: usize, is_all: bool) -> Vec<LeaseQuestion> {
        let Some(terms) = self.terms_at(now) else { return Vec::new() };
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let mut questions = Vec::new();
        for (owner_id, own) in &mut books.of_owners {
            for account in own {
                if questions.len() == max {
                    return questions;
                }
                account.roll(now_ms);
                let own_use = account.own_use();
                let Some(lease) = &mut account.lease else { continue };
                if is_all {
                    lease.retell();
                }
                let Some(claim) = lease.claim(terms, account.limit.amount, own_use, is_all) else { continue };
                let past = lease.past.clone();
                let is_complete = past.is_some()
                    || account.window.starts_ms >= since_ms
                    || needs_no_past(&account.limit, account.window);
                questions.push(LeaseQuestion {
                    account: account.number,
                    epoch: account.epoch,
                    owner_id: owner_id.clone(),
                    counter_name: account.counter_name(owner_id),
                    window: account.window,
                    limit: account.limit.amount,
                    is_exact: account.limit.unit == LimitUnit::UsdMicros,
                    claim,
                    is_complete,
                    past,
                    returned: (account.window.starts_ms < account.reached_ms).then_some(account.epoch),
                    asked_ms: now.monotonic_ms,
                });
            }
        }
        questions
    }

    /// Applies the store's answers, in the order of the questions.
    pub fn take_leases(&self, questions: &[LeaseQuestion], answers: &[LeaseAnswer], now: Moment) {
        let Some(terms) = self.terms_at(now) else { return };
        let mut books = self.books.lock();
        for (question, answer) in questions.iter().zip(answers) {
            let own = books.of_owners.get_mut(&question.owner_id).map_or(&mut [][..], Vec::as_mut_slice);
            let is_it = |account: &&mut Account| (account.number, account.epoch) == (question.account, question.epoch);
            let Some(account) = own.iter_mut().find(is_it) else { continue };
            let own_use = account.own_use();
            let Some(lease) = &mut account.lease else { continue };
            match answer {
                LeaseAnswer::Grant(grant) => {
                    if question.past.is_some() {
                        lease.past = None;
                    }
                    lease.take(terms, *grant, own_use, question.asked_ms);
                    // The store has it from the first node that reported it.
                    account.known = Coverage::All;
                }
                LeaseAnswer::PastUnknown => account.known = UNASKED,
            }
        }
    }

    /// Applies the control plane's answers about earlier use, in the order of the questions.
    pub fn seed_leases(&self, questions: &[LimitQuestion], pasts: Vec<UseByNode>) {
        let mut books = self.books.lock();
        for (question, past) in questions.iter().zip(pasts) {
            let own = books.of_owners.get_mut(&question.owner_id).map_or(&mut [][..], Vec::as_mut_slice);
            let is_it =
                |account: &&mut Account| account.is(&question.limit) && account.window.starts_ms == question.from_ms;
            let Some(account) = own.iter_mut().find(is_it) else { continue };
            if let Some(lease) = &mut account.lease {
                lease.past = Some(past);
                account.known = Coverage::All;
            }
        }
    }

    /// The shared limits of this node.
    pub fn lease_summary(&self) -> LeaseSummary {
        let books = self.books.lock();
        let shared = || books.of_owners.values().flatten().filter(|account| account.lease.is_some());
        LeaseSummary {
            leases: shared().count(),
            in_use: shared().filter(|account| account.own_use().taken() > 0).count(),
        }
    }
}
