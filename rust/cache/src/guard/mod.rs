//! The guard: whether two questions that lie near each other also agree in what vectors blur.
//!
//! The vector of "turn on the lights" lies beside that of "turn off the lights". So a near question is a candidate and no
//! more, and here it is decided whether it is the same one. Each question is read into a short list of pieces: numbers,
//! quoted text, code, negations, words. Reading takes away what says nothing (politeness, articles), writes contractions out
//! and brings a few turns of phrase into one form. Two questions agree if their lists are equal, piece by piece and in
//! order. A word that only one of them has, a tense, an antonym, two names changing places: all of them make lists differ.
//! So the guard knows no meaning, and what it does not understand it refuses. A miss costs a call; a wrong answer costs more.
//!
//! A text that is not plainly English is compared word by word.
//!
//! `english` says whether a text is plainly English, `split` cuts it into pieces, `lists` has the words.

mod english;
mod lists;
mod split;

/// Why two questions are not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Language,
    Number,
    /// Text in quotation marks.
    Quote,
    Code,
    Negation,
    /// A word that the other does not have: a name, a unit, a tense, an antonym.
    Word,
    Order,
}

/// A piece of a question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Piece {
    Number(Box<str>),
    Quote(Box<str>),
    Code(Box<str>),
    Not,
    Word(Box<str>),
}

/// A question as the guard compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    is_english: bool,
    pieces: Vec<Piece>,
}

type Kind = fn(&Piece) -> bool;

impl Reading {
    pub fn of(text: &str) -> Self {
        let marks = split::split(text);
        if english::is_english(&marks) {
            Self { is_english: true, pieces: english::read(marks) }
        } else {
            Self { is_english: false, pieces: marks.into_iter().filter_map(split::Mark::verbatim).collect() }
        }
    }

    /// Whether they ask the same. What says nothing is like nothing else.
    pub fn agrees(&self, other: &Self) -> bool {
        self.is_english == other.is_english && self.pieces == other.pieces && !self.pieces.is_empty()
    }

    /// Why they do not ask the same; `None`: they do.
    pub fn differs(&self, other: &Self) -> Option<Cause> {
        if self.agrees(other) {
            return None;
        }
        if self.is_english != other.is_english {
            return Some(Cause::Language);
        }
        let of = |reading: &Self, kind: Kind| -> Vec<Piece> {
            reading.pieces.iter().filter(|piece| kind(piece)).cloned().collect()
        };
        let kinds: [(Kind, Cause); 4] = [
            (|piece| matches!(piece, Piece::Number(_)), Cause::Number),
            (|piece| matches!(piece, Piece::Quote(_)), Cause::Quote),
            (|piece| matches!(piece, Piece::Code(_)), Cause::Code),
            (|piece| matches!(piece, Piece::Not), Cause::Negation),
        ];
        for (kind, cause) in kinds {
            if of(self, kind) != of(other, kind) {
                return Some(cause);
            }
        }
        let sorted = |reading: &Self| {
            let mut pieces = reading.pieces.clone();
            pieces.sort();
            pieces
        };
        Some(if sorted(self) == sorted(other) { Cause::Order } else { Cause::Word })
    }

    /// About what it takes in memory.
    pub fn bytes(&self) -> usize {
        let texts: usize = self
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Number(text) | Piece::Quote(text) | Piece::Code(text) | Piece::Word(text) => text.len(),
                Piece::Not => 0,
            })
            .sum();
        texts + self.pieces.len() * size_of::<Piece>() + size_of::<Self>()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
