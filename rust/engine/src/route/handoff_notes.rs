//! The hand-over note that each session took to its target, so that later turns carry the same note. Bounded in number
//! and age.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

const MAX_NOTES: usize = 2_000;
const IDLE_MS: u64 = 15 * 60_000;

/// The notes of sessions that have moved, bounded in number, size and age.
#[derive(Debug, Default)]
pub struct HandoffNotes {
    notes: Mutex<HashMap<u64, Note>>,
}

#[derive(Debug, Clone)]
struct Note {
    /// The identity of the target that the session moved to.
    target: u64,
    text: Arc<str>,
    used_ms: u64,
}

impl HandoffNotes {
    /// Returns the note of the session for this target.
    pub fn find(&self, session: u64, target: u64, now_ms: u64) -> Option<Arc<str>> {
        let mut notes = self.notes.lock();
        let note = notes.get_mut(&session)?;
        if note.target != target || now_ms.saturating_sub(note.used_ms) >= IDLE_MS {
            return None;
        }
        note.used_ms = now_ms;
        Some(Arc::clone(&note.text))
    }

    pub fn keep(&self, session: u64, target: u64, text: Arc<str>, now_ms: u64) {
        let mut notes = self.notes.lock();
        if notes.len() >= MAX_NOTES && !notes.contains_key(&session) {
            notes.retain(|_, note| now_ms.saturating_sub(note.used_ms) < IDLE_MS);
            let oldest = notes.iter().min_by_key(|(_, note)| note.used_ms).map(|(session, _)| *session);
            if let Some(oldest) = oldest.filter(|_| notes.len() >= MAX_NOTES) {
                notes.remove(&oldest);
            }
        }
        notes.insert(session, Note { target, text, used_ms: now_ms });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_for_one_target_and_is_forgotten() {
        let notes = HandoffNotes::default();
        notes.keep(1, 7, "note".into(), 0);
        assert_eq!(notes.find(1, 7, IDLE_MS - 1).as_deref(), Some("note"));
        assert_eq!(notes.find(1, 8, IDLE_MS - 1), None, "the session has moved on");
        assert_eq!(notes.find(1, 7, 2 * IDLE_MS - 2).as_deref(), Some("note"), "use keeps it");
        assert_eq!(notes.find(1, 7, 3 * IDLE_MS), None);
        for session in 0..2 * MAX_NOTES as u64 {
            notes.keep(session, 1, "x".into(), session);
        }
        assert_eq!(notes.notes.lock().len(), MAX_NOTES);
        assert!(notes.find(2 * MAX_NOTES as u64 - 1, 1, 2 * MAX_NOTES as u64).is_some());
    }
}
