//! Tests of the ledger: what is let through together, what comes back, and what is asked of control.

use super::*;
use crate::limit::Period;
use crate::snapshot::Snapshot;
use proptest::prelude::*;

const NOON_MS: u64 = 1_767_268_800_000;

fn limit(unit: Unit, amount: u64, period: Period) -> Limit {
    Limit { id: format!("{unit:?}{period:?}"), name: "test".into(), unit, amount, period, scope: Scope::All }
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
    ledger.open([key].into_iter(), |_| true, NOON_MS);
    ledger
}

fn served(provider: &'static str, prefixes: &'static [String], upstream_model: &'static str) -> Served<'static> {
    Served { provider, prefixes, upstream_model }
}

fn subject(ts_ms: u64) -> Subject<'static> {
    Subject { model: "p/m", served: served("p", &[], "m"), ts_ms }
}

fn tokens(tokens: u64) -> Amounts {
    Amounts { tokens, usd_micros: 0 }
}

#[test]
fn requests_under_way_hold_their_room_and_give_back_what_they_did_not_use() {
    let key = key(vec![limit(Unit::Tokens, 100, Period::Day(0))]);
    let ledger = known(&key);
    let first = ledger.reserve(&key, subject(NOON_MS), tokens(60)).expect("room");
    let refused = ledger.reserve(&key, subject(NOON_MS), tokens(60)).expect_err("held");
    assert_eq!((refused.kind, refused.retry_after_s), (Kind::TokenLimitExceeded, Some(1)));
    ledger.settle("k", subject(NOON_MS), first, tokens(10), 0);
    let second = ledger.reserve(&key, subject(NOON_MS), tokens(90)).expect("room again");
    ledger.settle("k", subject(NOON_MS), second, tokens(90), 0);
    let refused = ledger.reserve(&key, subject(NOON_MS), tokens(1)).expect_err("used up");
    assert_eq!(refused.retry_after_s, Some(12 * 3_600), "until midnight");
    assert!(ledger.reserve(&key, subject(NOON_MS + 12 * 3_600_000), tokens(90)).is_ok(), "a new day");
}

#[test]
fn a_request_that_may_need_more_than_is_left_is_told_so() {
    let key = key(vec![limit(Unit::UsdMicros, 1_000_000, Period::Week(0))]);
    let ledger = known(&key);
    let refused =
        ledger.reserve(&key, subject(NOON_MS), Amounts { tokens: 0, usd_micros: 1_500_000 }).expect_err("dear");
    assert_eq!(refused.kind, Kind::BudgetExceeded);
    assert!(refused.message.contains("may need 1.500000 USD; ask for less output"), "{}", refused.message);
}

#[test]
fn all_limits_pass_or_none_is_touched() {
    let key = key(vec![limit(Unit::Requests, 2, Period::Seconds(60)), limit(Unit::Tokens, 10, Period::Day(0))]);
    let ledger = known(&key);
    for _ in 0..5 {
        assert!(ledger.reserve(&key, subject(NOON_MS), tokens(50)).is_err());
    }
    for _ in 0..2 {
        let hold = ledger.reserve(&key, subject(NOON_MS), tokens(5)).expect("refusals counted nothing");
        ledger.settle("k", subject(NOON_MS), hold, Amounts::default(), 0);
    }
    let refused = ledger.reserve(&key, subject(NOON_MS), tokens(5)).expect_err("two requests");
    assert_eq!((refused.kind, refused.retry_after_s), (Kind::RateLimited, Some(60)));
}

#[test]
fn a_limit_counts_only_what_it_is_about() {
    let of_model = Limit { scope: Scope::Model("p/big".into()), ..limit(Unit::Tokens, 10, Period::Month(0)) };
    let key = key(vec![of_model]);
    let ledger = known(&key);
    let hold = ledger.reserve(&key, subject(NOON_MS), tokens(50)).expect("another model");
    ledger.settle("k", subject(NOON_MS), hold, tokens(50), 0);
    let big = Subject { model: "p/big", ..subject(NOON_MS) };
    assert!(ledger.reserve(&key, big, tokens(50)).is_err());
    assert!(ledger.reserve(&key, big, tokens(10)).is_ok());
}

#[test]
fn what_is_not_known_is_refused_until_control_has_answered() {
    let key = key(vec![limit(Unit::Tokens, 100, Period::Day(0))]);
    let ledger = Ledger::default();
    let refused = ledger.reserve(&key, subject(NOON_MS), tokens(1)).expect_err("no account");
    assert_eq!(refused.kind, Kind::LimitsUnknown);
    ledger.open([&key].into_iter(), |_| false, NOON_MS);
    assert_eq!(ledger.reserve(&key, subject(NOON_MS), tokens(1)).map_err(|e| e.kind).err(), Some(Kind::LimitsUnknown));

    let (questions, segment) = ledger.ask(NOON_MS, || 7);
    assert_eq!((questions.len(), segment), (1, 7));
    assert_eq!(questions[0].from_ms, NOON_MS - 12 * 3_600_000);
    // Requests that were admitted under the configuration before, which knew no limit.
    ledger.settle("k", subject(NOON_MS), None, tokens(30), 6); // control's sum has it
    ledger.settle("k", subject(NOON_MS), None, tokens(5), 7);
    ledger.seed(&questions, &[40]);
    assert_eq!(ledger.ask(NOON_MS, || 8), (Vec::new(), 0));
    assert!(ledger.reserve(&key, subject(NOON_MS), tokens(56)).is_err());
    assert!(ledger.reserve(&key, subject(NOON_MS), tokens(55)).is_ok());
}

#[test]
fn a_question_that_was_not_answered_is_asked_anew_and_counts_anew() {
    let key = key(vec![limit(Unit::Tokens, 100, Period::Day(0))]);
    let ledger = Ledger::default();
    ledger.open([&key].into_iter(), |_| false, NOON_MS);
    ledger.ask(NOON_MS, || 1);
    ledger.settle("k", subject(NOON_MS), None, tokens(30), 1);
    let (questions, _) = ledger.ask(NOON_MS, || 2);
    ledger.seed(&questions, &[30]);
    assert!(ledger.reserve(&key, subject(NOON_MS), tokens(70)).is_ok());
}

#[test]
fn a_limit_that_changes_what_it_counts_is_another() {
    let before = key(vec![limit(Unit::Tokens, 100, Period::Day(0))]);
    let ledger = known(&before);
    let id = before.limits[0].id.clone();
    let more = Arc::new(Key { limits: vec![Limit { amount: 200, ..before.limits[0].clone() }], ..Key::clone(&before) });
    ledger.open([&more].into_iter(), |_| false, NOON_MS);
    assert!(ledger.reserve(&more, subject(NOON_MS), tokens(150)).is_ok(), "another amount is the same account");
    let monthly = Limit { id, ..limit(Unit::Tokens, 100, Period::Month(0)) };
    let other = Arc::new(Key { limits: vec![monthly], ..Key::clone(&before) });
    ledger.open([&other].into_iter(), |_| false, NOON_MS);
    assert!(ledger.reserve(&other, subject(NOON_MS), tokens(1)).is_err(), "its past is not known");
    ledger.close_others([&other].into_iter());
    assert!(ledger.reserve(&more, subject(NOON_MS), tokens(1)).is_err(), "the old one is closed");
}

proptest! {
    /// Whatever the order of beginnings and ends: what was spent and what may still be spent never passes the amount.
    #[test]
    fn nothing_is_overspent(amount in 1_u64..500, steps in prop::collection::vec((any::<bool>(), 1_u64..80, 0_u64..100), 1..200)) {
        let key = key(vec![limit(Unit::Tokens, amount, Period::Day(0))]);
        let ledger = known(&key);
        let mut open = Vec::new();
        let (mut spent, mut may_spend) = (0, 0);
        for (begins, most, share) in steps {
            if begins {
                if let Ok(hold) = ledger.reserve(&key, subject(NOON_MS), tokens(most)) {
                    may_spend += most;
                    open.push((hold, most));
                }
            } else if let Some((hold, most)) = open.pop() {
                let used = most * share / 100;
                ledger.settle("k", subject(NOON_MS), hold, tokens(used), 0);
                spent += used;
                may_spend -= most;
            }
            prop_assert!(spent + may_spend <= amount);
        }
        for (hold, _) in open {
            ledger.settle("k", subject(NOON_MS), hold, Amounts::default(), 0);
        }
        let left = amount - spent;
        prop_assert_eq!(ledger.reserve(&key, subject(NOON_MS), tokens(left)).is_ok(), left > 0);
    }
}

#[test]
fn a_limit_of_one_provider_leaves_the_others_and_counts_who_served() {
    let of = |name: &str, amount| Limit {
        id: name.into(),
        scope: Scope::Provider(name.into()),
        ..limit(Unit::Tokens, amount, Period::Day(0))
    };
    let key = key(vec![of("p", 100), of("q", 100), limit(Unit::Tokens, 1_000, Period::Day(0))]);
    let ledger = known(&key);
    let both = [served("p", &[], "m"), served("q", &[], "m")];
    let ask = |tokens_each| ledger.reserve_any(&key, subject(NOON_MS), &both, Some(tokens(tokens_each)));
    let first = ask(80).expect("room at both");
    assert!(first.without.is_empty());
    // Served by `q`, after `p` had failed: only `q` has spent.
    let by_q = Subject { served: both[1], ..subject(NOON_MS) };
    ledger.settle("k", by_q, first.hold, tokens(80), 0);
    let second = ask(80).expect("room at one");
    assert_eq!(second.without.iter().map(|limit| limit.id.as_str()).collect::<Vec<_>>(), ["q"]);
    assert!(second.leaves_out("p/m", &both[1]) && !second.leaves_out("p/m", &both[0]));
    ledger.settle("k", subject(NOON_MS), second.hold, tokens(80), 0);
    assert_eq!(ask(80).map(drop).map_err(|fault| fault.kind), Err(Kind::TokenLimitExceeded));
    assert!(ask(20).is_ok(), "what was held came back");
}

#[test]
fn a_limit_of_a_model_holds_whatever_name_leads_to_it() {
    let prefixes: &'static [String] = Vec::leak(vec!["p".to_owned(), "p-2".to_owned()]);
    let big = served("node", prefixes, "big");
    let small = served("node", prefixes, "small");
    for name in ["p/big", "p-2/big", "big"] {
        let of_big = Limit { scope: Scope::Model(name.into()), ..limit(Unit::Tokens, 10, Period::Day(0)) };
        let key = key(vec![of_big]);
        let ledger = known(&key);
        let alias = Subject { model: "quick", served: Served::default(), ts_ms: NOON_MS };
        let ask = |targets: &[Served<'_>]| ledger.reserve_any(&key, alias, targets, Some(tokens(8)));
        let first = ask(&[big]).expect("room");
        ledger.settle("k", Subject { served: big, ..alias }, first.hold, tokens(8), 0);
        assert_eq!(ask(&[big]).map(drop).map_err(|fault| fault.kind), Err(Kind::TokenLimitExceeded), "{name}");
        let other = ask(&[big, small]).expect("the other model has room");
        assert!(other.leaves_out("quick", &big) && !other.leaves_out("quick", &small));
        ledger.settle("k", Subject { served: small, ..alias }, other.hold, tokens(8), 0);
        let own = Subject { model: "p/small", served: Served::default(), ts_ms: NOON_MS };
        assert!(ledger.reserve_any(&key, own, &[small], Some(tokens(8))).is_ok(), "nothing was counted for it");
    }
    // The name that the caller used counts too, wherever it leads.
    let of_alias = Limit { scope: Scope::Model("quick".into()), ..limit(Unit::Tokens, 10, Period::Day(0)) };
    let key = key(vec![of_alias]);
    let ledger = known(&key);
    let quick = Subject { model: "quick", served: big, ts_ms: NOON_MS };
    ledger.settle("k", quick, None, tokens(10), 0);
    assert!(ledger.reserve_any(&key, quick, &[small], Some(tokens(1))).is_err());
    assert!(!served("node", prefixes, "").is_model("") && !big.is_model("pp/big") && !big.is_model("p/bi"));
}

#[test]
fn what_uses_nothing_is_held_to_limits_of_requests_alone() {
    let key = key(vec![limit(Unit::Requests, 2, Period::Seconds(60)), limit(Unit::Tokens, 0, Period::Day(0))]);
    let ledger = known(&key);
    let ask = || ledger.reserve_any(&key, subject(NOON_MS), &[served("p", &[], "m")], None);
    assert!(ask().is_ok() && ask().is_ok());
    assert_eq!(ask().map(drop).map_err(|fault| fault.kind), Err(Kind::RateLimited));
}

#[test]
fn a_clock_that_is_put_back_locks_nobody_out() {
    const DAY_MS: u64 = 86_400_000;
    let key = key(vec![limit(Unit::Requests, 1, Period::Seconds(30))]);
    let ledger = known(&key);
    for now_ms in [NOON_MS, NOON_MS + DAY_MS, NOON_MS - DAY_MS, NOON_MS] {
        assert!(ledger.reserve(&key, subject(now_ms), tokens(0)).is_ok(), "{now_ms}");
        assert!(ledger.reserve(&key, subject(now_ms), tokens(0)).is_err(), "{now_ms}");
    }
    let budget = self::key(vec![limit(Unit::Tokens, 10, Period::Day(0))]);
    let ledger = known(&budget);
    ledger.settle("k", subject(NOON_MS), None, tokens(10), 0);
    let refused = ledger.reserve(&budget, subject(NOON_MS - DAY_MS), tokens(1)).expect_err("not known");
    assert_eq!((refused.kind, refused.retry_after_s), (Kind::LimitsUnknown, Some(1)));
    assert_eq!(ledger.ask(NOON_MS - DAY_MS, || 3).0.len(), 1, "and asked for");
}

#[test]
fn a_look_for_room_counts_nothing() {
    let key = key(vec![limit(Unit::Requests, 1, Period::Seconds(60)), limit(Unit::Tokens, 10, Period::Day(0))]);
    let ledger = known(&key);
    for _ in 0..3 {
        assert!(ledger.has_room(&key, subject(NOON_MS)).is_ok());
    }
    let hold = ledger.reserve(&key, subject(NOON_MS), tokens(1)).expect("room");
    let refused = ledger.has_room(&key, subject(NOON_MS)).expect_err("the one request is made");
    assert_eq!(refused.kind, Kind::RateLimited);
    ledger.settle("k", subject(NOON_MS), hold, tokens(10), 0);
    let later = ledger.has_room(&key, subject(NOON_MS + 60_000)).expect_err("the tokens are used up");
    assert_eq!(later.kind, Kind::TokenLimitExceeded);
    let stranger = Ledger::default().has_room(&key, subject(NOON_MS)).expect_err("nothing is known");
    assert_eq!(stranger.kind, Kind::LimitsUnknown);
}
