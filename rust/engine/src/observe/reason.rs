//! The sentence of a failure as it is stored: masked, on one line, and short.

use fairlead_core::guardrail::mask_text;

/// The most bytes of a stored sentence.
pub const MAX_SENTENCE_BYTES: usize = 300;
/// The most bytes of a provider's code, type or request id.
pub const MAX_NAME_BYTES: usize = 100;
/// More of a text is not read: masking costs time for each byte.
const MAX_READ_BYTES: usize = 2_048;
const ELLIPSIS: &str = "…";

/// A text without personal data, credentials and control characters, of at most `max_bytes`; a longer one ends with an ellipsis.
pub fn sentence(text: &str, max_bytes: usize) -> String {
    let read = cut(text, MAX_READ_BYTES);
    // Masked before it is cut, so that no half of a secret is left that no mask knows any more.
    let masked = mask_text(read, read.len() < text.len());
    let plain: String = masked.trim().chars().map(|each| if each.is_control() { ' ' } else { each }).collect();
    if plain.len() <= max_bytes && read.len() == text.len() {
        return plain;
    }
    format!("{}{ELLIPSIS}", cut(&plain, max_bytes - ELLIPSIS.len()).trim_end())
}

/// The longest beginning of at most `max_bytes` that ends between two characters.
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
        // A secret across the cut leaves nothing of it.
        let across = format!("{} {secret}", "a".repeat(MAX_SENTENCE_BYTES - 20));
        assert!(!sentence(&across, MAX_SENTENCE_BYTES).contains("AAAA"));
    }
}
