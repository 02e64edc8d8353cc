//! Near misses: questions that were almost answered from the cache, with both texts and the reason for the miss. The
//! latest few are stored, only in memory, and only if the operator enables it.

use crate::guard::{Cause, Reading};
use crate::key::Digest;
use fairlead_core::hex;
use serde::{Serialize, Serializer};
use std::collections::VecDeque;

/// The maximum number of near misses; the latest are kept.
pub const MAX_NEAR_MISSES: usize = 100;
/// The number of bytes of a text that are reported.
const MAX_TEXT_BYTES: usize = 2_000;

/// The caller and the model of a question.
#[derive(Debug, Clone, Copy)]
pub struct CallerLabels<'a> {
    pub key_id: Option<&'a str>,
    pub model: &'a str,
}

/// A question, the nearest cached question, and the reason why its answer was not returned.
#[derive(Debug, Clone, Serialize)]
pub struct NearMiss {
    pub at_ms: u64,
    pub key_id: Option<String>,
    pub model: String,
    pub question: String,
    pub cached_question: String,
    /// The key of the cached answer.
    #[serde(serialize_with = "as_hex")]
    pub signature: Digest,
    pub similarity: f32,
    pub threshold: f32,
    /// The difference that the guard found. `distance` means that the questions are equivalent, but less similar than
    /// the threshold.
    pub cause: &'static str,
}

/// The latest near misses, newest first.
#[derive(Debug, Default)]
pub(crate) struct NearMisses(VecDeque<NearMiss>);

impl NearMisses {
    pub(crate) fn add(&mut self, miss: NearMiss) {
        self.0.truncate(MAX_NEAR_MISSES - 1);
        self.0.push_front(miss);
    }

    pub(crate) fn list(&self) -> Vec<NearMiss> {
        self.0.iter().cloned().collect()
    }

    /// Deletes near misses whose answer is no longer cached.
    pub(crate) fn forget_unless(&mut self, is_kept: impl Fn(&Digest) -> bool) {
        self.0.retain(|miss| is_kept(&miss.signature));
    }

    /// Deletes all. Returns their number.
    pub(crate) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.0).len()
    }
}

/// The reason why the answer to one question is not returned for the other.
pub(crate) fn cause(question: &str, nearest: &str) -> &'static str {
    match Reading::of(question).differs(&Reading::of(nearest)) {
        None => "distance",
        Some(Cause::Language) => "language",
        Some(Cause::Number) => "number",
        Some(Cause::Quote) => "quote",
        Some(Cause::Code) => "code",
        Some(Cause::Negation) => "negation",
        Some(Cause::Word) => "word",
        Some(Cause::Order) => "order",
    }
}

/// The beginning of a text, up to the length that is reported.
pub(crate) fn cut(text: &str) -> String {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn as_hex<S: Serializer>(key: &Digest, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&hex(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miss(at: usize) -> NearMiss {
        NearMiss {
            at_ms: at as u64,
            key_id: None,
            model: "m".into(),
            question: "a".into(),
            cached_question: "b".into(),
            signature: [at as u8; 32],
            similarity: 0.9,
            threshold: 0.8,
            cause: "word",
        }
    }

    #[test]
    fn the_latest_are_remembered_and_those_of_forgotten_answers_are_not() {
        let mut misses = NearMisses::default();
        (0..MAX_NEAR_MISSES + 20).for_each(|at| misses.add(miss(at)));
        let latest = misses.list();
        assert_eq!((latest.len(), latest[0].at_ms, latest[99].at_ms), (MAX_NEAR_MISSES, 119, 20));
        misses.forget_unless(|key| ![[119; 32], [50; 32], [1; 32]].contains(key));
        assert_eq!((misses.list().len(), misses.list()[0].at_ms), (98, 118));
        assert_eq!((misses.clear(), misses.list().len()), (98, 0));
    }

    #[test]
    fn the_cause_is_what_the_guard_says() {
        assert_eq!(cause("How tall is the Eiffel Tower?", "What is the height of the Eiffel Tower?"), "distance");
        assert_eq!(cause("Convert 5 miles to kilometres", "Convert 6 miles to kilometres"), "number");
        assert_eq!(cut(&"é".repeat(3_000)).len(), 2_000);
    }
}
