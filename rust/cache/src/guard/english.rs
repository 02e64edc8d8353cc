//! Normalizes English questions: expands contractions, removes courtesy phrases, and unifies some expressions.

use super::frames;
use super::sentence::{begins, ends, is_word_at, length, longest_of, word};
use super::split::Mark;
use super::words::english::{
    ASKING, BOUNDS, CLOSINGS, CONTRACTIONS, DEFINITE, ENGLISH, FOREIGN, FOR_ME, LEADING, NO_PLURAL, NUMBERS, OPENINGS,
    PLEAS, QUESTION_WORDS, REQUESTS, SAME, SERVICES, SILENT, TELLING, TOLD, TOOLS, TYPED, WHAT, WHAT_GENERAL, WISHES,
};
use super::{Article, Piece};

/// Whether the rules for English may be applied.
pub(super) fn is_english(marks: &[Mark]) -> bool {
    let words = || marks.iter().filter_map(Mark::word);
    let count = |list: &[&str]| words().filter(|word| list.contains(word) || in_full(word).is_some()).count();
    let foreign = words().filter(|word| FOREIGN.contains(word)).count();
    let english = count(&ENGLISH);
    // A few words without a sentence ("machine learning definition") do not identify a language. English is assumed if
    // no word suggests another.
    words().all(str::is_ascii) && (english > foreign || english + foreign == 0 && words().count() > 1)
}

pub(super) fn read(marks: Vec<Mark>) -> (Vec<Piece>, Vec<Article>) {
    let mut marks = spell_out(marks);
    unframe(&mut marks);
    lead_last(&mut marks);
    marks.retain(|mark| *mark != Mark::Comma);
    // Runs twice, because the result of one phrase may be part of another: "do I need to" after "how often".
    frames::plain_phrases(&mut marks);
    frames::plain_phrases(&mut marks);
    frames::when_doing(&mut marks);
    turn_phrase(&mut marks);
    make_single(&mut marks);
    frames::tool_first(&mut marks);
    frames::nouns(&mut marks);
    // In a how-to question, "a" and "the" before the object mean the same.
    let is_how_to = marks.iter().take(2).any(|mark| mark.word() == Some("how-to"));
    let (mut pieces, mut articles, mut article) = (Vec::new(), Vec::new(), Article::None);
    for mark in marks {
        match mark.word() {
            Some("a" | "an") if !is_how_to => article = Article::Any,
            Some("the") if !is_how_to => article = Article::Known,
            _ => {}
        }
        if let Some(piece) = piece(mark) {
            pieces.push(piece);
            articles.push(std::mem::take(&mut article));
        }
    }
    (pieces, articles)
}

fn in_full(word: &str) -> Option<&'static str> {
    CONTRACTIONS.iter().find(|(short, _)| *short == word).map(|(_, full)| *full)
}

/// Expands contractions, writes number words as digits, and splits a possessive into the word and `'s`.
fn spell_out(marks: Vec<Mark>) -> Vec<Mark> {
    let mut out = Vec::with_capacity(marks.len() + 4);
    for mark in marks {
        // The case of tool names is ignored.
        let mark = match mark {
            Mark::Code(text) if TOOLS.contains(&text.to_lowercase().as_str()) => word(&text.to_lowercase()),
            other => other,
        };
        let Some(text) = mark.word() else {
            out.push(mark);
            continue;
        };
        if let Some(full) = in_full(text) {
            out.extend(full.split(' ').map(word));
        } else if let Some((_, full)) = TYPED.iter().find(|(typed, _)| *typed == text) {
            out.extend(full.split(' ').map(word));
        } else if let Some((_, digits)) = NUMBERS.iter().find(|(name, _)| *name == text) {
            out.push(Mark::Number((*digits).to_owned()));
        } else if let Some(owner) = text.strip_suffix("'s").or_else(|| text.strip_suffix('\'')) {
            out.extend([word(owner), word("'s")]);
        } else {
            out.push(mark);
        }
    }
    out
}

/// Removes the phrases that open and close a request.
fn unframe(marks: &mut Vec<Mark>) {
    loop {
        while marks.first() == Some(&Mark::Comma) {
            marks.remove(0);
        }
        let before = |list: &[&'static str], then: &[&str], skipped: usize| {
            longest_of(marks, list)
                .filter(|phrase| (0..=skipped).any(|more| is_word_at(marks, length(phrase) + more, then)))
        };
        let asking = before(&ASKING, &QUESTION_WORDS, 0).or_else(|| before(&ASKING, &REQUESTS, 0));
        // "I want to delete my account, how do I do that" asks how.
        let asks_how = ["do that", "do it", "do this"].iter().any(|what| ends(marks, what));
        let wish = before(&WISHES, &SERVICES, 0).filter(|_| !asks_how);
        let telling = before(&TELLING, &TOLD, 2);
        let Some(phrase) = asking.or(wish).or(telling).or_else(|| longest_of(marks, &OPENINGS)) else { break };
        marks.drain(..length(phrase));
    }
    while marks.last() == Some(&Mark::Comma) {
        marks.pop();
    }
    while let Some(plea) = PLEAS.iter().find(|plea| ends(marks, plea)) {
        let rest = marks.len() - length(plea);
        if marks[rest - 1] != Mark::Comma {
            break;
        }
        marks.truncate(rest);
        while marks.last() == Some(&Mark::Comma) {
            marks.pop();
        }
    }
    let of_request: &[&str] = if is_word_at(marks, 0, &REQUESTS) { &FOR_ME } else { &[] };
    while let Some(phrase) = CLOSINGS.iter().chain(of_request).find(|phrase| ends(marks, phrase)) {
        marks.truncate(marks.len() - length(phrase));
        while marks.last() == Some(&Mark::Comma) {
            marks.pop();
        }
    }
}

/// Rewrites `In Python, how do I ...` as `how do I ... in Python`.
fn lead_last(marks: &mut Vec<Mark>) {
    let is_doing = marks.get(1).and_then(Mark::word).is_some_and(|text| text == "i" || text.ends_with("ing"));
    let leads = is_word_at(marks, 0, &LEADING) || (is_doing && is_word_at(marks, 0, &["when", "while"]));
    let comma = marks.iter().position(|mark| *mark == Mark::Comma);
    if let Some(comma) = comma.filter(|&comma| leads && (2..=5).contains(&comma) && comma + 1 < marks.len()) {
        let lead: Vec<Mark> = marks.drain(..=comma).filter(|mark| *mark != Mark::Comma).collect();
        marks.extend(lead);
    }
}

/// Unifies different ways to ask the same question.
fn turn_phrase(marks: &mut Vec<Mark>) {
    if frames::turn(marks) {
        return;
    }
    if is_word_at(marks, 0, &["explain"]) && is_word_at(marks, 1, &QUESTION_WORDS) {
        marks.remove(0);
    }
    let is_general = |marks: &[Mark], at: usize| !is_word_at(marks, at, &DEFINITE);
    let means = begins(marks, "what does") && ends(marks, "mean") && marks.len() > 3;
    if means && is_general(marks, 2) {
        marks.pop();
        marks.splice(..2, [word("what")]);
        return;
    }
    let general = longest_of(marks, &WHAT_GENERAL).filter(|phrase| is_general(marks, length(phrase)));
    if let Some(phrase) = general.or_else(|| longest_of(marks, &WHAT)) {
        marks.splice(..length(phrase), [word("what")]);
    } else if is_word_at(marks, 0, &["is", "are", "do", "does", "am"]) {
        marks.splice(..1, [word("whether")]);
    }
}

/// Replaces a plural of a kind by a singular: "black holes" by "a black hole". Things known to both sides keep their
/// number.
fn make_single(marks: &mut [Mark]) {
    // "The symptoms of the flu" means the flu in general.
    let is_of_kind = is_word_at(marks, 0, &["what", "who"]);
    let mut is_definite = false;
    for mark in marks {
        match mark {
            Mark::Word { text, is_name: false } => {
                if is_of_kind && text == "the" {
                    is_definite = false;
                } else if DEFINITE.contains(&text.as_str()) {
                    is_definite = true;
                } else if BOUNDS.contains(&text.as_str()) {
                    is_definite = false;
                } else if !is_definite {
                    *text = singular(text);
                }
            }
            Mark::Number(_) => is_definite = true,
            _ => {}
        }
    }
}

fn piece(mark: Mark) -> Option<Piece> {
    let Mark::Word { text, is_name } = mark else { return mark.verbatim() };
    if is_name {
        return Some(Piece::Word(text.into()));
    }
    if SILENT.contains(&text.as_str()) {
        return None;
    }
    if text == "not" {
        return Some(Piece::Not);
    }
    let known = SAME.iter().find(|(from, _)| *from == text).map(|(_, to)| (*to).to_owned());
    Some(Piece::Word(known.unwrap_or(text).into()))
}

/// The singular of a plural noun, and `they work` for `he works`.
fn singular(text: &str) -> String {
    if text.len() <= 3
        || NO_PLURAL.contains(&text)
        || text.ends_with("ss")
        || text.ends_with("us")
        || text.ends_with("is")
    {
        return text.to_owned();
    }
    if let Some(stem) = text.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    for ending in ["xes", "ches", "shes", "sses"] {
        if text.ends_with(ending) {
            return text[..text.len() - 2].to_owned();
        }
    }
    text.strip_suffix('s').unwrap_or(text).to_owned()
}
