//! Texts that went out in earlier turns of sessions. A turn sends them again byte by byte, so that the provider's prompt cache
//! stays warm, whatever an engine would make of them now.

use fairlead_context::Session;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of texts that are kept over all sessions; the ones that were quiet longest go first.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// What a session takes beside its texts, about.
const ENTRY_BYTES: usize = 4 * 1024;
/// A session that is larger is not kept: its turns are written anew, which engines do in the same way each time.
const MOST_SESSION_BYTES: usize = 4 * 1024 * 1024;
/// Providers keep no prompt for longer than an hour.
const IDLE_MS: u64 = 60 * 60 * 1_000;

/// A session by its principal and id. Sessions with equal names and other principals are others.
type Name = (String, String);

/// Sessions that were compressed, bounded by bytes and by the time that they were quiet.
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
    /// The session as its last turn left it.
    pub fn find(&self, name: &Name, now_ms: u64) -> Option<Arc<Session>> {
        let mut sessions = self.0.lock();
        let entry = sessions.by_name.get_mut(name).filter(|entry| now_ms.saturating_sub(entry.used_ms) <= IDLE_MS)?;
        entry.used_ms = now_ms;
        Some(Arc::clone(&entry.session))
    }

    /// Keeps the session as this turn leaves it.
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

    /// Forgets the quietest sessions until three quarters are left, so that the next turns need not.
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
