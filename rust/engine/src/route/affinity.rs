//! Remembers which target served a session last, so that the next request goes to the same target. Entries are bounded
//! in number and age. They are scoped to the caller: two callers can use the same session name.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

const MAX_SESSIONS: usize = 50_000;
const IDLE_MS: u64 = 15 * 60_000;
/// Providers that offer longer prompt caching keep a prompt for one hour.
const LONG_IDLE_MS: u64 = 60 * 60_000;

/// How long after an announcement a worker announces an entry in use again. Other workers expire the entry after
/// `IDLE_MS`, so it is renewed before that.
const ANNOUNCE_AGAIN_MS: u64 = IDLE_MS / 3;
/// The most entries that wait to be announced. An entry that does not fit is announced on the session's next turn.
const MAX_UNANNOUNCED: usize = 10_000;
/// If two workers placed the same session within this time, neither knew of the other's choice.
const CROSSED_MS: u64 = 3_000;

/// The target that served each session last. Sessions and targets are identified by hashes of their names, which are
/// equal in every worker.
#[derive(Debug, Default)]
pub struct SessionAffinity {
    sessions: Mutex<SessionTargets>,
    /// Entries are announced to other workers.
    is_shared: bool,
}

#[derive(Debug, Default)]
struct SessionTargets {
    targets: HashMap<u64, SessionTarget>,
    unannounced: Vec<u64>,
}

/// The message that announces a session's target to other workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTargetNotice {
    session: u64,
    target: u64,
    idle_ms: u64,
}

#[derive(Debug, Clone, Copy)]
struct SessionTarget {
    target: u64,
    used_ms: u64,
    /// How long after its last use the entry expires.
    idle_ms: u64,
    /// When this entry was last sent to, or received from, another worker.
    announced_ms: Option<u64>,
}

impl SessionTarget {
    fn is_current(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms) < self.idle_ms
    }
}

impl SessionAffinity {
    #[must_use]
    pub fn new(is_shared: bool) -> Self {
        Self { is_shared, ..Self::default() }
    }

    pub fn find(&self, session: u64, now_ms: u64) -> Option<u64> {
        let entry = *self.sessions.lock().targets.get(&session)?;
        entry.is_current(now_ms).then_some(entry.target)
    }

    pub fn keep(&self, session: u64, target: u64, now_ms: u64) {
        let mut sessions = self.sessions.lock();
        sessions.make_space(session, now_ms);
        // An entry that was prolonged to an hour keeps that time on later turns.
        let before = sessions.targets.get(&session).filter(|entry| entry.target == target && entry.is_current(now_ms));
        let idle_ms = before.map_or(IDLE_MS, |entry| entry.idle_ms);
        let announced_ms = before.and_then(|entry| entry.announced_ms);
        sessions.targets.insert(session, SessionTarget { target, used_ms: now_ms, idle_ms, announced_ms });
        if self.is_shared
            && announced_ms.is_none_or(|announced_ms| now_ms.saturating_sub(announced_ms) >= ANNOUNCE_AGAIN_MS)
        {
            sessions.queue(session, now_ms);
        }
    }

    /// Extends the entry to one hour, because the provider caches the session's prompt that long.
    pub fn prolong(&self, session: u64, now_ms: u64) {
        let mut sessions = self.sessions.lock();
        let Some(entry) = sessions.targets.get_mut(&session).filter(|entry| entry.is_current(now_ms)) else { return };
        let is_news = entry.idle_ms != LONG_IDLE_MS;
        (entry.used_ms, entry.idle_ms) = (now_ms, LONG_IDLE_MS);
        if self.is_shared && is_news {
            sessions.queue(session, now_ms);
        }
    }

    /// Takes the entries that have not been announced to other workers yet.
    pub fn take_notices(&self) -> Vec<SessionTargetNotice> {
        let mut sessions = self.sessions.lock();
        let SessionTargets { targets, unannounced } = &mut *sessions;
        let notice = |session: u64| {
            let entry = targets.get(&session)?;
            Some(SessionTargetNotice { session, target: entry.target, idle_ms: entry.idle_ms })
        };
        unannounced.drain(..).filter_map(notice).collect()
    }

    /// Stores a target that another worker announced. If two announcements crossed, both workers keep the same target.
    pub fn apply_notice(&self, notice: SessionTargetNotice, now_ms: u64) {
        let mut targets = self.sessions.lock();
        let own = targets.targets.get(&notice.session).filter(|entry| entry.is_current(now_ms));
        let has_crossed = own
            .and_then(|own| own.announced_ms)
            .is_some_and(|announced_ms| now_ms.saturating_sub(announced_ms) < CROSSED_MS);
        if has_crossed && own.is_some_and(|own| own.target < notice.target) {
            return;
        }
        targets.make_space(notice.session, now_ms);
        let idle_ms = notice.idle_ms.min(LONG_IDLE_MS);
        let entry = SessionTarget { target: notice.target, used_ms: now_ms, idle_ms, announced_ms: Some(now_ms) };
        targets.targets.insert(notice.session, entry);
    }
}

impl SessionTargets {
    fn queue(&mut self, session: u64, now_ms: u64) {
        if self.unannounced.len() >= MAX_UNANNOUNCED {
            return;
        }
        if let Some(entry) = self.targets.get_mut(&session) {
            entry.announced_ms = Some(now_ms);
            self.unannounced.push(session);
        }
    }

    fn make_space(&mut self, session: u64, now_ms: u64) {
        if self.targets.len() >= MAX_SESSIONS && !self.targets.contains_key(&session) {
            sweep(&mut self.targets, now_ms);
        }
    }
}

/// Removes expired entries. If they are less than a tenth of all entries, also removes the older half, so that sweeps
/// are rare.
fn sweep(sessions: &mut HashMap<u64, SessionTarget>, now_ms: u64) {
    sessions.retain(|_, entry| entry.is_current(now_ms));
    if sessions.len() > MAX_SESSIONS / 10 * 9 {
        let mut used: Vec<u64> = sessions.values().map(|entry| entry.used_ms).collect();
        let middle = used.len() / 2;
        let (_, &mut median, _) = used.select_nth_unstable(middle);
        sessions.retain(|_, entry| entry.used_ms > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_while_it_is_used() {
        let targets = SessionAffinity::default();
        targets.keep(1, 7, 0);
        assert_eq!(targets.find(1, IDLE_MS - 1), Some(7));
        assert_eq!(targets.find(1, IDLE_MS), None);
        assert_eq!(targets.find(2, 0), None);
    }

    #[test]
    fn a_place_whose_provider_keeps_prompts_for_an_hour_is_kept_as_long() {
        let targets = SessionAffinity::default();
        targets.keep(1, 7, 0);
        targets.prolong(1, 0);
        assert_eq!(targets.find(1, LONG_IDLE_MS - 1), Some(7));
        targets.keep(1, 7, 10);
        assert_eq!(targets.find(1, LONG_IDLE_MS + 9), Some(7), "another turn makes it no shorter");
        targets.keep(1, 8, 20);
        assert_eq!(targets.find(1, IDLE_MS + 20), None, "another target has kept nothing yet");
        targets.prolong(2, 0);
        assert_eq!(targets.find(2, 0), None);
    }

    #[test]
    fn a_place_is_told_once_and_again_while_it_is_used() {
        let (here, there) = (SessionAffinity::new(true), SessionAffinity::new(true));
        here.keep(1, 7, 0);
        here.keep(1, 7, 10);
        let news = here.take_notices();
        assert_eq!(news, [SessionTargetNotice { session: 1, target: 7, idle_ms: IDLE_MS }]);
        there.apply_notice(news[0], 20);
        assert_eq!(there.find(1, IDLE_MS), Some(7));
        there.keep(1, 7, 30);
        assert!(there.take_notices().is_empty(), "received notices are not forwarded");
        here.keep(1, 7, ANNOUNCE_AGAIN_MS);
        assert_eq!(here.take_notices().len(), 1, "it does not end there while it is used here");
        here.keep(1, 8, ANNOUNCE_AGAIN_MS + 1);
        assert_eq!(here.take_notices()[0].target, 8);
        here.prolong(1, ANNOUNCE_AGAIN_MS + 2);
        here.prolong(1, ANNOUNCE_AGAIN_MS + 3);
        assert_eq!(here.take_notices(), [SessionTargetNotice { session: 1, target: 8, idle_ms: LONG_IDLE_MS }]);
        let alone = SessionAffinity::default();
        alone.keep(1, 7, 0);
        assert!(alone.take_notices().is_empty(), "nobody wants to know");
    }

    #[test]
    fn of_two_places_that_crossed_both_workers_take_the_same() {
        let (here, there) = (SessionAffinity::new(true), SessionAffinity::new(true));
        here.keep(1, 7, 0);
        there.keep(1, 8, 0);
        let (ours, theirs) = (here.take_notices(), there.take_notices());
        here.apply_notice(theirs[0], 10);
        there.apply_notice(ours[0], 10);
        assert_eq!((here.find(1, 20), there.find(1, 20)), (Some(7), Some(7)));
        let moved = SessionTargetNotice { session: 1, target: 9, idle_ms: u64::MAX };
        here.apply_notice(moved, 2 * CROSSED_MS);
        assert_eq!(here.find(1, 2 * CROSSED_MS + LONG_IDLE_MS - 1), Some(9));
        assert_eq!(
            here.find(1, 2 * CROSSED_MS + LONG_IDLE_MS),
            None,
            "nobody else says how long this worker remembers"
        );
    }

    #[test]
    fn what_waits_to_be_told_has_a_bound() {
        let targets = SessionAffinity::new(true);
        for session in 0..=MAX_UNANNOUNCED as u64 {
            targets.keep(session, 1, 0);
        }
        assert_eq!(targets.take_notices().len(), MAX_UNANNOUNCED);
        targets.keep(MAX_UNANNOUNCED as u64, 1, 1);
        assert_eq!(targets.take_notices().len(), 1, "its next turn tells it");
    }

    #[test]
    fn there_are_never_more_than_fit() {
        let targets = SessionAffinity::default();
        for session in 0..2 * MAX_SESSIONS as u64 {
            targets.keep(session, 1, session);
        }
        assert!(targets.sessions.lock().targets.len() <= MAX_SESSIONS);
        assert_eq!(targets.find(2 * MAX_SESSIONS as u64 - 1, 2 * MAX_SESSIONS as u64), Some(1));
    }
}
