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

use crate::error::{Error, Kind};
use crate::limit::{Limit, Scope, Served, Unit, Window};
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
    fn of(self, unit: Unit) -> u64 {
        match unit {
            Unit::Requests => 1,
            Unit::Tokens => self.tokens,
            Unit::UsdMicros => self.usd_micros,
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
    /// When it was admitted, Unix milliseconds: it counts in the windows of that moment, whenever it ends.
    pub ts_ms: u64,
}

/// Room that was reserved. It must come back through [`Ledger::settle`].
#[derive(Debug)]
pub struct Hold {
    key: Arc<Key>,
    /// Index among the key's limits, and how much.
    parts: SmallVec<[(usize, u64); 4]>,
}

/// What came of asking for room.
#[derive(Debug, Default)]
pub struct Ask {
    pub hold: Option<Hold>,
    /// Limits of a model or a provider under which there is no room: what they apply to is left out.
    pub without: Vec<Limit>,
}

impl Ask {
    /// Whether one of these limits leaves it out.
    pub fn leaves_out(&self, model: &str, served: &Served<'_>) -> bool {
        self.without.iter().any(|limit| limit.applies_to(model, served))
    }
}

/// One limit whose past control is asked for: the sum over the records of the key since `from_ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub key_id: String,
    pub limit: Limit,
    pub from_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Everything of the window is in `used`.
    All,
    /// What was recorded in this segment and later is.
    Since(u64),
}

#[derive(Debug)]
struct Account {
    limit: Limit,
    window: Window,
    used: u64,
    held: u64,
    known: Known,
}

/// Nothing was asked yet, so nothing is counted.
const NEVER: Known = Known::Since(u64::MAX);
/// Windows this short need no past: by the time that it is known they are over.
const SHORT_WINDOW_MS: u64 = 60_000;

/// Clocks are set by less than this all the time.
const CLOCK_STEP_MS: u64 = 2_000;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Ledger {
    accounts: Mutex<HashMap<String, Vec<Account>>>,
}

impl Account {
    fn new(limit: &Limit, now_ms: u64, known: Known) -> Self {
        Self { limit: limit.clone(), window: limit.period.window(now_ms), used: 0, held: 0, known }
    }

    /// A window that began while we were counting is known from its beginning. One that lies in the future is of a clock that
    /// was put back: what was used in the window that it is now is not known.
    fn roll(&mut self, now_ms: u64) {
        if now_ms.saturating_add(CLOCK_STEP_MS) < self.window.starts_ms {
            self.window = self.limit.period.window(now_ms);
            (self.used, self.held) = (0, 0);
            let is_short = self.window.ends_ms - self.window.starts_ms <= SHORT_WINDOW_MS;
            self.known = if is_short && self.limit.unit == Unit::Requests { Known::All } else { NEVER };
        }
        if now_ms >= self.window.ends_ms {
            self.window = self.limit.period.window(now_ms);
            (self.used, self.held) = (0, 0);
            self.known = Known::All;
        }
    }

    /// Whether so much more fits.
    fn room(&mut self, limit: &Limit, amount: u64, now_ms: u64) -> Result<(), Error> {
        self.roll(now_ms);
        if self.known != Known::All {
            return Err(unknown());
        }
        let taken = self.used.saturating_add(self.held);
        if taken >= limit.amount || taken.saturating_add(amount) > limit.amount {
            return Err(exceeded(limit, self, amount, now_ms));
        }
        Ok(())
    }

    fn is(&self, limit: &Limit) -> bool {
        self.limit.id == limit.id && self.limit.counts_like(limit)
    }
}

impl Ledger {
    /// Reserves room under all limits of the key that apply, or under none.
    pub fn reserve(&self, key: &Arc<Key>, subject: Subject<'_>, most: Amounts) -> Result<Option<Hold>, Error> {
        let Ask { hold, .. } = self.reserve_any(key, subject, &[subject.served], Some(most))?;
        Ok(hold)
    }

    /// The same for a request that any of these may serve. Those under whose own limits there is no room are left out; an
    /// error when none is left, or where the limit is on the name that the caller used. Without `most` it is a request that uses nothing, held to limits of requests alone.
    pub fn reserve_any(
        &self,
        key: &Arc<Key>,
        subject: Subject<'_>,
        targets: &[Served<'_>],
        most: Option<Amounts>,
    ) -> Result<Ask, Error> {
        if key.limits.is_empty() {
            return Ok(Ask::default());
        }
        let mut accounts = self.accounts.lock();
        let accounts = accounts.get_mut(&key.id).map_or(&mut [][..], Vec::as_mut_slice);
        let mut ask = Ask::default();
        let mut parts: SmallVec<[(usize, u64); 4]> = SmallVec::new();
        let mut fault = None;
        for (index, limit) in key.limits.iter().enumerate() {
            let amount = match most {
                Some(most) => most.of(limit.unit),
                None if limit.unit == Unit::Requests => 1,
                None => continue,
            };
            let mut room = || {
                let account = accounts.iter_mut().find(|account| account.is(limit)).ok_or_else(unknown)?;
                account.room(limit, amount, subject.ts_ms)
            };
            match &limit.scope {
                Scope::All => room()?,
                Scope::Model(name) if name.eq_ignore_ascii_case(subject.model) => room()?,
                Scope::Model(_) | Scope::Provider(_) => {
                    if !targets.iter().any(|served| limit.applies_to(subject.model, served)) {
                        continue;
                    }
                    if let Err(reason) = room() {
                        ask.without.push(limit.clone());
                        fault.get_or_insert(reason);
                        continue;
                    }
                }
            }
            parts.push((index, amount));
        }
        if let Some(fault) = fault.filter(|_| targets.iter().all(|served| ask.leaves_out(subject.model, served))) {
            return Err(fault);
        }
        // What one limit leaves out holds nothing under the others that are for it alone.
        if !ask.without.is_empty() {
            let left = || targets.iter().filter(|served| !ask.leaves_out(subject.model, served));
            parts.retain(|(index, _)| {
                let limit = &key.limits[*index];
                limit.scope == Scope::All
                    || matches!(&limit.scope, Scope::Model(name) if name == subject.model)
                    || left().any(|served| limit.applies_to(subject.model, served))
            });
        }
        for &(index, amount) in &parts {
            let limit = &key.limits[index];
            if let Some(account) = accounts.iter_mut().find(|account| account.is(limit)) {
                // A request that was let through counts, whatever becomes of it.
                let place = if limit.is_counted_at_once() { &mut account.used } else { &mut account.held };
                *place = place.saturating_add(amount);
            }
        }
        ask.hold = Some(Hold { key: Arc::clone(key), parts });
        Ok(ask)
    }

    #[allow(clippy::needless_pass_by_value, reason = "a hold is given back whole, so that it cannot be settled twice")]
    /// Gives the reserved room back and counts what was spent. `segment`: where the request's record is.
    pub fn settle(&self, key_id: &str, subject: Subject<'_>, hold: Option<Hold>, spent: Amounts, segment: u64) {
        let mut accounts = self.accounts.lock();
        let Some(accounts) = accounts.get_mut(key_id) else { return };
        for account in accounts {
            // The window of the request is over: nobody counts there any more.
            if account.limit.period.window(subject.ts_ms) != account.window {
                continue;
            }
            let held = hold.as_ref().and_then(|hold| {
                hold.parts.iter().find(|&&(index, _)| account.is(&hold.key.limits[index])).map(|&(_, amount)| amount)
            });
            let unit = account.limit.unit;
            let at_once = account.limit.is_counted_at_once();
            if let Some(amount) = held.filter(|_| !at_once) {
                account.held = account.held.saturating_sub(amount);
            }
            let is_counted = match account.known {
                Known::All => true,
                Known::Since(first) => segment >= first,
            };
            let is_counted_already = at_once && held.is_some();
            if is_counted && !is_counted_already && account.limit.applies_to(subject.model, &subject.served) {
                account.used = account.used.saturating_add(spent.of(unit));
            }
        }
    }

    /// Opens accounts for limits that have none. `is_new` says of a key's id that it was made just now, so that it has no
    /// past. Whether there is a new account whose past must be asked for.
    pub fn open<'k>(
        &self,
        keys: impl Iterator<Item = &'k Arc<Key>>,
        is_new: impl Fn(&str) -> bool,
        now_ms: u64,
    ) -> bool {
        let mut must_ask = false;
        let mut accounts = self.accounts.lock();
        for key in keys.filter(|key| !key.limits.is_empty()) {
            let own = accounts.entry(key.id.clone()).or_default();
            for limit in &key.limits {
                if own.iter().any(|account| account.is(limit)) {
                    continue;
                }
                let window = limit.period.window(now_ms);
                let is_short = limit.unit == Unit::Requests && window.ends_ms - window.starts_ms < SHORT_WINDOW_MS;
                let known = if is_short || is_new(&key.id) { Known::All } else { NEVER };
                must_ask |= known != Known::All;
                own.push(Account::new(limit, now_ms, known));
            }
        }
        must_ask
    }

    /// Closes the accounts of limits that are no more.
    pub fn close_others<'k>(&self, keys: impl Iterator<Item = &'k Arc<Key>>) {
        let keys: HashMap<&str, &Arc<Key>> = keys.map(|key| (key.id.as_str(), key)).collect();
        self.accounts.lock().retain(|id, own| {
            let limits = keys.get(id.as_str()).map_or(&[][..], |key| &key.limits);
            own.retain(|account| limits.iter().any(|limit| account.is(limit)));
            !own.is_empty()
        });
    }

    /// What must be asked of control. `seal` ends the segment that is being written and gives the number of the next; it is
    /// called only if there is a question, with the accounts held still, so that every record is either before the seal and
    /// in control's sum, or after it and counted here.
    pub fn ask(&self, now_ms: u64, seal: impl FnOnce() -> u64) -> (Vec<Question>, u64) {
        let mut accounts = self.accounts.lock();
        let mut open: Vec<(&String, &mut Account)> = Vec::new();
        for (key_id, own) in accounts.iter_mut() {
            for account in own {
                account.roll(now_ms);
                if account.known != Known::All {
                    open.push((key_id, account));
                }
            }
        }
        if open.is_empty() {
            return (Vec::new(), 0);
        }
        let segment = seal();
        let questions = open
            .into_iter()
            .map(|(key_id, account)| {
                account.used = 0;
                account.known = Known::Since(segment);
                let (limit, from_ms) = (account.limit.clone(), account.window.starts_ms);
                Question { key_id: key_id.clone(), limit, from_ms }
            })
            .collect();
        (questions, segment)
    }

    /// Control's answers, in the order of the questions.
    pub fn seed(&self, questions: &[Question], sums: &[u64]) {
        let mut accounts = self.accounts.lock();
        for (question, &sum) in questions.iter().zip(sums) {
            let own = accounts.get_mut(&question.key_id).map_or(&mut [][..], Vec::as_mut_slice);
            for account in own.iter_mut().filter(|account| account.is(&question.limit)) {
                if account.known != Known::All && account.window.starts_ms == question.from_ms {
                    account.used = account.used.saturating_add(sum);
                    account.known = Known::All;
                }
            }
        }
    }
}

fn unknown() -> Error {
    Error::gateway(Kind::LimitsUnknown, "What this key has used of its limits is being looked up; try again shortly.")
        .after_s(1)
}

fn exceeded(limit: &Limit, account: &Account, amount: u64, now_ms: u64) -> Error {
    let show = |amount: u64| match limit.unit {
        Unit::Requests => format!("{amount} requests"),
        Unit::Tokens => format!("{amount} tokens"),
        Unit::UsdMicros => format!("{}.{:06} USD", amount / 1_000_000, amount % 1_000_000),
    };
    let scope = match &limit.scope {
        Scope::All => String::new(),
        Scope::Model(name) | Scope::Provider(name) => format!(" on `{name}`"),
    };
    let seconds = (account.window.ends_ms - account.window.starts_ms) / 1_000;
    let period = match limit.period {
        crate::limit::Period::Seconds(_) => format!("{seconds} s"),
        crate::limit::Period::Day(_) => "day".to_owned(),
        crate::limit::Period::Week(_) => "week".to_owned(),
        crate::limit::Period::Month(_) => "month".to_owned(),
    };
    let taken = account.used.saturating_add(account.held);
    let wait_s = account.window.ends_ms.saturating_sub(now_ms).div_ceil(1_000).max(1);
    let (left, retry_after_s) = if account.used >= limit.amount {
        (format!("{} used", show(account.used)), wait_s)
    } else if limit.unit != Unit::Requests && amount > limit.amount - account.used {
        // Waiting for others does not help: this request alone may need more than is left.
        (
            format!(
                "{} left, and this request may need {}; ask for less output",
                show(limit.amount - account.used),
                show(amount)
            ),
            wait_s,
        )
    } else {
        (format!("{} taken by requests under way", show(taken)), 1)
    };
    let message =
        format!("The limit of {} in each {period}{scope} (`{}`) is reached: {left}.", show(limit.amount), limit.name);
    let kind = match limit.unit {
        Unit::Requests => Kind::RateLimited,
        Unit::Tokens => Kind::TokenLimitExceeded,
        Unit::UsdMicros => Kind::BudgetExceeded,
    };
    Error::client(kind, message).about(limit.name.clone()).after_s(retry_after_s)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
