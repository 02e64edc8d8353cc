use super::*;
use proptest::prelude::*;

fn reading(name: &str, limit: u64, left: u64, resets_in_ms: u64) -> WindowReading {
    let amounts = Some((limit, left));
    WindowReading { name: name.into(), remaining: 0.0, resets_in_ms, is_quota: false, amounts }
}

#[test]
fn what_is_left_grows_until_it_is_full_and_is_then_forgotten() {
    let mut rates = ProviderRates::default();
    rates.learn("m", &[reading("requests", 60, 0, 60_000)], 1_000);
    assert_eq!(rates.wait_ms("m", 9, 1_000), 1_000, "one comes back each second");
    assert_eq!((rates.wait_ms("m", 9, 2_000), rates.wait_ms("other", 9, 1_000)), (0, 0));
    rates.begin("m", 9);
    assert_eq!(rates.wait_ms("m", 9, 2_000), 1_000, "one that was begun is gone");
    let (_, _, rate) = rates.all(31_000).next().expect("a rate");
    assert_eq!((rate.limit, rate.remaining(31_000), rate.per_minute()), (60, 29, Some(60)));
    assert_eq!((rates.wait_ms("m", 9, 61_000), rates.left("m", 61_000), rates.all(61_000).count()), (0, None, 0));
}

#[test]
fn tokens_are_counted_by_size_and_a_larger_one_than_the_limit_waits_for_all() {
    let mut rates = ProviderRates::default();
    let both = [reading("tokens", 1_000, 500, 30_000), reading("input-tokens", 1_000, 1_000, 1)];
    rates.learn("m", &both, 0);
    assert_eq!((rates.wait_ms("m", 500, 0), rates.wait_ms("m", 501, 0)), (0, 60));
    assert_eq!(rates.wait_ms("m", 50_000, 0), 30_000);
    assert_eq!(rates.left("m", 0), Some(0.5));
    rates.begin("m", 400);
    assert_eq!(rates.left("m", 0), Some(0.1));
    rates.learn("m", &[reading("tokens", 1_000, 900, 6_000)], 10);
    assert_eq!(rates.wait_ms("m", 900, 10), 0, "the newest word counts");
}

#[test]
fn quotas_and_half_told_rates_teach_nothing() {
    let mut rates = ProviderRates::default();
    let quota = WindowReading { is_quota: true, ..reading("requests", 10, 0, 60_000) };
    let unmeasured = WindowReading { amounts: None, ..reading("requests", 10, 0, 60_000) };
    rates.learn("m", &[quota, unmeasured, reading("requests", 10, 0, 0), reading("output-tokens", 10, 0, 1_000)], 0);
    assert!(rates.is_empty());
}

#[test]
fn models_are_bounded_and_those_that_say_nothing_make_room() {
    let mut rates = ProviderRates::default();
    for model in 0..MAX_MODELS {
        rates.learn(&model.to_string(), &[reading("requests", 10, 0, 1_000)], 0);
    }
    rates.learn("late", &[reading("requests", 10, 0, 1_000)], 500);
    assert_eq!((rates.0.len(), rates.wait_ms("late", 1, 500)), (MAX_MODELS, 0));
    rates.learn("later", &[reading("requests", 10, 0, 1_000)], 1_000);
    assert_eq!(rates.0.len(), 1);
}

proptest! {
    #[test]
    fn whoever_waits_as_long_as_told_finds_room(
        limit in 1u64..u64::MAX, left in any::<u64>(), span_ms in 1u64..600_000, begun in any::<u64>(), amount in any::<u64>(), at in 0u64..700_000,
    ) {
        let mut rates = ProviderRates::default();
        rates.learn("m", &[reading("tokens", limit, left.min(limit), span_ms)], 0);
        rates.begin("m", begun);
        let wait_ms = rates.wait_ms("m", amount, at);
        prop_assert!(wait_ms <= span_ms);
        prop_assert_eq!(rates.wait_ms("m", amount, at + wait_ms), 0);
        prop_assert!(rates.left("m", at).is_none_or(|left| (0.0..=1.0).contains(&left)));
    }
}
