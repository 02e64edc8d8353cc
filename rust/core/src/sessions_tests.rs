//! Tests of sessions, with a single worker and with several that share a store.

use super::*;

const NOW_MS: u64 = 1_000;

fn terms(on_loss: StoreLoss) -> Arc<LeaseTerms> {
    let terms = Arc::new(LeaseTerms::new(30_000, on_loss));
    terms.set_lost(false);
    terms.set_nodes(2);
    terms
}

fn kind_of(entered: Result<(), Error>) -> Option<ErrorKind> {
    entered.err().map(|error| error.kind)
}

/// Enters a session, and gives this answer of the store.
fn enter_with(sessions: &Sessions, session: &str, answer: SessionAnswer, now_ms: u64) -> Option<ErrorKind> {
    assert_eq!(kind_of(sessions.enter("k", session, 2, now_ms)), Some(ErrorKind::LimitsUnknown));
    let questions = sessions.take_questions();
    assert_eq!(questions.len(), 1);
    sessions.take_answers(questions, &[answer], now_ms);
    kind_of(sessions.enter("k", session, 2, now_ms))
}

#[test]
fn a_key_has_only_so_many_sessions_until_one_is_idle() {
    let sessions = Sessions::default();
    assert!(sessions.enter("k", "a", 2, 0).is_ok());
    assert!(sessions.enter("k", "b", 2, 1_000).is_ok());
    assert!(sessions.enter("k", "a", 2, 2_000).is_ok(), "an open session continues");
    let refused = sessions.enter("k", "c", 2, 3_000).expect_err("full");
    assert_eq!((refused.kind, refused.retry_after_s), (ErrorKind::RateLimited, Some((IDLE_MS - 2_000) / 1_000)));
    assert!(sessions.enter("other", "c", 2, 3_000).is_ok(), "each key has its own");
    assert!(sessions.enter("k", "c", 2, 1_000 + IDLE_MS).is_ok(), "b is over");
    sessions.sweep(1_000 + 3 * IDLE_MS);
    assert!(sessions.book.lock().by_key.is_empty());
}

#[test]
fn the_store_is_asked_once_for_a_session_and_then_told_of_it_while_it_is_used() {
    let sessions = Sessions::shared(terms(StoreLoss::FairShare));
    assert_eq!(enter_with(&sessions, "a", SessionAnswer::Entered, NOW_MS), None);
    for at_ms in [NOW_MS + 1, NOW_MS + 10_000, NOW_MS + REPORT_EVERY_MS - 1] {
        assert!(sessions.enter("k", "a", 2, at_ms).is_ok());
        assert!(sessions.take_questions().is_empty());
        assert!(sessions.take_reports(at_ms, false).is_empty());
    }
    let at_ms = NOW_MS + REPORT_EVERY_MS + 5;
    let name = SessionName { key_id: "k".into(), session_id: "a".into() };
    let reports = sessions.take_reports(at_ms, false);
    assert_eq!(reports, [SessionReport { name, unused_ms: 6 }]);
    assert!(sessions.take_reports(at_ms + REPORT_EVERY_MS, false).is_empty(), "it was not used since");
    assert_eq!(sessions.take_reports(at_ms + REPORT_EVERY_MS, true).len(), 1, "a store that was emptied hears of it");
    assert!(sessions.take_reports(at_ms + IDLE_MS, true).is_empty(), "it is over");
    assert_eq!(kind_of(sessions.enter("k", "a", 2, at_ms + IDLE_MS)), Some(ErrorKind::LimitsUnknown));
}

#[test]
fn a_session_for_which_the_store_has_no_room_is_refused_and_asked_for_again_soon() {
    let sessions = Sessions::shared(terms(StoreLoss::FairShare));
    let full = SessionAnswer::Full { wait_ms: 7_001 };
    assert_eq!(enter_with(&sessions, "a", full, NOW_MS), Some(ErrorKind::RateLimited));
    let refused = sessions.enter("k", "a", 2, NOW_MS + FRESH_MS - 1).expect_err("full");
    assert_eq!(refused.retry_after_s, Some(8));
    assert!(sessions.take_questions().is_empty());
    assert_eq!(enter_with(&sessions, "b", SessionAnswer::Entered, NOW_MS + 1), None, "one that others know");
    assert_eq!(enter_with(&sessions, "a", SessionAnswer::Entered, NOW_MS + FRESH_MS), None);
    assert!(sessions.book.lock().refusals.len() <= 1);
}

#[test]
fn what_this_worker_has_let_in_is_full_without_a_question() {
    let sessions = Sessions::shared(terms(StoreLoss::FairShare));
    for session in ["a", "b"] {
        assert_eq!(enter_with(&sessions, session, SessionAnswer::Entered, NOW_MS), None);
    }
    assert_eq!(kind_of(sessions.enter("k", "c", 2, NOW_MS)), Some(ErrorKind::RateLimited));
    assert!(sessions.take_questions().is_empty());
}

#[test]
fn without_the_store_a_worker_lets_in_its_part_and_reports_it_later() {
    let terms = terms(StoreLoss::FairShare);
    let sessions = Sessions::shared(Arc::clone(&terms));
    terms.set_lost(true);
    for (session, is_in) in [("a", true), ("b", true), ("c", false), ("a", true)] {
        assert_eq!(sessions.enter("k", session, 5, NOW_MS).is_ok(), is_in, "{session}");
    }
    assert!(sessions.enter("single", "a", 1, NOW_MS).is_ok(), "one at least");
    terms.set_lost(false);
    assert_eq!(sessions.take_reports(NOW_MS + 1, false).len(), 3);
    assert!(sessions.take_reports(NOW_MS + 2, false).is_empty());
}

#[test]
fn without_the_store_nothing_new_is_let_in_where_that_is_the_rule() {
    let terms = terms(StoreLoss::Refuse);
    let sessions = Sessions::shared(Arc::clone(&terms));
    assert_eq!(enter_with(&sessions, "a", SessionAnswer::Entered, NOW_MS), None);
    terms.set_lost(true);
    assert!(sessions.enter("k", "a", 2, NOW_MS).is_ok(), "what is in goes on");
    let refused = sessions.enter("k", "b", 2, NOW_MS).expect_err("lost");
    assert_eq!(refused.kind, ErrorKind::LimitsUnknown);
    assert!(refused.message.contains("FAIRLEAD_SHARED_URL"));
}

#[test]
fn questions_are_bounded() {
    let sessions = Sessions::shared(terms(StoreLoss::FairShare));
    for number in 0..MAX_QUESTIONS + 10 {
        assert!(sessions.enter("k", &number.to_string(), 100_000, NOW_MS).is_err());
    }
    assert_eq!(sessions.take_questions().len(), MAX_QUESTIONS);
    assert!(sessions.book.lock().by_key["k"].is_empty());
}
