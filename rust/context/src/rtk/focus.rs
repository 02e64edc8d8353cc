//! What a conversation is about: words of the people in it. Lines of outputs that name one of them, and are few, stay.

use std::collections::{HashMap, HashSet};

use crate::conversation::Piece;
use crate::engines::Context;

/// Words that are remembered at most; the first ones of a conversation count, so that what stays does not change later.
const WORDS_MAX: usize = 2_000;
const CHARS_MIN: usize = 4;
/// A word that more lines of an output have tells none of them apart.
const LINES_MAX: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Focus {
    words: HashSet<String>,
    /// A text that it has words of changed since the stage worked last.
    pub(crate) is_new: bool,
}

impl Focus {
    pub(crate) fn add(&mut self, piece: &Piece<'_>, context: &Context<'_>) {
        let free = WORDS_MAX.saturating_sub(self.words.len());
        self.words.extend(words(&piece.text).take(free).map(str::to_lowercase));
        self.is_new |= context.is_new(piece);
    }

    /// Marks the lines that have a word of the conversation which few lines have.
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
                    let places = found.entry(word).or_default();
                    if places.last() != Some(&at) && places.len() <= LINES_MAX {
                        places.push(at);
                    }
                }
            }
        }
        for at in found.into_values().filter(|places| places.len() <= LINES_MAX).flatten() {
            keep[at] = true;
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    parts.filter(|word| word.len() >= CHARS_MIN)
}
