//! Questions in languages other than English. Courtesy phrases are removed, phrases for "how to" are unified, and
//! accents that people often omit are ignored. Everything else is compared word by word.

use super::split::Mark;
use super::words::courtesy::{CLOSINGS, HOW_TO, OPENINGS, SILENT};
use super::Piece;

pub(super) fn read(marks: Vec<Mark>) -> Vec<Piece> {
    // In languages with letters beyond those of Western Europe, a letter without its accent is a different letter.
    let is_western = |text: &str| text.chars().all(|c| c <= '\u{ff}');
    let folds = marks.iter().filter_map(Mark::word).all(is_western);
    let mut marks: Vec<Mark> = marks.into_iter().filter(|mark| *mark != Mark::Comma).collect();
    for mark in marks.iter_mut().filter(|_| folds) {
        if let Mark::Word { text, .. } = mark {
            *text = folded(text);
        }
    }
    let whole = marks.clone();
    without_courtesy(&mut marks);
    if marks.is_empty() {
        // A text that consists only of courtesy phrases is kept.
        marks = whole;
    }
    if let Some((phrase, form)) =
        HOW_TO.iter().filter(|(phrase, _)| is_at(&marks, 0, phrase)).max_by_key(|(phrase, _)| phrase.len())
    {
        let form = form.split(' ').map(|text| Mark::Word { text: text.to_owned(), is_name: false });
        marks.splice(..phrase.split(' ').count(), form);
    }
    marks.into_iter().filter_map(Mark::verbatim).collect()
}

fn without_courtesy(marks: &mut Vec<Mark>) {
    let mut at = 0;
    while at < marks.len() {
        match SILENT.iter().find(|phrase| is_at(marks, at, phrase)) {
            Some(phrase) => drop(marks.drain(at..at + phrase.split(' ').count())),
            None => at += 1,
        }
    }
    while let Some(phrase) = OPENINGS.iter().find(|phrase| is_at(marks, 0, phrase)) {
        marks.drain(..phrase.split(' ').count());
    }
    let ends = |marks: &[Mark], phrase: &str| {
        marks.len().checked_sub(phrase.split(' ').count()).filter(|start| is_at(marks, *start, phrase))
    };
    while let Some(start) = CLOSINGS.iter().find_map(|phrase| ends(marks, phrase)) {
        marks.truncate(start);
    }
}

/// Whether the phrase is at this position. Case is ignored.
fn is_at(marks: &[Mark], at: usize, phrase: &str) -> bool {
    phrase
        .split(' ')
        .zip(at..)
        .all(|(wanted, at)| matches!(marks.get(at), Some(Mark::Word { text, .. }) if text == wanted))
}

/// Removes the accents that people often omit when they type. Accents at the end stay, because they distinguish tenses
/// (`pago` and `pagó`).
fn folded(word: &str) -> String {
    let count = word.chars().count();
    let mut out = String::with_capacity(word.len() + 2);
    for (at, c) in word.chars().enumerate() {
        let is_last = at + 1 == count;
        match c {
            'ä' => out.push_str("ae"),
            'ö' => out.push_str("oe"),
            'ü' => out.push_str("ue"),
            'ß' => out.push_str("ss"),
            _ if is_last => out.push(c),
            'á' | 'à' | 'â' | 'ã' => out.push('a'),
            'é' | 'è' | 'ê' | 'ë' => out.push('e'),
            'í' | 'ì' | 'î' | 'ï' => out.push('i'),
            'ó' | 'ò' | 'ô' | 'õ' => out.push('o'),
            'ú' | 'ù' | 'û' => out.push('u'),
            _ => out.push(c),
        }
    }
    out
}
