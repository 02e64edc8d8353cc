//! The stored text of a failure: masked, on one line and short.

use fairlead_core::guardrail::mask_text;

/// The maximum length of a stored sentence in bytes.
pub const MAX_SENTENCE_BYTES: usize = 300;
/// The maximum length of a provider's error code, type or request id in bytes.
pub const MAX_NAME_BYTES: usize = 100;
/// Input beyond this length is ignored, because masking takes time for each byte.
const MAX_READ_BYTES: usize = 2_048;
const ELLIPSIS: &str = "…";

/// Removes personal data, credentials and control characters, and truncates to `max_bytes` with an ellipsis.
pub fn sentence(text: &str, max_bytes: usize) -> String {
    let read = cut(text, MAX_READ_BYTES);
    // Masking comes before truncation, because a mask does not recognize half of a secret.
    let masked = mask_text(read, read.len() < text.len());
    let plain: String = masked.trim().chars().map(|each| if each.is_control() { ' ' } else { each }).collect();
    if plain.len() <= max_bytes && read.len() == text.len() {
        return plain;
    }
    format!("{}{ELLIPSIS}", cut(&plain, max_bytes - ELLIPSIS.len()).trim_end())
}

/// Returns the longest prefix of at most `max_bytes` that ends on a character boundary.
fn cut(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_sentence_is_stored_as_it_is() {
        assert_eq!(sentence("The provider failed (500).", MAX_SENTENCE_BYTES), "The provider failed (500).");
    }

    #[test]
    fn a_long_sentence_is_cut_between_characters() {
        for text in ["ä".repeat(400), "a".repeat(5_000), format!("a{}", "😀".repeat(100))] {
            let stored = sentence(&text, MAX_SENTENCE_BYTES);
            assert!(stored.len() <= MAX_SENTENCE_BYTES && stored.ends_with(ELLIPSIS), "{stored}");
        }
    }

    #[test]
    fn credentials_and_control_characters_are_not_stored() {
        let secret = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let stored = sentence(&format!("Incorrect\r\n\u{1b}[31m key {secret} of jo@example.com"), MAX_SENTENCE_BYTES);
        assert!(!stored.contains("AAAA") && !stored.contains("jo@") && !stored.contains(char::is_control), "{stored}");
        // A secret at the truncation point leaves nothing behind.
        let across = format!("{} {secret}", "a".repeat(MAX_SENTENCE_BYTES - 20));
        assert!(!sentence(&across, MAX_SENTENCE_BYTES).contains("AAAA"));
    }
}
