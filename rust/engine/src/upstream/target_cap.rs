//! A combo's limit of concurrent requests at a target, and the queue of requests waiting for it.

use fairlead_core::strategy::QueueRule;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The queue length at a full target if the combo does not set one.
const QUEUE_DEPTH: u32 = 20;
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of one combo's concurrent requests at one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TargetCap {
    /// Identifies the combo's target.
    pub id: u64,
    pub at_once: u32,
}

/// The caps that combos set for targets at one connection. A changed cap starts a new count, and requests under the
/// previous cap end normally.
#[derive(Debug, Default)]
pub struct TargetCaps {
    by_cap: Mutex<HashMap<TargetCap, Arc<CapSlots>>>,
}

#[derive(Debug)]
struct CapSlots {
    free: Arc<Semaphore>,
    waiting: AtomicU32,
}

impl TargetCaps {
    /// Waits for a permit, first come, first served; dropping it returns it. Returns `None` if the queue is full or the
    /// wait timed out.
    pub async fn enter(&self, cap: TargetCap, rule: QueueRule, waited: Duration) -> Option<OwnedSemaphorePermit> {
        let slots = self.slots(cap);
        if let Ok(permit) = Arc::clone(&slots.free).try_acquire_owned() {
            return Some(permit);
        }
        let patience = rule.timeout_ms.map_or(QUEUE_TIMEOUT, Duration::from_millis).saturating_sub(waited);
        let _waiter = Waiter::join(&slots, rule.depth.unwrap_or(QUEUE_DEPTH))?;
        tokio::time::timeout(patience, Arc::clone(&slots.free).acquire_owned()).await.ok()?.ok()
    }

    fn slots(&self, cap: TargetCap) -> Arc<CapSlots> {
        let mut by_cap = self.by_cap.lock();
        if let Some(slots) = by_cap.get(&cap) {
            return Arc::clone(slots);
        }
        // Removes caps of deleted or changed combos: those that no request uses.
        by_cap
            .retain(|cap, slots| Arc::strong_count(slots) > 1 || slots.free.available_permits() < cap.at_once as usize);
        let free = Arc::new(Semaphore::new(cap.at_once as usize));
        let slots = Arc::new(CapSlots { free, waiting: AtomicU32::new(0) });
        by_cap.insert(cap, Arc::clone(&slots));
        slots
    }
}

/// A waiting request, counted until it is dropped.
struct Waiter<'a>(&'a AtomicU32);

impl<'a> Waiter<'a> {
    fn join(slots: &'a CapSlots, depth: u32) -> Option<Self> {
        let join = |waiting: u32| (waiting < depth).then_some(waiting + 1);
        slots.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, join).ok()?;
        Some(Self(&slots.waiting))
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: TargetCap = TargetCap { id: 1, at_once: 2 };

    fn rule(depth: u32, timeout_ms: u64) -> QueueRule {
        QueueRule { depth: Some(depth), timeout_ms: Some(timeout_ms) }
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_served_and_so_many_wait_and_the_rest_go_on() {
        let caps = TargetCaps::default();
        let none = Duration::ZERO;
        let first = caps.enter(TWO, rule(1, 500), none).await.expect("room");
        let _second = caps.enter(TWO, rule(1, 500), none).await.expect("room");
        assert!(caps.enter(TWO, rule(0, 500), none).await.is_none(), "nobody may wait");
        let began = tokio::time::Instant::now();
        assert!(caps.enter(TWO, rule(1, 500), Duration::from_millis(100)).await.is_none());
        assert_eq!(began.elapsed().as_millis(), 400, "what it waited elsewhere counts");
        let (third, fourth) = tokio::join!(caps.enter(TWO, rule(1, 500), none), async {
            let refused = caps.enter(TWO, rule(1, 500), none).await;
            drop(first);
            refused
        });
        assert!(third.is_some() && fourth.is_none(), "the waiting request gets the slot");
    }

    #[tokio::test]
    async fn caps_are_apart_and_forgotten_when_nobody_uses_them() {
        let caps = TargetCaps::default();
        let permit = caps.enter(TWO, rule(0, 1), Duration::ZERO).await;
        for id in 2..100 {
            assert!(caps.enter(TargetCap { id, at_once: 1 }, rule(0, 1), Duration::ZERO).await.is_some());
        }
        assert!(permit.is_some());
        assert_eq!(caps.by_cap.lock().len(), 2, "the one in use and the last");
    }
}
