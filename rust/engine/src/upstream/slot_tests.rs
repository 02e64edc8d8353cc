use super::*;
use crate::clock;
use crate::task;
use crate::testing;
use fairlead_core::strategy::{QueueRule, Random};
use fairlead_core::AccountLimits;
use serde_json::{json, Value};
use std::sync::atomic::{AtomicU32, Ordering};

/// A connection with these limits.
fn target(limits: &Value) -> Arc<Target> {
    let active = testing::active(&json!({"version": 1, "connections": [{
        "id": "a", "provider": "p", "prefixes": ["p"], "dialect": "openai", "base_url": "http://a.example", "auth": "none",
        "limits": limits,
    }]}));
    active.targets[0].clone().expect("usable")
}

fn one_at_a_time(queue_depth: u32, queue_timeout_ms: u64) -> Arc<Target> {
    target(&json!({"max_concurrent": 1, "queue_depth": queue_depth, "queue_timeout_ms": queue_timeout_ms}))
}

async fn take(shared: &Shared, target: &Target) -> Result<Slot, AttemptFailure> {
    acquire_for(shared, target, 1, &mut Duration::default()).await
}

async fn acquire_for(
    shared: &Shared,
    target: &Target,
    tokens: u64,
    waited: &mut Duration,
) -> Result<Slot, AttemptFailure> {
    let slot_request = SlotRequest { model: "m", tokens, queue: QueueRule::default(), cap: None };
    acquire(shared, target, &slot_request, waited).await
}

fn queued(target: &Target) -> usize {
    target.hot.limiter.stats(0, clock::monotonic_ms()).expect("limits").queued
}

async fn until_queued(target: &Target, count: usize) {
    while queued(target) != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn without_limits_nobody_waits() {
    let (shared, free) = (testing::shared("slots-free"), target(&json!({})));
    let mut slots = Vec::new();
    for _ in 0..100 {
        slots.push(take(&shared, &free).await.expect("a slot"));
    }
    assert_eq!((free.hot.load.in_flight(), free.hot.limiter.headroom("m", 100, 0)), (100, None));
    drop(slots);
    assert_eq!(free.hot.load.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_first_come_first_served_and_bounded() {
    let (shared, one) = (testing::shared("slots-queue"), one_at_a_time(2, 60_000));
    let first = take(&shared, &one).await.expect("a slot");
    let wait = |name: &'static str| {
        let (shared, one) = (Arc::clone(&shared), Arc::clone(&one));
        task::spawn(async move { take(&shared, &one).await.map(|slot| (name, slot)) })
    };
    let second = wait("second");
    until_queued(&one, 1).await;
    let third = wait("third");
    until_queued(&one, 2).await;
    assert!(one.hot.limiter.headroom("m", 1, clock::monotonic_ms()).expect("limits").is_shut);
    let refused = take(&shared, &one).await.expect_err("the queue is full");
    assert_eq!(
        (refused.error.kind, refused.error.retry, refused.blames_connection),
        (ErrorKind::AccountsBusy, Retry::NothingSent, false)
    );
    assert_eq!(refused.error.retry_after_s, Some(1));
    drop(first);
    let (name, slot) = second.await.expect("joined").expect("a slot");
    assert_eq!((name, third.is_finished()), ("second", false));
    drop(slot);
    let (name, slot) = third.await.expect("joined").expect("a slot");
    assert_eq!((name, one.hot.load.in_flight(), queued(&one)), ("third", 1, 0));
    drop(slot);
    assert_eq!(one.hot.load.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_is_late_leaves_and_waits_nowhere_else_as_long() {
    let (shared, one) = (testing::shared("slots-late"), one_at_a_time(9, 5_000));
    let other = one_at_a_time(9, 8_000);
    let _held = (take(&shared, &one).await.expect("a slot"), take(&shared, &other).await.expect("a slot"));
    let mut waited = Duration::default();
    let began = Instant::now();
    let refused = acquire_for(&shared, &one, 1, &mut waited).await.expect_err("late");
    assert_eq!((refused.error.kind, began.elapsed().as_secs(), queued(&one)), (ErrorKind::AccountsBusy, 5, 0));
    assert!(acquire_for(&shared, &one, 1, &mut waited).await.is_err());
    assert_eq!(began.elapsed().as_secs(), 5, "its patience is used up there");
    assert!(acquire_for(&shared, &other, 1, &mut waited).await.is_err());
    assert_eq!((began.elapsed().as_secs(), waited.as_secs()), (8, 8), "the more patient one is waited for a little");
}

#[tokio::test(start_paused = true)]
async fn who_leaves_holds_nobody_up() {
    let (shared, one) = (testing::shared("slots-gone"), one_at_a_time(1, 60_000));
    let first = take(&shared, &one).await.expect("a slot");
    let gone = tokio::time::timeout(Duration::from_secs(1), take(&shared, &one)).await;
    assert!(gone.is_err(), "the caller left while it waited");
    assert_eq!((queued(&one), one.hot.load.in_flight()), (0, 1));
    let next = task::spawn({
        let (shared, one) = (Arc::clone(&shared), Arc::clone(&one));
        async move { take(&shared, &one).await.is_ok() }
    });
    until_queued(&one, 1).await;
    drop(first);
    assert!(next.await.expect("joined"));
}

#[tokio::test(start_paused = true)]
async fn limits_that_are_lifted_let_everybody_go() {
    let (shared, one) = (testing::shared("slots-lifted"), one_at_a_time(9, 60_000));
    let _first = take(&shared, &one).await.expect("a slot");
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let (shared, one) = (Arc::clone(&shared), Arc::clone(&one));
            task::spawn(async move { take(&shared, &one).await.map(drop).is_ok() })
        })
        .collect();
    until_queued(&one, 5).await;
    one.hot.limiter.set(&AccountLimits::default());
    for each in waiting {
        assert!(each.await.expect("joined"));
    }
    assert_eq!(one.hot.load.in_flight(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_goes_down_keeps_nobody_waiting() {
    let (shared, one) = (testing::shared("slots-drain"), one_at_a_time(9, 60_000));
    let _first = take(&shared, &one).await.expect("a slot");
    shared.drain.expire();
    assert_eq!(take(&shared, &one).await.expect_err("drained").error.kind, ErrorKind::Draining);
}

#[tokio::test]
async fn a_gap_lies_between_two_and_a_minute_has_so_many() {
    let shared = testing::shared("slots-pace");
    let gap = target(&json!({"min_gap_ms": 30, "queue_depth": 10, "queue_timeout_ms": 5_000}));
    let began = Instant::now();
    for _ in 0..4 {
        drop(take(&shared, &gap).await.expect("a slot"));
    }
    assert!(began.elapsed() >= Duration::from_millis(90));
    let rate = target(&json!({"requests_per_minute": 2, "tokens_per_minute": 100}));
    let mut slot = acquire_for(&shared, &rate, 90, &mut Duration::default()).await.expect("a slot");
    let refused = acquire_for(&shared, &rate, 20, &mut Duration::default()).await.expect_err("too many tokens");
    assert!(refused.error.retry_after_s.is_some_and(|seconds| (50..=61).contains(&seconds)), "{:?}", refused.error);
    slot.settle(&Usage { input: 20, output: 10, ..Usage::default() });
    let mut failed = acquire_for(&shared, &rate, 20, &mut Duration::default()).await.expect("there is room now");
    failed.refund();
    let left = rate.hot.limiter.stats(0, clock::monotonic_ms()).expect("limits").remaining;
    assert_eq!((left.requests, left.tokens, left.slots), (Some(0), Some(70), None));
    assert!(take(&shared, &rate).await.is_err());
}

/// Counters of a crowd of callers.
#[derive(Default)]
struct Crowd {
    open: AtomicU32,
    most: AtomicU32,
    served: AtomicU32,
}

/// Runs seventy-five concurrent callers, a third of whom leave while they wait.
async fn come_and_go(shared: &Shared, target: &Target, crowd: &Crowd, seed: u64) {
    let calls = (0..75u64).map(|call| async move {
        let mut random = Random::seeded(seed + call);
        if call % 3 == 0 {
            let patience = Duration::from_micros(random.below(3_000) as u64);
            drop(tokio::time::timeout(patience, take(shared, target)).await);
            return;
        }
        let Ok(_slot) = take(shared, target).await else { return };
        crowd.most.fetch_max(crowd.open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_micros(random.below(900) as u64)).await;
        crowd.open.fetch_sub(1, Ordering::SeqCst);
        crowd.served.fetch_add(1, Ordering::SeqCst);
    });
    let mut calls: futures_util::stream::FuturesUnordered<_> = calls.collect();
    while futures_util::StreamExt::next(&mut calls).await.is_some() {}
}

#[test]
fn never_more_than_the_limit_whoever_comes_and_goes() {
    let shared = testing::shared("slots-many");
    let three = target(&json!({"max_concurrent": 3, "queue_depth": 300, "queue_timeout_ms": 60_000}));
    let crowd = Crowd::default();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (shared, three, crowd) = (&shared, &three, &crowd);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
                runtime.block_on(come_and_go(shared, three, crowd, thread * 1_000));
            });
        }
    });
    assert!(crowd.most.load(Ordering::SeqCst) <= 3);
    assert_eq!(crowd.served.load(Ordering::SeqCst), 200, "everybody who stays is served");
    assert_eq!((queued(&three), three.hot.load.in_flight()), (0, 0));
}
