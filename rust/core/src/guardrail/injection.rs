//! Attempts to take over the model: the phrases by which a text asks to set aside the instructions before it, to be told
//! them, or to be somebody without rules, and the marks that end a turn in templates of models.
//!
//! Phrases are evidence, not proof, so the usual action is to warn. Only the first 16 KiB of a text are read: what takes a
//! model over stands where it is read first, and long documents speak of everything.

use super::patterns::{always, Characters, Pattern};
use std::sync::LazyLock;

/// How much of a text is read.
pub(super) const READ_BYTES: usize = 16 * 1024;

pub(super) static PATTERNS: LazyLock<[Pattern; 5]> = LazyLock::new(|| {
    [
        Pattern::new(
            "override",
            &[],
            concat!(
                r"(?i)\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,30}\b(?:all|any|every|the|your|these|my)?\s?",
                r"(?:previous|prior|above|earlier|preceding|existing|system|original)\s+",
                r"(?:instructions?|prompts?|rules?|directives?|guidelines?|messages?|context)\b",
                r"|\b(?:ignoriere|vergiss)\b[^.!?\n]{0,30}\b(?:anweisungen|vorgaben|regeln)\b",
                r"|\b(?:ignora|olvida)\b[^.!?\n]{0,30}\binstrucciones\b",
                r"|\b(?:ignore|oublie[sz]?)\b[^.!?\n]{0,30}\bconsignes\b",
            ),
            always,
        ),
        Pattern::new(
            "reveal",
            &[],
            concat!(
                r"(?i)\b(?:reveal|print|show|repeat|output|leak|tell)\b[^.!?\n]{0,40}\b",
                r"(?:system|hidden|initial|original|secret|developer)\s+(?:prompts?|instructions?|messages?)\b",
            ),
            always,
        ),
        Pattern::new(
            "persona",
            &[],
            concat!(
                r"(?i)\byou\s+are\s+now\s+(?:in\s+)?(?:dan|developer\s+mode|jailbroken|unrestricted|unfiltered)\b",
                r"|\bdo\s+anything\s+now\b",
                r"|\b(?:act|behave|respond|answer)\s+as\s+(?:if|though)\s+you\s+(?:have|had)\s+no\s+",
                r"(?:restrictions?|rules|guidelines|filters?|limits?)\b",
                r"|\b(?:enable|enter|activate)\s+(?:dan|jailbreak|god)\s+mode\b",
            ),
            always,
        ),
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
                r"(?i)\b(?:send|post|upload|forward|exfiltrate)\b[^.!?\n]{0,60}\b",
                r"(?:api\s+keys?|passwords?|credentials|secrets?|environment\s+variables)\b[^.!?\n]{0,60}\bhttps?://",
            ),
            always,
        ),
    ]
});
