//! Which of this worker's counters control has not heard yet. A worker with many providers has thousands of counters and
//! most of them rest, so a poll of the link tells only those that have changed since the last poll that was answered; all of
//! them to a control process that has not heard any.

use crate::observe::metrics::Sample;
use parking_lot::Mutex;
use std::collections::HashMap;

type Name = (&'static str, Vec<(&'static str, String)>);

/// Which counters control has heard of, so that a poll carries only what has changed.
#[derive(Debug, Default)]
pub struct CounterReports(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The control process that heard it.
    by: String,
    values: HashMap<Name, f64>,
}

impl CounterReports {
    /// Those of the samples that control has not heard so.
    pub fn news(&self, samples: Vec<Sample>) -> Vec<Sample> {
        let state = self.0.lock();
        let is_known = |(family, labels, value): &Sample| {
            // The map is asked with a key of its own type, so the labels are lent to one and taken back.
            state.values.get(&(*family, labels.clone())).is_some_and(|reported| reported.to_bits() == value.to_bits())
        };
        if state.values.is_empty() {
            return samples;
        }
        samples.into_iter().filter(|sample| !is_known(sample)).collect()
    }

    /// Control has answered a poll that told these. Answers whether it is another process than before, which knows nothing else.
    pub fn note(&self, by: &str, samples: Vec<Sample>) -> bool {
        let mut state = self.0.lock();
        if state.by != by {
            let had_heard = !state.by.is_empty();
            by.clone_into(&mut state.by);
            state.values.clear();
            if had_heard {
                // What it was told was told as news to another.
                return true;
            }
        }
        state.values.extend(samples.into_iter().map(|(family, labels, value)| ((family, labels), value)));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(label: &str, value: f64) -> Sample {
        ("family", vec![("label", label.to_owned())], value)
    }

    #[test]
    fn what_was_heard_is_told_again_when_it_changes() {
        let reports = CounterReports::default();
        let all = vec![sample("a", 1.0), sample("b", 2.0)];
        assert_eq!(reports.news(all.clone()), all);
        assert_eq!(reports.news(all.clone()), all, "the poll was not answered");
        assert!(!reports.note("one", all.clone()));
        assert_eq!(reports.news(all), []);
        assert_eq!(
            reports.news(vec![sample("a", 1.0), sample("b", 3.0), sample("c", 1.0)]),
            [sample("b", 3.0), sample("c", 1.0)]
        );
    }

    #[test]
    fn another_control_is_told_everything() {
        let reports = CounterReports::default();
        let all = vec![sample("a", 1.0), sample("b", 2.0)];
        reports.note("one", all.clone());
        let news = vec![sample("b", 3.0)];
        assert!(reports.note("two", news), "another process");
        let all = vec![sample("a", 1.0), sample("b", 3.0)];
        assert_eq!(reports.news(all.clone()), all);
        assert!(!reports.note("two", all.clone()));
        assert_eq!(reports.news(all), []);
    }
}
