//! The focus of a conversation: words that its users wrote. Output lines with such a word stay, if there are only a few
//! of them.

use std::collections::{HashMap, HashSet};

use crate::conversation::Piece;
use crate::engines::Context;

/// The maximum number of words. The first ones of a conversation count, so that the selection does not change later.
const WORDS_MAX: usize = 2_000;
const CHARS_MIN: usize = 4;
/// A word that occurs in more lines of an output does not distinguish any of them.
const LINES_MAX: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Focus {
    words: HashSet<String>,
    /// A text with some of the words changed since the stage last ran.
    pub(crate) is_new: bool,
}

impl Focus {
    pub(crate) fn add(&mut self, piece: &Piece<'_>, context: &Context<'_>) {
        let free = WORDS_MAX.saturating_sub(self.words.len());
        self.words.extend(words(&piece.text).take(free).map(str::to_lowercase));
        self.is_new |= context.is_new(piece);
    }

    /// Marks the lines with a word of the conversation that occurs in only a few lines.
    pub(crate) fn mark(&self, lines: &[&str], keep: &mut [bool]) {
        if self.words.is_empty() {
            return;
        }
        let mut found: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut lower = String::new();
        for (at, line) in lines.iter().enumerate() {
            for word in words(line) {
                lower.clear();
                lower.push_str(word);
                lower.make_ascii_lowercase();
                if let Some(word) = self.words.get(lower.as_str()) {
                    let positions = found.entry(word).or_default();
                    if positions.last() != Some(&at) && positions.len() <= LINES_MAX {
                        positions.push(at);
                    }
                }
            }
        }
        for at in found.into_values().filter(|positions| positions.len() <= LINES_MAX).flatten() {
            keep[at] = true;
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    parts.filter(|word| word.len() >= CHARS_MIN)
}
