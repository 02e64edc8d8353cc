//! Compressed texts of earlier turns of sessions. A turn sends them again byte for byte, whatever an engine would
//! produce now, so that the provider's prompt cache stays valid.

use fairlead_context::Session;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The size limit for the texts of all sessions. The longest unused ones are removed first.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// The approximate overhead of a session.
const ENTRY_BYTES: usize = 4 * 1024;
/// A larger session is not stored. Its turns are compressed again, with the same result each time.
const MOST_SESSION_BYTES: usize = 4 * 1024 * 1024;
/// Providers cache prompts for at most one hour.
const IDLE_MS: u64 = 60 * 60 * 1_000;

/// A session's principal and id. Sessions of different principals are separate.
type Name = (String, String);

/// Compressed sessions, limited by size and by the time since their last use.
#[derive(Debug, Default)]
pub struct FrozenSessions(Mutex<SessionMap>);

#[derive(Debug, Default)]
struct SessionMap {
    by_name: HashMap<Name, Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    bytes: usize,
    used_ms: u64,
}

impl FrozenSessions {
    /// Returns the session after its last turn.
    pub fn find(&self, name: &Name, now_ms: u64) -> Option<Arc<Session>> {
        let mut sessions = self.0.lock();
        let entry = sessions.by_name.get_mut(name).filter(|entry| now_ms.saturating_sub(entry.used_ms) <= IDLE_MS)?;
        entry.used_ms = now_ms;
        Some(Arc::clone(&entry.session))
    }

    /// Stores the session after this turn.
    pub fn keep(&self, name: Name, session: Session, now_ms: u64) {
        let bytes = session.bytes() + ENTRY_BYTES;
        let mut sessions = self.0.lock();
        sessions.remove(&name);
        if bytes > MOST_SESSION_BYTES {
            return;
        }
        sessions.bytes += bytes;
        sessions.by_name.insert(name, Entry { session: Arc::new(session), bytes, used_ms: now_ms });
        if sessions.bytes > MOST_BYTES {
            sessions.shrink();
        }
    }
}

impl SessionMap {
    fn remove(&mut self, name: &Name) {
        if let Some(entry) = self.by_name.remove(name) {
            self.bytes -= entry.bytes;
        }
    }

    /// Removes the longest unused sessions until three quarters remain, so that the next turns need no removal.
    fn shrink(&mut self) {
        let mut names: Vec<(u64, Name)> =
            self.by_name.iter().map(|(name, entry)| (entry.used_ms, name.clone())).collect();
        names.sort_unstable();
        for (_, name) in names {
            if self.bytes <= MOST_BYTES / 4 * 3 {
                break;
            }
            self.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_context::{compress, Mode, Plan};
    use fairlead_core::Dialect;

    fn session(text: &str) -> Session {
        let body = format!(r#"{{"messages":[{{"role":"tool","tool_call_id":"1","content":"{text}   \nx"}}]}}"#);
        compress(Dialect::Openai, body.as_bytes(), &Plan::from(Mode::Lite), None, || 0).session
    }

    fn name(id: usize) -> Name {
        ("key:1".to_owned(), id.to_string())
    }

    #[test]
    fn a_quiet_session_is_forgotten() {
        let sessions = FrozenSessions::default();
        sessions.keep(name(1), session("a"), 0);
        assert!(sessions.find(&name(1), IDLE_MS).is_some());
        assert!(sessions.find(&name(1), 2 * IDLE_MS + 1).is_none());
        assert!(sessions.find(&("key:2".to_owned(), "1".to_owned()), 0).is_none());
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let sessions = FrozenSessions::default();
        let text = "word ".repeat(100_000);
        for id in 0..200 {
            sessions.keep(name(id), session(&text), id as u64);
        }
        assert!(sessions.0.lock().bytes <= MOST_BYTES);
        assert!(sessions.find(&name(199), 200).is_some() && sessions.find(&name(0), 200).is_none());
        sessions.keep(name(199), session(&"word ".repeat(1_000_000)), 300);
        assert!(sessions.find(&name(199), 300).is_none(), "a giant is not kept");
    }
}
