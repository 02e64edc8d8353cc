//! Outputs of commands as lines: which tell an error, which are of one make, and how a selection of them is written.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::marker;

/// Words that tell an error in the outputs of tools. Case matters where the plain word is common in prose.
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u:\b(?:error|fatal|panicked|Exception|FAIL(?:ED|URE)?|Traceback|Caused by|ERR!|ERROR|Error|CRITICAL|FATAL|OOMKilled|CrashLoopBackOff)\b)",
        r"|(?-u:[a-z](?:Error|Exception)\b)|^E  |(?i-u:permission denied|no such file|not found|undefined reference|timed? ?out\b|rejected|out of memory|\bunable to\b|\bcannot\b)|^\s*(?:✗|✖|●|×)"
    ))
    .ok()
});

/// Whether a line tells an error.
pub(crate) fn is_error(line: &str) -> bool {
    ERROR.as_ref().is_some_and(|error| error.is_match(line))
}

/// A hash of what lines of one make have in common: their words without digits, signs of structure, the sign before a number.
/// Statuses of failed requests stand out.
pub(crate) fn make_of(line: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for word in line.split_ascii_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_status = bare.len() == 3 && matches!(bare.as_bytes()[0], b'4' | b'5') && bare.parse::<u16>().is_ok();
        let is_plain = !word.bytes().any(|byte| byte.is_ascii_digit());
        if is_status && bare == word {
            add(b'!');
        } else if is_plain {
            word.bytes().for_each(&mut add);
        } else {
            add(if word.starts_with('-') { b'-' } else { b'0' });
        }
        add(b' ');
    }
    hash
}

/// Lines before an error that say what led to it, as the last frame of a traceback does.
const ABOVE: usize = 2;
/// Lines after an error that say where it is.
const BELOW: usize = 3;

/// Marks the lines that tell an error, with those around them.
pub(crate) fn mark_errors(lines: &[&str], keep: &mut [bool]) {
    let mut below = 0;
    for (at, line) in lines.iter().enumerate() {
        if is_error(line) {
            keep[at.saturating_sub(ABOVE)..=at].fill(true);
            below = BELOW;
        } else if below > 0 {
            keep[at] = true;
            below -= 1;
        }
    }
}

/// The chosen lines, with a note where some were left out. Lines that are shorter than their note stay. `None` when
/// nothing would be left out.
pub(crate) fn selection(lines: &[&str], keep: &[bool]) -> Option<String> {
    let mut text = String::new();
    let mut is_shorter = false;
    let mut at = 0;
    while at < lines.len() {
        let gap = keep[at..].iter().take_while(|keep| !**keep).count();
        let note = if gap > 0 { marker::lines_out(gap) } else { String::new() };
        if gap > 0 && lines[at..at + gap].iter().map(|line| line.len() + 1).sum::<usize>() > note.len() + 1 {
            text.push_str(&note);
            text.push('\n');
            is_shorter = true;
            at += gap;
        } else {
            for line in &lines[at..at + gap.max(1)] {
                text.push_str(line);
                text.push('\n');
            }
            at += gap.max(1);
        }
    }
    text.pop();
    is_shorter.then_some(text)
}

/// The text without colours and cursor moves, and of a line that was written over, what was written last.
pub(crate) fn without_control(text: &str) -> Cow<'_, str> {
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

/// The text behind an escape sequence of a terminal.
fn after_escape(rest: &str) -> &str {
    let Some(inner) = rest.strip_prefix('[') else {
        let mut chars = rest.chars();
        chars.next();
        return chars.as_str();
    };
    let mut chars = inner.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | '?')).chars();
    // The letter that says what it is.
    if chars.clone().next().is_some_and(|c| c.is_ascii()) {
        chars.next();
    }
    chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_tools_are_told_from_prose() {
        for line in ["error[E0382]: borrow", "KeyError: 'XK'", "fatal: [web-5]", "sh: x: not found", "FAILED a.py::b"] {
            assert!(is_error(line), "{line}");
        }
        for line in ["test a ... ok", "0 errors", "an erroneous idea"] {
            assert!(!is_error(line), "{line}");
        }
    }

    #[test]
    fn lines_that_differ_in_numbers_only_are_of_one_make() {
        assert_eq!(make_of("GET /a/1 200 3ms"), make_of("GET /a/72 201 99ms"));
        assert_ne!(make_of("GET /a/1 200 3ms"), make_of("GET /a/1 502 3ms"));
        assert_ne!(make_of("\"cents\": 450"), make_of("\"cents\": -450"));
    }

    #[test]
    fn a_selection_says_what_it_leaves_out() {
        let text = selection(&["a", "a line of some length", "another line", "d"], &[true, false, false, true]);
        assert_eq!(text.as_deref(), Some("a\n[\u{2026} 2 lines left out]\nd"));
        assert_eq!(selection(&["a", "b"], &[true, false]), None);
    }

    #[test]
    fn control_characters_go() {
        assert_eq!(without_control("a\r\x1b[31mb\x1b[0m\r\nc"), "b\nc");
        // Half a sequence before other text takes none of it along.
        assert_eq!(without_control("\x1b[31\u{e9} stays"), "\u{e9} stays");
    }
}
