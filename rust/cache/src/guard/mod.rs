//! The guard: whether two questions that lie near each other also agree in what vectors blur.
//!
//! The vector of "turn on the lights" lies beside that of "turn off the lights". So a near question is a candidate and no
//! more, and here it is decided whether it is the same one. Each question is read into a short list of pieces: numbers,
//! quoted text, code, negations, words. Reading takes away what says nothing (politeness, articles), writes contractions out
//! and brings a few turns of phrase into one form. Two questions agree if their lists are equal, piece by piece and in
//! order. A word that only one of them has, a tense, an antonym, two names changing places: all of them make lists differ.
//! So the guard knows no meaning, and what it does not understand it refuses. A miss costs a call; a wrong answer costs more.
//!
//! A text that is not plainly English is compared word by word, but for courtesy, the ways to ask how, and accents (`courtesy`).
//!
//! `split` cuts a text into pieces, `english` says whether it is plainly English and reads it, `frames` brings questions that are
//! asked in several ways into one form; `sentence` looks at words and phrases, `lists` and `phrases` have them.
//! [`Reading::form`] is what equal readings are found by.

mod courtesy;
mod english;
mod frames;
mod lists;
mod phrases;
mod sentence;
mod split;

use crate::key::{digest, Digest};

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
    /// Whether pieces stand in another order, or `a` where the other says `the`.
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

/// A question as the guard compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    is_english: bool,
    pieces: Vec<Piece>,
    /// One for each piece, or none at all.
    articles: Vec<Article>,
}

/// What two questions that agree have in common, in few bytes, and the articles, which must not contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    pub(crate) digest: Digest,
    articles: Box<[Article]>,
}

impl Form {
    /// Whether the questions of the two forms ask the same.
    pub fn agrees(&self, other: &Self) -> bool {
        self.digest == other.digest && fit(&self.articles, &other.articles)
    }
}

/// "A house" is not "the house"; without an article it may be either.
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

    /// The form that two readings share exactly if they agree, but for articles. `None`: it says nothing.
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

    /// Whether they ask the same. What says nothing is like nothing else.
    pub fn agrees(&self, other: &Self) -> bool {
        self.is_english == other.is_english
            && self.pieces == other.pieces
            && !self.pieces.is_empty()
            && fit(&self.articles, &other.articles)
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
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
