//! Matches words and phrases in a list of marks.

use super::split::Mark;

pub(super) fn word(text: &str) -> Mark {
    Mark::Word { text: text.to_owned(), is_name: false }
}

pub(super) fn is_word_at(marks: &[Mark], at: usize, list: &[&str]) -> bool {
    marks.get(at).and_then(Mark::word).is_some_and(|word| list.contains(&word))
}

/// The number of words of a phrase.
pub(super) fn length(phrase: &str) -> usize {
    phrase.split(' ').count()
}

/// Whether the marks begin with the phrase and continue after it.
pub(super) fn begins(marks: &[Mark], phrase: &str) -> bool {
    marks.len() > length(phrase) && marks.iter().zip(phrase.split(' ')).all(|(mark, text)| mark.word() == Some(text))
}

pub(super) fn ends(marks: &[Mark], phrase: &str) -> bool {
    marks.len() > length(phrase)
        && marks[marks.len() - length(phrase)..]
            .iter()
            .zip(phrase.split(' '))
            .all(|(mark, text)| mark.word() == Some(text))
}

pub(super) fn longest_of<'l>(marks: &[Mark], list: &[&'l str]) -> Option<&'l str> {
    list.iter().filter(|phrase| begins(marks, phrase)).max_by_key(|phrase| length(phrase)).copied()
}

/// Replaces a phrase that the marks begin with.
pub(super) fn replace_start(marks: &mut Vec<Mark>, phrase: &str, with: &[&str]) {
    marks.splice(..length(phrase), with.iter().map(|text| word(text)));
}

/// The first position of a word.
pub(super) fn position_of(marks: &[Mark], text: &str) -> Option<usize> {
    marks.iter().position(|mark| mark.word() == Some(text))
}
