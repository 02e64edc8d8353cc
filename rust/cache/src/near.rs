//! Questions of one partition by their direction, and the nearest of them.
//!
//! Every question is looked at, and most are given up early. A similarity is a sum over 256 products; after the first 64, what
//! the others can add is no more than the product of the two remainders' lengths. Where that does not reach the threshold,
//! the question is out. So the search is exact, deletion is a swap, and nothing has to be rebuilt or stored.

use crate::guard::Reading;
use crate::key::Digest;
use crate::vectors::{dot, Vector, DIMENSIONS, ONE};

/// Numbers that are looked at first.
const HEAD: usize = 64;

/// A question as it is searched for.
#[derive(Debug, Clone)]
pub struct Probe {
    pub vector: Vector,
    pub reading: Reading,
}

/// Questions of one partition by their direction, and the nearest of them. Places in the lists belong together.
#[derive(Debug, Default)]
pub struct Near {
    keys: Vec<Digest>,
    heads: Vec<[i16; HEAD]>,
    tails: Vec<[i16; DIMENSIONS - HEAD]>,
    /// Lengths of the tails, in the vectors' unit, rounded up.
    rests: Vec<f32>,
    readings: Vec<Reading>,
}

fn halves(vector: &Vector) -> ([i16; HEAD], [i16; DIMENSIONS - HEAD], f32) {
    let (mut head, mut tail) = ([0; HEAD], [0; DIMENSIONS - HEAD]);
    head.copy_from_slice(&vector[..HEAD]);
    tail.copy_from_slice(&vector[HEAD..]);
    let rest = (dot(&tail, &tail) as f32).sqrt() * 1.000_01;
    (head, tail, rest)
}

impl Near {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn add(&mut self, key: Digest, probe: Probe) {
        self.remove(&key);
        let (head, tail, rest) = halves(&probe.vector);
        self.keys.push(key);
        self.heads.push(head);
        self.tails.push(tail);
        self.rests.push(rest);
        self.readings.push(probe.reading);
    }

    pub fn remove(&mut self, key: &Digest) {
        let Some(at) = self.keys.iter().position(|other| other == key) else { return };
        self.keys.swap_remove(at);
        self.heads.swap_remove(at);
        self.tails.swap_remove(at);
        self.rests.swap_remove(at);
        self.readings.swap_remove(at);
    }

    /// The questions that are at least as near as the threshold and that the guard lets through, the nearest first.
    pub fn find(&self, probe: &Probe, threshold: f32) -> Vec<(Digest, f32)> {
        let (head, tail, rest) = halves(&probe.vector);
        let least = threshold * ONE * ONE;
        let mut found: Vec<(Digest, f32)> = Vec::new();
        for (at, (other, other_rest)) in self.heads.iter().zip(&self.rests).enumerate() {
            let begun = dot(&head, other);
            if begun as f32 + rest * other_rest < least {
                continue;
            }
            let whole = begun + dot(&tail, &self.tails[at]);
            if whole as f32 >= least && probe.reading.agrees(&self.readings[at]) {
                found.push((self.keys[at], whole as f32 / (ONE * ONE)));
            }
        }
        found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        found
    }

    /// About what it takes in memory.
    pub fn bytes_of(reading: &Reading) -> usize {
        size_of::<Digest>() + size_of::<Vector>() + size_of::<f32>() + reading.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::similarity;
    use proptest::prelude::*;

    fn direction(numbers: &[f32]) -> Vector {
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt().max(1e-3);
        let mut vector = [0; DIMENSIONS];
        for (place, number) in vector.iter_mut().zip(numbers.iter().cycle()) {
            *place = (number / length / 2.0 * ONE).round() as i16;
        }
        // Four repetitions of half the length are one.
        vector
    }

    proptest! {
        #[test]
        fn giving_up_early_loses_nothing(
            rows in proptest::collection::vec(proptest::collection::vec(-1.0..1.0_f32, 64), 1..40),
            threshold in -0.5..1.0_f32,
        ) {
            let vectors: Vec<Vector> = rows.iter().map(|row| direction(row)).collect();
            let reading = Reading::of("what is it");
            let mut near = Near::default();
            for (at, vector) in vectors.iter().enumerate() {
                near.add([at as u8; 32], Probe { vector: *vector, reading: reading.clone() });
            }
            near.remove(&[0; 32]);
            let found = near.find(&Probe { vector: vectors[0], reading: reading.clone() }, threshold);
            let mut expected: Vec<Digest> = Vec::new();
            for (at, vector) in vectors.iter().enumerate().skip(1) {
                if similarity(&vectors[0], vector) >= threshold {
                    expected.push([at as u8; 32]);
                }
            }
            let mut keys: Vec<Digest> = found.iter().map(|(key, _)| *key).collect();
            prop_assert!(found.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            keys.sort_unstable();
            prop_assert_eq!(keys, expected);
        }
    }
}
