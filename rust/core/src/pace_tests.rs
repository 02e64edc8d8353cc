use super::*;
use proptest::prelude::*;

fn limits(change: impl FnOnce(&mut AccountLimits)) -> AccountLimits {
    let mut limits = AccountLimits::default();
    change(&mut limits);
    limits
}

#[test]
fn nothing_limits_unless_it_is_set() {
    let none: AccountLimits = serde_json::from_str("{}").expect("limits");
    assert!(!none.is_any());
    let mut pace = Pace::default();
    for _ in 0..1_000 {
        pace.begin(u64::MAX, 5);
    }
    assert_eq!(pace.admits(&none, u32::MAX, u64::MAX, 5), Ok(()));
    assert_eq!((pace.remaining(&none, 9, 5), pace.rate_left(&none, 5)), (Remaining::default(), None));
}

#[test]
fn so_many_at_once() {
    let two = limits(|one| one.max_concurrent = Some(2));
    let mut pace = Pace::default();
    assert_eq!(pace.admits(&two, 1, 0, 0), Ok(()));
    assert_eq!(pace.admits(&two, 2, 0, 0), Err(PaceWait::Slot));
    assert_eq!(pace.remaining(&two, 3, 0).slots, Some(0));
}

#[test]
fn a_gap_is_from_beginning_to_beginning() {
    let gap = limits(|one| one.min_gap_ms = Some(250));
    let mut pace = Pace::default();
    assert_eq!(pace.admits(&gap, 0, 0, 100), Ok(()));
    pace.begin(0, 100);
    assert_eq!(pace.admits(&gap, 0, 0, 200), Err(PaceWait::Ms(150)));
    assert_eq!(pace.admits(&gap, 0, 0, 350), Ok(()));
}

#[test]
fn requests_leave_the_minute_one_second_after_another() {
    let three = limits(|one| one.requests_per_minute = Some(3));
    let mut pace = Pace::default();
    for at_ms in [500, 1_500, 2_500] {
        assert_eq!(pace.admits(&three, 0, 0, at_ms), Ok(()));
        pace.begin(0, at_ms);
    }
    assert_eq!(pace.admits(&three, 0, 0, 2_500), Err(PaceWait::Ms(58_500)));
    assert_eq!((pace.remaining(&three, 0, 2_500).requests, pace.rate_left(&three, 2_500)), (Some(0), Some(0.0)));
    assert_eq!(pace.admits(&three, 0, 0, 61_000), Ok(()));
    pace.begin(0, 61_000);
    assert_eq!(pace.admits(&three, 0, 0, 61_000), Err(PaceWait::Ms(1_000)));
    assert_eq!(pace.admits(&three, 0, 0, 600_000), Ok(()), "everything is long past");
    assert_eq!(pace.remaining(&three, 0, 600_000).requests, Some(3));
}

#[test]
fn tokens_are_counted_as_they_came_to() {
    let hundred = limits(|one| one.tokens_per_minute = Some(100));
    let mut pace = Pace::default();
    pace.begin(80, 0);
    assert_eq!(pace.admits(&hundred, 0, 30, 0), Err(PaceWait::Ms(61_000)));
    pace.correct(0, 80, 20, 5_000);
    assert_eq!(pace.admits(&hundred, 0, 30, 5_000), Ok(()));
    assert_eq!((pace.remaining(&hundred, 0, 5_000).tokens, pace.rate_left(&hundred, 5_000)), (Some(80), Some(0.8)));
    pace.correct(0, 20, 500, 6_000);
    assert_eq!(pace.remaining(&hundred, 0, 6_000).tokens, Some(0), "more than was thought");
    // A request too large for any minute is sent alone.
    assert_eq!(pace.admits(&hundred, 0, 1_000, 6_000), Err(PaceWait::Ms(55_000)));
    assert_eq!(pace.admits(&hundred, 0, 1_000, 61_000), Ok(()));
    pace.correct(0, 500, 9, 70_000);
    assert_eq!(pace.remaining(&hundred, 0, 70_000).tokens, Some(100), "corrected too late to count");
}

proptest! {
    #[test]
    fn no_minute_has_more_than_its_limit(
        most in 1u64..20, gaps in proptest::collection::vec(0u64..9_000, 1..200), tokens in 1u64..4,
    ) {
        let set = limits(|one| one.tokens_per_minute = Some(most));
        let mut pace = Pace::default();
        let mut begun: Vec<(u64, u64)> = Vec::new();
        let mut now_ms = 0;
        for gap_ms in gaps {
            now_ms += gap_ms;
            match pace.admits(&set, 0, tokens, now_ms) {
                Ok(()) => {
                    pace.begin(tokens, now_ms);
                    begun.push((now_ms, tokens));
                }
                Err(PaceWait::Ms(wait_ms)) => {
                    prop_assert!(wait_ms > 0 && wait_ms <= 61_000);
                    // The request may start when the wait is over.
                    now_ms += wait_ms;
                    prop_assert_eq!(pace.admits(&set, 0, tokens, now_ms), Ok(()));
                }
                Err(PaceWait::Slot) => prop_assert!(false, "no slots are limited"),
            }
        }
        for &(from_ms, _) in &begun {
            let sum: u64 = begun.iter().filter(|(at_ms, _)| (from_ms..from_ms + 60_000).contains(at_ms)).map(|one| one.1).sum();
            prop_assert!(sum <= most.max(tokens), "{} in one minute of {}", sum, most);
        }
    }

    #[test]
    fn sums_hold_whatever_is_added_and_corrected(
        steps in proptest::collection::vec((0u64..30_000, 0u64..=u64::MAX, 0u64..=u64::MAX, any::<bool>()), 1..60),
    ) {
        let set = limits(|one| one.tokens_per_minute = Some(1_000));
        let mut pace = Pace::default();
        let mut now_ms = 0;
        for (gap_ms, one, other, is_correction) in steps {
            let began_ms = now_ms;
            now_ms += gap_ms;
            if is_correction {
                pace.correct(began_ms, one, other, now_ms);
            } else {
                pace.begin(one, now_ms);
            }
            prop_assert!(pace.rate_left(&set, now_ms).is_some_and(|left| (0.0..=1.0).contains(&left)));
            prop_assert_eq!(pace.tokens.sum, pace.tokens.seconds.iter().sum::<u64>());
        }
        prop_assert_eq!(pace.tokens.sum(now_ms + 61_000), 0);
    }
}
