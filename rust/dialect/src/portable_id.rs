//! Tool call ids in Anthropic's format, which accepts letters, digits, `_` and `-` (`^[a-zA-Z0-9_-]+$`).
//!
//! Other vendors have ids such as `functions.Read:0`. An invalid id is encoded reversibly: `fl_functions_2ERead_3A0`.
//! When an Anthropic client sends it back, the vendor receives its original id.

use std::borrow::Cow;
use std::fmt::Write as _;

use fairlead_core::{Letters, NameRule};

use crate::text::Text;

const MARK: &str = "fl_";

/// Encodes an id in Anthropic's format.
pub(crate) fn written<'a>(id: &Text<'a>) -> Text<'a> {
    let text = id.decode();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !text.is_empty() && text.bytes().all(fits) && !text.starts_with(MARK) {
        return id.clone();
    }
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(MARK);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            out.push(char::from(byte));
        } else {
            // Writing to a `String` does not fail.
            let _ = write!(out, "_{byte:02X}");
        }
    }
    out.into()
}

/// Decodes an id that [`written`] encoded. Any other id is returned unchanged.
pub(crate) fn read(id: Text<'_>) -> Text<'_> {
    let text = id.decode();
    match text.strip_prefix(MARK).and_then(original) {
        Some(original) if *written(&original.clone().into()).decode() == *text => original.into(),
        _ => id,
    }
}

fn original(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut pieces = encoded.split('_');
    bytes.extend_from_slice(pieces.next()?.as_bytes());
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Returns an id that the rule allows. A call and its result get the same id.
pub(crate) fn fitted_id<'a>(id: &Text<'a>, rule: NameRule) -> Text<'a> {
    match fitted(&id.decode(), rule) {
        Cow::Borrowed(_) => id.clone(),
        Cow::Owned(fitted) => fitted.into(),
    }
}

/// Limits a text to `most` characters. A longer text is truncated and ends with a hash of the whole text.
pub(crate) fn bounded<'a>(text: &Text<'a>, most: usize) -> Text<'a> {
    fitted_id(text, NameRule { most, letters: Letters::Any })
}

/// Returns a name that the rule allows. Equal names give equal results, different names different ones.
pub(crate) fn fitted(text: &str, rule: NameRule) -> Cow<'_, str> {
    if fits(text, rule) {
        return Cow::Borrowed(text);
    }
    let hash = fnv(text.as_bytes());
    if rule.letters == Letters::Alphanumeric {
        return Cow::Owned(alphanumeric(hash, rule.most));
    }
    let hash = format!("-{hash:016x}");
    let head = text.chars().map(|char| if allows(rule.letters, char) { char } else { '_' });
    let mut out: String = head.take(rule.most.saturating_sub(hash.len())).collect();
    if rule.letters == Letters::Identifier
        && !out.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
    {
        out.replace_range(..out.chars().next().map_or(0, char::len_utf8), "_");
    }
    Cow::Owned(out + &hash)
}

pub(crate) fn fits(text: &str, rule: NameRule) -> bool {
    let length = text.chars().count();
    match rule.letters {
        // The only provider with such ids uses one length for all of them.
        Letters::Alphanumeric => length == rule.most && text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        Letters::Identifier if text.starts_with(|first: char| !first.is_ascii_alphabetic() && first != '_') => false,
        letters => length <= rule.most && text.chars().all(|char| allows(letters, char)),
    }
}

fn allows(letters: Letters, char: char) -> bool {
    match letters {
        Letters::Any => true,
        Letters::Alphanumeric => char.is_ascii_alphanumeric(),
        Letters::Word => char.is_ascii_alphanumeric() || matches!(char, '_' | '-'),
        Letters::Identifier => char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | ':'),
    }
}

/// Returns `most` letters and digits of a hash.
fn alphanumeric(mut hash: u64, most: usize) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut digit = || {
        let at = usize::try_from(hash % 62).unwrap_or_default();
        hash /= 62;
        char::from(LETTERS[at])
    };
    (0..most).map(|_| digit()).collect()
}

/// FNV-1a. It distinguishes ids and is not for security.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns whether a text has no visible character. Claude rejects such texts.
pub(crate) fn is_blank(text: &Text<'_>) -> bool {
    text.is_empty() || text.decode().chars().all(char::is_whitespace)
}

/// Returns a text up to its last visible character.
pub(crate) fn trimmed_end<'a>(text: &Text<'a>) -> Cow<'a, str> {
    match text.decode() {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end()),
        Cow::Owned(text) => Cow::Owned(text.trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_that_fits_stays() {
        for id in ["toolu_01Ab-9", "call_7", "a"] {
            assert_eq!(written(&id.into()).decode(), id);
            assert_eq!(read(id.into()).decode(), id);
        }
        assert_eq!(written(&"functions.Read:0".into()).decode(), "fl_functions_2ERead_3A0");
    }

    proptest! {
        #[test]
        fn every_id_comes_back(id in "\\PC{0,80}") {
            let sent = written(&id.clone().into());
            let shown = sent.decode().into_owned();
            prop_assert!(!shown.is_empty());
            prop_assert!(shown.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
            prop_assert_eq!(read(shown.into()).decode(), id);
        }

        #[test]
        fn what_nobody_wrote_stays(id in "fl_[a-zA-Z0-9_-]{0,40}") {
            let back = read(id.clone().into()).decode().into_owned();
            prop_assert!(back == id || written(&back.into()).decode() == id);
        }

        #[test]
        fn long_ids_are_bounded_and_stay_apart(one in "[a-z]{41,90}", other in "[a-z]{41,90}") {
            let (first, second) = (bounded(&one.clone().into(), 40), bounded(&other.clone().into(), 40));
            prop_assert!(first.decode().chars().count() <= 40);
            prop_assert_eq!(one == other, first.decode() == second.decode());
        }
    }
}
