//! Credentials that begin with what their makers gave them to be found by.

use super::patterns::{always, Characters, Pattern};
use std::sync::LazyLock;

pub(super) static PATTERNS: LazyLock<[Pattern; 8]> = LazyLock::new(|| {
    [
        Pattern::new("api-key", const { &[Characters::one(b'k')] }, r"\bsk-[A-Za-z0-9_-]{20,}", has_digit),
        Pattern::new("aws-key", const { &[Characters::CAPITALS] }, r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", always),
        Pattern::new(
            "github-token",
            const { &[Characters::one(b'_')] },
            r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
            always,
        ),
        Pattern::new("slack-token", const { &[Characters::one(b'x')] }, r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", has_digit),
        Pattern::new("google-key", const { &[Characters::one(b'A')] }, r"\bAIza[A-Za-z0-9_-]{35}", always),
        Pattern::new(
            "stripe-key",
            const { &[Characters::one(b'_')] },
            r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
            always,
        ),
        Pattern::new(
            "jwt",
            const { &[Characters::one(b'e')] },
            r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}",
            always,
        ),
        Pattern::new(
            "private-key",
            const { &[Characters::one(b'-')] },
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
            always,
        ),
    ]
});

/// A word that begins like a key has no digit; a key of twenty characters always has one.
fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}
