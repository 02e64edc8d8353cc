//! Tests of the ledger: which requests are admitted together, what is returned, and what the control plane is asked.

use super::*;
use crate::limit::{LimitPeriod, Zone};
use crate::snapshot::Snapshot;
use proptest::prelude::*;

const NOON_MS: u64 = 1_767_268_800_000;
const DAY_MS: u64 = 86_400_000;

fn limit(unit: LimitUnit, amount: u64, period: LimitPeriod) -> Limit {
    Limit {
        id: format!("{unit:?}{period:?}"),
        name: "test".into(),
        unit,
        amount,
        period,
        scope: LimitScope::All,
        zone: Zone::default(),
        group: None,
    }
}

fn key(limits: Vec<Limit>) -> Arc<Key> {
    let hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let json = format!(r#"{{"version":1,"keys":[{{"id":"k","hash":"{hash}","is_active":true}}]}}"#);
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    let plain = snapshot.keys().next().expect("a key");
    Arc::new(Key { limits, ..Key::clone(plain) })
}

fn known(key: &Arc<Key>) -> Ledger {
    let ledger = Ledger::default();
    ledger.open([key].into_iter(), |_| true, at(NOON_MS));
    ledger
}

fn served(provider: &'static str, prefixes: &'static [String], upstream_model: &'static str) -> Served<'static> {
    Served { provider, prefixes, upstream_model }
}

fn subject() -> Subject<'static> {
    Subject { model: "p/m", served: served("p", &[], "m") }
}

/// A reading of two clocks that run alike.
fn at(unix_ms: u64) -> Moment {
    Moment { unix_ms, monotonic_ms: unix_ms - NOON_MS / 2 }
}

fn tokens(tokens: u64) -> Amounts {
    Amounts { tokens, usd_micros: 0 }
}

fn charge(hold: Option<Hold>, spent: Amounts, segment: u64) -> Charge {
    Charge { hold, spent, segment }
}

#[test]
fn requests_under_way_hold_their_room_and_give_back_what_they_did_not_use() {
    let key = key(vec![limit(LimitUnit::Tokens, 100, LimitPeriod::Day(0))]);
    let ledger = known(&key);
    let first = ledger.reserve(&key, subject(), tokens(60), at(NOON_MS)).expect("room");
    let refused = ledger.reserve(&key, subject(), tokens(60), at(NOON_MS)).expect_err("held");
    assert_eq!((refused.kind, refused.retry_after_s), (ErrorKind::TokenLimitExceeded, Some(1)));
    ledger.settle("k", subject(), charge(first, tokens(10), 0), at(NOON_MS));
    let second = ledger.reserve(&key, subject(), tokens(90), at(NOON_MS)).expect("room again");
    ledger.settle("k", subject(), charge(second, tokens(90), 0), at(NOON_MS));
    let refused = ledger.reserve(&key, subject(), tokens(1), at(NOON_MS)).expect_err("used up");
    assert_eq!(refused.retry_after_s, Some(12 * 3_600), "until midnight");
    assert!(ledger.reserve(&key, subject(), tokens(90), at(NOON_MS + 12 * 3_600_000)).is_ok(), "a new day");
}

#[test]
fn a_request_that_may_need_more_than_is_left_is_told_so() {
    let key = key(vec![limit(LimitUnit::UsdMicros, 1_000_000, LimitPeriod::Week(0))]);
    let ledger = known(&key);
    let refused =
        ledger.reserve(&key, subject(), Amounts { tokens: 0, usd_micros: 1_500_000 }, at(NOON_MS)).expect_err("dear");
    assert_eq!(refused.kind, ErrorKind::BudgetExceeded);
    assert!(refused.message.contains("may need 1.500000 USD; ask for less output"), "{}", refused.message);
}

#[test]
fn all_limits_pass_or_none_is_touched() {
    let key = key(vec![
        limit(LimitUnit::Requests, 2, LimitPeriod::Seconds(60)),
        limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0)),
    ]);
    let ledger = known(&key);
    for _ in 0..5 {
        assert!(ledger.reserve(&key, subject(), tokens(50), at(NOON_MS)).is_err());
    }
    for _ in 0..2 {
        let hold = ledger.reserve(&key, subject(), tokens(5), at(NOON_MS)).expect("refusals counted nothing");
        ledger.settle("k", subject(), charge(hold, Amounts::default(), 0), at(NOON_MS));
    }
    let refused = ledger.reserve(&key, subject(), tokens(5), at(NOON_MS)).expect_err("two requests");
    assert_eq!((refused.kind, refused.retry_after_s), (ErrorKind::RateLimited, Some(60)));
}

#[test]
fn a_limit_counts_only_what_it_is_about() {
    let of_model =
        Limit { scope: LimitScope::Model("p/big".into()), ..limit(LimitUnit::Tokens, 10, LimitPeriod::Month(0)) };
    let key = key(vec![of_model]);
    let ledger = known(&key);
    let hold = ledger.reserve(&key, subject(), tokens(50), at(NOON_MS)).expect("another model");
    ledger.settle("k", subject(), charge(hold, tokens(50), 0), at(NOON_MS));
    let big = Subject { model: "p/big", ..subject() };
    assert!(ledger.reserve(&key, big, tokens(50), at(NOON_MS)).is_err());
    assert!(ledger.reserve(&key, big, tokens(10), at(NOON_MS)).is_ok());
}

#[test]
fn what_is_not_known_is_refused_until_control_has_answered() {
    let key = key(vec![limit(LimitUnit::Tokens, 100, LimitPeriod::Day(0))]);
    let ledger = Ledger::default();
    let refused = ledger.reserve(&key, subject(), tokens(1), at(NOON_MS)).expect_err("no account");
    assert_eq!(refused.kind, ErrorKind::LimitsUnknown);
    ledger.open([&key].into_iter(), |_| false, at(NOON_MS));
    assert_eq!(
        ledger.reserve(&key, subject(), tokens(1), at(NOON_MS)).map_err(|e| e.kind).err(),
        Some(ErrorKind::LimitsUnknown)
    );

    let (questions, segment) = ledger.limit_questions(at(NOON_MS), || 7);
    assert_eq!((questions.len(), segment), (1, 7));
    assert_eq!(questions[0].from_ms, NOON_MS - 12 * 3_600_000);
    // Requests that were admitted under the previous configuration, which had no limit.
    ledger.settle("k", subject(), charge(None, tokens(30), 6), at(NOON_MS)); // in the control plane's sum
    ledger.settle("k", subject(), charge(None, tokens(5), 7), at(NOON_MS));
    ledger.seed(&questions, &[40]);
    assert_eq!(ledger.limit_questions(at(NOON_MS), || 8), (Vec::new(), 0));
    assert!(ledger.reserve(&key, subject(), tokens(56), at(NOON_MS)).is_err());
    assert!(ledger.reserve(&key, subject(), tokens(55), at(NOON_MS)).is_ok());
}

#[test]
fn a_question_that_was_not_answered_is_asked_anew_and_counts_anew() {
    let key = key(vec![limit(LimitUnit::Tokens, 100, LimitPeriod::Day(0))]);
    let ledger = Ledger::default();
    ledger.open([&key].into_iter(), |_| false, at(NOON_MS));
    ledger.limit_questions(at(NOON_MS), || 1);
    ledger.settle("k", subject(), charge(None, tokens(30), 1), at(NOON_MS));
    let (questions, _) = ledger.limit_questions(at(NOON_MS), || 2);
    ledger.seed(&questions, &[30]);
    assert!(ledger.reserve(&key, subject(), tokens(70), at(NOON_MS)).is_ok());
}

#[test]
fn a_limit_that_changes_what_it_counts_is_another() {
    let before = key(vec![limit(LimitUnit::Tokens, 100, LimitPeriod::Day(0))]);
    let ledger = known(&before);
    let id = before.limits[0].id.clone();
    let more = Arc::new(Key { limits: vec![Limit { amount: 200, ..before.limits[0].clone() }], ..Key::clone(&before) });
    ledger.open([&more].into_iter(), |_| false, at(NOON_MS));
    assert!(ledger.reserve(&more, subject(), tokens(150), at(NOON_MS)).is_ok(), "another amount is the same account");
    let monthly = Limit { id, ..limit(LimitUnit::Tokens, 100, LimitPeriod::Month(0)) };
    let other = Arc::new(Key { limits: vec![monthly], ..Key::clone(&before) });
    ledger.open([&other].into_iter(), |_| false, at(NOON_MS));
    assert!(ledger.reserve(&other, subject(), tokens(1), at(NOON_MS)).is_err(), "its past is not known");
    ledger.close_others([&other].into_iter());
    assert!(ledger.reserve(&more, subject(), tokens(1), at(NOON_MS)).is_err(), "the old one is closed");
}

proptest! {
    /// In any order of starts and ends, the amounts spent and reserved together never exceed the limit.
    #[test]
    fn nothing_is_overspent(amount in 1_u64..500, steps in prop::collection::vec((any::<bool>(), 1_u64..80, 0_u64..100), 1..200)) {
        let key = key(vec![limit(LimitUnit::Tokens, amount, LimitPeriod::Day(0))]);
        let ledger = known(&key);
        let mut open = Vec::new();
        let (mut spent, mut may_spend) = (0, 0);
        for (begins, most, share) in steps {
            if begins {
                if let Ok(hold) = ledger.reserve(&key, subject(), tokens(most), at(NOON_MS)) {
                    may_spend += most;
                    open.push((hold, most));
                }
            } else if let Some((hold, most)) = open.pop() {
                let used = most * share / 100;
                ledger.settle("k", subject(), charge(hold, tokens(used), 0), at(NOON_MS));
                spent += used;
                may_spend -= most;
            }
            prop_assert!(spent + may_spend <= amount);
        }
        for (hold, _) in open {
            ledger.settle("k", subject(), charge(hold, Amounts::default(), 0), at(NOON_MS));
        }
        let left = amount - spent;
        prop_assert_eq!(ledger.reserve(&key, subject(), tokens(left), at(NOON_MS)).is_ok(), left > 0);
    }
}

#[test]
fn a_limit_of_one_provider_leaves_the_others_and_counts_who_served() {
    let of = |name: &str, amount| Limit {
        id: name.into(),
        scope: LimitScope::Provider(name.into()),
        ..limit(LimitUnit::Tokens, amount, LimitPeriod::Day(0))
    };
    let key = key(vec![of("p", 100), of("q", 100), limit(LimitUnit::Tokens, 1_000, LimitPeriod::Day(0))]);
    let ledger = known(&key);
    let both = [served("p", &[], "m"), served("q", &[], "m")];
    let ask = |tokens_each| ledger.reserve_any(&key, subject(), &both, Some(tokens(tokens_each)), at(NOON_MS));
    let first = ask(80).expect("room at both");
    assert!(first.without.is_empty());
    // Served by `q` after `p` had failed, so only `q` has spent.
    let by_q = Subject { served: both[1], ..subject() };
    ledger.settle("k", by_q, charge(first.hold, tokens(80), 0), at(NOON_MS));
    let second = ask(80).expect("room at one");
    assert_eq!(second.without.iter().map(|limit| limit.id.as_str()).collect::<Vec<_>>(), ["q"]);
    assert!(second.leaves_out("p/m", &both[1]) && !second.leaves_out("p/m", &both[0]));
    ledger.settle("k", subject(), charge(second.hold, tokens(80), 0), at(NOON_MS));
    assert_eq!(ask(80).map(drop).map_err(|fault| fault.kind), Err(ErrorKind::TokenLimitExceeded));
    assert!(ask(20).is_ok(), "what was held came back");
}

#[test]
fn a_limit_of_a_model_holds_whatever_name_leads_to_it() {
    let prefixes: &'static [String] = Vec::leak(vec!["p".to_owned(), "p-2".to_owned()]);
    let big = served("node", prefixes, "big");
    let small = served("node", prefixes, "small");
    for name in ["p/big", "p-2/big", "big"] {
        let of_big =
            Limit { scope: LimitScope::Model(name.into()), ..limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0)) };
        let key = key(vec![of_big]);
        let ledger = known(&key);
        let alias = Subject { model: "quick", served: Served::default() };
        let ask = |targets: &[Served<'_>]| ledger.reserve_any(&key, alias, targets, Some(tokens(8)), at(NOON_MS));
        let first = ask(&[big]).expect("room");
        ledger.settle("k", Subject { served: big, ..alias }, charge(first.hold, tokens(8), 0), at(NOON_MS));
        assert_eq!(ask(&[big]).map(drop).map_err(|fault| fault.kind), Err(ErrorKind::TokenLimitExceeded), "{name}");
        let other = ask(&[big, small]).expect("the other model has room");
        assert!(other.leaves_out("quick", &big) && !other.leaves_out("quick", &small));
        ledger.settle("k", Subject { served: small, ..alias }, charge(other.hold, tokens(8), 0), at(NOON_MS));
        let own = Subject { model: "p/small", served: Served::default() };
        assert!(
            ledger.reserve_any(&key, own, &[small], Some(tokens(8)), at(NOON_MS)).is_ok(),
            "nothing was counted for it"
        );
    }
    // The name that the caller used counts too, whatever it resolves to.
    let of_alias =
        Limit { scope: LimitScope::Model("quick".into()), ..limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0)) };
    let key = key(vec![of_alias]);
    let ledger = known(&key);
    let quick = Subject { model: "quick", served: big };
    ledger.settle("k", quick, charge(None, tokens(10), 0), at(NOON_MS));
    assert!(ledger.reserve_any(&key, quick, &[small], Some(tokens(1)), at(NOON_MS)).is_err());
    assert!(!served("node", prefixes, "").is_model("") && !big.is_model("pp/big") && !big.is_model("p/bi"));
}

#[test]
fn what_uses_nothing_is_held_to_limits_of_requests_alone() {
    let key = key(vec![
        limit(LimitUnit::Requests, 2, LimitPeriod::Seconds(60)),
        limit(LimitUnit::Tokens, 0, LimitPeriod::Day(0)),
    ]);
    let ledger = known(&key);
    let ask = || ledger.reserve_any(&key, subject(), &[served("p", &[], "m")], None, at(NOON_MS));
    assert!(ask().is_ok() && ask().is_ok());
    assert_eq!(ask().map(drop).map_err(|fault| fault.kind), Err(ErrorKind::RateLimited));
}

#[test]
fn a_clock_that_is_put_back_locks_nobody_out() {
    let key = key(vec![limit(LimitUnit::Requests, 1, LimitPeriod::Seconds(30))]);
    let ledger = known(&key);
    for (monotonic_ms, unix_ms) in [NOON_MS, NOON_MS + DAY_MS, NOON_MS - DAY_MS, NOON_MS].into_iter().enumerate() {
        let now = Moment { unix_ms, monotonic_ms: NOON_MS + monotonic_ms as u64 };
        assert!(ledger.reserve(&key, subject(), tokens(0), now).is_ok(), "{unix_ms}");
        assert!(ledger.reserve(&key, subject(), tokens(0), now).is_err(), "{unix_ms}");
    }
    let budget = self::key(vec![limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0))]);
    let ledger = known(&budget);
    ledger.settle("k", subject(), charge(None, tokens(10), 0), at(NOON_MS));
    let yesterday = Moment { unix_ms: NOON_MS - DAY_MS, ..at(NOON_MS + 1) };
    let refused = ledger.reserve(&budget, subject(), tokens(1), yesterday).expect_err("not known");
    assert_eq!((refused.kind, refused.retry_after_s), (ErrorKind::LimitsUnknown, Some(1)));
    assert_eq!(ledger.limit_questions(yesterday, || 3).0.len(), 1, "and asked for");
}

#[test]
fn a_window_that_a_clock_brings_twice_is_not_taken_for_a_new_one() {
    let key = key(vec![limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0))]);
    let ledger = known(&key);
    ledger.settle("k", subject(), charge(None, tokens(10), 0), at(NOON_MS + DAY_MS));
    let back = Moment { unix_ms: NOON_MS, ..at(NOON_MS + DAY_MS + 1) };
    assert!(ledger.reserve(&key, subject(), tokens(1), back).is_err());
    let again = Moment { unix_ms: NOON_MS + DAY_MS, ..at(NOON_MS + DAY_MS + 2) };
    let refused = ledger.reserve(&key, subject(), tokens(1), again).expect_err("ten of ten were used");
    assert_eq!(refused.kind, ErrorKind::LimitsUnknown);
}

#[test]
fn a_request_whose_body_was_held_back_moves_no_window() {
    let minute = 60_000;
    let key = key(vec![
        limit(LimitUnit::Requests, 2, LimitPeriod::Seconds(30)),
        limit(LimitUnit::UsdMicros, 10, LimitPeriod::Day(0)),
    ]);
    let ledger = known(&key);
    let cents = Amounts { tokens: 0, usd_micros: 5 };
    for _ in 0..2 {
        let hold = ledger.reserve(&key, subject(), cents, at(NOON_MS + DAY_MS)).expect("room");
        ledger.settle("k", subject(), charge(hold, cents, 0), at(NOON_MS + DAY_MS));
    }
    // A clock reading that was taken earlier arrives late.
    for late_ms in [NOON_MS, NOON_MS + DAY_MS - minute] {
        assert!(ledger.reserve(&key, subject(), cents, at(late_ms)).is_err());
        ledger.settle("k", subject(), charge(None, Amounts::default(), 0), at(late_ms));
        let refused = ledger.reserve(&key, subject(), cents, at(NOON_MS + DAY_MS)).expect_err("all of it was used");
        assert_eq!(refused.kind, ErrorKind::RateLimited);
    }
    let refused = ledger.reserve(&key, subject(), cents, at(NOON_MS + DAY_MS + minute)).expect_err("so is the budget");
    assert_eq!(refused.kind, ErrorKind::BudgetExceeded);
}

#[test]
fn what_a_call_used_counts_in_the_window_in_which_it_ends() {
    let key = key(vec![
        limit(LimitUnit::Tokens, 100, LimitPeriod::Day(0)),
        limit(LimitUnit::Requests, 1, LimitPeriod::Seconds(30)),
    ]);
    let ledger = known(&key);
    let over_the_edge = ledger.reserve(&key, subject(), tokens(80), at(NOON_MS)).expect("room");
    let tomorrow = NOON_MS + DAY_MS;
    ledger.settle("k", subject(), charge(over_the_edge, tokens(80), 0), at(tomorrow));
    let hold = ledger.reserve(&key, subject(), tokens(20), at(tomorrow)).expect("the request itself counted yesterday");
    ledger.settle("k", subject(), charge(hold, tokens(20), 0), at(tomorrow));
    let refused = ledger.reserve(&key, subject(), tokens(1), at(tomorrow + 60_000)).expect_err("80 and 20 are 100");
    assert_eq!(refused.kind, ErrorKind::TokenLimitExceeded);
}

#[test]
fn a_hold_of_a_window_that_is_over_gives_back_nothing_of_others() {
    let key = key(vec![limit(LimitUnit::Tokens, 100, LimitPeriod::Day(0))]);
    let ledger = known(&key);
    let old = ledger.reserve(&key, subject(), tokens(90), at(NOON_MS)).expect("room");
    let _new = ledger.reserve(&key, subject(), tokens(90), at(NOON_MS + DAY_MS)).expect("a new day");
    ledger.settle("k", subject(), charge(old, Amounts::default(), 0), at(NOON_MS + DAY_MS));
    assert!(ledger.reserve(&key, subject(), tokens(20), at(NOON_MS + DAY_MS)).is_err(), "90 are still held");
}

#[test]
fn a_conversation_pays_as_it_goes_and_ends_where_there_is_no_room() {
    let key = key(vec![limit(LimitUnit::Tokens, 100, LimitPeriod::Day(0))]);
    let ledger = known(&key);
    let mut hold = ledger.reserve(&key, subject(), tokens(30), at(NOON_MS)).expect("room").expect("a hold");
    ledger.renew(&key, subject(), &mut hold, tokens(30), at(NOON_MS)).expect("30 used, 30 held");
    let refused = ledger.reserve(&key, subject(), tokens(41), at(NOON_MS)).expect_err("others see both");
    assert_eq!(refused.retry_after_s, Some(1));
    // The next answer may cost as much as the most expensive one so far.
    ledger.renew(&key, subject(), &mut hold, tokens(65), at(NOON_MS)).expect("65 used, 35 held");
    assert!(ledger.reserve(&key, subject(), tokens(1), at(NOON_MS)).is_err());
    // The next day has its own limit, and later use counts there.
    let tomorrow = NOON_MS + DAY_MS;
    ledger.renew(&key, subject(), &mut hold, tokens(125), at(tomorrow)).expect_err("60 used and 60 more are too many");
    ledger.settle("k", subject(), charge(Some(hold), tokens(125), 0), at(tomorrow));
    assert!(ledger.reserve(&key, subject(), tokens(41), at(tomorrow)).is_err());
    assert!(
        ledger.reserve(&key, subject(), tokens(40), at(tomorrow)).is_ok(),
        "nothing counted twice, nothing is held"
    );
}

#[test]
fn a_conversation_is_in_the_sum_once_whenever_control_is_asked() {
    for segment in [6, 7] {
        let key = key(vec![limit(LimitUnit::Tokens, 100, LimitPeriod::Day(0))]);
        let ledger = Ledger::default();
        // The limit is set while the conversation is running.
        ledger.open([&key].into_iter(), |_| false, at(NOON_MS));
        let mut hold = Hold::default();
        ledger.renew(&key, subject(), &mut hold, tokens(20), at(NOON_MS)).expect("not known is not used up");
        let (questions, _) = ledger.limit_questions(at(NOON_MS), || 7);
        ledger.renew(&key, subject(), &mut hold, tokens(40), at(NOON_MS)).expect("not known is not used up");
        ledger.settle("k", subject(), charge(Some(hold), tokens(50), segment), at(NOON_MS));
        // The answer includes what was recorded before the question.
        ledger.seed(&questions, &[if segment < 7 { 50 } else { 0 }]);
        assert!(ledger.reserve(&key, subject(), tokens(51), at(NOON_MS)).is_err(), "{segment}");
        assert!(ledger.reserve(&key, subject(), tokens(50), at(NOON_MS)).is_ok(), "{segment}");
    }
}

/// The test's own count for one window.
#[derive(Default)]
struct Truth {
    used: u64,
    requests: u64,
}

proptest! {
    /// In any order of calls, conversations and late clock readings: within a window no use is lost, none is counted
    /// twice, and reserved amounts are returned.
    #[test]
    fn what_was_used_never_falls_within_a_window(
        steps in prop::collection::vec((0_u8..5, 0_u64..40_000, 0_u64..100_000, 1_u64..50), 1..150),
    ) {
        let key = key(vec![
            limit(LimitUnit::Tokens, 1_000, LimitPeriod::Seconds(60)),
            limit(LimitUnit::Requests, 10, LimitPeriod::Seconds(30)),
        ]);
        let ledger = known(&key);
        let (mut now_ms, mut open, mut calls) = (NOON_MS, Vec::new(), Vec::<u64>::new());
        let mut spent: Vec<(u64, u64)> = Vec::new();
        for (what, forward_ms, late_ms, amount) in steps {
            now_ms += forward_ms;
            let late = at(now_ms.saturating_sub(late_ms));
            // The ledger reads the present first, so that the other reading is late.
            let _rolled = ledger.limit_questions(at(now_ms), || 0);
            match what {
                0 | 1 => {
                    let look = if what == 0 { at(now_ms) } else { late };
                    if let Ok(Some(hold)) = ledger.reserve(&key, subject(), tokens(amount), look) {
                        calls.push(now_ms / 30_000);
                        open.push((hold, 0));
                    }
                }
                2 | 3 if !open.is_empty() => {
                    let (hold, before) = open.swap_remove(late_ms as usize % open.len());
                    let look = if what == 2 { at(now_ms) } else { late };
                    ledger.settle("k", subject(), charge(Some(hold), tokens(before + amount), 0), look);
                    spent.push((now_ms / 60_000, amount));
                }
                4 if !open.is_empty() => {
                    let counter_name = late_ms as usize % open.len();
                    let (hold, before) = &mut open[counter_name];
                    *before += amount;
                    let _room = ledger.renew(&key, subject(), hold, tokens(*before), late);
                    spent.push((now_ms / 60_000, amount));
                }
                _ => {}
            }
            let truth = Truth {
                used: spent.iter().filter(|(window, _)| *window == now_ms / 60_000).map(|(_, amount)| amount).sum(),
                requests: calls.iter().filter(|&&window| window == now_ms / 30_000).count() as u64,
            };
            let books = ledger.books.lock();
            let of = |unit| books.of_owners["k"].iter().find(|account| account.limit.unit == unit).expect("an account");
            prop_assert_eq!(of(LimitUnit::Tokens).used, truth.used);
            prop_assert_eq!(of(LimitUnit::Requests).used, truth.requests);
            prop_assert!(truth.requests <= 10);
        }
        for (hold, before) in open {
            ledger.settle("k", subject(), charge(Some(hold), tokens(before), 0), at(now_ms));
        }
        let books = ledger.books.lock();
        for account in &books.of_owners["k"] {
            prop_assert_eq!((account.reserved, account.unrecorded), (0, 0));
        }
    }
}

#[test]
fn an_accepted_request_is_counted_at_once_and_not_a_second_time() {
    let key = key(vec![
        limit(LimitUnit::Requests, 2, LimitPeriod::Seconds(60)),
        limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0)),
    ]);
    let ledger = known(&key);
    for _ in 0..2 {
        ledger.accept(&key, subject(), at(NOON_MS)).expect("room");
    }
    let refused = ledger.accept(&key, subject(), at(NOON_MS)).expect_err("two are accepted");
    assert_eq!(refused.kind, ErrorKind::RateLimited);
    let work = |most| {
        let ask = NeededCapacity { most: Some(tokens(most)), is_counted: true };
        ledger.reserve_any(&key, subject(), &[subject().served], ask, at(NOON_MS))
    };
    for _ in 0..2 {
        let reservation = work(1).expect("it was counted when it was accepted");
        ledger.settle("k", subject(), charge(reservation.hold, tokens(5), 0), at(NOON_MS));
    }
    assert_eq!(work(1).expect_err("tokens hold").kind, ErrorKind::TokenLimitExceeded);
    let refused = ledger.accept(&key, subject(), at(NOON_MS)).expect_err("two were worked on");
    assert_eq!(refused.kind, ErrorKind::RateLimited);
    let later = ledger.accept(&key, subject(), at(NOON_MS + 60_000)).expect_err("the tokens are used up");
    assert_eq!(later.kind, ErrorKind::TokenLimitExceeded);
    let stranger = Ledger::default().accept(&key, subject(), at(NOON_MS)).expect_err("nothing is known");
    assert_eq!(stranger.kind, ErrorKind::LimitsUnknown);
}

#[test]
fn an_accepted_request_that_is_not_begun_is_given_back_in_its_window() {
    let key = key(vec![limit(LimitUnit::Requests, 1, LimitPeriod::Seconds(60))]);
    let ledger = known(&key);
    let accepted = ledger.accept(&key, subject(), at(NOON_MS)).expect("room");
    ledger.give_back("k", accepted, at(NOON_MS));
    let accepted = ledger.accept(&key, subject(), at(NOON_MS)).expect("room again");
    assert!(ledger.accept(&key, subject(), at(NOON_MS)).is_err(), "one is counted");
    // The next window has a count of its own.
    let next = at(NOON_MS + 60_000);
    ledger.accept(&key, subject(), next).expect("a new window");
    ledger.give_back("k", accepted, next);
    assert!(ledger.accept(&key, subject(), next).is_err(), "another window's count is not given back here");
}

#[test]
fn a_model_may_be_named_in_any_case() {
    let scoped = |unit, amount, name: &str| Limit {
        id: name.into(),
        scope: LimitScope::Model(name.into()),
        ..limit(unit, amount, LimitPeriod::Seconds(60))
    };
    let key = key(vec![scoped(LimitUnit::Requests, 1, "P/Big"), scoped(LimitUnit::Tokens, 0, "p/other")]);
    let ledger = known(&key);
    let named = Subject { model: "p/bIG", served: Served::default() };
    assert!(ledger.check_limits(&key, named, at(NOON_MS)).is_ok());
    // The limit of another target is exhausted, so the request reserves capacity only under the remaining limits.
    let targets = [served("p", &[], "other"), served("p", &[], "third")];
    let reservation = ledger.reserve_any(&key, named, &targets, Some(tokens(1)), at(NOON_MS));
    assert!(reservation.is_ok());
    let refused = ledger.check_limits(&key, named, at(NOON_MS)).expect_err("the one request is made");
    assert_eq!(refused.kind, ErrorKind::RateLimited);
}

#[test]
fn a_day_begins_where_the_limit_has_it_and_a_new_zone_is_a_new_account() {
    let vienna = Zone::find("Europe/Vienna").expect("a zone");
    let of_vienna = Limit { zone: vienna, ..limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0)) };
    // 23:00 UTC is midnight in that zone in winter.
    let midnight_ms = NOON_MS + 11 * 3_600_000;
    assert_eq!(of_vienna.window(NOON_MS).ends_ms, midnight_ms);
    assert_eq!(limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0)).window(NOON_MS).ends_ms, NOON_MS + DAY_MS / 2);
    assert!(!of_vienna.counts_like(&limit(LimitUnit::Tokens, 10, LimitPeriod::Day(0))));
}
