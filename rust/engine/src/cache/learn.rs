//! Lessons of answers for thresholds: an answer that was made although one to a near question was kept is compared with that one.

use super::CacheQuery;
use crate::clock;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_cache::{CachedAnswer, Comparison, Delivery, Digest, Found, LEAST};
use fairlead_core::Dialect;
use fairlead_dialect::{answer_text, replay};

/// Longer answers are not compared: they are hardly ever the same word by word.
const MAX_COMPARED_BYTES: usize = 32 * 1024;

/// Compares a fresh answer with that of the nearest question of the same form that is in memory.
pub fn observe(shared: &Shared, query: &CacheQuery, fresh: &CachedAnswer) {
    let Some(question) = query.question.as_ref().filter(|_| query.base.is_some()) else { return };
    let store = &shared.cache.store;
    let near = store.near(question, LEAST);
    let Some((key, similarity)) = near.into_iter().find(|(key, _)| *key != query.key) else { return };
    let Found::Here(entry) = store.find(&key) else { return };
    let (Some(ours), Some(theirs)) = (text_of(query.form, fresh), text_of(query.form, &entry)) else { return };
    let is_right = match Comparison::of(&ours, &theirs) {
        Comparison::Same => true,
        Comparison::Different => false,
        Comparison::Unclear => return,
    };
    shared.cache.learner.note(&question.partition, &fresh.meta.model, similarity, is_right, clock::unix_ms());
}

/// How near a question of this partition must be; `None`: only an equal one is answered.
pub fn threshold(shared: &Shared, query: &CacheQuery, partition: &Digest) -> Option<f32> {
    let threshold = query.threshold?;
    let Some(base) = query.base else { return Some(threshold) };
    let learnt = shared.cache.learner.threshold(partition, base);
    // A caller may be stricter than what was learnt, never less so.
    Some(if threshold > base { threshold.max(learnt) } else { learnt })
}

fn text_of(form: Dialect, entry: &CachedAnswer) -> Option<String> {
    if entry.body.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let whole: Bytes = match entry.meta.delivery {
        Delivery::Plain => entry.body.clone(),
        Delivery::Stream { .. } => replay::as_whole(form, &entry.body, 0)?,
    };
    answer_text(form, &whole)
}
