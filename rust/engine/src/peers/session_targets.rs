//! Session targets, shared between workers so that a session reaches the same target through each of them.
//!
//! A worker publishes a session target when it is new, and again while the session is in use. A worker that missed the
//! notice receives one with a later turn. Until then, or without the store, the worker chooses a target itself.

use super::notice;
use crate::route::affinity::{SessionAffinity, SessionTargetNotice};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Message {
    targets: Vec<SessionTargetNotice>,
}

/// Returns the message with the session targets that are due for publication, or `None` if there are none.
pub(super) fn take_notices(affinity: &SessionAffinity, worker: &str) -> Option<Vec<u8>> {
    let targets = affinity.take_notices();
    if targets.is_empty() {
        return None;
    }
    notice::write(worker, &Message { targets })
}

/// Stores the session targets that another worker published.
pub(super) fn apply_notice(affinity: &SessionAffinity, worker: &str, payload: &[u8], now_ms: u64) {
    let message: Option<Message> = notice::read(worker, payload);
    for notice in message.into_iter().flat_map(|message| message.targets) {
        affinity.apply_notice(notice, now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_where_another_worker_placed_it() {
        let (here, there) = (SessionAffinity::new(true), SessionAffinity::new(true));
        assert!(take_notices(&here, "a").is_none());
        here.keep(1, u64::MAX, 0);
        let message = take_notices(&here, "a").expect("it is new");
        apply_notice(&there, "a", &message, 0);
        assert_eq!(there.find(1, 0), None, "a worker ignores its own notices");
        apply_notice(&there, "b", b"{\"places\": 1}", 0);
        apply_notice(&there, "b", &message, 0);
        assert_eq!(there.find(1, 0), Some(u64::MAX));
    }

    #[test]
    fn the_longest_message_is_heard() {
        let (here, there) = (SessionAffinity::new(true), SessionAffinity::new(true));
        for session in 0..50_000 {
            here.keep(u64::MAX - session, u64::MAX, 0);
        }
        apply_notice(&there, "b", &take_notices(&here, "a").expect("they are new"), 0);
        assert_eq!(there.find(u64::MAX, 0), Some(u64::MAX));
    }
}
