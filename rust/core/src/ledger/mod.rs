//! The use of limits by keys, so that no two requests spend the same capacity.
//!
//! Before it is sent, a request reserves the most that it can cost. Afterwards it settles the actual cost, once. The
//! counters are in this process. The control plane has the records, so the ledger asks it for the use before the
//! process started or before a limit was set. Until the answer arrives the account is *unknown*, and its key is refused
//! so that it cannot overspend.
//!
//! ```text
//!  (a limit appears) -> unknown, nothing counted -> asked: counts what is recorded from segment n on
//!                       -> seeded with the sum of all records before segment n -> known
//! ```
//!
//! Each amount counts in the window in which it becomes known: a request when it is admitted, its use when that is
//! known. The time of the request head is not used, because a caller may delay the body for minutes.
//!
//! `amounts` holds the amounts of a call, `account` one limit in its window, `books` the accounts of every key and
//! group, and `refusal` the error messages. [`Ledger`] combines them. `leases` is its part for limits that several
//! nodes share.

mod account;
mod amounts;
mod books;
mod leases;
mod refusal;

pub use amounts::{Accepted, Amounts, Charge, Hold, LimitQuestion, NeededCapacity, Reservation, Subject};
pub use books::Owners;
pub use leases::{LeaseAnswer, LeaseQuestion, LeaseSummary};
pub(crate) use refusal::{limits_lost, limits_unknown};

use crate::clock::Moment;
use crate::error::{Error, ErrorKind};
use crate::lease::{Lease, LeaseTerms};
use crate::limit::{Limit, LimitScope, LimitUnit, Served};
use crate::snapshot::Key;
use account::{needs_no_past, Account, Coverage, NEVER};
use amounts::HeldPart;
use books::{owner_of, Books};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// The use of limits by keys, so that no two requests spend the same capacity.
#[derive(Debug, Default)]
pub struct Ledger {
    books: Mutex<Books>,
    /// Set if limits are shared with other nodes.
    terms: Option<Arc<LeaseTerms>>,
}

impl Ledger {
    /// Reserves capacity under all limits of the key that apply, or under none.
    pub fn reserve(
        &self,
        key: &Arc<Key>,
        subject: Subject<'_>,
        most: Amounts,
        now: Moment,
    ) -> Result<Option<Hold>, Error> {
        let Reservation { hold, .. } = self.reserve_any(key, subject, &[subject.served], Some(most), now)?;
        Ok(hold)
    }

    /// Reserves capacity for a request that any of `targets` may serve. Targets whose own limits are exhausted are left
    /// out. Returns an error if none is left, or if the exhausted limit applies to the name that the caller used.
    pub fn reserve_any(
        &self,
        key: &Arc<Key>,
        subject: Subject<'_>,
        targets: &[Served<'_>],
        needed: impl Into<NeededCapacity>,
        now: Moment,
    ) -> Result<Reservation, Error> {
        let needed = needed.into();
        if !key.has_limits() {
            return Ok(Reservation::default());
        }
        let terms = self.terms_at(now);
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let mut accounts = books.accounts(key.as_ref().into(), now_ms);
        let mut reservation = Reservation::default();
        let mut taken: SmallVec<[(&Limit, u64); 4]> = SmallVec::new();
        let mut fault = None;
        for limit in key.all_limits() {
            let Some(amount) = needed.under(limit) else { continue };
            let check_capacity = || {
                let account = accounts.iter().find(|account| account.is(limit)).ok_or_else(limits_unknown)?;
                account.check_capacity(limit, amount, now_ms, terms)
            };
            match &limit.scope {
                LimitScope::All => check_capacity()?,
                scope if scope.is_model(subject.model) => check_capacity()?,
                LimitScope::Model(_) | LimitScope::Provider(_) => {
                    if !targets.iter().any(|served| limit.applies_to(subject.model, served)) {
                        continue;
                    }
                    if let Err(reason) = check_capacity() {
                        // Only the shared store knows whether there is capacity, and the caller waits for its answer.
                        if reason.kind == ErrorKind::LimitsUnknown && terms.is_some_and(|terms| !terms.is_lost()) {
                            return Err(reason);
                        }
                        reservation.without.push(limit.clone());
                        fault.get_or_insert(reason);
                        continue;
                    }
                }
            }
            taken.push((limit, amount));
        }
        if let Some(fault) =
            fault.filter(|_| targets.iter().all(|served| reservation.leaves_out(subject.model, served)))
        {
            return Err(fault);
        }
        taken.retain(|(limit, _)| reservation.is_under(limit, subject.model, targets));
        let mut hold = Hold { most: needed.most.unwrap_or_default(), is_counted: needed.is_counted, ..Hold::default() };
        for (limit, amount) in taken {
            if let Some(account) = accounts.iter_mut().find(|account| account.is(limit)) {
                hold.parts.push(account.take(amount));
            }
        }
        reservation.hold = Some(hold);
        Ok(reservation)
    }

    /// Counts a request that is accepted now and processed later. Limits on requests count it, and the other limits
    /// must not be exhausted. Returns an error if the key's limits have no capacity.
    pub fn accept(&self, key: &Arc<Key>, subject: Subject<'_>, now: Moment) -> Result<Accepted, Error> {
        self.check_limits(key, subject, now)?;
        let Reservation { hold, .. } = self.reserve_any(key, subject, &[], None, now)?;
        let accepted = Accepted { parts: hold.as_ref().map(|hold| hold.parts.clone()).unwrap_or_default() };
        // Its record is written when it is processed, so no sum of the control plane includes it.
        self.settle(key.as_ref(), subject, Charge { hold, spent: Amounts::default(), segment: u64::MAX }, now);
        Ok(accepted)
    }

    /// Returns the count of an accepted request that will not be processed. A window that has ended since stays as it
    /// is.
    #[allow(clippy::needless_pass_by_value, reason = "a count is given back once")]
    pub fn give_back<'k>(&self, owners: impl Into<Owners<'k>>, accepted: Accepted, now: Moment) {
        let terms = self.terms_at(now);
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        for account in books.accounts(owners.into(), now_ms) {
            let counted = accepted.parts.iter().find(|part| part.is_of(account)).map_or(0, |part| part.counted);
            account.used = account.used.saturating_sub(counted);
            account.note_use(terms);
        }
    }

    /// Checks that a request for this model would be admitted now, by the limits that do not depend on who serves it.
    fn check_limits(&self, key: &Key, subject: Subject<'_>, now: Moment) -> Result<(), Error> {
        let terms = self.terms_at(now);
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let accounts = books.accounts(key.into(), now_ms);
        for limit in key.all_limits() {
            let is_asked = match &limit.scope {
                LimitScope::All => true,
                scope => scope.is_model(subject.model),
            };
            if is_asked {
                let account = accounts.iter().find(|account| account.is(limit)).ok_or_else(limits_unknown)?;
                account.check_capacity_later(limit, Amounts::default().of(limit.unit), now_ms, terms)?;
            }
        }
        Ok(())
    }

    /// Counts what a conversation has used since the last call, out of the `total` so far, and reserves capacity for
    /// its next answer: the amount of its first reservation, or of its most expensive answer if that is more. Returns
    /// an error if there is no capacity; the caller then ends the conversation. `key` has the current configuration.
    pub fn renew(
        &self,
        key: &Key,
        subject: Subject<'_>,
        hold: &mut Hold,
        total: Amounts,
        now: Moment,
    ) -> Result<(), Error> {
        let more = total.minus(hold.counted);
        hold.counted = hold.counted.plus(more);
        hold.most = hold.most.max(more);
        let terms = self.terms_at(now);
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let accounts = books.accounts(key.into(), now_ms);
        // A request counts once, whatever the current window, so its part stays.
        hold.parts.retain(|part| {
            accounts.iter().any(|account| {
                account.number == part.account
                    && (account.limit.unit == LimitUnit::Requests || account.epoch == part.epoch)
            })
        });
        let mut fault = None;
        for account in accounts {
            let unit = account.limit.unit;
            if unit == LimitUnit::Requests || !account.limit.applies_to(subject.model, &subject.served) {
                continue;
            }
            let at = hold.parts.iter().position(|part| part.is_of(account)).unwrap_or_else(|| {
                hold.parts.push(HeldPart { account: account.number, epoch: account.epoch, reserved: 0, counted: 0 });
                hold.parts.len() - 1
            });
            let part = &mut hold.parts[at];
            let used = more.of(unit);
            part.counted = part.counted.saturating_add(used);
            account.used = account.used.saturating_add(used);
            account.unrecorded = account.unrecorded.saturating_add(used);
            let Some(limit) = key.all_limits().find(|limit| account.is(limit)) else { continue };
            account.reserved = account.reserved.saturating_sub(part.reserved);
            account.note_use(terms);
            let most = hold.most.of(unit);
            // Unknown use is requested, and the conversation continues in the meantime.
            match account.check_capacity(limit, most, now_ms, terms) {
                Err(error) if account.known == Coverage::All => {
                    part.reserved = 0;
                    fault.get_or_insert(error);
                }
                _ => {
                    part.reserved = most;
                    account.reserved = account.reserved.saturating_add(most);
                }
            }
        }
        fault.map_or(Ok(()), Err)
    }

    #[allow(clippy::needless_pass_by_value, reason = "a hold is given back whole, so that it cannot be settled twice")]
    /// Releases the reserved capacity in the window in which it was reserved, and counts the amount spent in the
    /// current one.
    pub fn settle<'k>(&self, owners: impl Into<Owners<'k>>, subject: Subject<'_>, charge: Charge, now: Moment) {
        let Charge { hold, spent, segment } = charge;
        let terms = self.terms_at(now);
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let hold = hold.unwrap_or_default();
        let rest = spent.minus(hold.counted);
        for account in books.accounts(owners.into(), now_ms) {
            let is_counted = match account.known {
                Coverage::All => true,
                Coverage::Since(first) => segment >= first,
            };
            let mut is_counted_already = hold.is_counted && account.limit.is_counted_at_once();
            for part in hold.parts.iter().filter(|part| part.account == account.number) {
                is_counted_already |= account.limit.is_counted_at_once();
                if part.epoch == account.epoch {
                    account.reserved = account.reserved.saturating_sub(part.reserved);
                    account.unrecorded = account.unrecorded.saturating_sub(part.counted);
                    if !is_counted {
                        // The control plane's sum includes it.
                        account.used = account.used.saturating_sub(part.counted);
                    }
                }
            }
            if is_counted && !is_counted_already && account.limit.applies_to(subject.model, &subject.served) {
                account.used = account.used.saturating_add(rest.of(account.limit.unit));
                account.note_use(terms);
            }
        }
    }

    /// Opens accounts for limits that have none. `is_new` tells whether a key or group id was just created, so that it
    /// has no earlier use. Returns whether there is a new account whose earlier use must be requested.
    pub fn open<'k>(
        &self,
        keys: impl Iterator<Item = &'k Arc<Key>>,
        is_new: impl Fn(&str) -> bool,
        now: Moment,
    ) -> bool {
        let mut must_ask = false;
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let Books { of_owners, opened, .. } = &mut *books;
        let is_shared = self.terms.is_some();
        for key in keys {
            for limit in key.all_limits() {
                let owner = owner_of(limit, key);
                if !of_owners.contains_key(owner) {
                    of_owners.insert(owner.to_owned(), Vec::new());
                }
                let Some(own) = of_owners.get_mut(owner) else { continue };
                if let Some(account) = own.iter_mut().find(|account| account.is(limit)) {
                    // The amount that is configured now is the one reported to other nodes.
                    account.limit.amount = limit.amount;
                    continue;
                }
                let is_short = needs_no_past(limit, limit.window(now_ms));
                let known = if is_short || is_new(owner) { Coverage::All } else { NEVER };
                must_ask |= known != Coverage::All;
                *opened += 1;
                let mut account = Account::new(*opened, limit, now_ms, known);
                // An account that is known to have no earlier use reports that to the shared store.
                account.lease = is_shared.then(|| Box::new(Lease::with_past((known == Coverage::All).then(Vec::new))));
                if is_shared && known != Coverage::All {
                    account.known = leases::UNASKED;
                }
                own.push(account);
            }
        }
        must_ask
    }

    /// Closes the accounts of limits that no longer exist.
    pub fn close_others<'k>(&self, keys: impl Iterator<Item = &'k Arc<Key>>) {
        let mut in_force: HashMap<&str, &[Limit]> = HashMap::new();
        for key in keys {
            in_force.insert(&key.id, &key.limits);
            in_force.extend(key.groups.iter().map(|group| (group.id.as_str(), group.limits.as_slice())));
        }
        self.books.lock().of_owners.retain(|id, own| {
            let limits = in_force.get(id.as_str()).copied().unwrap_or_default();
            own.retain(|account| limits.iter().any(|limit| account.is(limit)));
            !own.is_empty()
        });
    }

    /// Returns the questions for the control plane. `seal` ends the current segment and returns the number of the next
    /// one. It is called only if there is a question, while the accounts are locked. Every record is therefore either
    /// before the seal and in the control plane's sum, or after it and counted here.
    pub fn limit_questions(&self, now: Moment, seal: impl FnOnce() -> u64) -> (Vec<LimitQuestion>, u64) {
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let mut open: Vec<(&String, &mut Account)> = Vec::new();
        for (owner_id, own) in &mut books.of_owners {
            for account in own {
                account.roll(now_ms);
                if account.known != Coverage::All || account.asks_for_orphans(now) {
                    open.push((owner_id, account));
                }
            }
        }
        if open.is_empty() {
            return (Vec::new(), 0);
        }
        let segment = seal();
        let questions = open
            .into_iter()
            .map(|(owner_id, account)| {
                if account.lease.is_none() {
                    account.used = account.unrecorded;
                    account.known = Coverage::Since(segment);
                } else if account.known != Coverage::All {
                    // All use of this node is in `used` from its start.
                    account.known = leases::UNASKED;
                }
                let (limit, from_ms) = (account.limit.clone(), account.window.starts_ms);
                LimitQuestion { owner_id: owner_id.clone(), limit, from_ms }
            })
            .collect();
        (questions, segment)
    }

    /// Applies the control plane's answers, in the order of the questions.
    pub fn seed(&self, questions: &[LimitQuestion], sums: &[u64]) {
        let mut books = self.books.lock();
        for (question, &sum) in questions.iter().zip(sums) {
            let own = books.of_owners.get_mut(&question.owner_id).map_or(&mut [][..], Vec::as_mut_slice);
            for account in own.iter_mut().filter(|account| account.is(&question.limit)) {
                let is_own = account.lease.is_none() && account.known != Coverage::All;
                if is_own && account.window.starts_ms == question.from_ms {
                    account.used = account.used.saturating_add(sum);
                    account.known = Coverage::All;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod group_tests;
