//! White space at the ends of lines, wide padding of tables, long rules, more than one empty line, texts that came before, data URLs in texts.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::conversation::{Piece, Role};
use crate::marker;

use super::{each, is_excerpt, is_file, Context, Proposal};

/// A repeated text must be longer than the note that stands for it.
const REPEAT_MIN_BYTES: usize = 160;
/// Data URLs up to this length stay.
const DATA_MIN_BYTES: usize = 256;

pub(super) fn propose(pieces: &[Piece<'_>], _: &Context<'_>) -> Vec<Proposal> {
    let mut earlier: HashMap<(Role, &str), usize> = HashMap::new();
    let mut repeats = vec![false; pieces.len()];
    for (index, piece) in pieces.iter().enumerate() {
        let may_repeat = matches!(piece.role, Role::System | Role::Tool) && piece.text.len() >= REPEAT_MIN_BYTES;
        if may_repeat {
            let first = *earlier.entry((piece.role, piece.text.as_ref())).or_insert(index);
            repeats[index] = first != index;
        }
    }
    each(pieces, |index, piece| {
        if repeats[index] {
            return Some(Cow::Owned(marker::text_again()));
        }
        let tidy = if is_file(piece) { None } else { tidied(&piece.text) };
        let text = tidy.as_deref().unwrap_or(&piece.text);
        let narrow = if piece.role == Role::Tool && !is_excerpt(piece) { narrowed(text) } else { None };
        let tidy = narrow.or(tidy);
        let text = tidy.as_deref().unwrap_or(&piece.text);
        without_data(text).or(tidy).map(Cow::Owned)
    })
}

/// The text without white space that nobody sees; `None` when it has none. Fenced code stays as it is.
pub(super) fn tidied(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    let mut is_fenced = false;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end();
        if body.trim_start().starts_with("```") {
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

/// Padding from this width on becomes [`SHORT`] characters, and so does a rule of one sign.
const WIDE: usize = 8;
const SHORT: usize = 2;

/// The text with narrow padding between columns and short rules; `None` when none is wide. Indentation stays.
fn narrowed(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut is_indentation = true;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = rest.len() - rest.trim_start_matches(first).len();
        let is_rule = matches!(first, '-' | '=' | '*' | '_' | '\u{2501}' | '\u{2500}');
        let is_wide = length >= WIDE * first.len_utf8() && (is_rule || (first == ' ' && !is_indentation));
        out.push_str(&rest[..if is_wide { SHORT * first.len_utf8() } else { length }]);
        is_indentation = first == '\n' || (is_indentation && first == ' ');
        rest = &rest[length..];
    }
    (out.len() < text.len()).then_some(out)
}

/// The text with a note for each long data URL.
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
    }

    #[test]
    fn data_in_texts_becomes_its_size() {
        let text = format!("see data:image/png;base64,{} end", "A".repeat(300));
        assert_eq!(without_data(&text).as_deref(), Some("see data:image/png;base64,[300_bytes_left_out] end"));
        assert_eq!(without_data("data:;base64,AAAA"), None);
    }
}
