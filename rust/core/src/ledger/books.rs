//! The accounts of every key and group.

use super::account::Account;
use crate::clock::{Moment, Present};
use crate::group::{Group, LEVELS_MAX};
use crate::limit::Limit;
use crate::snapshot::Key;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// The owners of the accounts that a call counts in: its key, and the groups that the key was in when the call was
/// admitted.
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

/// The owner of a limit's account: its group, or else the key.
pub fn owner_of<'k>(limit: &'k Limit, key: &'k Key) -> &'k str {
    limit.group.as_ref().map_or(key.id.as_str(), |group| group.id.as_str())
}

#[derive(Debug, Default)]
pub struct Books {
    /// By the id of a key or group.
    pub of_owners: HashMap<String, Vec<Account>>,
    pub present: Present,
    pub opened: u64,
}

/// The accounts that one call counts in.
pub type Accounts<'b> = SmallVec<[&'b mut Account; 8]>;

impl Books {
    /// The current time in Unix milliseconds. If the clock was set back, every window that lies in the future is
    /// replaced by the current one.
    pub fn at(&mut self, now: Moment) -> u64 {
        let (now_ms, is_put_back) = self.present.read(now);
        if is_put_back {
            self.of_owners.values_mut().flatten().for_each(|account| account.put_back(now_ms));
        }
        now_ms
    }

    /// The accounts of a key and its groups, each moved to its current window.
    pub fn accounts(&mut self, owners: Owners<'_>, now_ms: u64) -> Accounts<'_> {
        let mut accounts = Accounts::new();
        if owners.groups.is_empty() {
            accounts.extend(self.of_owners.get_mut(owners.key_id).into_iter().flatten());
        } else {
            // No owner has an empty id, so it marks the levels that do not exist.
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
