//! Removes trailing white space, wide table padding, long rules, repeated empty lines, repeated texts, and data URLs.

use std::collections::{HashMap, HashSet};

use crate::conversation::{Piece, Role};
use crate::marker;

use super::{is_excerpt, is_file, Context, Proposal};

/// A repeated text must be longer than the note that replaces it.
const REPEAT_MIN_BYTES: usize = 160;
/// Data URLs up to this length are not changed.
const DATA_MIN_BYTES: usize = 256;

pub(super) fn propose(pieces: &[Piece<'_>], context: &Context<'_>) -> Vec<Proposal> {
    let light = |piece: &Piece<'_>| if piece.frozen || !context.is_new(piece) { None } else { lightened(piece) };
    let written: Vec<Option<String>> = pieces.iter().map(light).collect();
    let repeats = repeats(pieces, &written);
    let texts = written.into_iter().zip(repeats).enumerate();
    texts
        .filter_map(|(piece, (written, repeats))| {
            let text = if repeats { marker::text_again() } else { written? };
            Some(Proposal { piece, text, raw_id: None })
        })
        .collect()
}

/// Which pieces repeat an earlier one. The texts to be sent are compared, so texts that differ only in white space are
/// equal.
fn repeats(pieces: &[Piece<'_>], written: &[Option<String>]) -> Vec<bool> {
    let texts: Vec<(Role, &str)> = pieces
        .iter()
        .zip(written)
        .map(|(piece, written)| (piece.role, written.as_deref().unwrap_or(&piece.text)))
        .collect();
    let may_repeat =
        |(role, text): &(Role, &str)| matches!(role, Role::System | Role::Tool) && text.len() >= REPEAT_MIN_BYTES;
    // A text is compared only if another one has the same length.
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for (_, text) in texts.iter().filter(|text| may_repeat(text)) {
        *lengths.entry(text.len()).or_default() += 1;
    }
    let mut earlier: HashSet<(Role, &str)> = HashSet::new();
    let is_among_equals = |text: &(Role, &str)| lengths.get(&text.1.len()).is_some_and(|count| *count > 1);
    let mut is_repeat = vec![false; pieces.len()];
    for (index, text) in texts.iter().enumerate().filter(|(_, text)| may_repeat(text) && is_among_equals(text)) {
        is_repeat[index] = !earlier.insert(*text) && !pieces[index].frozen;
    }
    is_repeat
}

/// The text of a piece without white space, padding and data that no model needs; `None` if there is none of it.
fn lightened(piece: &Piece<'_>) -> Option<String> {
    let tidy = if is_file(piece) { None } else { tidied(&piece.text) };
    let text = tidy.as_deref().unwrap_or(&piece.text);
    let narrow = if piece.role == Role::Tool && !is_excerpt(piece) { narrowed(text) } else { None };
    let tidy = narrow.or(tidy);
    let text = tidy.as_deref().unwrap_or(&piece.text);
    without_data(text).or(tidy)
}

/// The text without invisible white space; `None` if there is none. Fenced code is not changed.
pub(super) fn tidied(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    let mut is_fenced = false;
    let has_fence = memchr::memmem::find(text.as_bytes(), b"```").is_some();
    for line in text.split_inclusive('\n') {
        let body = line.trim_end();
        if has_fence && body.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            out.push_str(line);
            continue;
        }
        empty = if body.is_empty() { empty + 1 } else { 0 };
        if empty > 1 {
            continue;
        }
        out.push_str(body);
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    let end = if is_fenced { out.len() } else { out.trim_end().len() };
    out.truncate(end);
    (out.len() < text.len()).then_some(out)
}

/// Padding of at least this width is shortened to [`SHORT`] characters, and so is a rule of one character.
const WIDE: usize = 8;
const SHORT: usize = 2;

/// The text with narrow padding between columns and short rules; `None` if nothing is wide. Indentation is not changed.
fn narrowed(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut from, mut at) = (0, 0);
    let mut is_indentation = true;
    while let Some(&byte) = bytes.get(at) {
        // The two box-drawing characters of rules have three bytes.
        let width = if matches!(bytes.get(at..at + 3), Some([0xe2, 0x94, 0x80 | 0x81])) { 3 } else { 1 };
        let may_be_wide = width == 3 || matches!(byte, b'-' | b'=' | b'*' | b'_') || (byte == b' ' && !is_indentation);
        is_indentation = byte == b'\n' || (is_indentation && byte == b' ');
        if !may_be_wide {
            at += 1;
            continue;
        }
        let sign = &bytes[at..at + width];
        let count = bytes[at..].chunks_exact(width).take_while(|next| *next == sign).count();
        if count >= WIDE {
            out.push_str(&text[from..at + SHORT * width]);
            from = at + count * width;
        }
        at += count * width;
    }
    (from > 0).then(|| out + &text[from..])
}

/// The text with a note in place of each long data URL.
fn without_data(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(";base64,") {
        let start = at + found + ";base64,".len();
        let is_data = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let length = text.as_bytes()[start..].iter().take_while(|b| is_data(b)).count();
        if length >= DATA_MIN_BYTES {
            out.push_str(&text[from..start]);
            out.push_str(&marker::data_out(length));
            from = start + length;
        }
        at = start + length;
    }
    (from > 0).then(|| out + &text[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_at_the_ends_goes() {
        assert_eq!(tidied("a  \n\n\n\nb\t\n").as_deref(), Some("a\n\nb"));
        assert_eq!(tidied("a\n\nb"), None);
        assert_eq!(tidied("```\na  \n\n\n\n```"), None);
    }

    #[test]
    fn padding_and_rules_are_short() {
        assert_eq!(narrowed("          a          b\n==========").as_deref(), Some("          a  b\n=="));
        assert_eq!(narrowed("a   b --- c"), None);
        let drawn = "\u{2500}".repeat(9) + "\u{2501}" + &"\u{2501}".repeat(7) + "\u{2502}";
        assert_eq!(narrowed(&drawn).as_deref(), Some("\u{2500}\u{2500}\u{2501}\u{2501}\u{2502}"));
        assert_eq!(narrowed("\n        x\n         y"), None);
    }

    #[test]
    fn data_in_texts_becomes_its_size() {
        let text = format!("see data:image/png;base64,{} end", "A".repeat(300));
        assert_eq!(without_data(&text).as_deref(), Some("see data:image/png;base64,[300_bytes_left_out] end"));
        assert_eq!(without_data("data:;base64,AAAA"), None);
    }
}
