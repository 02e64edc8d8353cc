//! Which target served a session last, so that its next request goes there again. Bounded in number and time; scoped to the
//! caller, so that two callers' sessions of one name are two.

use parking_lot::Mutex;
use std::collections::HashMap;

const MAX_SESSIONS: usize = 50_000;
const IDLE_MS: u64 = 15 * 60_000;
/// Where a provider keeps prompts for longer, it says an hour.
const LONG_IDLE_MS: u64 = 60 * 60_000;

/// Which target served each session last. Sessions and targets are identities of their names.
#[derive(Debug, Default)]
pub struct SessionAffinity {
    held: Mutex<HashMap<u64, Place>>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    target: u64,
    used_ms: u64,
    /// Until it is forgotten, from when it was used last.
    idle_ms: u64,
}

impl Place {
    fn is_current(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms) < self.idle_ms
    }
}

impl SessionAffinity {
    pub fn find(&self, session: u64, now_ms: u64) -> Option<u64> {
        let place = *self.held.lock().get(&session)?;
        place.is_current(now_ms).then_some(place.target)
    }

    pub fn keep(&self, session: u64, target: u64, now_ms: u64) {
        let mut held = self.held.lock();
        if held.len() >= MAX_SESSIONS && !held.contains_key(&session) {
            sweep(&mut held, now_ms);
        }
        // What the provider keeps for longer it does not keep shorter after the next turn.
        let before = held.get(&session).filter(|place| place.target == target && place.is_current(now_ms));
        let idle_ms = before.map_or(IDLE_MS, |place| place.idle_ms);
        held.insert(session, Place { target, used_ms: now_ms, idle_ms });
    }

    /// The session's provider keeps its prompt for an hour: so is its place.
    pub fn prolong(&self, session: u64, now_ms: u64) {
        if let Some(place) = self.held.lock().get_mut(&session).filter(|place| place.is_current(now_ms)) {
            (place.used_ms, place.idle_ms) = (now_ms, LONG_IDLE_MS);
        }
    }
}

/// Drops entries that were idle for too long; if that is not a tenth, the older half too, so that a sweep is rare.
fn sweep(held: &mut HashMap<u64, Place>, now_ms: u64) {
    held.retain(|_, place| place.is_current(now_ms));
    if held.len() > MAX_SESSIONS / 10 * 9 {
        let mut used: Vec<u64> = held.values().map(|place| place.used_ms).collect();
        let middle = used.len() / 2;
        let (_, &mut median, _) = used.select_nth_unstable(middle);
        held.retain(|_, place| place.used_ms > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_while_it_is_used() {
        let places = SessionAffinity::default();
        places.keep(1, 7, 0);
        assert_eq!(places.find(1, IDLE_MS - 1), Some(7));
        assert_eq!(places.find(1, IDLE_MS), None);
        assert_eq!(places.find(2, 0), None);
    }

    #[test]
    fn a_place_whose_provider_keeps_prompts_for_an_hour_is_kept_as_long() {
        let places = SessionAffinity::default();
        places.keep(1, 7, 0);
        places.prolong(1, 0);
        assert_eq!(places.find(1, LONG_IDLE_MS - 1), Some(7));
        places.keep(1, 7, 10);
        assert_eq!(places.find(1, LONG_IDLE_MS + 9), Some(7), "another turn makes it no shorter");
        places.keep(1, 8, 20);
        assert_eq!(places.find(1, IDLE_MS + 20), None, "another target has kept nothing yet");
        places.prolong(2, 0);
        assert_eq!(places.find(2, 0), None);
    }

    #[test]
    fn there_are_never_more_than_fit() {
        let places = SessionAffinity::default();
        for session in 0..2 * MAX_SESSIONS as u64 {
            places.keep(session, 1, session);
        }
        assert!(places.held.lock().len() <= MAX_SESSIONS);
        assert_eq!(places.find(2 * MAX_SESSIONS as u64 - 1, 2 * MAX_SESSIONS as u64), Some(1));
    }
}
