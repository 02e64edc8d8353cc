//! Attempts to take over the model: the phrases by which a text asks to set aside the instructions before it, to be told
//! them, or to be somebody without rules, and the marks that end a turn in templates of models.
//!
//! Phrases are evidence, not proof, so the usual action is to warn. Only the first 16 KiB of a text are read: what takes a
//! model over stands where it is read first, and long documents speak of everything.

//!
//! Words end where another script begins, as sentences of Chinese or Thai have no blanks; a letter with an accent goes on with
//! a word.

use super::patterns::{always, Characters, Pattern};
use regex::Regex;
use std::sync::LazyLock;

/// How much of a text is read.
pub(super) const READ_BYTES: usize = 16 * 1024;

/// A character that neither goes on with a word nor ends a sentence.
macro_rules! between {
    () => {
        r"[^.!?\nA-Za-z0-9_\u{AA}\u{BA}\u{C0}-\u{24F}\u{300}-\u{36F}\u{1E00}-\u{1EFF}]"
    };
}

/// A pattern for a bounded number of characters of a sentence, at whose ends no word goes on.
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

/// How each of the phrases begins, so that texts without any of them, which are most, are read once and not once for each.
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

/// Where the first phrase may begin.
pub(super) fn first(text: &str) -> Option<usize> {
    FIRST_WORDS.find(text).map(|found| found.start())
}
