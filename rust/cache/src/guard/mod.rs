//! The guard decides whether two near questions are equivalent in the details that vectors blur.
//!
//! The vectors of "turn on the lights" and "turn off the lights" are almost equal, so nearness only makes a question a
//! candidate. The guard converts each question into a list of pieces: numbers, quoted text, code, negations, words. It
//! removes words without meaning (politeness, articles), expands contractions and unifies some expressions. Two
//! questions are equivalent if their lists are equal, piece by piece and in order. A word in only one of them, a tense,
//! an antonym or two swapped names make the lists differ. The guard does not understand meaning and rejects whatever it
//! has no rule for: a miss costs one call, but a wrong answer costs more.
//!
//! A text that is not clearly English is compared word by word, except for courtesy, how-to phrases and accents
//! (`courtesy`).
//!
//! `split` cuts a text into pieces, `english` detects and normalizes English, and `frames` unifies different forms of a
//! question. `sentence` matches words and phrases, and `words` reads the lists of them. [`Reading::form`] is the
//! lookup key of equivalent questions.

mod courtesy;
mod english;
mod frames;
mod sentence;
mod split;
mod words;

use crate::key::{digest, Digest};

/// Why two questions are not equivalent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Language,
    Number,
    /// Text in quotation marks.
    Quote,
    Code,
    Negation,
    /// A word that the other question does not have: a name, a unit, a tense, an antonym.
    Word,
    /// The order of the pieces differs, or one has `a` and the other `the`.
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

/// The article before a piece of a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Article {
    #[default]
    None,
    /// `a`
    Any,
    /// `the`
    Known,
}

/// A question in the form that the guard compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    is_english: bool,
    pieces: Vec<Piece>,
    /// One per piece, or empty.
    articles: Vec<Article>,
}

/// A digest that equivalent questions have in common, and their articles, which must not contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    pub(crate) digest: Digest,
    articles: Box<[Article]>,
}

impl Form {
    /// Whether the questions of both forms are equivalent.
    pub fn agrees(&self, other: &Self) -> bool {
        self.digest == other.digest && fit(&self.articles, &other.articles)
    }
}

/// "A house" is not "the house". Without an article it matches both.
fn fit(ours: &[Article], theirs: &[Article]) -> bool {
    let clash = |(a, b): (&Article, &Article)| a != b && *a != Article::None && *b != Article::None;
    !ours.iter().zip(theirs).any(clash)
}

type Kind = fn(&Piece) -> bool;

impl Reading {
    pub fn of(text: &str) -> Self {
        let marks = split::split(text);
        if english::is_english(&marks) {
            let (pieces, articles) = english::read(marks);
            Self { is_english: true, pieces, articles }
        } else {
            Self { is_english: false, pieces: courtesy::read(marks), articles: Vec::new() }
        }
    }

    /// The form that two readings share if they are equivalent, apart from articles. `None` if the question is empty.
    pub fn form(&self) -> Option<Form> {
        if self.pieces.is_empty() {
            return None;
        }
        let mut text = Vec::with_capacity(16 * self.pieces.len());
        text.push(u8::from(self.is_english));
        for piece in &self.pieces {
            let (kind, of_piece): (u8, &str) = match piece {
                Piece::Number(text) => (1, text),
                Piece::Quote(text) => (2, text),
                Piece::Code(text) => (3, text),
                Piece::Not => (4, ""),
                Piece::Word(text) => (5, text),
            };
            text.push(kind);
            text.extend_from_slice(&(of_piece.len() as u64).to_le_bytes());
            text.extend_from_slice(of_piece.as_bytes());
        }
        Some(Form { digest: digest(&[&text]), articles: self.articles.as_slice().into() })
    }

    /// Whether both questions are equivalent. An empty question is never equivalent to another.
    pub fn agrees(&self, other: &Self) -> bool {
        self.is_english == other.is_english
            && self.pieces == other.pieces
            && !self.pieces.is_empty()
            && fit(&self.articles, &other.articles)
    }

    /// Why the questions are not equivalent; `None` if they are.
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
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
