//! Credentials that are recognized by the prefix that their issuer gives them.

use super::patterns::{always, Characters, Pattern};
use std::sync::LazyLock;

pub(super) static PATTERNS: LazyLock<[Pattern; 8]> = LazyLock::new(|| {
    [
        Pattern::new("api-key", const { &[Characters::one(b'k')] }, r"(?-u:\b)sk-[A-Za-z0-9_-]{20,}", has_digit)
            .with_tail(is_of_key),
        Pattern::new(
            "aws-key",
            const { &[Characters::CAPITALS] },
            r"(?-u:\b)(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)",
            always,
        ),
        Pattern::new(
            "github-token",
            const { &[Characters::one(b'_')] },
            r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
            always,
        )
        .with_tail(is_of_key),
        Pattern::new(
            "slack-token",
            const { &[Characters::one(b'x')] },
            r"(?-u:\b)xox[abeoprs]-[A-Za-z0-9-]{10,}",
            has_digit,
        )
        .with_tail(is_of_key),
        Pattern::new("google-key", const { &[Characters::one(b'A')] }, r"(?-u:\b)AIza[A-Za-z0-9_-]{35}", always),
        Pattern::new(
            "stripe-key",
            const { &[Characters::one(b'_')] },
            r"(?-u:\b)[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
            always,
        )
        .with_tail(is_of_key),
        Pattern::new(
            "jwt",
            const { &[Characters::one(b'e')] },
            r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}",
            always,
        )
        .with_tail(is_of_key),
        Pattern::new(
            "private-key",
            const { &[Characters::one(b'-')] },
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
            always,
        )
        .with_tail(is_of_armour),
    ]
});

/// Whether the text has a digit. Words that start like a key have none; a random key of twenty characters has one.
fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_of_key(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// Whether the character can be part of an armoured key: base64 in lines, including line ends that are written as
/// escapes.
fn is_of_armour(character: char) -> bool {
    character.is_ascii_alphanumeric() || character.is_whitespace() || matches!(character, '+' | '/' | '=' | '\\')
}
