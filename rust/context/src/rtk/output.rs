//! A filter at work: which lines of an output stay.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::lines;

use super::{Filter, Focus};

/// Outputs up to this length stay as they are.
const MIN_LINES: usize = 8;

/// The output without the lines that say nothing; `None` when all stay. `samples` is how many lines of one make are enough.
pub(crate) fn filtered(text: &str, filter: Option<&Filter>, focus: &Focus, samples: usize) -> Option<String> {
    let clean = without_control(text);
    let lines: Vec<&str> = clean.lines().collect();
    if lines.len() < MIN_LINES {
        return (clean.len() < text.len()).then(|| clean.into_owned());
    }
    let mut keep = if filter.is_some_and(|filter| filter.is_text) {
        vec![true; lines.len()]
    } else {
        samples_of_each_make(&lines, filter, samples)
    };
    let mut needed = vec![false; lines.len()];
    lines::mark_errors(&lines, &mut needed);
    focus.mark(&lines, &mut needed);
    if let Some(filter) = filter {
        for (at, line) in lines.iter().enumerate() {
            keep[at] &= !filter.drop.is_match(line);
            needed[at] |= filter.keep.is_match(line);
        }
    }
    bound(&mut keep, filter.map_or(120, |filter| filter.max_lines));
    for (keep, needed) in keep.iter_mut().zip(&needed) {
        *keep |= needed;
    }
    lines::selection(&lines, &keep).or_else(|| (clean.len() < text.len()).then(|| clean.into_owned()))
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

/// Leaves `max` lines: two thirds from the beginning, one from the end.
fn bound(keep: &mut [bool], max: usize) {
    let total = keep.iter().filter(|keep| **keep).count();
    if total <= max {
        return;
    }
    let (head, tail) = (max - max / 3, max / 3);
    let mut at = 0;
    for keep in keep.iter_mut().filter(|keep| **keep) {
        *keep = at < head || at + tail >= total;
        at += 1;
    }
}

/// The text without colours and cursor moves, and of a line that was written over, what was written last.
fn without_control(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\x1b', b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let body = body.rsplit('\r').next().unwrap_or(body);
        let mut rest = body;
        while let Some(at) = rest.find('\x1b') {
            out.push_str(&rest[..at]);
            rest = after_escape(&rest[at + 1..]);
        }
        out.push_str(rest);
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    Cow::Owned(out)
}

/// What follows an escape sequence of a terminal.
fn after_escape(rest: &str) -> &str {
    let Some(inner) = rest.strip_prefix('[') else {
        let mut chars = rest.chars();
        chars.next();
        return chars.as_str();
    };
    inner.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | '?')).get(1..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_make_are_sampled_and_others_stay() {
        let mut output: Vec<String> = (0..40).map(|n| format!("GET /item/{n} 200 {n}ms")).collect();
        output[20] = "GET /item/20 502 9ms".into();
        let text = filtered(&output.join("\n"), None, &Focus::default(), 2).expect("shorter");
        assert!(text.contains("GET /item/20 502 9ms") && text.contains("18 lines left out"), "{text}");
    }

    #[test]
    fn control_characters_go() {
        assert_eq!(without_control("a\r\x1b[31mb\x1b[0m\r\nc"), "b\nc");
    }
}
