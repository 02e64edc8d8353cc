//! Tests of leases: several nodes and a store that can be lost, emptied and slow, in any order of events.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const TTL_MS: u64 = 6_000;

/// One node with one limit.
struct Node {
    terms: LeaseTerms,
    lease: Lease,
    now: NodeUse,
    is_dead: bool,
}

/// The store as its script keeps it: used, ceiling and end of the lease, by node.
#[derive(Default)]
struct Store {
    reports: BTreeMap<usize, (u64, u64, u64)>,
}

struct World {
    limit: u64,
    is_exact: bool,
    now_ms: u64,
    store: Store,
    nodes: Vec<Node>,
}

impl World {
    fn new(nodes: usize, limit: u64, is_exact: bool) -> Self {
        let node = |_| {
            let terms = LeaseTerms::new(TTL_MS, StoreLoss::FairShare);
            terms.set_lost(false);
            terms.set_nodes(nodes as u64);
            Node { terms, lease: Lease::default(), now: NodeUse::default(), is_dead: false }
        };
        let mut world =
            Self { limit, is_exact, now_ms: 0, store: Store::default(), nodes: (0..nodes).map(node).collect() };
        world.pass(1);
        world
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.nodes.iter().for_each(|node| node.terms.note_time(self.now_ms));
    }

    fn used(&self) -> u64 {
        self.nodes.iter().map(|node| node.now.used).sum()
    }

    /// Lets a node ask the store. Returns whether it had to.
    fn sync(&mut self, at: usize) -> bool {
        let asked_ms = self.now_ms;
        let node = &mut self.nodes[at];
        let Some(claim) = node.lease.claim(&node.terms, self.limit, node.now, false) else { return false };
        let others: Vec<_> = self
            .store
            .reports
            .iter()
            .filter(|(other, _)| **other != at)
            .map(|(_, &(used, ceiling, until_ms))| (used, ceiling, until_ms > asked_ms))
            .collect();
        let granted = grant_lease(self.limit, claim, &others, self.is_exact);
        self.store.reports.insert(at, (claim.used, granted.ceiling, asked_ms + TTL_MS));
        node.lease.take(&node.terms, granted, node.now, asked_ms);
        true
    }

    /// Runs a request that asks the store if it must. Returns whether it was admitted.
    fn hold(&mut self, at: usize, amount: u64) -> bool {
        for _ in 0..4 {
            let node = &mut self.nodes[at];
            if node.is_dead {
                return false;
            }
            match node.lease.check_capacity(&node.terms, self.limit, node.now, amount, self.is_exact) {
                LeaseCapacity::Enough => {
                    node.now.reserved += amount;
                    return true;
                }
                LeaseCapacity::AskStore => {
                    self.sync(at);
                }
                LeaseCapacity::Full | LeaseCapacity::Lost => return false,
            }
        }
        false
    }

    fn settle(&mut self, at: usize, amount: u64, used: u64) {
        let node = &mut self.nodes[at];
        node.now.reserved -= amount;
        node.now.used += used;
        node.lease.note_use(&node.terms, self.limit, node.now);
    }
}

#[test]
fn far_from_the_limit_the_store_is_asked_seldom() {
    let mut world = World::new(2, 100_000, false);
    let mut syncs = 0;
    for step in 0..4_000 {
        world.pass(2);
        assert!(world.hold(step % 2, 1));
        world.settle(step % 2, 1, 1);
        syncs += u32::from(world.sync(step % 2));
    }
    assert!(syncs <= 4 * 20, "{syncs} times for 4,000 requests");
}

#[test]
fn all_of_a_limit_can_be_used_whoever_is_asked() {
    for limit in [1, 3, 10, 997, 20_000] {
        let mut world = World::new(3, limit, true);
        let (mut let_through, mut refused) = (0, 0);
        while refused < 30 {
            world.pass(1);
            let at = usize::try_from((let_through + refused) % 3).expect("a node");
            if world.hold(at, 1) {
                world.settle(at, 1, 1);
                let_through += 1;
            } else {
                refused += 1;
                // Unused capacity of other nodes is returned.
                world.pass(IDLE_MS);
                for each in 0..3 {
                    world.sync(each);
                }
            }
        }
        assert_eq!((let_through, world.used()), (limit, limit));
    }
}

#[test]
fn a_request_that_is_larger_than_what_is_left_is_refused_and_a_smaller_one_is_not() {
    let mut world = World::new(2, 100, true);
    assert!(world.hold(0, 60));
    assert!(!world.hold(1, 50));
    assert!(world.hold(1, 40));
    world.settle(0, 60, 10);
    world.pass(IDLE_MS);
    world.sync(0);
    assert!(world.hold(1, 50), "unused reservations are released");
}

#[test]
fn use_above_a_lease_is_reported_at_once_where_it_leaves_little_of_the_limit() {
    for (limit, is_at_once) in [(500, true), (100_000, false)] {
        let mut world = World::new(2, limit, false);
        assert!(world.hold(0, 20));
        world.pass(1);
        world.nodes[0].terms.take_low();
        world.settle(0, 20, limit.min(5_000) * 2);
        assert_eq!(world.nodes[0].terms.take_low(), is_at_once, "{limit}");
        assert_eq!(world.sync(0), is_at_once, "{limit}");
        assert_eq!(world.hold(1, 20), !is_at_once, "{limit}");
    }
}

#[test]
fn use_above_a_lease_asks_nothing_of_a_store_that_is_lost() {
    let mut world = World::new(2, 500, false);
    assert!(world.hold(0, 20));
    let terms = &world.nodes[0].terms;
    terms.take_low();
    terms.set_lost(true);
    world.settle(0, 20, 1_000);
    assert!(!world.nodes[0].terms.take_low());
}

#[test]
fn what_is_too_little_for_a_request_is_left_to_others() {
    let mut world = World::new(2, 100, false);
    assert!(world.hold(0, 60));
    world.settle(0, 60, 60);
    world.nodes[1].terms.take_low();
    assert!(!world.hold(1, 50));
    assert!(world.nodes[1].terms.take_low(), "the lease asks the store at once");
    assert!(world.sync(1));
    assert!(!world.sync(1), "once");
    assert!(world.hold(0, 40));
}

#[test]
fn what_a_lost_node_had_of_money_stays_its_own_and_of_the_rest_a_hundredth_comes_back() {
    for (is_exact, left) in [(true, 0), (false, 10)] {
        let mut world = World::new(2, 1_000, is_exact);
        assert!(world.hold(0, 100));
        world.nodes[0].is_dead = true;
        let ceiling = world.nodes[0].lease.ceiling;
        world.pass(TTL_MS + 1);
        assert!(world.hold(1, 1_000 - ceiling + left));
        assert!(!world.hold(1, 1));
        assert!(world.nodes[1].lease.has_orphans(), "so that control is asked what it used");
    }
}

#[test]
fn without_the_store_money_stops_at_its_lease_and_the_rest_at_a_fair_part() {
    for (is_exact, new_window) in [(true, 0), (false, 500)] {
        let mut world = World::new(2, 1_000, is_exact);
        world.nodes.iter().for_each(|node| node.terms.set_lost(true));
        let mut through = 0;
        while world.hold(0, 1) {
            through += 1;
        }
        assert_eq!(through, new_window, "of a window in which nobody has asked yet");
    }
    let past = vec![("before".to_owned(), 400, true)];
    let lost = LeaseTerms::new(TTL_MS, StoreLoss::FairShare);
    lost.set_nodes(2);
    let lease = Lease::with_past(Some(past));
    assert_eq!(lease.check_capacity(&lost, 1_000, NodeUse { used: 0, reserved: 299 }, 1, false), LeaseCapacity::Enough);
    assert_eq!(lease.check_capacity(&lost, 1_000, NodeUse { used: 0, reserved: 300 }, 1, false), LeaseCapacity::Full);
    let mut world = World::new(1, 1_000, false);
    world.nodes[0].terms = LeaseTerms { on_loss: StoreLoss::Refuse, ..LeaseTerms::new(TTL_MS, StoreLoss::Refuse) };
    let (node, limit) = (&world.nodes[0], world.limit);
    assert_eq!(node.lease.check_capacity(&node.terms, limit, node.now, 1, false), LeaseCapacity::Lost);
}

#[test]
fn a_lease_of_money_ends_before_the_store_takes_it_for_ended() {
    let mut world = World::new(2, 1_000, true);
    assert!(world.hold(0, 1));
    world.pass(TTL_MS - 1);
    let node = &world.nodes[0];
    assert_eq!(node.lease.check_capacity(&node.terms, 1_000, node.now, 1, true), LeaseCapacity::AskStore);
}

#[derive(Debug, Clone)]
enum Event {
    Pass(u64),
    Hold(usize, u64),
    Settle(usize, u64),
    Sync(usize),
    Kill(usize),
    Lose(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (1_u64..1_500).prop_map(Event::Pass),
        1 => Just(Event::Pass(2 * TTL_MS)),
        12 => (0_usize..3, 1_u64..120).prop_map(|(at, amount)| Event::Hold(at, amount)),
        8 => (0_usize..3, 0_u64..120).prop_map(|(at, used)| Event::Settle(at, used)),
        4 => (0_usize..3).prop_map(Event::Sync),
        1 => (1_usize..3).prop_map(Event::Kill),
        1 => any::<bool>().prop_map(Event::Lose),
    ]
}

proptest! {
    #[test]
    fn money_never_goes_over_its_limit_and_nothing_else_by_more_than_a_hundredth(
        limit in 1_u64..5_000,
        is_exact in any::<bool>(),
        events in prop::collection::vec(event(), 1..300),
    ) {
        let mut world = World::new(3, limit, is_exact);
        let mut under_way: Vec<(usize, u64)> = Vec::new();
        for event in events {
            match event {
                Event::Pass(ms) => world.pass(ms),
                Event::Hold(at, amount) => {
                    if world.hold(at, amount) {
                        under_way.push((at, amount));
                    }
                }
                Event::Settle(at, used) => {
                    if let Some(index) = under_way.iter().position(|(other, _)| *other == at) {
                        let (_, amount) = under_way.swap_remove(index);
                        world.settle(at, amount, used.min(amount));
                    }
                }
                Event::Sync(at) => {
                    if !world.nodes[at].is_dead && !world.nodes[at].terms.is_lost() {
                        world.sync(at);
                    }
                }
                Event::Kill(at) => world.nodes[at].is_dead = true,
                // The whole store is lost and restored. Another test bounds the excess of limits that are not money.
                Event::Lose(is_lost) if is_exact => world.nodes.iter().for_each(|node| node.terms.set_lost(is_lost)),
                Event::Lose(_) => {}
            }
            let most: u64 = world.nodes.iter().map(|node| node.now.taken()).sum();
            let bound = if is_exact { limit } else { limit + limit / 100 };
            prop_assert!(most <= bound, "{most} of {limit}");
        }
    }
}
