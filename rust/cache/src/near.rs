//! The questions of one partition, and the search for the nearest equivalent one.
//!
//! The guard converts every question into a form, and only questions of the same form can be equivalent. Questions are
//! therefore indexed by form, and vectors are compared only within one form. A lookup takes as long among ten questions
//! as among a million, and finds the same as a comparison with every question.

use crate::guard::Form;
use crate::key::Digest;
use crate::vectors::{similarity, Vector};
use std::collections::HashMap;

/// The maximum number of questions of one form that are compared; the latest are kept. Many arise only if callers
/// accept only equal requests.
const MAX_OF_FORM: usize = 64;

/// A question prepared for the search.
#[derive(Debug, Clone)]
pub struct Probe {
    pub vector: Vector,
    pub form: Form,
}

/// The questions of one partition.
#[derive(Debug, Default)]
pub struct Near {
    probes: HashMap<Digest, Box<Probe>>,
    /// By form, oldest first.
    keys: HashMap<Digest, Vec<Digest>>,
}

impl Near {
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    pub fn add(&mut self, key: Digest, probe: Probe) {
        self.remove(&key);
        let keys = self.keys.entry(probe.form.digest).or_default();
        if keys.len() == MAX_OF_FORM {
            self.probes.remove(&keys.remove(0));
        }
        keys.push(key);
        self.probes.insert(key, Box::new(probe));
    }

    pub fn remove(&mut self, key: &Digest) {
        let Some(probe) = self.probes.remove(key) else { return };
        let Some(keys) = self.keys.get_mut(&probe.form.digest) else { return };
        keys.retain(|other| other != key);
        if keys.is_empty() {
            self.keys.remove(&probe.form.digest);
        }
    }

    /// The equivalent questions whose similarity reaches the threshold, nearest first.
    pub fn find(&self, probe: &Probe, threshold: f32) -> Vec<(Digest, f32)> {
        let Some(keys) = self.keys.get(&probe.form.digest) else { return Vec::new() };
        let judge = |key: &Digest| {
            let other = self.probes.get(key).filter(|other| probe.form.agrees(&other.form))?;
            Some((*key, similarity(&probe.vector, &other.vector))).filter(|(_, near)| *near >= threshold)
        };
        let mut found: Vec<(Digest, f32)> = keys.iter().filter_map(judge).collect();
        found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Reading;
    use crate::vectors::{DIMENSIONS, ONE};
    use proptest::prelude::*;

    const TEXTS: &[&str] = &[
        "How do I sort a list in Python?",
        "In Python, how can I sort a list?",
        "What is the price of a house?",
        "What is the price of the house?",
        "What is the capital of France?",
        "What's France's capital?",
    ];

    fn probe(text: &str, angle: f32) -> Probe {
        let mut vector = [0; DIMENSIONS];
        (vector[0], vector[1]) = ((angle.cos() * ONE) as i16, (angle.sin() * ONE) as i16);
        Probe { vector, form: Reading::of(text).form().expect("it says something") }
    }

    proptest! {
        #[test]
        fn what_a_scan_finds_is_found(
            rows in proptest::collection::vec((0..TEXTS.len(), 0.0..3.1_f32), 1..60),
            gone in proptest::collection::vec(0..60_usize, 0..20),
            query in (0..TEXTS.len(), 0.0..3.1_f32),
            threshold in -1.0..1.0_f32,
        ) {
            let mut near = Near::default();
            for (at, (text, angle)) in rows.iter().enumerate() {
                near.add([at as u8; 32], probe(TEXTS[*text], *angle));
            }
            for at in &gone {
                near.remove(&[*at as u8; 32]);
            }
            let wanted = probe(TEXTS[query.0], query.1);
            let reading = Reading::of(TEXTS[query.0]);
            let mut expected: Vec<Digest> = Vec::new();
            for (at, (text, angle)) in rows.iter().enumerate().filter(|(at, _)| !gone.contains(at)) {
                let is_near = similarity(&wanted.vector, &probe(TEXTS[*text], *angle).vector) >= threshold;
                if is_near && reading.agrees(&Reading::of(TEXTS[*text])) {
                    expected.push([at as u8; 32]);
                }
            }
            let found = near.find(&wanted, threshold);
            prop_assert!(found.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            let mut keys: Vec<Digest> = found.iter().map(|(key, _)| *key).collect();
            keys.sort_unstable();
            prop_assert_eq!(keys, expected);
        }
    }

    #[test]
    fn of_one_form_the_latest_count() {
        let mut near = Near::default();
        for at in 0..=MAX_OF_FORM {
            near.add([at as u8; 32], probe(TEXTS[0], 0.0));
        }
        let wanted = probe(TEXTS[1], 0.0);
        assert_eq!((near.len(), near.find(&wanted, 0.5).len()), (MAX_OF_FORM, MAX_OF_FORM));
        near.remove(&[0; 32]);
        assert_eq!(near.len(), MAX_OF_FORM, "what was let go is not there to be removed");
        for at in 1..=MAX_OF_FORM {
            near.remove(&[at as u8; 32]);
        }
        assert!(near.is_empty() && near.keys.is_empty());
    }
}
