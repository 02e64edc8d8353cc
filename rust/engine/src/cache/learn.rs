//! Learns similarity thresholds: a new response is compared with the cached response to a similar question.

use super::CacheQuery;
use crate::clock;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_cache::{CachedAnswer, Comparison, Delivery, Digest, Found, LEAST};
use fairlead_core::Dialect;
use fairlead_dialect::{answer_text, replay};

/// Longer responses are not compared, because they rarely match word for word.
const MAX_COMPARED_BYTES: usize = 32 * 1024;

/// Compares a new response with that of the most similar question of the same form in memory.
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

/// The minimum similarity for questions in this partition; `None` means that only equal questions match.
pub fn threshold(shared: &Shared, query: &CacheQuery, partition: &Digest) -> Option<f32> {
    let threshold = query.threshold?;
    let Some(base) = query.base else { return Some(threshold) };
    let learnt = shared.cache.learner.threshold(partition, base);
    // A caller may be stricter than the learned threshold, but not less strict.
    Some(if threshold > base { threshold.max(learnt) } else { learnt })
}

fn text_of(form: Dialect, entry: &CachedAnswer) -> Option<String> {
    if entry.body.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let whole: Bytes = match entry.meta.delivery {
        Delivery::Plain => entry.body.clone(),
        Delivery::Stream { .. } => replay::as_complete(form, &entry.body, 0)?,
    };
    answer_text(form, &whole)
}
