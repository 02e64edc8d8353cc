//! Which sessions of a key are active, for keys that may have only so many.

use crate::error::{Error, ErrorKind};
use parking_lot::Mutex;
use std::collections::HashMap;

/// A session that was not heard of for this long is over.
pub const IDLE_MS: u64 = 15 * 60_000;

/// Last use of each session, by key. Bounded: a key has at most as many as it may.
#[derive(Debug, Default)]
pub struct Sessions {
    by_key: Mutex<HashMap<String, HashMap<String, u64>>>,
}

impl Sessions {
    /// Notes that the session is used now. `now_ms` is monotonic.
    pub fn enter(&self, key_id: &str, session_id: &str, max: usize, now_ms: u64) -> Result<(), Error> {
        let mut by_key = self.by_key.lock();
        let own = by_key.entry(key_id.to_owned()).or_default();
        if let Some(seen_ms) = own.get_mut(session_id) {
            *seen_ms = now_ms;
            return Ok(());
        }
        if own.len() >= max {
            own.retain(|_, seen_ms| now_ms.saturating_sub(*seen_ms) < IDLE_MS);
        }
        if own.len() >= max {
            let oldest_ms = own.values().min().copied().unwrap_or(now_ms);
            let wait_ms = (oldest_ms + IDLE_MS).saturating_sub(now_ms);
            let message = format!("This key may have {max} sessions at a time (`maxSessions`), and has them.");
            return Err(Error::client(ErrorKind::RateLimited, message)
                .about("maxSessions")
                .after_s(wait_ms.div_ceil(1_000).max(1)));
        }
        own.insert(session_id.to_owned(), now_ms);
        Ok(())
    }

    /// Forgets sessions that are over. Called now and then.
    pub fn sweep(&self, now_ms: u64) {
        self.by_key.lock().retain(|_, own| {
            own.retain(|_, seen_ms| now_ms.saturating_sub(*seen_ms) < IDLE_MS);
            !own.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_only_so_many_sessions_until_one_is_idle() {
        let sessions = Sessions::default();
        assert!(sessions.enter("k", "a", 2, 0).is_ok());
        assert!(sessions.enter("k", "b", 2, 1_000).is_ok());
        assert!(sessions.enter("k", "a", 2, 2_000).is_ok(), "one that is there goes on");
        let refused = sessions.enter("k", "c", 2, 3_000).expect_err("full");
        assert_eq!((refused.kind, refused.retry_after_s), (ErrorKind::RateLimited, Some((IDLE_MS - 2_000) / 1_000)));
        assert!(sessions.enter("other", "c", 2, 3_000).is_ok(), "each key has its own");
        assert!(sessions.enter("k", "c", 2, 1_000 + IDLE_MS).is_ok(), "b is over");
        sessions.sweep(1_000 + 3 * IDLE_MS);
        assert!(sessions.by_key.lock().is_empty());
    }
}
