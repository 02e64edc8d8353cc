//! The active sessions of keys that may have only a limited number of them.
//!
//! A single worker counts the sessions that it knows. Several workers count in a shared store: a worker admits a
//! session that it knows without asking and reports it periodically, and it asks the store about a session that it does
//! not know.
//!
//! ```text
//!  (unknown) -> asked -> in, reported every 30 s while it is used -> idle for 15 min -> (unknown)
//!                     \-> full
//! ```

use crate::error::{Error, ErrorKind};
use crate::lease::{LeaseTerms, StoreLoss};
use crate::ledger::{limits_lost, limits_unknown};
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::sync::Arc;

/// A session ends after this time without use.
pub const IDLE_MS: u64 = 15 * 60_000;
/// How often a session in use is reported to the store. Another worker may consider it ended too early by up to this
/// time.
const REPORT_EVERY_MS: u64 = 30_000;
/// How long the store's answer that the key is full is considered current.
const FRESH_MS: u64 = 200;
/// The maximum number of sessions that wait for the store's answer. Further ones are refused until it arrives.
const MAX_QUESTIONS: usize = 10_000;

/// A session of a key, as the workers identify it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionName {
    pub key_id: String,
    pub session_id: String,
}

/// A session that wants to start. The key may have `max` of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuestion {
    pub name: SessionName,
    pub max: usize,
}

/// A session that this worker has admitted, and the milliseconds since its last use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReport {
    pub name: SessionName,
    pub unused_ms: u64,
}

/// The store's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAnswer {
    Entered,
    /// The oldest session of the key ends after this time unless it is used.
    Full {
        wait_ms: u64,
    },
}

/// When a session was last used and reported, in monotonic milliseconds. `None` means never reported.
#[derive(Debug, Clone, Copy)]
struct ActiveSession {
    used_ms: u64,
    reported_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Refusal {
    at_ms: u64,
    wait_ms: u64,
}

/// The active sessions, and the questions for the store. Bounded, because a key has at most its maximum of sessions and
/// an answer is stored only briefly.
#[derive(Debug, Default)]
struct Book {
    by_key: HashMap<String, HashMap<String, ActiveSession>>,
    questions: HashMap<SessionName, usize>,
    refusals: HashMap<SessionName, Refusal>,
}

/// The active sessions of every key.
#[derive(Debug, Default)]
pub struct Sessions {
    book: Mutex<Book>,
    /// Set if sessions are counted together with other workers.
    terms: Option<Arc<LeaseTerms>>,
}

impl Sessions {
    /// Counts sessions together with other workers.
    #[must_use]
    pub fn shared(terms: Arc<LeaseTerms>) -> Self {
        Self { terms: Some(terms), ..Self::default() }
    }

    /// Records that the session is used now. Returns an error if it may not start. The error is `LimitsUnknown` if the
    /// store must be asked first; the question is then queued. `now_ms` is monotonic.
    pub fn enter(&self, key_id: &str, session_id: &str, max: usize, now_ms: u64) -> Result<(), Error> {
        let mut book = self.book.lock();
        let own = book.by_key.entry(key_id.to_owned()).or_default();
        if let Some(session) = own.get_mut(session_id).filter(|session| !is_over(session, now_ms)) {
            session.used_ms = now_ms;
            return Ok(());
        }
        if own.len() >= max {
            own.retain(|_, session| !is_over(session, now_ms));
        }
        if own.len() >= max {
            // The sessions that this worker knows are a subset of those in the store.
            let oldest_ms = own.values().map(|session| session.used_ms).min().unwrap_or(now_ms);
            return Err(full(max, (oldest_ms + IDLE_MS).saturating_sub(now_ms)));
        }
        match &self.terms {
            None => {}
            Some(terms) if terms.is_lost() => {
                if terms.on_loss == StoreLoss::Refuse {
                    return Err(limits_lost());
                }
                if own.len() >= (max / usize::try_from(terms.nodes()).unwrap_or(max)).max(1) {
                    return Err(full(max, 0));
                }
            }
            Some(_) => return book.queue_question(key_id, session_id, max, now_ms),
        }
        own.insert(session_id.to_owned(), ActiveSession { used_ms: now_ms, reported_ms: None });
        Ok(())
    }

    /// Takes the questions for the store, each once.
    pub fn take_questions(&self) -> Vec<SessionQuestion> {
        let questions = std::mem::take(&mut self.book.lock().questions);
        questions.into_iter().map(|(name, max)| SessionQuestion { name, max }).collect()
    }

    /// Applies the store's answers, in the order of the questions.
    pub fn take_answers(&self, questions: Vec<SessionQuestion>, answers: &[SessionAnswer], now_ms: u64) {
        let mut book = self.book.lock();
        book.refusals.retain(|_, refusal| refusal.at_ms + FRESH_MS > now_ms);
        for (question, answer) in questions.into_iter().zip(answers) {
            match answer {
                SessionAnswer::Full { wait_ms } => {
                    book.refusals.insert(question.name, Refusal { at_ms: now_ms, wait_ms: *wait_ms });
                }
                SessionAnswer::Entered => {
                    let SessionName { key_id, session_id } = question.name;
                    let session = ActiveSession { used_ms: now_ms, reported_ms: Some(now_ms) };
                    book.by_key.entry(key_id).or_default().insert(session_id, session);
                }
            }
        }
    }

    /// Takes the reports for the store: sessions that are due for one, or with `is_all` every active session, because
    /// the store has come back. They count as reported from then on.
    pub fn take_reports(&self, now_ms: u64, is_all: bool) -> Vec<SessionReport> {
        let mut reports = Vec::new();
        for (key_id, own) in &mut self.book.lock().by_key {
            for (session_id, session) in own {
                let is_due = session
                    .reported_ms
                    .is_none_or(|at_ms| session.used_ms > at_ms && now_ms.saturating_sub(at_ms) >= REPORT_EVERY_MS);
                if (is_due || is_all) && !is_over(session, now_ms) {
                    session.reported_ms = Some(now_ms);
                    let name = SessionName { key_id: key_id.clone(), session_id: session_id.clone() };
                    reports.push(SessionReport { name, unused_ms: now_ms.saturating_sub(session.used_ms) });
                }
            }
        }
        reports
    }

    /// Removes ended sessions. Called periodically.
    pub fn sweep(&self, now_ms: u64) {
        self.book.lock().by_key.retain(|_, own| {
            own.retain(|_, session| !is_over(session, now_ms));
            !own.is_empty()
        });
    }
}

impl Book {
    fn queue_question(&mut self, key_id: &str, session_id: &str, max: usize, now_ms: u64) -> Result<(), Error> {
        let name = SessionName { key_id: key_id.to_owned(), session_id: session_id.to_owned() };
        if let Some(refusal) = self.refusals.get(&name).filter(|refusal| refusal.at_ms + FRESH_MS > now_ms) {
            return Err(full(max, refusal.wait_ms));
        }
        let has_capacity = self.questions.len() < MAX_QUESTIONS;
        match self.questions.entry(name) {
            Entry::Occupied(mut question) => *question.get_mut() = max,
            Entry::Vacant(slot) if has_capacity => {
                slot.insert(max);
            }
            Entry::Vacant(_) => {}
        }
        Err(limits_unknown())
    }
}

fn is_over(session: &ActiveSession, now_ms: u64) -> bool {
    now_ms.saturating_sub(session.used_ms) >= IDLE_MS
}

fn full(max: usize, wait_ms: u64) -> Error {
    let message = format!("This key has reached its limit of {max} concurrent sessions (`maxSessions`).");
    Error::client(ErrorKind::RateLimited, message).about("maxSessions").after_s(wait_ms.div_ceil(1_000).max(1))
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
