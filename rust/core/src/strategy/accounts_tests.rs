//! Tests the distribution of thousands of calls over equal connections.

use super::super::QuotaWindow;
use super::*;

const CALLS: usize = 20_000;

/// Connections that are equal in everything.
fn equals(n: usize) -> Vec<Facts> {
    (0..n).map(|at| Facts { id: at as u64 + 1, weight: 1.0, ..Facts::default() }).collect()
}

struct Desk {
    accounts: AccountOrder,
    demand: Demand,
}

impl Desk {
    fn new(seed: u64) -> Self {
        Self { accounts: AccountOrder::seeded(seed), demand: Demand::default() }
    }

    fn order(&mut self, strategy: AccountStrategy, facts: &[Facts], priorities: &[u32]) -> Vec<usize> {
        let order = self.accounts.order(strategy, facts, priorities, &self.demand);
        order.into_iter().map(usize::from).collect()
    }

    /// Counts how often each connection comes first.
    fn firsts(&mut self, strategy: AccountStrategy, facts: &[Facts]) -> Vec<usize> {
        let mut counts = vec![0; facts.len()];
        for _ in 0..CALLS {
            counts[self.order(strategy, facts, &vec![50; facts.len()])[0]] += 1;
        }
        counts
    }
}

/// Checks the count within five standard deviations of a binomial distribution.
fn assert_share(count: usize, share: f64) {
    let expected = CALLS as f64 * share;
    let deviation = (CALLS as f64 * share * (1.0 - share)).sqrt();
    assert!((count as f64 - expected).abs() <= 5.0 * deviation, "{count} of {CALLS}, expected {expected}");
}

#[test]
fn by_default_equals_are_as_likely() {
    for n in [2, 5, 17] {
        for count in Desk::new(n as u64).firsts(AccountStrategy::default(), &equals(n)) {
            assert_share(count, 1.0 / n as f64);
        }
    }
}

#[test]
fn two_choices_take_the_one_with_fewer_open_requests_and_more_room() {
    // The busiest of n comes first only if it is drawn twice, which is impossible. Any other comes first if it is less
    // loaded than the second draw.
    let mut facts = equals(4);
    for (at, one) in facts.iter_mut().enumerate() {
        one.in_flight = at as u32;
    }
    let wins = |below: usize| 2.0 * below as f64 / (4.0 * 3.0);
    for (at, count) in Desk::new(3).firsts(AccountStrategy::P2c, &facts).into_iter().enumerate() {
        assert_share(count, wins(3 - at));
    }
    // Half of the room left with nothing in flight is the same load as all of it left with one request in flight.
    let mut facts = equals(2);
    facts[0].rate_left = Some(0.5);
    facts[1].in_flight = 1;
    for count in Desk::new(4).firsts(AccountStrategy::P2c, &facts) {
        assert_share(count, 0.5);
    }
    facts[0].session = Some(QuotaWindow { remaining: 0.4, resets_in_ms: 1_000 });
    assert_eq!(Desk::new(5).firsts(AccountStrategy::P2c, &facts), [0, CALLS], "the tightest window counts");
}

#[test]
fn two_choices_level_the_load_as_requests_come_and_go() {
    let mut facts = equals(10);
    let mut desk = Desk::new(6);
    let mut open = std::collections::VecDeque::new();
    let mut most = 0;
    for _ in 0..CALLS {
        let first = desk.order(AccountStrategy::P2c, &facts, &[50; 10])[0];
        facts[first].in_flight += 1;
        facts[first].used += 1;
        open.push_back(first);
        most = most.max(facts[first].in_flight);
        if open.len() > 100 {
            facts[open.pop_front().expect("open")].in_flight -= 1;
        }
    }
    // With a single random choice, one of ten would reach 23 or more of a hundred requests in flight.
    assert!(most <= 14, "{most} at one of ten with 100 open");
    for one in &facts {
        assert!((one.used as f64 - 2_000.0).abs() < 100.0, "{}", one.used);
    }
}

#[test]
fn each_takes_its_turn_whatever_less_preferred_ones_there_are() {
    let facts = equals(6);
    let mut desk = Desk::new(7);
    let mut counts = vec![0; 6];
    for turn in 0..4 * CALLS {
        let order = desk.order(AccountStrategy::RoundRobin, &facts, &[1, 1, 1, 1, 2, 2]);
        assert_eq!(order[0], turn % 4);
        counts[order[0]] += 1;
    }
    assert_eq!(counts, [CALLS, CALLS, CALLS, CALLS, 0, 0]);
}

#[test]
fn weights_are_shares() {
    let mut facts = equals(4);
    for (one, weight) in facts.iter_mut().zip([1.0, 3.0, 0.0, 6.0]) {
        one.weight = weight;
    }
    for (count, share) in Desk::new(8).firsts(AccountStrategy::Weighted, &facts).into_iter().zip([0.1, 0.3, 0.0, 0.6]) {
        assert_share(count, share);
    }
}

#[test]
fn the_least_used_comes_first() {
    let mut facts = equals(7);
    let mut desk = Desk::new(9);
    for _ in 0..7_000 {
        let first = desk.order(AccountStrategy::LeastUsed, &facts, &[50; 7])[0];
        facts[first].used += 1;
    }
    assert!(facts.iter().all(|one| one.used == 1_000));
    facts[3].in_flight = 1;
    facts[3].used = 0;
    assert_ne!(desk.order(AccountStrategy::LeastUsed, &facts, &[50; 7])[0], 3, "an open request weighs more");
}

#[test]
fn the_first_is_filled_before_the_second() {
    let mut facts = equals(3);
    for one in &mut facts {
        one.capacity = Some(5);
    }
    let mut desk = Desk::new(10);
    let firsts: Vec<usize> = (0..15)
        .map(|_| {
            let first = desk.order(AccountStrategy::FillFirst, &facts, &[50; 3])[0];
            facts[first].in_flight += 1;
            first
        })
        .collect();
    assert_eq!(firsts, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    facts[1].in_flight = 4;
    assert_eq!(desk.order(AccountStrategy::FillFirst, &facts, &[50; 3]), [1, 0, 2]);
}

#[test]
fn sessions_stay_where_they_are_and_are_spread_evenly() {
    let mut facts = equals(5);
    let mut desk = Desk::new(11);
    let mut counts = [0; 5];
    let mut homes = Vec::new();
    for session in 0..CALLS as u64 {
        desk.demand.affinity = Some(session);
        let first = desk.order(AccountStrategy::Sticky, &facts, &[50; 5])[0];
        assert_eq!(desk.order(AccountStrategy::Sticky, &facts, &[50; 5])[0], first);
        counts[first] += 1;
        homes.push(first);
    }
    for count in counts {
        assert_share(count, 0.2);
    }
    // A connection in cooldown moves only its own sessions, which spread over the others.
    facts[2].availability = Availability::Cooling;
    let mut moved = [0; 5];
    for (session, &home) in homes.iter().enumerate() {
        desk.demand.affinity = Some(session as u64);
        let first = desk.order(AccountStrategy::Sticky, &facts, &[50; 5])[0];
        assert!(home == 2 || first == home);
        moved[first] += usize::from(home == 2);
    }
    assert_eq!(moved[2], 0);
    let all: usize = moved.iter().sum();
    assert!(moved.iter().enumerate().all(|(at, &count)| at == 2 || count.abs_diff(all / 4) < all / 20), "{moved:?}");
    desk.demand.affinity = None;
    facts[2].availability = Availability::Able;
    for count in desk.firsts(AccountStrategy::Sticky, &facts) {
        assert_share(count, 0.2);
    }
}

#[test]
fn priority_goes_before_every_strategy() {
    for &(strategy, name) in AccountStrategy::ALL {
        let mut facts = equals(6);
        let mut desk = Desk::new(12);
        desk.demand.affinity = Some(5);
        let priorities = [1, 1, 5, 5, 9, 9];
        // The connections of the highest priority are at capacity.
        (facts[0].in_flight, facts[1].in_flight) = (9, 9);
        for _ in 0..1_000 {
            let order = desk.order(strategy, &facts, &priorities);
            let tiers: Vec<u32> = order.iter().map(|&at| priorities[at]).collect();
            assert_eq!(tiers, priorities, "{name}");
        }
        (facts[0].availability, facts[1].availability) = (Availability::Cooling, Availability::Closed);
        facts[2].is_shut = true;
        let order = desk.order(strategy, &facts, &priorities);
        assert_eq!(
            (order[0], order[3..].to_vec()),
            (3, vec![2, 0]),
            "{name}: without room, then resting, closed never"
        );
    }
}

#[test]
fn a_session_goes_before_strategy_and_priority_while_its_connection_has_room() {
    let mut facts = equals(4);
    let mut desk = Desk::new(13);
    desk.demand.last_target = Some(4);
    for &(strategy, name) in AccountStrategy::ALL {
        assert_eq!(desk.order(strategy, &facts, &[1, 1, 2, 2])[0], 3, "{name}");
    }
    facts[3].is_shut = true;
    assert_ne!(desk.order(AccountStrategy::P2c, &facts, &[1, 1, 2, 2])[0], 3);
}

#[test]
fn the_full_are_drawn_only_where_all_are() {
    let mut facts = equals(4);
    for one in &mut facts[..3] {
        (one.capacity, one.in_flight) = (Some(1), 1);
    }
    facts[3].in_flight = 100;
    assert_eq!(Desk::new(14).firsts(AccountStrategy::P2c, &facts), [0, 0, 0, CALLS]);
    facts[3] = Facts { id: 4, capacity: Some(1), in_flight: 1, ..Facts::default() };
    for count in Desk::new(15).firsts(AccountStrategy::P2c, &facts) {
        assert_share(count, 0.25);
    }
}

#[test]
fn each_provider_has_its_own_or_the_default() {
    let read = |json: &str| serde_json::from_str::<AccountStrategies>(json).expect("strategies");
    let set = read(r#"{"default": "least-used", "providers": {"openai": "sticky"}}"#);
    assert_eq!((set.of("openai"), set.of("groq")), (AccountStrategy::Sticky, AccountStrategy::LeastUsed));
    assert!(set.wants_affinity() && !read("{}").wants_affinity());
    assert_eq!(read("{}").of("openai"), AccountStrategy::P2c);
    for (strategy, name) in AccountStrategy::ALL {
        assert_eq!(serde_json::from_value::<AccountStrategy>((*name).into()).ok(), Some(*strategy));
    }
}
