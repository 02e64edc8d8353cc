//! What keys have used of their limits, so that no two requests spend the same room.
//!
//! A request reserves the most that it can cost before it is sent and settles what it did cost, once. The counts live in
//! this process. What was used before it began, or before a limit was set, is asked of control, which has the records:
//! until the answer is there the limit's account is *unknown* and its key is refused rather than overspent.
//!
//! ```text
//! (a limit appears) -> unknown, nothing counted -> asked: counts what is recorded from segment n on
//!                      -> seeded with the sum of all records before segment n -> known
//! ```
//!
//! Everything counts in the window of the moment in which it is counted: a request when it is let through, what it used
//! when that is known. When a request's head came says nothing here, because a caller may hold its body back for minutes.

use crate::clock::{Moment, Present};
use crate::error::{Error, ErrorKind};
use crate::group::{Group, LEVELS_MAX};
use crate::lease::{Lease, LeaseTerms, NodeUse, Room};
use crate::limit::{Limit, LimitScope, LimitUnit, Served, Window};
use crate::snapshot::Key;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

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

    fn of(self, unit: LimitUnit) -> u64 {
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

/// Room that was reserved. It must come back through [`Ledger::settle`].
#[derive(Debug, Default)]
pub struct Hold {
    parts: SmallVec<[Part; 4]>,
    /// The most that the call, or the next answer of a conversation, comes to.
    most: Amounts,
    /// The amounts that were counted of the call before its end.
    counted: Amounts,
}

/// What one call has in one window of one account.
#[derive(Debug, Clone, Copy)]
struct Part {
    account: u64,
    epoch: u64,
    held: u64,
    /// In the account's `used` before there is a record of it.
    counted: u64,
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
    fn is_under(&self, limit: &Limit, model: &str, targets: &[Served<'_>]) -> bool {
        self.without.is_empty()
            || limit.scope == LimitScope::All
            || matches!(&limit.scope, LimitScope::Model(name) if name == model)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// Everything of the window is in `used`.
    All,
    /// Use that was recorded in this segment and later is in `used`.
    Since(u64),
}

#[derive(Debug)]
struct Account {
    /// The account's number in this ledger: holds name it.
    number: u64,
    limit: Limit,
    window: Window,
    /// Goes up with each window, so that a hold of a window that is over gives nothing back, also where the clock brings
    /// the same window twice.
    epoch: u64,
    /// The beginning of the latest window that it has been in.
    reached_ms: u64,
    used: u64,
    held: u64,
    /// How much of `used` has no record yet, so that no sum of control can have it.
    unrecorded: u64,
    known: Coverage,
    /// This node's part, where several nodes hold the limit together. `used` and `held` are then those of this node alone.
    lease: Option<Box<Lease>>,
}

/// Nothing was asked yet, so nothing is counted.
const NEVER: Coverage = Coverage::Since(u64::MAX);
/// Windows this short need no past: by the time that it is known they are over.
const SHORT_WINDOW_MS: u64 = 60_000;

/// What keys have used of their limits, so that no two requests spend the same room.
#[derive(Debug, Default)]
pub struct Ledger {
    books: Mutex<Books>,
    /// Where limits are held together with other nodes.
    terms: Option<Arc<LeaseTerms>>,
}

/// Whose accounts a call is counted in: its key's, and those of the groups that the key was in when the call was let in.
#[derive(Debug, Clone, Copy)]
pub struct Owners<'k> {
    key_id: &'k str,
    groups: &'k [Arc<Group>],
}

impl<'k> From<&'k Key> for Owners<'k> {
    fn from(key: &'k Key) -> Self {
        Self { key_id: &key.id, groups: &key.groups }
    }
}

#[cfg(test)]
impl<'k> From<&'k str> for Owners<'k> {
    fn from(key_id: &'k str) -> Self {
        Self { key_id, groups: &[] }
    }
}

/// Who has the account of a limit: its group, or the key.
fn owner_of<'k>(limit: &'k Limit, key: &'k Key) -> &'k str {
    limit.group.as_ref().map_or(key.id.as_str(), |group| group.id.as_str())
}

#[derive(Debug, Default)]
struct Books {
    /// By the id of a key or a group.
    of_owners: HashMap<String, Vec<Account>>,
    present: Present,
    opened: u64,
}

/// Accounts that one call is counted in.
type Accounts<'b> = SmallVec<[&'b mut Account; 8]>;

impl Books {
    /// The present, Unix milliseconds. Where the clock was put back, every window that lies in the future is left for the one
    /// that it is now.
    fn at(&mut self, now: Moment) -> u64 {
        let (now_ms, is_put_back) = self.present.read(now);
        if is_put_back {
            self.of_owners.values_mut().flatten().for_each(|account| account.put_back(now_ms));
        }
        now_ms
    }

    /// The accounts of a key and its groups, each in the window that it is now.
    fn accounts(&mut self, owners: Owners<'_>, now_ms: u64) -> Accounts<'_> {
        let mut accounts = Accounts::new();
        if owners.groups.is_empty() {
            accounts.extend(self.of_owners.get_mut(owners.key_id).into_iter().flatten());
        } else {
            // No owner has the empty id: it stands for the levels that are not there.
            let mut ids = [""; LEVELS_MAX + 1];
            let levels = owners.groups.iter().map(|group| group.id.as_str());
            for (id, owner) in ids.iter_mut().zip(std::iter::once(owners.key_id).chain(levels)) {
                *id = owner;
            }
            accounts.extend(self.of_owners.get_disjoint_mut(ids).into_iter().flatten().flatten());
        }
        for account in &mut accounts {
            account.roll(now_ms);
        }
        accounts
    }
}

impl Account {
    fn new(number: u64, limit: &Limit, now_ms: u64, known: Coverage) -> Self {
        let window = limit.window(now_ms);
        Self {
            number,
            limit: limit.clone(),
            window,
            epoch: 0,
            reached_ms: window.starts_ms,
            used: 0,
            held: 0,
            unrecorded: 0,
            known,
            lease: None,
        }
    }

    /// Goes on to the window of the present; never back. One that began while we were counting is known from its beginning.
    fn roll(&mut self, now_ms: u64) {
        if now_ms >= self.window.ends_ms {
            self.enter(now_ms);
        }
    }

    /// Begins a window that the clock came back to: its use is not known.
    fn put_back(&mut self, now_ms: u64) {
        if now_ms < self.window.starts_ms {
            self.enter(now_ms);
        }
    }

    fn enter(&mut self, now_ms: u64) {
        self.window = self.limit.window(now_ms);
        self.epoch += 1;
        (self.used, self.held, self.unrecorded) = (0, 0, 0);
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
    fn room(&self, limit: &Limit, amount: u64, now_ms: u64, terms: Option<&LeaseTerms>) -> Result<(), Error> {
        if self.known != Coverage::All {
            return Err(unknown());
        }
        if let (Some(lease), Some(terms)) = (&self.lease, terms) {
            let is_exact = limit.unit == LimitUnit::UsdMicros;
            return match lease.room(terms, limit.amount, self.own_use(), amount, is_exact) {
                Room::Enough => Ok(()),
                Room::Ask => Err(unknown()),
                Room::Full => Err(exceeded(limit, self, amount, now_ms)),
                Room::Lost => Err(lost()),
            };
        }
        let taken = self.used.saturating_add(self.held);
        if taken >= limit.amount || taken.saturating_add(amount) > limit.amount {
            return Err(exceeded(limit, self, amount, now_ms));
        }
        Ok(())
    }

    /// Whether so much more fits for work that begins later: what the shared store alone can say is asked then.
    fn room_later(&self, limit: &Limit, amount: u64, now_ms: u64, terms: Option<&LeaseTerms>) -> Result<(), Error> {
        if self.lease.is_none() || self.known != Coverage::All {
            return self.room(limit, amount, now_ms, terms);
        }
        let (used, taken) = self.known_use();
        if used >= limit.amount || taken.saturating_add(amount) > limit.amount {
            return Err(exceeded(limit, self, amount, now_ms));
        }
        Ok(())
    }

    /// Takes so much for a request that is let through. Of a limit on requests that is used at once, whatever becomes of it.
    fn take(&mut self, amount: u64) -> Part {
        let mut part = Part { account: self.number, epoch: self.epoch, held: 0, counted: 0 };
        if self.limit.is_counted_at_once() {
            self.used = self.used.saturating_add(amount);
            self.unrecorded = self.unrecorded.saturating_add(amount);
            part.counted = amount;
        } else {
            self.held = self.held.saturating_add(amount);
            part.held = amount;
        }
        part
    }

    fn own_use(&self) -> NodeUse {
        NodeUse { used: self.used, held: self.held }
    }

    /// The amounts used, and used or held, as far as this node knows.
    fn known_use(&self) -> (u64, u64) {
        let (others_used, others) = self.lease.as_ref().map_or((0, 0), |lease| lease.others());
        let used = self.used.saturating_add(others_used);
        (used, self.used.saturating_add(self.held).saturating_add(others))
    }

    fn is(&self, limit: &Limit) -> bool {
        self.limit.id == limit.id && self.limit.counts_like(limit)
    }
}

impl Part {
    fn is_of(&self, account: &Account) -> bool {
        (self.account, self.epoch) == (account.number, account.epoch)
    }
}

/// Whether the windows of a limit are over by the time that their past is known.
fn needs_no_past(limit: &Limit, window: Window) -> bool {
    limit.unit == LimitUnit::Requests && window.ends_ms - window.starts_ms < SHORT_WINDOW_MS
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

impl Ledger {
    /// Reserves room under all limits of the key that apply, or under none.
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

    /// Reserves room for a request that any of `targets` may serve. Those under whose own limits there is no room are left out; an
    /// error when none is left, or where the limit is on the name that the caller used. Without `most` it is a request that uses nothing, held to limits of requests alone.
    pub fn reserve_any(
        &self,
        key: &Arc<Key>,
        subject: Subject<'_>,
        targets: &[Served<'_>],
        most: Option<Amounts>,
        now: Moment,
    ) -> Result<Reservation, Error> {
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
            let amount = match most {
                Some(most) => most.of(limit.unit),
                None if limit.unit == LimitUnit::Requests => 1,
                None => continue,
            };
            let room = || {
                let account = accounts.iter().find(|account| account.is(limit)).ok_or_else(unknown)?;
                account.room(limit, amount, now_ms, terms)
            };
            match &limit.scope {
                LimitScope::All => room()?,
                LimitScope::Model(name) if name.eq_ignore_ascii_case(subject.model) => room()?,
                LimitScope::Model(_) | LimitScope::Provider(_) => {
                    if !targets.iter().any(|served| limit.applies_to(subject.model, served)) {
                        continue;
                    }
                    if let Err(reason) = room() {
                        // Whether there is room is the shared store's to say, which the caller waits for.
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
        let mut hold = Hold { most: most.unwrap_or_default(), ..Hold::default() };
        for (limit, amount) in taken {
            if let Some(account) = accounts.iter_mut().find(|account| account.is(limit)) {
                hold.parts.push(account.take(amount));
            }
        }
        reservation.hold = Some(hold);
        Ok(reservation)
    }

    /// Whether a request of this model would be let in now, by the limits that do not depend on who serves it. It counts
    /// nothing: for what is kept first, and counted when it is worked on.
    pub fn has_room(&self, key: &Key, subject: Subject<'_>, now: Moment) -> Result<(), Error> {
        let terms = self.terms_at(now);
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let accounts = books.accounts(key.into(), now_ms);
        for limit in key.all_limits() {
            let is_asked = match &limit.scope {
                LimitScope::All => true,
                LimitScope::Model(name) => name == subject.model,
                LimitScope::Provider(_) => false,
            };
            if is_asked {
                let account = accounts.iter().find(|account| account.is(limit)).ok_or_else(unknown)?;
                account.room_later(limit, Amounts::default().of(limit.unit), now_ms, terms)?;
            }
        }
        Ok(())
    }

    /// Counts what a conversation has used since it was last asked about, of the `total` so far, and holds room for its next
    /// answer: as much as was held for the first one, or as the dearest so far has used. An error where there is no room for
    /// that; the caller ends the conversation then. `key`: as it is configured now.
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
        // A request is counted once, whatever window it is in now: its part stays.
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
                hold.parts.push(Part { account: account.number, epoch: account.epoch, held: 0, counted: 0 });
                hold.parts.len() - 1
            });
            let part = &mut hold.parts[at];
            let used = more.of(unit);
            part.counted = part.counted.saturating_add(used);
            account.used = account.used.saturating_add(used);
            account.unrecorded = account.unrecorded.saturating_add(used);
            let Some(limit) = key.all_limits().find(|limit| account.is(limit)) else { continue };
            account.held = account.held.saturating_sub(part.held);
            let most = hold.most.of(unit);
            // What is not known yet is asked for; a conversation goes on meanwhile.
            match account.room(limit, most, now_ms, terms) {
                Err(error) if account.known == Coverage::All => {
                    part.held = 0;
                    fault.get_or_insert(error);
                }
                _ => {
                    part.held = most;
                    account.held = account.held.saturating_add(most);
                }
            }
        }
        fault.map_or(Ok(()), Err)
    }

    #[allow(clippy::needless_pass_by_value, reason = "a hold is given back whole, so that it cannot be settled twice")]
    /// Gives the reserved room back in the window in which it was reserved, and counts what was spent in the present one.
    pub fn settle<'k>(&self, owners: impl Into<Owners<'k>>, subject: Subject<'_>, charge: Charge, now: Moment) {
        let Charge { hold, spent, segment } = charge;
        let mut books = self.books.lock();
        let now_ms = books.at(now);
        let hold = hold.unwrap_or_default();
        let rest = spent.minus(hold.counted);
        for account in books.accounts(owners.into(), now_ms) {
            let is_counted = match account.known {
                Coverage::All => true,
                Coverage::Since(first) => segment >= first,
            };
            let mut is_counted_already = false;
            for part in hold.parts.iter().filter(|part| part.account == account.number) {
                is_counted_already |= account.limit.is_counted_at_once();
                if part.epoch == account.epoch {
                    account.held = account.held.saturating_sub(part.held);
                    account.unrecorded = account.unrecorded.saturating_sub(part.counted);
                    if !is_counted {
                        // Control's sum has it.
                        account.used = account.used.saturating_sub(part.counted);
                    }
                }
            }
            if is_counted && !is_counted_already && account.limit.applies_to(subject.model, &subject.served) {
                account.used = account.used.saturating_add(rest.of(account.limit.unit));
            }
        }
    }

    /// Opens accounts for limits that have none. `is_new` says of the id of a key or a group that it was made just now, so that it
    /// has no past. Whether there is a new account whose past must be asked for.
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
                    // Other nodes are told of the amount that is configured now.
                    account.limit.amount = limit.amount;
                    continue;
                }
                let is_short = needs_no_past(limit, limit.window(now_ms));
                let known = if is_short || is_new(owner) { Coverage::All } else { NEVER };
                must_ask |= known != Coverage::All;
                *opened += 1;
                let mut account = Account::new(*opened, limit, now_ms, known);
                // A past that is known to be none is what the shared store is to be told.
                account.lease = is_shared.then(|| Box::new(Lease::with_past((known == Coverage::All).then(Vec::new))));
                if is_shared && known != Coverage::All {
                    account.known = leases::UNASKED;
                }
                own.push(account);
            }
        }
        must_ask
    }

    /// Closes the accounts of limits that are no more.
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

    /// What must be asked of control. `seal` ends the segment that is being written and gives the number of the next; it is
    /// called only if there is a question, with the accounts held still, so that every record is either before the seal and
    /// in control's sum, or after it and counted here.
    pub fn ask(&self, now: Moment, seal: impl FnOnce() -> u64) -> (Vec<LimitQuestion>, u64) {
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
                    // All that this node uses is in `used` from its start.
                    account.known = leases::UNASKED;
                }
                let (limit, from_ms) = (account.limit.clone(), account.window.starts_ms);
                LimitQuestion { owner_id: owner_id.clone(), limit, from_ms }
            })
            .collect();
        (questions, segment)
    }

    /// Control's answers, in the order of the questions.
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

fn unknown() -> Error {
    Error::gateway(
        ErrorKind::LimitsUnknown,
        "What this key has used of its limits is being looked up; try again shortly.",
    )
    .after_s(1)
}

fn lost() -> Error {
    let message = "The store that this gateway shares its limits in (FAIRLEAD_SHARED_URL) does not answer, and this limit is held only with it; try again shortly.";
    Error::gateway(ErrorKind::LimitsUnknown, message).after_s(1)
}

fn exceeded(limit: &Limit, account: &Account, amount: u64, now_ms: u64) -> Error {
    let show = |amount: u64| match limit.unit {
        LimitUnit::Requests => format!("{amount} requests"),
        LimitUnit::Tokens => format!("{amount} tokens"),
        LimitUnit::UsdMicros => format!("{}.{:06} USD", amount / 1_000_000, amount % 1_000_000),
    };
    let scope = match &limit.scope {
        LimitScope::All => String::new(),
        LimitScope::Model(name) | LimitScope::Provider(name) => format!(" on `{name}`"),
    };
    let seconds = (account.window.ends_ms - account.window.starts_ms) / 1_000;
    let period = match limit.period {
        crate::limit::LimitPeriod::Seconds(_) => format!("{seconds} s"),
        crate::limit::LimitPeriod::Day(_) => "day".to_owned(),
        crate::limit::LimitPeriod::Week(_) => "week".to_owned(),
        crate::limit::LimitPeriod::Month(_) => "month".to_owned(),
    };
    let (used, taken) = account.known_use();
    let wait_s = account.window.ends_ms.saturating_sub(now_ms).div_ceil(1_000).max(1);
    let (left, retry_after_s) = if used >= limit.amount {
        (format!("{} used", show(used)), wait_s)
    } else if limit.unit != LimitUnit::Requests && amount > limit.amount - used {
        // Waiting for others does not help: this request alone may need more than is left.
        (
            format!(
                "{} left, and this request may need {}; ask for less output",
                show(limit.amount - used),
                show(amount)
            ),
            wait_s,
        )
    } else {
        (format!("{} taken by requests under way", show(taken)), 1)
    };
    let level = limit.group.as_ref().map_or_else(String::new, |group| format!(" of the group `{}`", group.name));
    let message = format!(
        "The limit of {} in each {period}{scope}{level} (`{}`) is reached: {left}.",
        show(limit.amount),
        limit.name
    );
    let kind = match limit.unit {
        LimitUnit::Requests => ErrorKind::RateLimited,
        LimitUnit::Tokens => ErrorKind::TokenLimitExceeded,
        LimitUnit::UsdMicros => ErrorKind::BudgetExceeded,
    };
    let place = limit.group.as_ref().map_or_else(String::new, |group| format!("groups.{}.", group.id));
    Error::client(kind, message).about(format!("{place}{}", limit.name)).after_s(retry_after_s)
}

#[path = "ledger_leases.rs"]
mod leases;
pub use leases::{LeaseAnswer, LeaseQuestion, LeaseSummary};

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "ledger_group_tests.rs"]
mod group_tests;
