//! Finds the spans of prose that every engine must keep byte by byte: code, addresses, paths, numbers, quoted strings,
//! error lines.
//!
//! It reads the lines once, without backtracking. In doubt a word is protected.

use std::ops::Range;

use crate::lines::is_error;

/// The spans of `text` that must remain, in order and without overlap.
pub(crate) fn spans(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let body = line.trim_end();
        let is_fence = is_fence(body);
        if is_fence || is_fenced || is_indented(line) || is_error(body) || is_structure(body) {
            found.push(start..start + body.len());
        } else {
            line_spans(body, start, &mut found);
        }
        is_fenced ^= is_fence;
        start = end;
    }
    found.retain(|span| !span.is_empty());
    found
}

/// The number of lines that open or close a code block. If it changes, the following prose and code are exchanged.
pub(crate) fn fences(text: &str) -> usize {
    text.lines().filter(|line| is_fence(line)).count()
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

/// Whether the line is markup whose parts belong together: headings, table rows, tags, JSON.
fn is_structure(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['#', '|', '<', '{', '}', '[', ']', '>'])
}

/// Adds the quoted strings, inline code and significant words of one line.
fn line_spans(line: &str, offset: usize, found: &mut Vec<Range<usize>>) {
    // Closing quotes that were not found once are not searched again, so that a line of opening quotes takes linear
    // time.
    let mut missing: Vec<char> = Vec::new();
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(first) = rest.chars().next() else { return };
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if let Some(length) = quoted(rest, first, &mut missing) {
            found.push(offset + at..offset + at + length);
            at += length;
        } else {
            let length = word_length(rest, first);
            let word = &rest[..length];
            if is_telling(word) {
                found.push(offset + at..offset + at + length);
            }
            at += length;
        }
    }
}

/// The length in bytes of the quoted string at the start of `rest`. An apostrophe does not open one.
fn quoted(rest: &str, first: char, missing: &mut Vec<char>) -> Option<usize> {
    let close = match first {
        '"' | '`' => first,
        '\u{201c}' => '\u{201d}',
        '\u{201e}' => '\u{201c}',
        '\u{ab}' => '\u{bb}',
        '\u{300c}' => '\u{300d}',
        _ => return None,
    };
    if missing.contains(&close) {
        return None;
    }
    let length = rest[first.len_utf8()..].find(close);
    if length.is_none() {
        missing.push(close);
    }
    length.map(|length| first.len_utf8() + length + close.len_utf8())
}

/// The length up to the next white space or quote. Scripts without spaces are cut where other characters begin.
fn word_length(rest: &str, first: char) -> usize {
    let is_wide = |c: char| c >= '\u{2e80}';
    let wide = is_wide(first);
    let ends = |&(at, c): &(usize, char)| at > 0 && (c.is_whitespace() || matches!(c, '"' | '`') || is_wide(c) != wide);
    rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at)
}

/// Whether a word cannot be replaced by another: it has digits, characters of code or paths, or capitals inside.
pub(crate) fn is_telling(word: &str) -> bool {
    let mut lower = false;
    let mut upper_run = 0;
    let bare = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    for (at, byte) in bare.bytes().enumerate() {
        let is_sign = matches!(
            byte,
            b'/' | b'\\'
                | b'_'
                | b'='
                | b'@'
                | b'{'
                | b'}'
                | b'<'
                | b'>'
                | b'['
                | b']'
                | b'$'
                | b'%'
                | b'*'
                | b'~'
                | b'#'
                | b'|'
                | b'&'
                | b'+'
        );
        let is_inner = at > 0 && matches!(byte, b'.' | b':' | b'(');
        if byte.is_ascii_digit() || is_sign || is_inner || (byte == b'-' && at == 0 && bare.len() > 1) {
            return true;
        }
        upper_run = if byte.is_ascii_uppercase() { upper_run + 1 } else { 0 };
        if upper_run >= 2 || (byte.is_ascii_uppercase() && lower) {
            return true;
        }
        lower = byte.is_ascii_lowercase();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_survive_is_found() {
        let text = "Please open https://x.example/a?b=1 and say \"not now\" to 3 people in src/main.rs, `ok`?";
        let shown: Vec<&str> = spans(text).into_iter().map(|span| &text[span]).collect();
        assert_eq!(shown, ["https://x.example/a?b=1", "\"not now\"", "3", "src/main.rs,", "`ok`"]);
    }

    #[test]
    fn fences_and_errors_are_whole_lines() {
        let text = "well\n```\na  b\n```\nfatal: no such ref\nso be it";
        let shown: Vec<&str> = spans(text).into_iter().map(|span| &text[span]).collect();
        assert_eq!(shown, ["```", "a  b", "```", "fatal: no such ref"]);
    }

    #[test]
    fn a_number_among_wide_characters_is_found() {
        let text = "\u{6ce8}\u{6587}\u{756a}\u{53f7}NC-10277\u{306e}";
        let shown: Vec<&str> = spans(text).into_iter().map(|span| &text[span]).collect();
        assert_eq!(shown, ["NC-10277"]);
    }
}
