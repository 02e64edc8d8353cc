//! Tracks which counters control has received. A worker with many providers has thousands of counters, and most of them
//! rarely change. So a poll of the link contains only those that changed since the last successful poll, or all of them
//! for a new control process.

use crate::observe::metrics::Sample;
use parking_lot::Mutex;
use std::collections::HashMap;

type Name = (&'static str, Vec<(&'static str, String)>);

/// The counters as control last received them.
#[derive(Debug, Default)]
pub struct CounterReports(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The control process that received them.
    by: String,
    values: HashMap<Name, f64>,
}

impl CounterReports {
    /// Returns the samples that differ from those that control has received.
    pub fn news(&self, samples: Vec<Sample>) -> Vec<Sample> {
        let state = self.0.lock();
        let is_known = |(family, labels, value): &Sample| {
            // The lookup needs a key of the map's type.
            state.values.get(&(*family, labels.clone())).is_some_and(|reported| reported.to_bits() == value.to_bits())
        };
        if state.values.is_empty() {
            return samples;
        }
        samples.into_iter().filter(|sample| !is_known(sample)).collect()
    }

    /// Records that control has responded to a poll with these samples. Returns whether it is a different process,
    /// which knows none of the others.
    pub fn note(&self, by: &str, samples: Vec<Sample>) -> bool {
        let mut state = self.0.lock();
        if state.by != by {
            let had_heard = !state.by.is_empty();
            by.clone_into(&mut state.by);
            state.values.clear();
            if had_heard {
                // The samples were only the changes for the previous process.
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
