//! Removes words of little weight from prose before the last two messages. The weight depends on the word alone, so the
//! remaining words would remain again.

use crate::conversation::{Piece, Role};
use crate::level::Level;
use crate::protect;

use super::caveman::{is_settled, settled};
use super::lite::tidied;
use super::pack::{bare, Pack};
use super::{each, prose_pack, Context, Proposal};

/// The number of final messages that are not changed.
const VERBATIM_TURNS: usize = 2;

pub(super) fn propose(pieces: &[Piece<'_>], context: &Context<'_>) -> Vec<Proposal> {
    let last = pieces.iter().map(|piece| piece.turn).max().unwrap_or_default();
    let threshold = match context.level {
        Level::Minimal => 0.15,
        Level::Standard => 0.3,
        Level::Aggressive => 0.45,
    };
    each(pieces, context, |piece| {
        let is_old = piece.turn + VERBATIM_TURNS <= last && piece.role != Role::System;
        let pack = if is_old { prose_pack(piece)? } else { return None };
        if pack.is_unspaced {
            return None;
        }
        let mut text = lighter(&piece.text, pack, threshold)?;
        for _ in 1..PASSES {
            match lighter(&text, pack, threshold) {
                Some(shorter) => text = shorter,
                None => return is_settled(&text, pack).then_some(text),
            }
        }
        None
    })
}

/// The maximum number of passes over a text. Words that become adjacent may form a phrase of the rule pack.
const PASSES: usize = 4;

/// One pass; `None` if nothing is removed.
fn lighter(text: &str, pack: &Pack, threshold: f32) -> Option<String> {
    let weighed = weighed(text, pack, threshold);
    let settled = settled(&weighed, pack).unwrap_or(weighed);
    let tidy = tidied(&settled).unwrap_or(settled);
    (tidy.len() < text.len()).then_some(tidy)
}

fn weighed(text: &str, pack: &Pack, threshold: f32) -> String {
    let mut out = String::with_capacity(text.len());
    let mut start = 0;
    let end = text.len();
    for span in protect::spans(text).into_iter().chain(std::iter::once(end..end)) {
        for word in text[start..span.start].split_inclusive(char::is_whitespace) {
            let is_complete = word.ends_with(' ');
            if !is_complete || weight(word.trim_end(), pack) >= threshold {
                out.push_str(word);
            }
        }
        out.push_str(&text[span.clone()]);
        start = span.end;
    }
    out
}

/// The weight of a word, from 0 to 1. No pack lists negations or words with punctuation as light.
fn weight(word: &str, pack: &Pack) -> f32 {
    let inner = bare(word);
    if inner.len() < word.len() || inner.is_empty() {
        return 1.0;
    }
    if pack.light.contains(&inner.to_lowercase()) {
        return 0.2;
    }
    if inner.chars().count() <= 3 {
        0.4
    } else {
        0.8
    }
}
