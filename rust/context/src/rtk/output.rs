//! Applies a filter: selects the lines of an output that stay.

use std::collections::HashMap;

use fairlead_core::json;

use crate::lines;

use super::{Filter, Focus};

/// Outputs up to this length are not changed.
const MIN_LINES: usize = 8;

/// How much of an output stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The number of lines of the same shape that stay.
    pub(crate) samples: usize,
    /// Divides the filter's line limit for text and code. `None` leaves them complete.
    pub(crate) text: Option<usize>,
    /// Multiplies the filter's line limit for other outputs.
    pub(crate) factor: usize,
}

/// The maximum number of lines of an output without a filter.
const MAX_LINES: usize = 120;

/// The output without lines that lack information; `None` if all stay. Terminal colours have been removed from the
/// input.
pub(crate) fn filtered(text: &str, filter: Option<&Filter>, focus: &Focus, bounds: Bounds) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_text = filter.is_some_and(|filter| filter.is_text);
    if lines.len() < MIN_LINES || (is_text && bounds.text.is_none()) || is_json(text) {
        return None;
    }
    let mut keep = if is_text { vec![true; lines.len()] } else { samples_of_each_make(&lines, filter, bounds.samples) };
    let mut needed = vec![false; lines.len()];
    lines::mark_errors(&lines, &mut needed);
    focus.mark(&lines, &mut needed);
    if let Some(filter) = filter {
        for (at, line) in lines.iter().enumerate() {
            keep[at] &= !filter.drop.is_match(line);
            needed[at] |= filter.keep.is_match(line);
        }
    }
    let max_lines = filter.map_or(MAX_LINES, |filter| filter.max_lines);
    bound(&mut keep, bounds.text.filter(|_| is_text).map_or(max_lines * bounds.factor, |part| max_lines / part));
    for (keep, needed) in keep.iter_mut().zip(&needed) {
        *keep |= needed;
    }
    lines::selection(&lines, &keep)
}

/// Whether the whole output is JSON. Removing lines would make it invalid.
fn is_json(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(['{', '[']) && json::validate(text.as_bytes(), json::MAX_DEPTH).is_ok()
}

fn samples_of_each_make(lines: &[&str], filter: Option<&Filter>, samples: usize) -> Vec<bool> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    let count = lines.len();
    let is_sample = |(at, line): (usize, &&str)| {
        let group = filter.and_then(|filter| filter.group.matches(line).iter().next());
        let seen = counts.entry(group.map_or_else(|| lines::make_of(line), |group| group as u64)).or_default();
        *seen += 1;
        *seen <= samples || at + 1 == count
    };
    lines.iter().enumerate().map(is_sample).collect()
}

/// Leaves `max` lines: two thirds from the beginning and one third from the end.
fn bound(keep: &mut [bool], max: usize) {
    let total = keep.iter().filter(|keep| **keep).count();
    if total <= max {
        return;
    }
    let (head, tail) = (max - max / 3, max / 3);
    for (at, keep) in keep.iter_mut().filter(|keep| **keep).enumerate() {
        *keep = at < head || at + tail >= total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_make_are_sampled_and_others_stay() {
        let mut output: Vec<String> = (0..40).map(|n| format!("GET /item/{n} 200 {n}ms")).collect();
        output[20] = "GET /item/20 502 9ms".into();
        let text =
            filtered(&output.join("\n"), None, &Focus::default(), Bounds { samples: 2, text: Some(1), factor: 1 })
                .expect("shorter");
        assert!(text.contains("GET /item/20 502 9ms") && text.contains("18 lines left out"), "{text}");
    }
}
