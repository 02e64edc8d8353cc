//! Cooldowns of connections, lockouts of models and open breakers of providers, shared between workers.
//!
//! A notice states the remaining time, because the clocks of workers differ. A worker publishes only the cooldowns that
//! it started: once when a cooldown begins or grows, and again every few seconds for workers that missed the first
//! notice. An adopted cooldown expires like a local one, and the first attempt after it is a probe.

use super::notice;
use crate::active_config::ActiveConfig;
use crate::upstream::target::Target;
use fairlead_core::{BreakerPhase, Lockout};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Two cooldowns whose ends differ by less than this count as the same.
const SAME_MS: u64 = 1_000;
const AGAIN_EVERY_MS: u64 = 5_000;
/// The limit per message, so that the message stays below the size that receivers accept. The rest follow in the next
/// message.
const MAX_LOCKOUTS: usize = 1_000;
/// A longer name is unlikely to be a model's.
const MAX_MODEL_BYTES: usize = 512;

/// The kind and id of what is cooling down.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Subject {
    Connection(String),
    Provider(String),
    Model { connection: String, model: String },
}

/// One cooldown as workers exchange it.
#[derive(Debug, Serialize, Deserialize)]
struct CooldownNotice {
    of: Subject,
    /// The revision of the connection's record; 0 for a provider.
    #[serde(default)]
    revision: u64,
    left_ms: u64,
    /// The provider itself named the time of return.
    #[serde(default)]
    is_binding: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Message {
    /// The newest operator reset that the sender has carried out. Receivers ignore messages from before a different
    /// reset.
    cleared: u64,
    cooldowns: Vec<CooldownNotice>,
    /// Lockouts are a separate list, so that a version without lockouts can still read the cooldowns.
    #[serde(default)]
    lockouts: Vec<CooldownNotice>,
}

#[derive(Debug, Clone, Copy)]
struct KnownCooldown {
    until_ms: u64,
    is_own: bool,
}

/// Cooldowns that were published or received.
#[derive(Debug, Default)]
pub struct SharedCooldowns {
    known: HashMap<Subject, KnownCooldown>,
    republished_ms: u64,
}

impl SharedCooldowns {
    /// Returns the message with the cooldowns that are due for publication, or `None` if there are none.
    pub fn take_notices(&mut self, active: &ActiveConfig, worker: &str, now_ms: u64) -> Option<Vec<u8>> {
        let mut cooling: Vec<CooldownNotice> =
            active.targets.iter().flatten().flat_map(|target| cooling(target, now_ms)).collect();
        // Connections of one provider share its breaker.
        let mut subjects = HashSet::with_capacity(cooling.len());
        cooling.retain(|cooldown| subjects.insert(cooldown.of.clone()));
        // A cooldown that an operator reset or an attempt ended counts as new when it returns.
        self.known.retain(|of, _| subjects.contains(of));
        if cooling.is_empty() {
            return None;
        }
        let is_again = now_ms.saturating_sub(self.republished_ms) >= AGAIN_EVERY_MS;
        let (mut cooldowns, mut lockouts) = (Vec::new(), Vec::new());
        for cooldown in cooling {
            let until_ms = now_ms.saturating_add(cooldown.left_ms);
            let known = self.known.get(&cooldown.of).copied();
            let is_new = known.is_none_or(|known| until_ms > known.until_ms.saturating_add(SAME_MS));
            let is_own = is_new || known.is_some_and(|known| known.is_own);
            let is_lockout = matches!(cooldown.of, Subject::Model { .. });
            if is_lockout && lockouts.len() >= MAX_LOCKOUTS {
                continue;
            }
            self.known.insert(cooldown.of.clone(), KnownCooldown { until_ms, is_own });
            if is_new || (is_own && is_again) {
                if is_lockout { &mut lockouts } else { &mut cooldowns }.push(cooldown);
            }
        }
        if is_again {
            self.republished_ms = now_ms;
        }
        if cooldowns.is_empty() && lockouts.is_empty() {
            return None;
        }
        let cleared = active.snapshot.resilience.newest_clear();
        notice::write(worker, &Message { cleared, cooldowns, lockouts })
    }

    /// Applies the cooldowns that another worker published.
    pub fn apply_notice(&mut self, active: &ActiveConfig, worker: &str, payload: &[u8], now_ms: u64) {
        let Some(message) = notice::read::<Message>(worker, payload) else { return };
        if message.cleared != active.snapshot.resilience.newest_clear() {
            return;
        }
        for notice in message.cooldowns.into_iter().chain(message.lockouts) {
            for target in active.targets.iter().flatten() {
                adopt(target, &notice, now_ms);
            }
            let until_ms = now_ms.saturating_add(notice.left_ms);
            let known = self.known.entry(notice.of).or_insert(KnownCooldown { until_ms, is_own: false });
            known.until_ms = known.until_ms.max(until_ms);
        }
    }
}

fn cooling(target: &Target, now_ms: u64) -> Vec<CooldownNotice> {
    let condition = target.hot.condition.lock();
    let connection = condition.health.remaining_cooldown(now_ms).map(|(left_ms, is_binding)| CooldownNotice {
        of: Subject::Connection(target.connection.id.clone()),
        revision: target.connection.revision,
        left_ms,
        is_binding,
    });
    let models = condition.locked(now_ms).filter(|locked| locked.model.len() <= MAX_MODEL_BYTES);
    let models = models.map(|locked| CooldownNotice {
        of: Subject::Model { connection: target.connection.id.clone(), model: locked.model },
        revision: target.connection.revision,
        left_ms: locked.remaining_ms,
        is_binding: locked.is_binding,
    });
    let mut all: Vec<CooldownNotice> = connection.into_iter().chain(models).collect();
    drop(condition);
    let breaker = target.provider.breaker.lock();
    let is_open = breaker.phase(target.breaker_limits(), now_ms) == BreakerPhase::Open;
    let provider = is_open.then(|| CooldownNotice {
        of: Subject::Provider(target.connection.provider.clone()),
        revision: 0,
        left_ms: breaker.remaining_ms(now_ms),
        is_binding: false,
    });
    all.extend(provider);
    all
}

fn adopt(target: &Target, notice: &CooldownNotice, now_ms: u64) {
    let connection = &target.connection;
    match &notice.of {
        Subject::Connection(id) if *id == connection.id && notice.revision == connection.revision => {
            let cooldowns = &target.resilience.connection_cooldown;
            target.hot.condition.lock().health.adopt_cooldown(cooldowns, notice.left_ms, notice.is_binding, now_ms);
        }
        Subject::Model { connection: id, model } if *id == connection.id && notice.revision == connection.revision => {
            let limits = &target.resilience.model_lockout;
            if limits.enabled && model.len() <= MAX_MODEL_BYTES {
                let adopt =
                    |lockout: &mut Lockout| lockout.adopt_cooldown(limits, notice.left_ms, notice.is_binding, now_ms);
                target.hot.condition.lock().lock_out(model, adopt, now_ms);
            }
        }
        Subject::Provider(id) if *id == connection.provider => {
            target.provider.breaker.lock().adopt_opening(target.breaker_limits(), notice.left_ms, now_ms);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use fairlead_core::ErrorKind;
    use serde_json::json;

    fn config(revision: u64) -> ActiveConfig {
        let connection = |id: &str| {
            json!({
                "id": id, "provider": "p", "prefixes": ["p"], "revision": revision, "dialect": "openai",
                "base_url": "http://api.example", "auth": "none",
            })
        };
        testing::active(&json!({"version": 1, "connections": [connection("one"), connection("two")]}))
    }

    fn fail(active: &ActiveConfig, kind: ErrorKind, times: usize) {
        let target = active.targets[0].as_ref().expect("a target");
        for _ in 0..times {
            target.blame(kind, (kind == ErrorKind::UpstreamRateLimited).then_some(60_000));
        }
    }

    fn cooldown_of(active: &ActiveConfig, at: usize) -> Option<u64> {
        let target = active.targets[at].as_ref().expect("a target");
        let cooldown = target.hot.condition.lock().health.remaining_cooldown(crate::clock::monotonic_ms());
        cooldown.map(|(left_ms, _)| left_ms)
    }

    #[test]
    fn a_rest_is_told_once_and_taken_over() {
        let (here, there) = (config(1), config(1));
        let (mut ours, mut theirs) = (SharedCooldowns::default(), SharedCooldowns::default());
        assert!(ours.take_notices(&here, "a", crate::clock::monotonic_ms()).is_none(), "nothing cools down");
        fail(&here, ErrorKind::UpstreamRateLimited, 1);
        let now_ms = crate::clock::monotonic_ms();
        // The clock begins with the process, so the first repetition could be due during the test.
        ours.republished_ms = now_ms;
        let news = ours.take_notices(&here, "a", now_ms).expect("it cools down");
        theirs.apply_notice(&there, "a", &news, now_ms);
        assert_eq!(cooldown_of(&there, 0), None, "a worker ignores its own notices");
        theirs.apply_notice(&there, "b", &news, now_ms);
        assert!(cooldown_of(&there, 0).is_some_and(|left_ms| left_ms > 3_000));
        assert_eq!(cooldown_of(&there, 1), None, "the other connection is as good as before");
        assert!(ours.take_notices(&here, "a", now_ms + 250).is_none(), "it was published");
        assert!(theirs.take_notices(&there, "b", now_ms + 250).is_none(), "received notices are not forwarded");
        assert!(
            ours.take_notices(&here, "a", now_ms + AGAIN_EVERY_MS).is_some(),
            "it is published again for workers that missed it"
        );
        assert!(theirs.take_notices(&there, "b", now_ms + AGAIN_EVERY_MS).is_none());
    }

    /// Locks a model out, as a failed attempt does.
    fn lock_out(active: &ActiveConfig, model: &str) {
        let target = active.targets[0].as_ref().expect("a target");
        let (limits, now_ms) = (&target.resilience.model_lockout, crate::clock::monotonic_ms());
        target.hot.condition.lock().lock_out(model, |lockout| lockout.fail(limits, None, now_ms), now_ms);
    }

    fn locked_at(active: &ActiveConfig, at: usize) -> Vec<String> {
        let condition = active.targets[at].as_ref().expect("a target").hot.condition.lock();
        condition.locked(crate::clock::monotonic_ms()).map(|locked| locked.model).collect()
    }

    #[test]
    fn a_model_that_is_locked_out_is_told_apart_from_rests() {
        let (here, there) = (config(1), config(1));
        let (mut ours, mut theirs) = (SharedCooldowns::default(), SharedCooldowns::default());
        lock_out(&here, "m");
        let now_ms = crate::clock::monotonic_ms();
        // The clock begins with the process, so the first repetition could be due during the test.
        ours.republished_ms = now_ms;
        let news = ours.take_notices(&here, "a", now_ms).expect("it is locked out");
        let message: Message = serde_json::from_slice(&news).expect("a message");
        assert!(message.cooldowns.is_empty(), "versions without lockouts still read the cooldowns");
        theirs.apply_notice(&there, "b", &news, now_ms);
        assert_eq!((locked_at(&there, 0), locked_at(&there, 1)), (vec!["m".to_owned()], Vec::new()));
        assert_eq!(cooldown_of(&there, 0), None, "the connection's other models are as good as before");
        assert!(
            theirs.take_notices(&there, "b", now_ms + AGAIN_EVERY_MS).is_none(),
            "received notices are not forwarded"
        );
        let changed = config(2);
        SharedCooldowns::default().apply_notice(&changed, "b", &news, now_ms);
        assert!(locked_at(&changed, 0).is_empty(), "another record of the connection");
    }

    #[test]
    fn a_message_of_a_version_without_lockouts_is_read() {
        let here = config(1);
        fail(&here, ErrorKind::UpstreamRateLimited, 1);
        let now_ms = crate::clock::monotonic_ms();
        let news = SharedCooldowns::default().take_notices(&here, "a", now_ms).expect("it cools down");
        let mut older: serde_json::Value = serde_json::from_slice(&news).expect("a message");
        older.as_object_mut().expect("an object").remove("lockouts");
        let there = config(1);
        SharedCooldowns::default().apply_notice(&there, "b", &serde_json::to_vec(&older).expect("JSON"), now_ms);
        assert!(cooldown_of(&there, 0).is_some());
    }

    #[test]
    fn an_open_breaker_is_taken_over_once_for_the_provider() {
        let (here, there) = (config(1), config(1));
        let (mut ours, mut theirs) = (SharedCooldowns::default(), SharedCooldowns::default());
        fail(&here, ErrorKind::UpstreamStatus, 64);
        let now_ms = crate::clock::monotonic_ms();
        // The clock begins with the process, so the first repetition could be due during the test.
        ours.republished_ms = now_ms;
        let news = ours.take_notices(&here, "a", now_ms).expect("it is open");
        let message: Message = serde_json::from_slice(&news).expect("a message");
        let of_provider = message.cooldowns.iter().filter(|message| matches!(message.of, Subject::Provider(_))).count();
        assert_eq!(of_provider, 1);
        theirs.apply_notice(&there, "b", &news, now_ms);
        assert!(there.targets[1].as_ref().expect("a target").is_broken(now_ms));
    }

    #[test]
    fn what_is_of_another_record_or_of_before_a_reset_is_nothing() {
        let here = config(1);
        fail(&here, ErrorKind::UpstreamRateLimited, 1);
        let now_ms = crate::clock::monotonic_ms();
        let news = SharedCooldowns::default().take_notices(&here, "a", now_ms).expect("it cools down");
        let changed = config(2);
        SharedCooldowns::default().apply_notice(&changed, "b", &news, now_ms);
        assert_eq!(cooldown_of(&changed, 0), None);
        let mut message: Message = serde_json::from_slice(&news).expect("a message");
        message.cleared = 7;
        let there = config(1);
        SharedCooldowns::default().apply_notice(&there, "b", &notice::write("a", &message).expect("a notice"), now_ms);
        SharedCooldowns::default().apply_notice(&there, "b", b"{\"of\": 1}", now_ms);
        assert_eq!(cooldown_of(&there, 0), None);
    }
}
