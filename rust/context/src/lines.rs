//! Command output as lines: error lines, lines of the same shape, and how a selection of lines is written.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::marker;

/// Words that indicate an error in tool output. Case matters for words that are common in prose.
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u:\b(?:error|fatal|panicked|Exception|FAIL(?:ED|URE)?|Traceback|Caused by|ERR!|ERROR|Error|CRITICAL|FATAL|OOMKilled|CrashLoopBackOff)\b)",
        r"|(?-u:[a-z](?:Error|Exception)\b)|^E  |(?i-u:permission denied|no such file|not found|undefined reference|timed? ?out\b|rejected|out of memory|\bunable to\b|\bcannot\b)|^\s*(?:✗|✖|●|×)"
    ))
    .ok()
});

/// Whether a line reports an error.
pub(crate) fn is_error(line: &str) -> bool {
    ERROR.as_ref().is_some_and(|error| error.is_match(line))
}

/// A hash of the shape of a line: its words without digits, structural characters, and the sign before a number. The
/// status codes of failed requests get a separate shape.
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

/// The number of lines before an error that show its cause, such as the last frame of a traceback.
const ABOVE: usize = 2;
/// The number of lines after an error that show its location.
const BELOW: usize = 3;

/// Marks the error lines, and the lines around them.
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

/// The chosen lines, with a note in place of removed ones. Lines that are shorter than the note stay. `None` if nothing
/// would be removed.
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

/// The text without colours and cursor movements. An overwritten line keeps its last content.
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

/// The text after a terminal escape sequence.
fn after_escape(rest: &str) -> &str {
    let Some(inner) = rest.strip_prefix('[') else {
        let mut chars = rest.chars();
        chars.next();
        return chars.as_str();
    };
    let mut chars = inner.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | '?')).chars();
    // The letter that identifies the sequence.
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
        // An incomplete sequence does not remove the text after it.
        assert_eq!(without_control("\x1b[31\u{e9} stays"), "\u{e9} stays");
    }
}
