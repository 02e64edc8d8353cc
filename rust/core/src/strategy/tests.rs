//! Tests the distribution or order that each strategy promises, over many decisions.

use super::combo::WindowName;
use super::facts::Prior;
use super::{auto, order, Availability, Demand, Facts, Memory, Params, QuotaWindow, Random, Strategy};
use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use std::collections::{HashMap, HashSet};

const DRAWS: usize = 20_000;

/// Builds `n` able candidates that differ only in their id.
fn plain(n: usize) -> Vec<Facts> {
    (0..n).map(|at| Facts { id: at as u64 + 1, ..Facts::default() }).collect()
}

struct Desk {
    params: Params,
    demand: Demand,
    memory: Memory,
    random: Random,
}

impl Desk {
    fn new(seed: u64) -> Self {
        Self {
            params: Params::default(),
            demand: Demand::default(),
            memory: Memory::default(),
            random: Random::seeded(seed),
        }
    }

    fn order(&mut self, strategy: Strategy, facts: &[Facts]) -> Vec<usize> {
        let order = order(strategy, &self.params, facts, &self.demand, &mut self.memory, &mut self.random);
        order.into_iter().map(usize::from).collect()
    }

    /// Counts how often each candidate comes first.
    fn firsts(&mut self, strategy: Strategy, facts: &[Facts], draws: usize) -> Vec<usize> {
        let mut counts = vec![0; facts.len()];
        for _ in 0..draws {
            counts[self.order(strategy, facts)[0]] += 1;
        }
        counts
    }
}

/// Checks the count within five standard deviations of a binomial distribution.
fn assert_share(count: usize, draws: usize, share: f64) {
    let expected = draws as f64 * share;
    let deviation = (draws as f64 * share * (1.0 - share)).sqrt();
    assert!((count as f64 - expected).abs() <= 5.0 * deviation + 1.0, "{count} of {draws}, expected {expected}");
}

prop_compose! {
    fn any_window()(remaining in 0.0f32..=1.0, resets_in_ms in 0u64..700_000_000) -> QuotaWindow {
        QuotaWindow { remaining, resets_in_ms }
    }
}

prop_compose! {
    fn any_facts()(
        availability in prop_oneof![
            4 => Just(Availability::Able), 1 => Just(Availability::Probing), 1 => Just(Availability::Cooling), 1 => Just(Availability::Closed)
        ],
        cooldown_ms in 1u64..100_000,
        weight in 0.0f32..100.0,
        cheapness in 0.0f32..1.0,
        in_flight in 0u32..50,
        used in 0u64..1_000,
        capacity in proptest::option::of(1u32..20),
        own_limits in (proptest::option::of(0.0f32..=1.0), proptest::bool::weighted(0.2)),
        latency_ms in proptest::option::of(1.0f32..5_000.0),
        success_rate in proptest::option::of(0.0f32..=1.0),
        prices in proptest::option::of((0u64..100_000_000, 0u64..100_000_000)),
        context_window in proptest::option::of(1_000u64..2_000_000),
        windows in (proptest::option::of(any_window()), proptest::option::of(any_window()), proptest::option::of(any_window())),
    ) -> Facts {
        Facts {
            takes_pictures: None,
            id: 0,
            availability,
            cooldown_ms: if availability == Availability::Cooling { cooldown_ms } else { 0 },
            prior: Prior { cheapness, ..Prior::default() },
            weight, in_flight, used, capacity, latency_ms, success_rate,
            rate_left: own_limits.0,
            is_shut: own_limits.1,
            price_input: prices.map(|prices| prices.0),
            price_output: prices.map(|prices| prices.1),
            context_window,
            session: windows.0, weekly: windows.1, monthly: windows.2,
        }
    }
}

fn any_list() -> impl proptest::strategy::Strategy<Value = Vec<Facts>> {
    proptest::collection::vec(any_facts(), 0..40).prop_map(|mut facts| {
        for (at, one) in facts.iter_mut().enumerate() {
            one.id = at as u64 + 1;
        }
        facts
    })
}

fn any_strategy() -> impl proptest::strategy::Strategy<Value = Strategy> {
    (0..Strategy::ALL.len()).prop_map(|at| Strategy::ALL[at].0)
}

proptest! {
    #[test]
    fn every_strategy_orders_all_that_may_be_tried_and_able_ones_first(
        facts in any_list(), strategy in any_strategy(), seed: u64, affinity: Option<u64>, last in proptest::option::of(1u64..40),
    ) {
        let mut desk = Desk::new(seed);
        desk.demand.affinity = affinity;
        desk.demand.last_target = last;
        for _ in 0..3 {
            let order = desk.order(strategy, &facts);
            let expected: HashSet<usize> =
                (0..facts.len()).filter(|&at| facts[at].availability != Availability::Closed).collect();
            prop_assert_eq!(order.iter().copied().collect::<HashSet<_>>(), expected.clone());
            prop_assert_eq!(order.len(), expected.len());
            let able = order.iter().take_while(|&&at| facts[at].availability.is_able()).count();
            let cooldowns: Vec<u64> = order[able..].iter().map(|&at| facts[at].cooldown_ms).collect();
            prop_assert!(order[able..].iter().all(|&at| facts[at].availability == Availability::Cooling));
            prop_assert!(cooldowns.is_sorted(), "the soonest first: {:?}", cooldowns);
            if !matches!(strategy, Strategy::Fusion | Strategy::Pipeline) {
                let shut: Vec<bool> = order[..able].iter().map(|&at| facts[at].is_shut).collect();
                prop_assert!(shut.is_sorted(), "those with room first: {:?}", shut);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_orders(facts in any_list(), strategy in any_strategy(), seed: u64) {
        let (mut one, mut other) = (Desk::new(seed), Desk::new(seed));
        for _ in 0..5 {
            prop_assert_eq!(one.order(strategy, &facts), other.order(strategy, &facts));
        }
    }

    #[test]
    fn a_session_stays_with_its_target_while_that_is_able(facts in any_list(), strategy in any_strategy(), seed: u64, last in 1u64..40) {
        let mut desk = Desk::new(seed);
        desk.demand.last_target = Some(last);
        let there = facts.iter().position(|one| one.id == last && one.is_open());
        if let (Some(there), true) = (there, strategy != Strategy::ContextRelay) {
            prop_assert_eq!(desk.order(strategy, &facts)[0], there);
        }
    }

    #[test]
    fn priority_is_list_order(facts in any_list()) {
        for strategy in [Strategy::Priority, Strategy::Fusion, Strategy::Pipeline] {
            let order = Desk::new(1).order(strategy, &facts);
            let is_staged = strategy != Strategy::Priority;
            let able = order.into_iter().filter(|&at| facts[at].is_open() || (is_staged && facts[at].availability.is_able()));
            prop_assert!(able.is_sorted());
        }
    }

    #[test]
    fn sorted_strategies_are_sorted(facts in any_list()) {
        let order = |strategy: Strategy| -> Vec<usize> {
            Desk::new(1).order(strategy, &facts).into_iter().filter(|&at| facts[at].is_open()).collect()
        };
        let demand = Demand::default();
        let costs: Vec<u128> =
            order(Strategy::CostOptimized).iter().map(|&at| facts[at].cost(&demand).unwrap_or(u128::MAX)).collect();
        prop_assert!(costs.is_sorted());
        let windows: Vec<u64> =
            order(Strategy::ContextOptimized).iter().map(|&at| facts[at].context_window.unwrap_or(0)).collect();
        prop_assert!(windows.is_sorted_by(|a, b| a >= b));
        let headroom: Vec<f32> = order(Strategy::Headroom).iter().map(|&at| facts[at].headroom()).collect();
        prop_assert!(headroom.is_sorted_by(|a, b| a >= b));
        let used: Vec<(u32, u64)> =
            order(Strategy::LeastUsed).iter().map(|&at| (facts[at].in_flight, facts[at].used)).collect();
        prop_assert!(used.is_sorted());
        let full: Vec<bool> = order(Strategy::FillFirst).iter().map(|&at| facts[at].is_full() || facts[at].free_share() <= 0.02).collect();
        prop_assert!(full.is_sorted(), "those with room first");
    }

    #[test]
    fn round_robin_gives_each_its_turn_in_every_round(n in 1usize..30, rounds in 1usize..5) {
        let facts = plain(n);
        let mut desk = Desk::new(7);
        for _ in 0..rounds {
            prop_assert_eq!(desk.firsts(Strategy::RoundRobin, &facts, n), vec![1; n]);
        }
    }

    #[test]
    fn a_sticky_round_robin_stays_that_many_times(n in 1usize..10, limit in 2u32..6) {
        let facts = plain(n);
        let mut desk = Desk::new(7);
        desk.params.sticky_limit = limit;
        let firsts: Vec<usize> = (0..n * limit as usize).map(|_| desk.order(Strategy::RoundRobin, &facts)[0]).collect();
        let expected: Vec<usize> = (0..n).flat_map(|at| vec![at; limit as usize]).collect();
        prop_assert_eq!(firsts, expected);
    }

    #[test]
    fn strict_random_deals_each_once_a_round(n in 1usize..30, seed: u64) {
        let facts = plain(n);
        let mut desk = Desk::new(seed);
        for _ in 0..4 {
            prop_assert_eq!(desk.firsts(Strategy::StrictRandom, &facts, n), vec![1; n]);
        }
    }

    #[test]
    fn two_choices_never_prefer_the_worst(n in 2usize..20, worst in 0usize..20, seed: u64) {
        let worst = worst % n;
        let mut facts = plain(n);
        facts[worst].in_flight = 9;
        let mut desk = Desk::new(seed);
        for _ in 0..50 {
            prop_assert!(desk.order(Strategy::P2c, &facts)[0] != worst);
        }
    }

    #[test]
    fn one_affinity_goes_to_one_place_and_a_loss_moves_only_its_own(n in 2usize..20, lost in 0usize..20, affinity: u64) {
        let mut facts = plain(n);
        let mut desk = Desk::new(1);
        desk.demand.affinity = Some(affinity);
        let before = desk.order(Strategy::CacheOptimized, &facts);
        prop_assert_eq!(&desk.order(Strategy::CacheOptimized, &facts), &before);
        let lost = lost % n;
        facts[lost].availability = Availability::Closed;
        let after = desk.order(Strategy::CacheOptimized, &facts);
        let expected: Vec<usize> = before.into_iter().filter(|&at| at != lost).collect();
        prop_assert_eq!(after, expected);
    }

    #[test]
    fn auto_puts_the_best_first_but_for_its_explorations(facts in any_list(), seed: u64) {
        let mut desk = Desk::new(seed);
        let best = facts.iter().enumerate().filter(|(_, one)| one.is_open());
        let best = best.max_by(|a, b| {
            let score = |one: &Facts| auto::score(one, super::Pack::Balanced);
            score(a.1).total_cmp(&score(b.1)).then(b.0.cmp(&a.0))
        });
        if let Some((best, _)) = best {
            let firsts = desk.firsts(Strategy::Auto, &facts, 200);
            prop_assert!(firsts[best] >= 165, "{} of 200", firsts[best]);
        }
    }
}

#[test]
fn weights_are_shares() {
    for weights in [[1.0, 1.0, 2.0], [70.0, 30.0, 0.0], [0.0, 0.0, 5.0], [0.1, 0.2, 0.7]] {
        let mut facts = plain(3);
        for (one, weight) in facts.iter_mut().zip(weights) {
            one.weight = weight;
        }
        let total: f32 = weights.iter().sum();
        let counts = Desk::new(3).firsts(Strategy::Weighted, &facts, DRAWS);
        for (count, weight) in counts.into_iter().zip(weights) {
            assert_share(count, DRAWS, f64::from(weight / total));
        }
    }
    let order = Desk::new(5).order(
        Strategy::Weighted,
        &[
            Facts { id: 1, weight: 1.0, ..Facts::default() },
            Facts { id: 2, weight: 5.0, ..Facts::default() },
            Facts { id: 3, weight: 3.0, ..Facts::default() },
        ],
    );
    let rest: Vec<usize> = order[1..].to_vec();
    assert!(rest.is_sorted_by(|a, b| [1, 5, 3][*a] > [1, 5, 3][*b]), "behind the winner by weight: {order:?}");
}

#[test]
fn without_weights_and_by_chance_each_is_as_likely() {
    let facts = plain(5);
    for strategy in [Strategy::Weighted, Strategy::Random, Strategy::StrictRandom, Strategy::P2c] {
        for count in Desk::new(11).firsts(strategy, &facts, DRAWS) {
            assert_share(count, DRAWS, 0.2);
        }
    }
    // Checks every order, not only every first candidate.
    let mut orders: HashMap<Vec<usize>, usize> = HashMap::new();
    let mut desk = Desk::new(13);
    for _ in 0..DRAWS {
        *orders.entry(desk.order(Strategy::Random, &plain(3))).or_default() += 1;
    }
    assert_eq!(orders.len(), 6);
    for count in orders.into_values() {
        assert_share(count, DRAWS, 1.0 / 6.0);
    }
}

#[test]
fn the_share_of_one_that_is_away_goes_to_all_others_alike() {
    let mut facts = plain(5);
    facts[2].availability = Availability::Cooling;
    for strategy in [Strategy::RoundRobin, Strategy::Random, Strategy::StrictRandom, Strategy::Weighted] {
        let counts = Desk::new(17).firsts(strategy, &facts, DRAWS);
        assert_eq!(counts[2], 0);
        counts
            .into_iter()
            .enumerate()
            .filter(|(at, _)| *at != 2)
            .for_each(|(_, count)| assert_share(count, DRAWS, 0.25));
    }
}

#[test]
fn two_choices_take_the_best_as_often_as_it_is_drawn() {
    let mut facts = plain(8);
    for (at, one) in facts.iter_mut().enumerate() {
        one.latency_ms = Some(10.0 * (at as f32 + 1.0));
    }
    // The best of eight is among two draws in 2 of 8 cases.
    assert_share(Desk::new(19).firsts(Strategy::P2c, &facts, DRAWS)[0], DRAWS, 0.25);
}

#[test]
fn least_used_spreads_evenly() {
    let mut facts = plain(7);
    let mut desk = Desk::new(23);
    for _ in 0..700 {
        let first = desk.order(Strategy::LeastUsed, &facts)[0];
        facts[first].used += 1;
    }
    assert!(facts.iter().all(|one| one.used == 100), "{facts:?}");
    facts[3].in_flight = 1;
    assert_ne!(desk.order(Strategy::LeastUsed, &facts)[0], 3, "an open request weighs more than past ones");
}

#[test]
fn the_cost_counts_what_goes_in_and_what_comes_out() {
    let of = |id, input, output| Facts { id, price_input: Some(input), price_output: Some(output), ..Facts::default() };
    let facts = [of(1, 1, 100), of(2, 10, 20), Facts { id: 3, ..Facts::default() }];
    let mut desk = Desk::new(1);
    desk.demand = Demand { input_tokens: 100, output_tokens: 1, ..Demand::default() };
    assert_eq!(desk.order(Strategy::CostOptimized, &facts), [0, 1, 2], "a long question, a short answer");
    desk.demand = Demand { input_tokens: 10, output_tokens: 100, ..Demand::default() };
    assert_eq!(desk.order(Strategy::CostOptimized, &facts), [1, 0, 2], "a short question, a long answer; unknown last");
}

#[test]
fn a_cache_key_spreads_over_all() {
    let facts = plain(4);
    let mut desk = Desk::new(1);
    let mut counts = [0; 4];
    for key in 0..DRAWS as u64 {
        desk.demand.affinity = Some(key);
        counts[desk.order(Strategy::CacheOptimized, &facts)[0]] += 1;
    }
    for count in counts {
        assert_share(count, DRAWS, 0.25);
    }
}

#[test]
fn the_soonest_reset_goes_first_and_equals_take_turns() {
    let of = |id, weekly_ms: u64| Facts {
        id,
        weekly: Some(QuotaWindow { remaining: 0.5, resets_in_ms: weekly_ms }),
        ..Facts::default()
    };
    let facts = [of(1, 9_000_000), of(2, 1_000_000), of(3, 1_030_000), Facts { id: 4, ..Facts::default() }];
    let mut desk = Desk::new(1);
    assert_eq!(desk.order(Strategy::ResetWindow, &facts), [1, 2, 0, 3]);
    assert_eq!(desk.order(Strategy::ResetWindow, &facts), [2, 1, 0, 3], "within a minute they are as soon");
    desk.params.windows = vec![WindowName::Session];
    assert_eq!(desk.order(Strategy::ResetWindow, &facts), [0, 1, 2, 3], "no window is known: list order");
}

#[test]
fn quota_that_is_lost_soon_is_used_first_unless_next_to_nothing_is_left() {
    let hour = 3_600_000;
    let of = |id, remaining, resets_in_ms| Facts {
        id,
        weekly: Some(QuotaWindow { remaining, resets_in_ms }),
        ..Facts::default()
    };
    let facts = [of(1, 0.9, 160 * hour), of(2, 0.9, 2 * hour), of(3, 0.05, hour)];
    assert_eq!(Desk::new(1).order(Strategy::ResetAware, &facts), [1, 0, 2]);
    let alike = [of(1, 0.5, 10 * hour), of(2, 0.5, 10 * hour)];
    let mut desk = Desk::new(1);
    assert_eq!(desk.firsts(Strategy::ResetAware, &alike, 10), [5, 5]);
}

#[test]
fn the_last_that_served_goes_first_until_it_fails() {
    let facts = plain(3);
    let mut desk = Desk::new(1);
    assert_eq!(desk.order(Strategy::Lkgp, &facts), [0, 1, 2]);
    desk.memory.succeed(3);
    assert_eq!(desk.order(Strategy::Lkgp, &facts), [2, 0, 1]);
    desk.memory.fail(3);
    assert_eq!(desk.order(Strategy::Lkgp, &facts), [0, 1, 2]);
}

#[test]
fn a_session_is_relayed_when_its_target_has_spent_its_quota() {
    let of =
        |id, remaining| Facts { id, session: Some(QuotaWindow { remaining, resets_in_ms: 1 }), ..Facts::default() };
    let mut desk = Desk::new(1);
    desk.demand.last_target = Some(2);
    assert_eq!(desk.order(Strategy::ContextRelay, &[of(1, 0.9), of(2, 0.5), of(3, 0.9)]), [1, 0, 2]);
    assert_eq!(desk.order(Strategy::ContextRelay, &[of(1, 0.9), of(2, 0.10), of(3, 0.9)]), [0, 2, 1]);
}

#[test]
fn fill_first_goes_on_when_one_is_full() {
    let mut facts = plain(3);
    facts[0].capacity = Some(2);
    let mut desk = Desk::new(1);
    assert_eq!(desk.order(Strategy::FillFirst, &facts), [0, 1, 2]);
    facts[0].in_flight = 2;
    assert_eq!(desk.order(Strategy::FillFirst, &facts), [1, 2, 0]);
}

#[test]
fn auto_explores_now_and_then() {
    let mut facts = plain(3);
    for (one, merit) in facts.iter_mut().zip([0.1, 0.3, 0.2]) {
        one.prior = Prior { cheapness: merit, fit: merit, tier: merit };
    }
    let counts = Desk::new(29).firsts(Strategy::Auto, &facts, DRAWS);
    assert_share(counts[1], DRAWS, 0.95);
    assert_share(counts[2], DRAWS, 0.05);
    assert_eq!(counts[0], 0);
}

#[test]
fn a_sticky_winner_that_fails_stays_no_longer() {
    let mut desk = Desk::new(1);
    desk.params.sticky_limit = 100;
    let facts = plain(3);
    let first = desk.order(Strategy::RoundRobin, &facts)[0];
    assert_eq!(desk.order(Strategy::RoundRobin, &facts)[0], first);
    desk.memory.fail(facts[first].id);
    assert_eq!(desk.memory.stays, None);
}
