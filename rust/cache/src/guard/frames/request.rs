//! Requests for things: texts, examples, programs, answers.

use crate::guard::sentence::{begins, ends, is_word_at, position_of, replace_start, word};
use crate::guard::split::Mark;
use crate::guard::words::english::{QUESTION_WORDS, WRITE, WRITINGS};

/// Rewrites `Is there parking at the hotel` as `does the hotel have parking`, and unifies questions about whether
/// something exists.
pub fn have(marks: &mut Vec<Mark>) {
    let start = [
        "do you have any",
        "do you have",
        "do you offer any",
        "do you offer",
        "do you provide any",
        "do you provide",
        "are there any",
        "are there",
        "is there any",
        "is there",
    ];
    if let Some(start) = start.iter().find(|start| begins(marks, start)) {
        replace_start(marks, start, &["have"]);
    } else if is_word_at(marks, 0, &["does", "do"]) && is_word_at(marks, 1, &["the"]) {
        let Some(have) = position_of(marks, "have").filter(|&have| have > 2 && have + 1 < marks.len()) else { return };
        let mut turned = vec![word("have")];
        turned.extend_from_slice(&marks[have + 1..]);
        turned.push(word("at"));
        turned.extend_from_slice(&marks[1..have]);
        *marks = turned;
    }
}

/// Unifies requests to write a text.
pub fn writing(marks: &mut Vec<Mark>) {
    let verb = usize::from(is_word_at(marks, 0, &["i"]));
    if !is_word_at(marks, verb, &WRITE) {
        return;
    }
    let mut next = verb + 1;
    while is_word_at(marks, next, &["me", "us"]) {
        next += 1;
    }
    let ends = marks[next..].iter().position(|mark| mark.word().is_some_and(|text| WRITINGS.contains(&text)));
    let is_new = is_word_at(marks, next, &["a", "an", "some", "one"])
        || matches!(marks.get(next), Some(Mark::Number(_)))
        || is_word_at(marks, next, &["unit"]);
    if is_new && ends.is_some_and(|at| at <= 4) {
        marks.splice(..next, [word("write")]);
    }
}

pub fn example(marks: &mut Vec<Mark>) {
    let starts = [
        "what is an example of",
        "give me an example of",
        "give an example of",
        "show me an example of",
        "show an example of",
    ];
    if let Some(start) = starts.iter().find(|start| begins(marks, start)) {
        replace_start(marks, start, &["example"]);
    }
}

/// To ask what code does and what it means is the same question.
pub fn code(marks: &mut Vec<Mark>) {
    let is_code = |at: usize| matches!(marks.get(at), Some(Mark::Code(_)));
    let length = marks.len();
    let is_what_does = begins(marks, "what does") && (ends(marks, "do") || ends(marks, "mean"));
    let is_explain_what = begins(marks, "explain what") && ends(marks, "does");
    let is_what = length == 3 && begins(marks, "what") && ends(marks, "does");
    let is_explain = length == 2 && begins(marks, "explain");
    let found = if length == 4 && (is_what_does || is_explain_what) {
        Some(2)
    } else if is_what || is_explain {
        Some(1)
    } else if begins(marks, "what is the meaning of") && length == 6 {
        Some(5)
    } else {
        None
    };
    let found = found.filter(|at| is_code(*at));
    if let Some(at) = found {
        let code = marks[at].clone();
        *marks = vec![word("what"), code];
    }
}

/// Rewrites requests for known things as `what is`.
pub fn give(marks: &mut Vec<Mark>) {
    let starts = [
        "give me",
        "show me",
        "tell me",
        "provide me with",
        "give",
        "show",
        "list",
        "name",
        "display",
        "provide",
        "tell",
    ];
    let Some(start) = starts.iter().find(|start| begins(marks, start)) else { return };
    let at = start.split(' ').count();
    let is_counted = matches!(marks.get(at), Some(Mark::Number(_)));
    let is_known = is_word_at(marks, at, &["the", "all", "some"]);
    if !is_counted && !is_known || is_word_at(marks, at, &QUESTION_WORDS) {
        if is_word_at(marks, 0, &["display", "list"]) {
            marks[0] = word("show");
        }
        return;
    }
    // Only a known thing becomes `what is`: "show me a way to" and "give me a name for" are different questions.
    replace_start(marks, start, &["what", "is"]);
}
