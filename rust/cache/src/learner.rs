//! Learned similarity thresholds of partitions. When a question is answered by the provider although a cached question
//! of the same form was near, both answers are known, and comparing them shows whether the cached one would have been
//! right. A similarity means different things in different partitions, so each learns separately. A miss is always
//! preferred to a wrong answer: one wrong answer raises the threshold above its similarity, and only many right ones
//! without a wrong one lower it slightly.

use crate::key::Digest;
use fairlead_core::{hex, Sealer};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The lowest similarity that is used for learning.
pub const LEAST: f32 = 0.5;
/// A learned threshold is never lower than the operator's by more than this.
const MOST_LOWERED: f32 = 0.15;
/// The number of right answers, without a wrong one, between the lowered threshold and the operator's that permits
/// lowering. With this many, the share of wrong answers is below one in seven with 95 % confidence, not counting those
/// that the guard rejected.
const ENOUGH: usize = 20;
/// The number of least similar ones that are ignored as chance.
const OUTLIERS: usize = 2;
/// The distance between a wrong answer's similarity and the threshold above it.
const MARGIN: f32 = 0.01;
/// Only this many of the latest right and wrong answers count.
const MOST_RIGHT: usize = 64;
const MOST_WRONG: usize = 16;
/// One in this many hits that only a lowered threshold allows is sent to the provider anyway, to detect a wrong
/// threshold.
const CHECKED_OF: u32 = 16;
/// The maximum number of partitions. Those that learned nothing for the longest time are dropped.
const MOST_PARTITIONS: usize = 2_000;
const SEALED_AS: &str = "cache-thresholds";

/// Whether two answers have the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Same,
    Different,
    /// The answers use different words but may mean the same.
    Unclear,
}

impl Comparison {
    /// Compares the words of two answers. Answers that are neither equal nor clearly different are `Unclear`.
    pub fn of(first: &str, second: &str) -> Self {
        const SHORT_WORDS: usize = 12;
        let words = |text: &str| -> Vec<String> {
            let parts = text.split(|char: char| !char.is_alphanumeric() && !"+-.,%$€".contains(char));
            let parts = parts.map(|word| word.trim_matches(['.', ',']).to_lowercase());
            parts.filter(|word| !word.is_empty()).collect()
        };
        let (first, second) = (words(first), words(second));
        if first == second {
            return if first.is_empty() { Self::Unclear } else { Self::Same };
        }
        let are_short = first.len() <= SHORT_WORDS && second.len() <= SHORT_WORDS;
        let common = first.iter().filter(|word| second.contains(word)).count();
        let is_other = common * 2 < first.len().max(second.len());
        if are_short || is_other {
            Self::Different
        } else {
            Self::Unclear
        }
    }
}

/// The similarities that were learned in one partition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Lesson {
    /// The model name that callers used, for display.
    model: String,
    /// The similarities of questions whose cached answer would have been right, and of those whose would have been
    /// wrong.
    right: VecDeque<f32>,
    wrong: VecDeque<f32>,
    updated_ms: u64,
    #[serde(skip)]
    lowered_hits: u32,
}

impl Lesson {
    fn note(&mut self, similarity: f32, is_right: bool) {
        let (similarities, most) = if is_right { (&mut self.right, MOST_RIGHT) } else { (&mut self.wrong, MOST_WRONG) };
        if similarities.len() == most {
            similarities.pop_front();
        }
        similarities.push_back(similarity);
    }

    /// The threshold if the operator has set `base`. Above 1, no similar question is answered from the cache.
    fn threshold(&self, base: f32) -> f32 {
        let wrong = self.wrong.iter().copied().fold(0.0, f32::max);
        let safe = if wrong > 0.0 { wrong + MARGIN } else { 0.0 };
        if safe > base {
            return safe;
        }
        let floor = safe.max(base - MOST_LOWERED).max(LEAST);
        let mut right: Vec<f32> = self.right.iter().copied().filter(|near| (floor..base).contains(near)).collect();
        if right.len() < ENOUGH {
            return base;
        }
        right.sort_unstable_by(f32::total_cmp);
        right[OUTLIERS]
    }
}

/// The threshold of one partition, for reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionThreshold {
    /// The digest of everything but the last question, in hexadecimal.
    pub partition: String,
    pub model: String,
    pub threshold: f32,
    pub right: usize,
    pub wrong: usize,
    pub updated_ms: u64,
}

#[derive(Debug, Default)]
struct Lessons {
    of: HashMap<Digest, Lesson>,
    is_dirty: bool,
}

/// The learned thresholds of all partitions, in memory and in one encrypted file.
#[derive(Debug)]
pub struct Learner {
    path: PathBuf,
    sealer: Sealer,
    lessons: Mutex<Lessons>,
}

impl Learner {
    /// Loads what was learned earlier. An unreadable file is logged and ignored.
    pub fn open(data_dir: &Path, sealer: Sealer) -> Self {
        let own = Self { path: data_dir.join("cache").join("thresholds"), sealer, lessons: Mutex::default() };
        match own.read() {
            Ok(of) => own.lessons.lock().of = of,
            Err(error) => tracing::error!(%error, "learnt thresholds of the cache cannot be read"),
        }
        own
    }

    /// The similarity that a question of this partition needs if the operator has set `base`.
    pub fn threshold(&self, partition: &Digest, base: f32) -> f32 {
        self.lessons.lock().of.get(partition).map_or(base, |lesson| lesson.threshold(base))
    }

    /// Counts a hit that only a lowered threshold allows. Returns whether this one should be sent to the provider as a
    /// check.
    pub fn is_check_due(&self, partition: &Digest) -> bool {
        let mut lessons = self.lessons.lock();
        let Some(lesson) = lessons.of.get_mut(partition) else { return false };
        lesson.lowered_hits = lesson.lowered_hits.wrapping_add(1);
        lesson.lowered_hits % CHECKED_OF == 0
    }

    /// Records whether the cached answer to a question with this similarity would have been right.
    pub fn note(&self, partition: &Digest, model: &str, similarity: f32, is_right: bool, now_ms: u64) {
        if !(LEAST..).contains(&similarity) {
            return;
        }
        let mut lessons = self.lessons.lock();
        if lessons.of.len() >= MOST_PARTITIONS && !lessons.of.contains_key(partition) {
            let oldest = lessons.of.iter().min_by_key(|(_, lesson)| lesson.updated_ms).map(|(digest, _)| *digest);
            if let Some(digest) = oldest {
                lessons.of.remove(&digest);
            }
        }
        let lesson = lessons.of.entry(*partition).or_default();
        model.clone_into(&mut lesson.model);
        lesson.updated_ms = now_ms;
        lesson.note(similarity, is_right);
        lessons.is_dirty = true;
    }

    /// Every partition that has learned something, latest first.
    pub fn list(&self, base: f32) -> Vec<PartitionThreshold> {
        let lessons = self.lessons.lock();
        let thresholds = lessons.of.iter().map(|(digest, lesson)| PartitionThreshold {
            partition: hex(digest),
            model: lesson.model.clone(),
            threshold: lesson.threshold(base),
            right: lesson.right.len(),
            wrong: lesson.wrong.len(),
            updated_ms: lesson.updated_ms,
        });
        let mut thresholds: Vec<PartitionThreshold> = thresholds.collect();
        thresholds.sort_by(|a, b| (b.updated_ms, &b.partition).cmp(&(a.updated_ms, &a.partition)));
        thresholds
    }

    /// Deletes what one partition (by its name) or every partition has learned, also from the file. Blocks. Returns the
    /// number of partitions.
    pub fn forget(&self, partition: Option<&str>) -> io::Result<usize> {
        let mut lessons = self.lessons.lock();
        let before = lessons.of.len();
        lessons.of.retain(|digest, _| partition.is_some_and(|named| hex(digest) != named));
        let count = before - lessons.of.len();
        lessons.is_dirty = false;
        self.write(&lessons.of)?;
        Ok(count)
    }

    /// Writes what was learned since the last call. Blocks. If several workers share the directory, the one that
    /// learned last about a partition wins.
    pub fn save(&self) -> io::Result<()> {
        let mut lessons = self.lessons.lock();
        if !lessons.is_dirty {
            return Ok(());
        }
        let mut all = self.read().unwrap_or_default();
        for (digest, lesson) in &lessons.of {
            let is_newer = all.get(digest).is_none_or(|other| other.updated_ms <= lesson.updated_ms);
            if is_newer {
                all.insert(*digest, lesson.clone());
            }
        }
        self.write(&all)?;
        lessons.is_dirty = false;
        Ok(())
    }

    fn read(&self) -> io::Result<HashMap<Digest, Lesson>> {
        let sealed = match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
            read => read?,
        };
        let plain = self.sealer.open(SEALED_AS, &sealed).map_err(io::Error::other)?;
        let rows: Vec<(Digest, Lesson)> = serde_json::from_slice(&plain)?;
        Ok(rows.into_iter().take(MOST_PARTITIONS).collect())
    }

    fn write(&self, lessons: &HashMap<Digest, Lesson>) -> io::Result<()> {
        let rows: Vec<(&Digest, &Lesson)> = lessons.iter().take(MOST_PARTITIONS).collect();
        let sealed = self.sealer.seal(SEALED_AS, &serde_json::to_vec(&rows)?).map_err(io::Error::other)?;
        let part = self.path.with_extension(format!("{}.part", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(&sealed)?;
        file.sync_all()?;
        fs::rename(part, &self.path)
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        if let Err(error) = self.save() {
            tracing::warn!(%error, "what the cache learnt last is not written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: f32 = 0.8;

    fn learner(name: &str) -> Learner {
        let dir = std::env::temp_dir().join(format!("fairlead-learner-{name}-{}", std::process::id()));
        fs::create_dir_all(dir.join("cache")).expect("a folder");
        Learner::open(&dir, Sealer::new(&[7; 32]).expect("a key"))
    }

    fn lesson(right: &[f32], wrong: &[f32]) -> Lesson {
        let mut lesson = Lesson::default();
        for near in right {
            lesson.note(*near, true);
        }
        for near in wrong {
            lesson.note(*near, false);
        }
        lesson
    }

    #[test]
    fn a_wrong_answer_raises_at_once_and_few_right_ones_lower_nothing() {
        assert_eq!(lesson(&[], &[]).threshold(BASE).to_bits(), BASE.to_bits());
        assert!(lesson(&[0.7; 64], &[0.93]).threshold(BASE) > 0.93);
        assert!(lesson(&[], &[1.0]).threshold(BASE) > 1.0, "no question is answered");
        assert_eq!(lesson(&[0.72; ENOUGH - 1], &[]).threshold(BASE).to_bits(), BASE.to_bits());
        assert!((lesson(&[0.72; ENOUGH], &[]).threshold(BASE) - 0.72).abs() < 1e-6);
        assert_eq!(lesson(&[0.72; ENOUGH], &[0.73]).threshold(BASE).to_bits(), BASE.to_bits());
        assert_eq!(lesson(&[0.6; ENOUGH], &[]).threshold(BASE).to_bits(), BASE.to_bits(), "too far below");
        assert_eq!(lesson(&[0.9; ENOUGH], &[]).threshold(BASE).to_bits(), BASE.to_bits(), "these are hits anyway");
    }

    proptest! {
        #[test]
        fn a_threshold_keeps_every_wrong_answer_away_and_its_bounds(
            right in proptest::collection::vec(LEAST..1.0_f32, 0..200),
            wrong in proptest::collection::vec(LEAST..1.0_f32, 0..MOST_WRONG),
            base in LEAST..1.0_f32,
        ) {
            let threshold = lesson(&right, &wrong).threshold(base);
            prop_assert!(wrong.iter().all(|near| *near < threshold || *near < base && threshold >= base));
            prop_assert!(threshold >= (base - MOST_LOWERED).max(LEAST) - 1e-6);
            let between = right.iter().rev().take(MOST_RIGHT).filter(|near| (threshold..base).contains(*near)).count();
            prop_assert!(threshold >= base || between + OUTLIERS >= ENOUGH);
        }
    }

    #[test]
    fn lessons_outlive_a_restart_and_can_be_forgotten() {
        let (one, other) = ([1; 32], [2; 32]);
        let first = learner("restart");
        first.forget(None).expect("empty");
        first.note(&one, "m", 0.9, false, 5);
        first.note(&other, "m", 0.95, false, 6);
        first.note(&other, "m", 0.1, false, 7);
        drop(first);
        let again = learner("restart");
        let thresholds = again.list(BASE);
        assert_eq!(thresholds.iter().map(|each| (each.wrong, each.updated_ms)).collect::<Vec<_>>(), [(1, 6), (1, 5)]);
        assert!(again.threshold(&one, BASE) > 0.9);
        assert_eq!(again.forget(Some(&hex(&one))).expect("written"), 1);
        drop(again);
        let third = learner("restart");
        assert_eq!((third.list(BASE).len(), third.threshold(&one, BASE).to_bits()), (1, BASE.to_bits()));
        assert_eq!(third.forget(None).expect("written"), 1);
    }

    #[test]
    fn of_lowered_hits_every_sixteenth_is_checked() {
        let learner = learner("checks");
        learner.note(&[3; 32], "m", 0.9, true, 1);
        let due = (0..64).filter(|_| learner.is_check_due(&[3; 32])).count();
        assert_eq!((due, learner.is_check_due(&[4; 32])), (4, false));
    }

    #[test]
    fn answers_are_compared_by_their_words() {
        use Comparison::{Different, Same, Unclear};
        for (first, second, expected) in [
            ("Paris.", " paris", Same),
            ("Yes, it is.", "No, it is not.", Different),
            ("42", "43", Different),
            ("-1.5", "1.5", Different),
            ("", "", Unclear),
            ("\u{2026}", "!", Unclear),
        ] {
            assert_eq!(Comparison::of(first, second), expected, "{first:?} {second:?}");
        }
        let long = "The capital of France is Paris, which lies on the river Seine in the north of the country.";
        assert_eq!(Comparison::of(long, &long.replace("lies", "sits")), Unclear);
        assert_eq!(
            Comparison::of(
                long,
                "Sort the list with its method, then print it, and look at the result twice, please, as always."
            ),
            Different
        );
    }
}
