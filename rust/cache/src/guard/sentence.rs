//! Matches words and phrases in a list of marks.

use super::split::Mark;

pub(super) fn word(text: &str) -> Mark {
    Mark::Word { text: text.to_owned(), is_name: false }
}

pub(super) fn is_word_at(marks: &[Mark], at: usize, list: &[&str]) -> bool {
    marks.get(at).and_then(Mark::word).is_some_and(|word| list.contains(&word))
}

/// Whether the marks begin with the phrase and continue after it.
pub(super) fn begins(marks: &[Mark], phrase: &str) -> bool {
    let length = phrase.split(' ').count();
    marks.len() > length && marks.iter().zip(phrase.split(' ')).all(|(mark, text)| mark.word() == Some(text))
}

pub(super) fn ends(marks: &[Mark], phrase: &str) -> bool {
    let length = phrase.split(' ').count();
    marks.len() > length
        && marks[marks.len() - length..].iter().zip(phrase.split(' ')).all(|(mark, text)| mark.word() == Some(text))
}

pub(super) fn longest_of<'l>(marks: &[Mark], list: &[&'l str]) -> Option<&'l str> {
    list.iter().filter(|phrase| begins(marks, phrase)).max_by_key(|phrase| phrase.split(' ').count()).copied()
}

/// Replaces a phrase that the marks begin with.
pub(super) fn replace_start(marks: &mut Vec<Mark>, phrase: &str, with: &[&str]) {
    marks.splice(..phrase.split(' ').count(), with.iter().map(|text| word(text)));
}

/// The first position of a word.
pub(super) fn position_of(marks: &[Mark], text: &str) -> Option<usize> {
    marks.iter().position(|mark| mark.word() == Some(text))
}
