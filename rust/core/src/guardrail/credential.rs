//! Credentials that begin with what their makers gave them to be found by.

use super::patterns::{always, Pattern};
use std::sync::LazyLock;

pub(super) static PATTERNS: LazyLock<[Pattern; 8]> = LazyLock::new(|| {
    [
        Pattern::new("api-key", Some(b'k'), r"\bsk-[A-Za-z0-9_-]{20,}", has_digit),
        Pattern::new("aws-key", None, r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", always),
        Pattern::new(
            "github-token",
            Some(b'_'),
            r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
            always,
        ),
        Pattern::new("slack-token", Some(b'x'), r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", has_digit),
        Pattern::new("google-key", Some(b'A'), r"\bAIza[A-Za-z0-9_-]{35}", always),
        Pattern::new("stripe-key", Some(b'_'), r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}", always),
        Pattern::new("jwt", Some(b'e'), r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}", always),
        Pattern::new(
            "private-key",
            Some(b'-'),
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
            always,
        ),
    ]
});

/// A word that begins like a key has no digit; a key of twenty characters always has one.
fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}
