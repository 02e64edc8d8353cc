//! Reads bytes that should be UTF-8 as text.

use std::borrow::Cow;

/// Reads bytes as [`String::from_utf8_lossy`] does, which reads valid text several times more slowly than
/// [`str::from_utf8`].
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert!(matches!(lossy("caf\u{e9}".as_bytes()), Cow::Borrowed("caf\u{e9}")));
        assert_eq!(lossy(b"a\xffb"), "a\u{fffd}b");
    }
}
