//! Attempts to take over the model: phrases that ask it to ignore or reveal its instructions or to act without rules,
//! and the turn delimiters of chat templates.
//!
//! Phrases are evidence and not proof, so the usual action is to warn. Only the first 16 KiB of a text are searched:
//! injected instructions usually come early, and long documents mention all kinds of phrases.

//!
//! A word ends where another script begins, because Chinese and Thai sentences have no spaces. An accented letter
//! continues a word.

use super::patterns::{always, Characters, Pattern};
use regex::Regex;
use std::sync::LazyLock;

/// How many bytes of a text are searched.
pub(super) const READ_BYTES: usize = 16 * 1024;

/// Matches a character that neither continues a word nor ends a sentence.
macro_rules! between {
    () => {
        r"[^.!?\nA-Za-z0-9_\u{AA}\u{BA}\u{C0}-\u{24F}\u{300}-\u{36F}\u{1E00}-\u{1EFF}]"
    };
}

/// Matches a bounded number of characters within a sentence, at word boundaries.
macro_rules! gap {
    ($most:literal) => {
        concat!(between!(), r"(?:[^.!?\n]{0,", $most, "}", between!(), ")?")
    };
}

pub(super) static PATTERNS: LazyLock<[Pattern; 5]> = LazyLock::new(|| {
    [
        Pattern::new(
            "override",
            &[],
            concat!(
                r"(?i)(?-u:\b)(?:(?:ignore|disregard|forget|override|bypass)",
                gap!("36"),
                r"(?:previous|prior|above|earlier|preceding|existing|system|original)\s+",
                r"(?:instructions?|prompts?|rules?|directives?|guidelines?|messages?|context)",
                r"|(?:ignoriere|vergiss)",
                gap!("30"),
                r"(?:anweisungen|vorgaben|regeln)|(?:ignora|olvida)",
                gap!("30"),
                r"instrucciones|(?:ignore|oublie[sz]?)",
                gap!("30"),
                r"consignes)(?-u:\b)",
            ),
            always,
        )
        .phrase(),
        Pattern::new(
            "reveal",
            &[],
            concat!(
                r"(?i)(?-u:\b)(?:reveal|print|show|repeat|output|leak|tell)",
                gap!("40"),
                r"(?:system|hidden|initial|original|secret|developer)\s+(?:prompts?|instructions?|messages?)(?-u:\b)",
            ),
            always,
        )
        .phrase(),
        Pattern::new(
            "persona",
            &[],
            concat!(
                r"(?i)(?-u:\b)(?:you\s+are\s+now\s+(?:in\s+)?(?:dan|developer\s+mode|jailbroken|unrestricted|unfiltered)",
                r"|do\s+anything\s+now",
                r"|(?:act|behave|respond|answer)\s+as\s+(?:if|though)\s+you\s+(?:have|had)\s+no\s+",
                r"(?:restrictions?|rules|guidelines|filters?|limits?)",
                r"|(?:enable|enter|activate)\s+(?:dan|jailbreak|god)\s+mode)(?-u:\b)",
            ),
            always,
        )
        .phrase(),
        Pattern::new(
            "turn-mark",
            const { &[Characters::one(b'<').either(Characters::one(b'['))] },
            r"<\|(?:im_start|im_end|endoftext|system|start_header_id)\|>|<<SYS>>|\[/?INST\]",
            always,
        ),
        Pattern::new(
            "exfiltrate",
            const { &[Characters::one(b':')] },
            concat!(
                r"(?i)(?-u:\b)(?:send|post|upload|forward|exfiltrate)",
                gap!("60"),
                r"(?:api\s+keys?|passwords?|credentials|secrets?|environment\s+variables)",
                gap!("60"),
                r"https?://",
            ),
            always,
        )
        .phrase(),
    ]
});

/// Matches the beginning of every phrase. Most texts have none, so they are searched once instead of once per phrase.
static FIRST_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let words = concat!(
        r"(?i)(?-u:\b)(?:ignor|disregard|forget|override|bypass|vergiss|olvida|oublie",
        r"|reveal|print|show|repeat|output|leak|tell|send|post|upload|forward|exfiltrate",
        r"|you\s+are\s+now|do\s+anything|(?:act|behave|respond|answer)\s+as\s|(?:enable|enter|activate)\s+(?:dan|jail|god))",
    );
    match Regex::new(words) {
        Ok(regex) => regex,
        Err(error) => unreachable!("the first words do not compile: {error}"),
    }
});

/// The offset where the first phrase may begin.
pub(super) fn first(text: &str) -> Option<usize> {
    FIRST_WORDS.find(text).map(|found| found.start())
}
