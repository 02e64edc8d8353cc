//! White space at the ends of lines, more than one empty line, texts that came before, data URLs in texts.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::conversation::{Piece, Role};
use crate::marker;

use super::{each, is_file, Context, Proposal};

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
        without_data(text).or(tidy).map(Cow::Owned)
    })
}

/// The text without white space that nobody sees; `None` when it has none. Fenced code stays as it is.
fn tidied(text: &str) -> Option<String> {
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
    fn data_in_texts_becomes_its_size() {
        let text = format!("see data:image/png;base64,{} end", "A".repeat(300));
        assert_eq!(without_data(&text).as_deref(), Some("see data:image/png;base64,[300_bytes_left_out] end"));
        assert_eq!(without_data("data:;base64,AAAA"), None);
    }
}
