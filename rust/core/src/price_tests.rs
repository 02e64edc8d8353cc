//! Tests of prices: parts, units, tiers, bounds.

use super::*;
use proptest::prelude::*;

const PRICE: Price = Price {
    input: 2_500_000,
    output: 10_000_000,
    cached_input: Some(1_250_000),
    cache_write: None,
    cache_write_hour: None,
    per_image: 0,
    per_second: 0,
    per_page: 0,
    per_query: 0,
    per_million_characters: 0,
    tiers: Vec::new(),
};

#[test]
fn parts_of_the_input_are_charged_once_each() {
    let usage = Usage { input: 1000, output: 100, cached: 400, reasoning: 50, ..Usage::default() };
    assert_eq!(PRICE.cost(&usage).usd_micros(), 600 * 5 / 2 + 400 * 5 / 4 + 1000);
}

#[test]
fn ten_decimals_keep_what_micros_lose() {
    let usage = Usage { input: 9, output: 12, ..Usage::default() };
    let price = Price { input: 150_000, output: 600_000, ..Price::default() };
    assert_eq!(price.cost(&usage).usd_text(), "0.0000085500");
    assert_eq!(price.cost(&usage).usd_micros(), 9);
    assert_eq!(Cost::default().usd_text(), "0.0000000000");
    assert_eq!(Cost(u128::from(u64::MAX) * 200).usd_text(), "3689348814.7419103230");
    assert_eq!(Cost(u128::from(u64::MAX)).usd_text(), "18446744.0737095516");
}

#[test]
fn things_have_a_price_each() {
    let price = Price {
        per_image: 40_000,
        per_second: 31,
        per_page: 1_000,
        per_query: 2_000,
        per_million_characters: 15_000_000,
        ..Price::default()
    };
    for (units, usd_micros) in [
        (Units { images: 3, ..Units::default() }, 120_000),
        (Units { audio_ms: 1_500, ..Units::default() }, 47), // 46.5, rounded half up
        (Units { pages: 7, ..Units::default() }, 7_000),
        (Units { queries: 1, ..Units::default() }, 2_000),
        (Units { characters: 100, ..Units::default() }, 1_500),
        (Units::default(), 0),
    ] {
        assert_eq!(price.units(&units).usd_micros(), usd_micros, "{units:?}");
        assert_eq!(price.charge(&Usage::default(), &units).usd_micros(), usd_micros);
    }
    let both = Price { per_image: 134_000, ..PRICE };
    let units = Units { images: 1, ..Units::default() };
    let usage = Usage { output: 1_000, ..Usage::default() };
    assert_eq!(both.charge(&usage, &units).usd_micros(), 10_000, "tokens were told");
    assert_eq!(both.charge(&Usage::default(), &units).usd_micros(), 134_000);
    assert_eq!(both.most_of(&usage, &units).usd_micros(), 134_000);
}

#[test]
fn absurd_counts_do_not_overflow() {
    let usage = Usage {
        input: u64::MAX,
        output: u64::MAX,
        cached: u64::MAX,
        cache_write: u64::MAX,
        cache_write_hour: u64::MAX,
        ..Usage::default()
    };
    assert!(PRICE.cost(&usage).usd_micros() > 0);
    let dearest = Price { input: u64::MAX, output: u64::MAX, per_page: u64::MAX, per_image: u64::MAX, ..PRICE };
    let units = Units { pages: u64::MAX, images: u64::MAX, ..Units::default() };
    for cost in [dearest.cost(&usage), dearest.most(&usage), dearest.units(&units), dearest.most_of(&usage, &units)] {
        assert_eq!(cost.usd_micros(), MAX_USD_MICROS);
        assert!(!cost.usd_text().is_empty());
    }
}

/// A model with prices for long inputs, two kinds of cache, and two service tiers.
fn tiered() -> Price {
    serde_json::from_str(
        r#"{"input": 3000000, "output": 15000000, "cached_input": 300000, "cache_write": 3750000, "cache_write_hour": 6000000,
            "tiers": [{"above": 200000, "input": 6000000, "output": 22500000, "cached_input": 600000},
                      {"service": "flex", "input": 1500000, "output": 7500000},
                      {"service": "priority", "input": 6000000, "output": 30000000, "cached_input": 600000},
                      {"service": "priority", "above": 200000, "input": 12000000, "output": 45000000}]}"#,
    )
    .expect("a price")
}

fn cost_and_tiers(price: &Price, usage: &Usage) -> (u64, Option<String>) {
    (price.cost(usage).usd_micros(), price.tiers_of(usage, &Units::default()).text())
}

#[test]
fn a_long_input_has_its_price_from_the_next_token_on() {
    let at = |input| cost_and_tiers(&tiered(), &Usage { input, output: 1_000, ..Usage::default() });
    assert_eq!(at(199_999), (599_997 + 15_000, None));
    assert_eq!(at(200_000), (600_000 + 15_000, None));
    assert_eq!(at(200_001), (1_200_006 + 22_500, Some("above_200000".into())), "all of it, and the answer too");
    let cached = Usage { input: 200_001, cached: 200_001, ..Usage::default() };
    assert_eq!(
        cost_and_tiers(&tiered(), &cached),
        (120_001, Some("above_200000,cached_input".into())),
        "120000.6 rounded half up"
    );
}

#[test]
fn each_lifetime_of_the_cache_has_its_price() {
    let usage = Usage { input: 1_000, cached: 100, cache_write: 500, cache_write_hour: 200, ..Usage::default() };
    let expected = 400 * 3 + 100 * 3 / 10 + 300 * 15 / 4 + 200 * 6;
    assert_eq!(cost_and_tiers(&tiered(), &usage), (expected, Some("cached_input,cache_write,cache_write_hour".into())));
    let hour = Price { cache_write_hour: None, ..tiered() };
    assert_eq!(
        hour.cost(&usage).usd_micros(),
        400 * 3 + 100 * 3 / 10 + 500 * 15 / 4,
        "at the price of the five-minute cache"
    );
    let most = Usage { cache_write_hour: 900, ..usage };
    assert_eq!(tiered().cost(&most).usd_micros(), 400 * 3 + 100 * 3 / 10 + 500 * 6, "never more than was written");
}

#[test]
fn a_service_tier_has_its_price_and_where_it_has_none_the_dearer_one_counts() {
    let of = |service, input| cost_and_tiers(&tiered(), &Usage { input, output: 100, service, ..Usage::default() });
    assert_eq!(of(ServiceTier::Flex, 1_000), (1_500 + 750, Some("flex".into())));
    assert_eq!(of(ServiceTier::Priority, 1_000), (6_000 + 3_000, Some("priority".into())));
    assert_eq!(of(ServiceTier::Priority, 300_000), (3_600_000 + 4_500, Some("priority,above_200000".into())));
    assert_eq!(
        of(ServiceTier::Flex, 300_000),
        (1_800_000 + 2_250, Some("above_200000".into())),
        "no price of long flex"
    );
    assert_eq!(of(ServiceTier::Batch, 1_000), (3_000 + 1_500, None), "no price of batches");
}

#[test]
fn things_tell_which_price_they_were_paid_by() {
    let price = Price { per_image: 40_000, per_second: 31, ..Price::default() };
    let units = Units { images: 3, ..Units::default() };
    assert_eq!(price.tiers_of(&Usage::default(), &units).text().as_deref(), Some("per_image"));
    assert_eq!(PricesInUse::unpriced().text().as_deref(), Some("unpriced"));
    assert_eq!(PricesInUse::default().text(), None);
}

#[test]
fn half_a_micro_dollar_is_rounded_up_once_at_the_end() {
    let price = Price { input: 500_000, output: 500_000, ..Price::default() };
    let cost = |input, output| price.cost(&Usage { input, output, ..Usage::default() });
    assert_eq!(cost(1, 0).usd_micros(), 1, "0.5");
    assert_eq!(cost(1, 1).usd_micros(), 1, "the sum is rounded, not its parts");
    assert_eq!(cost(1, 2).usd_micros(), 2, "1.5");
    let fine = Price { input: 499_999, ..Price::default() };
    assert_eq!(fine.cost(&Usage { input: 1, ..Usage::default() }).usd_micros(), 0, "0.499999");
}

#[test]
fn providers_name_service_tiers_in_several_ways() {
    for (name, tier) in [
        ("default", ServiceTier::Standard),
        ("standard", ServiceTier::Standard),
        ("ON_DEMAND", ServiceTier::Standard),
        ("what comes later", ServiceTier::Standard),
        ("fast", ServiceTier::Priority),
        ("ON_DEMAND_PRIORITY", ServiceTier::Priority),
        ("ON_DEMAND_FLEX", ServiceTier::Flex),
        ("batch", ServiceTier::Batch),
    ] {
        assert_eq!(ServiceTier::of(name), tier, "{name}");
    }
    for tier in [ServiceTier::Batch, ServiceTier::Flex, ServiceTier::Priority, ServiceTier::Ultrafast] {
        assert_eq!(ServiceTier::of(tier.name()), tier);
    }
}

const THRESHOLDS: [u64; 3] = [0, 100, 1_000];

fn service() -> impl Strategy<Value = ServiceTier> {
    prop::sample::select(vec![ServiceTier::Standard, ServiceTier::Flex, ServiceTier::Priority])
}

fn usage() -> impl Strategy<Value = Usage> {
    (0..3_000_u64, 0..3_000_u64, prop::array::uniform3(0..3_000_u64), service()).prop_map(
        |(input, output, [cached, cache_write, cache_write_hour], service)| {
            let cached = cached.min(input);
            let cache_write = cache_write.min(input - cached);
            let cache_write_hour = cache_write_hour.min(cache_write);
            Usage { input, output, cached, cache_write, cache_write_hour, reasoning: 0, service }
        },
    )
}

/// Prices of each kind of token in every tier, none lower above a threshold than below it.
fn rising_price() -> impl Strategy<Value = Price> {
    let steps = prop::array::uniform3(prop::array::uniform5(0..1_000_000_u64));
    (steps.clone(), steps).prop_map(|(standard, flex)| {
        let mut tiers = Vec::new();
        for (service, steps) in [(ServiceTier::Standard, standard), (ServiceTier::Flex, flex)] {
            let mut rates = [0_u64; 5];
            for (above, step) in THRESHOLDS.into_iter().zip(steps) {
                for (rate, step) in rates.iter_mut().zip(step) {
                    *rate += step;
                }
                let [input, output, cached_input, cache_write, cache_write_hour] = rates.map(Some);
                tiers.push(PriceTier { service, above, input, output, cached_input, cache_write, cache_write_hour });
            }
        }
        Price { tiers, ..Price::default() }
    })
}

/// Any price, with any prices in its tiers.
fn any_price() -> impl Strategy<Value = Price> {
    let rate = || prop::option::of(0..1_000_000_u64);
    let tier = (service(), prop::sample::select(THRESHOLDS.to_vec()), prop::array::uniform5(rate()));
    (prop::array::uniform2(0..1_000_000_u64), prop::array::uniform3(rate()), prop::collection::vec(tier, 0..6))
        .prop_map(|([input, output], [cached_input, cache_write, cache_write_hour], tiers)| {
            let tiers = tiers.into_iter().map(|(service, above, [input, output, cached_input, cache_write, hour])| {
                PriceTier { service, above, input, output, cached_input, cache_write, cache_write_hour: hour }
            });
            let tiers = tiers.collect();
            Price { input, output, cached_input, cache_write, cache_write_hour, tiers, ..Price::default() }
        })
}

proptest! {
    #[test]
    fn more_tokens_never_cost_less(price in rising_price(), usage in usage(), more in prop::array::uniform5(0..2_000_u64)) {
        let [plain, cached, written, hour, output] = more;
        let larger = Usage {
            input: usage.input + plain + cached + written + hour,
            output: usage.output + output,
            cached: usage.cached + cached,
            cache_write: usage.cache_write + written + hour,
            cache_write_hour: usage.cache_write_hour + hour,
            ..usage
        };
        prop_assert!(price.cost(&larger) >= price.cost(&usage));
    }

    #[test]
    fn no_call_costs_more_than_is_reserved(price in any_price(), usage in usage()) {
        let demand = Usage { input: usage.input, output: usage.output, service: usage.service, ..Usage::default() };
        prop_assert!(price.most(&demand) >= price.cost(&usage));
        let standard = Usage { service: ServiceTier::Standard, ..usage };
        prop_assert!(price.most(&demand) >= price.cost(&standard), "served as all others");
    }

    #[test]
    fn a_threshold_changes_nothing_up_to_itself(price in any_price(), usage in usage()) {
        let below = |price: &Price| Price {
            tiers: price.tiers.iter().copied().filter(|tier| tier.above == 0 || tier.above < usage.input).collect(),
            ..price.clone()
        };
        prop_assert_eq!(price.cost(&usage), below(&price).cost(&usage));
    }
}

#[test]
fn caching_pays_where_one_read_makes_up_for_the_write() {
    assert!(PRICE.has_cheap_reads() && PRICE.caching_pays(), "writing costs as much as input");
    let dear = Price { cache_write: Some(4_000_000), ..PRICE };
    assert!(dear.has_cheap_reads() && !dear.caching_pays());
    for flat in [Price { cached_input: None, ..PRICE }, Price { cached_input: Some(2_500_000), ..PRICE }] {
        assert!(!flat.has_cheap_reads() && !flat.caching_pays());
    }
}
