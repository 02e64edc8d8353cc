//! The failed attempts of a call, encoded as one text in its record: the connection, the reason, the time and the
//! provider's error.

use crate::observe::reason::{sentence, MAX_NAME_BYTES, MAX_SENTENCE_BYTES};
use fairlead_core::{ErrorKind, ProviderError};
use std::fmt::Write as _;

/// Attempts are no longer added once the text has reached this size.
const MAX_BYTES: usize = 4_000;

/// The `failed_attempts` field of a record (`docs/explanation/contracts.md`).
#[derive(Debug, Default)]
pub struct FailedAttempts(String);

/// One failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt<'a> {
    pub connection_id: &'a str,
    pub kind: ErrorKind,
    /// Milliseconds after the admission.
    pub end_ms: f64,
    /// The provider's name for the model.
    pub model: &'a str,
    pub provider_error: Option<&'a ProviderError>,
    /// The key has `noLog`, so the provider's error text is not stored.
    pub is_private: bool,
}

impl FailedAttempts {
    /// The encoded text; `None` if no attempt failed.
    pub fn text(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|text| !text.is_empty())
    }

    pub fn push(&mut self, attempt: FailedAttempt<'_>) {
        let text = &mut self.0;
        if text.len() >= MAX_BYTES {
            return;
        }
        let separator = if text.is_empty() { "" } else { "," };
        let FailedAttempt { connection_id, kind, end_ms, model, .. } = attempt;
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{connection_id};{};{end_ms};", kind.code());
        push_encoded(text, model);
        let Some(error) = attempt.provider_error else { return };
        let _ = write!(text, ";{}", error.status);
        let words = [error.code.as_deref(), error.kind.as_deref()].map(|word| (word, MAX_NAME_BYTES));
        let others = [(error.request_id.as_deref(), MAX_NAME_BYTES), (Some(&*error.message), MAX_SENTENCE_BYTES)];
        for (word, max_bytes) in words.into_iter().chain(others) {
            text.push(';');
            if let Some(word) = word.filter(|_| !attempt.is_private) {
                push_encoded(text, &sentence(word, max_bytes));
            }
        }
        let Some(reason) = error.reason else { return };
        let _ = write!(text, ";{reason};");
        if let Some(member) = error.member.as_deref().filter(|_| !attempt.is_private) {
            push_encoded(text, &sentence(member, MAX_NAME_BYTES));
        }
    }
}

/// Percent-encodes our separators and all characters that JSON escapes.
fn push_encoded(out: &mut String, text: &str) {
    for each in text.chars() {
        match each {
            '%' | ',' | ';' | '"' | '\\' => {
                let _ = write!(out, "%{:02X}", each as u32);
            }
            each if each.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(provider_error: Option<&ProviderError>) -> FailedAttempt<'_> {
        let (connection_id, kind, end_ms) = ("c1", ErrorKind::UpstreamStatus, 1.5);
        FailedAttempt { connection_id, kind, end_ms, model: "a;b", provider_error, is_private: false }
    }

    #[test]
    fn what_the_provider_answered_follows_the_attempt() {
        let error = ProviderError {
            status: 500,
            code: Some("internal".into()),
            kind: None,
            message: "It broke, 100 %; \"sorry\"".into(),
            request_id: Some("req_7".into()),
            ..ProviderError::default()
        };
        let mut attempts = FailedAttempts::default();
        attempts.push(attempt(None));
        attempts.push(attempt(Some(&error)));
        let expected = "c1;upstream_status;1.5;a%3Bb,\
            c1;upstream_status;1.5;a%3Bb;500;internal;;req_7;It broke%2C 100 %25%3B %22sorry%22";
        assert_eq!(attempts.text(), Some(expected));
        let mut private = FailedAttempts::default();
        private.push(FailedAttempt { is_private: true, ..attempt(Some(&error)) });
        assert_eq!(private.text(), Some("c1;upstream_status;1.5;a%3Bb;500;;;;"));
    }

    #[test]
    fn a_rejection_has_its_reason_and_member() {
        let error = ProviderError {
            status: 400,
            message: "x".into(),
            reason: Some("translation.refused"),
            member: Some("tools[0].name".into()),
            ..ProviderError::default()
        };
        let mut attempts = FailedAttempts::default();
        attempts.push(attempt(Some(&error)));
        let expected = "c1;upstream_status;1.5;a%3Bb;400;;;;x;translation.refused;tools[0].name";
        assert_eq!(attempts.text(), Some(expected));
        let mut private = FailedAttempts::default();
        private.push(FailedAttempt { is_private: true, ..attempt(Some(&error)) });
        assert_eq!(private.text(), Some("c1;upstream_status;1.5;a%3Bb;400;;;;;translation.refused;"));
    }

    #[test]
    fn the_text_is_bounded() {
        let error = ProviderError { status: 500, message: "😀".repeat(1_000), ..ProviderError::default() };
        let mut attempts = FailedAttempts::default();
        for _ in 0..1_000 {
            attempts.push(attempt(Some(&error)));
        }
        assert!(attempts.text().is_some_and(|text| text.len() < MAX_BYTES + 1_000));
    }
}
