//! Unifies the forms of English questions: [`manner`] (how, when, where, by whom), [`quantity`] (how much, differences,
//! reasons) and [`request`] (things that somebody wants).

mod manner;
mod quantity;
mod request;

pub(super) use manner::when_doing;

use super::sentence::{begins, ends, is_word_at, replace_start, word};
use super::split::Mark;
use super::words::english::{ANYWHERE, BOUNDS, HEADS_FOR, HEADS_OF, TASKS, TOOLS};

/// Replaces phrases that have the same meaning anywhere.
pub(super) fn plain_phrases(marks: &mut Vec<Mark>) {
    let mut at = 0;
    while at < marks.len() {
        let fits = ANYWHERE.iter().filter(|(from, _)| matches_at(marks, at, from)).max_by_key(|(from, _)| from.len());
        if let Some((from, to)) = fits {
            // At the end of a sentence such a phrase means something else: "what do I have to".
            let end = at + from.split(' ').count();
            if end < marks.len() || !from.ends_with(" to") {
                marks.splice(at..end, to.split(' ').map(word));
            }
        }
        at += 1;
    }
}

fn matches_at(marks: &[Mark], at: usize, phrase: &str) -> bool {
    let mut words = phrase.split(' ');
    marks[at..].iter().zip(words.by_ref()).all(|(mark, text)| mark.word() == Some(text))
        && words.next().is_none()
        && at + phrase.split(' ').count() <= marks.len()
}

/// Rewrites a question into its unified form. Returns `true` if it asks how to do something.
pub(super) fn turn(marks: &mut Vec<Mark>) -> bool {
    ask_last(marks);
    few_words(marks);
    if manner::how_to(marks) {
        return true;
    }
    manner::when(marks);
    manner::where_to(marks);
    manner::doer(marks);
    manner::done_by(marks);
    manner::defined(marks);
    quantity::price(marks);
    quantity::lasts(marks);
    quantity::measure(marks);
    quantity::distance(marks);
    quantity::population(marks);
    quantity::difference(marks);
    quantity::how_many(marks);
    quantity::reason(marks);
    quantity::judgement(marks);
    request::have(marks);
    request::writing(marks);
    request::example(marks);
    request::code(marks);
    request::give(marks);
    false
}

/// Rewrites `I would like to delete my account, how do I do that` as `how to delete my account`.
fn ask_last(marks: &mut Vec<Mark>) {
    let wish = ["i would like to", "i want to", "i am trying to", "i must", "i wish to"];
    let asks = [
        "how do i do that",
        "how do i do it",
        "how can i do that",
        "how can i do it",
        "how do i do this",
        "how can i do this",
    ];
    let (Some(wish), Some(ask)) =
        (wish.iter().find(|wish| begins(marks, wish)), asks.iter().find(|ask| ends(marks, ask)))
    else {
        return;
    };
    marks.truncate(marks.len() - ask.split(' ').count());
    replace_start(marks, wish, &["how", "to"]);
}

/// `git rename branch` and `restart nginx how to` ask how.
fn few_words(marks: &mut Vec<Mark>) {
    let is_tool = matches!(marks.first(), Some(Mark::Word { text, .. }) if TOOLS.contains(&text.as_str()));
    if is_tool && is_word_at(marks, 1, &TASKS) && marks.len() > 2 {
        marks.splice(..0, [word("how"), word("to")]);
    } else if ends(marks, "how to") && is_word_at(marks, 0, &TASKS) {
        marks.truncate(marks.len() - 2);
        marks.splice(..0, [word("how"), word("to")]);
    } else if is_word_at(marks, 0, &["correct"]) && is_word_at(marks, 1, &["the", "this", "my", "all"]) {
        marks[0] = word("fix");
    }
}

/// Moves the tool or language to the front if only one is named, and removes its preposition.
pub(super) fn tool_first(marks: &mut Vec<Mark>) {
    let is_tool = |mark: &Mark| matches!(mark, Mark::Word { text, .. } if TOOLS.contains(&text.as_str()));
    let mut tool_indices = marks.iter().enumerate().filter(|(_, mark)| is_tool(mark)).map(|(at, _)| at);
    let (Some(at), None) = (tool_indices.next(), tool_indices.next()) else { return };
    let is_frame = |mark: &Mark| {
        matches!(mark.word(), Some("how-to" | "what" | "why" | "where" | "where-to" | "whether" | "write"))
    };
    if marks.len() < 3 || at == 1 && is_frame(&marks[0]) && marks.len() < 4 {
        return;
    }
    let joint = at.checked_sub(1).filter(|&before| is_word_at(marks, before, &["in", "on", "with", "for", "of"]));
    // After these words the position matters: "from Python", "than Java", "to Excel".
    let tied =
        ["from", "to", "than", "and", "or", "without", "into", "as", "versus", "vs", "instead", "via", "by", "not"];
    if at.checked_sub(1).is_some_and(|before| is_word_at(marks, before, &tied))
        || is_word_at(marks, at + 1, &tied) && joint.is_none()
    {
        return;
    }
    // A tool that is the subject or object of an action is not the place of the action.
    let is_object = joint.is_none() && at + 1 == marks.len();
    if is_object && marks.get(at + 1).is_none_or(|mark| mark.word() != Some("'s")) {
        return;
    }
    let mut tool = marks.remove(at);
    if is_word_at(marks, at, &["'s"]) {
        marks.remove(at);
    }
    if let Some(joint) = joint {
        marks.remove(joint);
    }
    if let Mark::Word { is_name, .. } = &mut tool {
        *is_name = true;
    }
    marks.insert(0, tool);
}

/// Rewrites `the planets in the solar system` as `the planets of the solar system`, and `a recipe for lasagna` as `a
/// lasagna recipe`.
pub(super) fn nouns(marks: &mut Vec<Mark>) {
    for at in 1..marks.len() {
        let is_in = is_word_at(marks, at, &["in"]) && is_word_at(marks, at - 1, &HEADS_OF);
        let is_about = is_word_at(marks, at, &["for", "about"]) && is_word_at(marks, at - 1, &HEADS_FOR);
        if is_in || is_about {
            marks[at] = word("of");
        }
    }
    own_first(marks);
}

/// Rewrites `the capital of France` and `France's capital` as `France capital`.
fn own_first(marks: &mut Vec<Mark>) {
    let is_bound = |mark: &Mark| matches!(mark, Mark::Word { text, is_name: false } if BOUNDS.contains(&text.as_str()));
    let is_of = |mark: &Mark| mark.word() == Some("of");
    // From last to first, so that the possessions of an owner are complete before the owner is moved.
    let mut from = marks.len();
    while let Some(of) = marks[..from].iter().rposition(is_of) {
        from = of;
        let head = marks[..of].iter().rposition(is_bound).map_or(0, |at| at + 1);
        let mut owner = of + 1;
        while owner < marks.len() && matches!(marks[owner].word(), Some("the" | "a" | "an")) {
            owner += 1;
        }
        let end = marks[owner..].iter().position(is_bound).map_or(marks.len(), |at| owner + at);
        if head == of || owner == end {
            continue;
        }
        // The articles move along, because "a house" is not "the house".
        let mut turned: Vec<Mark> = marks[of + 1..end].to_vec();
        turned.extend_from_slice(&marks[head..of]);
        marks.splice(head..end, turned);
    }
    marks.retain(|mark| mark.word() != Some("'s"));
}
