//! Tests of the ledger with groups: reserving at every level or none, and the earlier use of groups.

use super::*;
use crate::snapshot::Snapshot;
use serde_json::{json, Value};
use std::sync::Barrier;

const NOW: Moment = Moment { unix_ms: 1_767_268_800_000, monotonic_ms: 1_000_000 };

fn limit(unit: &str, amount: u64) -> Value {
    json!({"id": unit, "name": "limit", "unit": unit, "amount": amount, "period": {"month": 0}})
}

/// Key `one` in the team and key `two` in the area, below a firm. Each of the three levels has its limit.
fn keys(team: &Value, area: &Value, firm: &Value) -> (Arc<Key>, Arc<Key>) {
    let group = |id: &str, parent: Option<&str>, limit: &Value| json!({"id": id, "name": id, "parent": parent, "limits": [limit]});
    let key = |id: &str, group: &str| json!({"id": id, "hash": crate::secret::hex(&crate::secret::SecretHash::of(id.as_bytes()).0), "is_active": true, "group": group});
    let document = json!({
        "version": 1,
        "groups": [group("team", Some("area"), team), group("area", Some("firm"), area), group("firm", None, firm)],
        "keys": [key("one", "team"), key("two", "area")],
    });
    let snapshot = Snapshot::parse(document.to_string().as_bytes()).expect("a snapshot");
    let found = |id: &str| Arc::clone(snapshot.key_of(id).expect("a key"));
    (found("one"), found("two"))
}

fn subject() -> Subject<'static> {
    Subject { model: "p/m", served: Served { provider: "p", prefixes: &[], upstream_model: "m" } }
}

fn tokens(tokens: u64) -> Amounts {
    Amounts { tokens, usd_micros: 0 }
}

fn usd(usd_micros: u64) -> Amounts {
    Amounts { tokens: 0, usd_micros }
}

fn charge(hold: Option<Hold>, spent: Amounts) -> Charge {
    Charge { hold, spent, segment: 0 }
}

#[test]
fn a_refusal_names_its_level_and_holds_nothing_at_the_others() {
    let (one, two) = keys(&limit("tokens", 1_000), &limit("tokens", 50), &limit("tokens", 1_000));
    let ledger = Ledger::default();
    ledger.open([&one, &two].into_iter(), |_| true, NOW);
    for _ in 0..3 {
        let refused = ledger.reserve(&one, subject(), tokens(60), NOW).expect_err("the area has 50");
        assert!(refused.message.contains("of the group `area` (`limit`)"), "{}", refused.message);
        assert_eq!(refused.param.as_deref(), Some("groups.area.limit"));
    }
    let hold =
        ledger.reserve(&one, subject(), tokens(50), NOW).expect("refusals held nothing in the team and the firm");
    assert!(ledger.reserve(&two, subject(), tokens(1), NOW).is_err(), "the area is one account for all of its keys");
    ledger.settle(one.as_ref(), subject(), charge(hold, tokens(20)), NOW);
    let rest = ledger.reserve(&two, subject(), tokens(30), NOW).expect("what came back");
    ledger.settle(two.as_ref(), subject(), charge(rest, tokens(30)), NOW);
    assert!(ledger.reserve(&one, subject(), tokens(1), NOW).is_err());
}

#[test]
fn calls_at_once_never_take_more_than_a_level_has() {
    let (one, two) =
        keys(&limit("usd_micros", 9_000_000), &limit("usd_micros", 1_000_000), &limit("usd_micros", 9_000_000));
    let ledger = Ledger::default();
    ledger.open([&one, &two].into_iter(), |_| true, NOW);
    let start = Barrier::new(50);
    let admitted: u64 = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..50)
            .map(|at| {
                let (ledger, start, key) = (&ledger, &start, if at % 2 == 0 { &one } else { &two });
                scope.spawn(move || {
                    start.wait();
                    let Ok(hold) = ledger.reserve(key, subject(), usd(300_000), NOW) else { return 0 };
                    ledger.settle(key.as_ref(), subject(), charge(hold, usd(250_000)), NOW);
                    1
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().expect("it ended")).sum()
    });
    assert!((1..=3).contains(&admitted), "{admitted} calls of 0.25 USD, each of which may come to 0.30, of one dollar");
}

#[test]
fn a_key_that_is_moved_leaves_what_it_spent_and_what_it_still_spends_where_it_was() {
    let (one, two) = keys(&limit("tokens", 100), &limit("tokens", 100), &limit("tokens", 1_000));
    let ledger = Ledger::default();
    ledger.open([&one, &two].into_iter(), |_| true, NOW);
    let hold = ledger.reserve(&one, subject(), tokens(90), NOW).expect("room");
    let moved = Arc::new(Key { groups: one.groups[2..].to_vec(), ..Key::clone(&one) });
    // The running call was admitted as a call of the team.
    ledger.settle(one.as_ref(), subject(), charge(hold, tokens(90)), NOW);
    assert!(ledger.reserve(&two, subject(), tokens(20), NOW).is_err(), "the area has 10 left");
    assert!(ledger.reserve(&moved, subject(), tokens(500), NOW).is_ok(), "of the firm alone now");
}

#[test]
fn the_past_of_a_group_is_asked_for_by_its_own_id() {
    let (one, two) = keys(&limit("tokens", 100), &limit("tokens", 100), &limit("tokens", 1_000));
    let ledger = Ledger::default();
    assert!(ledger.open([&one, &two].into_iter(), |id| id == "team", NOW));
    assert!(ledger.reserve(&one, subject(), tokens(1), NOW).is_err_and(|error| error.kind == ErrorKind::LimitsUnknown));
    let (mut questions, _) = ledger.limit_questions(NOW, || 7);
    questions.sort_by(|a, b| a.owner_id.cmp(&b.owner_id));
    let owners: Vec<_> = questions.iter().map(|question| question.owner_id.as_str()).collect();
    assert_eq!(owners, ["area", "firm"]);
    ledger.seed(&questions, &[95, 200]);
    let refused = ledger.reserve(&one, subject(), tokens(6), NOW).expect_err("5 are left of the area");
    assert!(refused.message.contains("5 tokens left"), "{}", refused.message);
    assert!(ledger.reserve(&one, subject(), tokens(5), NOW).is_ok());
}

#[test]
fn a_conversation_that_goes_on_is_held_to_every_level() {
    let (one, _) = keys(&limit("tokens", 1_000), &limit("tokens", 1_000), &limit("tokens", 100));
    let ledger = Ledger::default();
    ledger.open([&one].into_iter(), |_| true, NOW);
    let mut hold = ledger.reserve(&one, subject(), tokens(40), NOW).expect("room").unwrap_or_default();
    ledger.renew(&one, subject(), &mut hold, tokens(40), NOW).expect("40 used, 40 held");
    let refused =
        ledger.renew(&one, subject(), &mut hold, tokens(80), NOW).expect_err("80 used and 40 more are too many");
    assert!(refused.message.contains("of the group `firm`"), "{}", refused.message);
}
