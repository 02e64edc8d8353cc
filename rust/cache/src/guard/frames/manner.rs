//! Questions about how something is done, when, where and by whom.

use crate::guard::sentence::{begins, ends, is_word_at, longest_of, position_of, replace_start, word};
use crate::guard::split::Mark;
use crate::guard::words::english::{
    DEFINITE, DETAILS, DOERS, DONE_BY, HOW_TO, HOW_TO_DOING, OF_YOU, PARTICIPLES, QUESTION_WORDS,
};

pub fn how_to(marks: &mut Vec<Mark>) -> bool {
    if let Some(phrase) = longest_of(marks, &HOW_TO) {
        let length = phrase.split(' ').count();
        let is_of_you = phrase.ends_with("you")
            && (is_word_at(marks, length, &OF_YOU)
                || marks.iter().any(|mark| matches!(mark.word(), Some("my" | "your" | "our" | "me" | "us"))));
        if is_of_you {
            return false;
        }
        replace_start(marks, phrase, &["how-to"]);
        mine_in_how_to(marks);
        return true;
    }
    if let Some(phrase) = longest_of(marks, &HOW_TO_DOING) {
        let length = phrase.split(' ').count();
        let Some(verb) = marks.get(length).and_then(Mark::word).and_then(base_of_doing) else { return false };
        marks.splice(..=length, [word("how-to"), word(&verb)]);
        mine_in_how_to(marks);
        return true;
    }
    // "How is interest calculated" means how to calculate it.
    let last = marks.last().and_then(Mark::word);
    let verb = last.and_then(|last| PARTICIPLES.iter().find(|(done, _)| *done == last)).map(|(_, verb)| *verb);
    let is_passive = (begins(marks, "how is") || begins(marks, "how are")) && marks.len() > 3;
    let is_pronoun = is_word_at(marks, 2, &["it", "this", "that", "they", "these", "those"]);
    if let Some(verb) = verb.filter(|_| is_passive && !is_pronoun) {
        marks.pop();
        marks.splice(..2, [word("how-to"), word(verb)]);
        return true;
    }
    false
}

/// In a how-to question "my" is redundant. Modifying one's own details is a change.
pub fn mine_in_how_to(marks: &mut Vec<Mark>) {
    marks.retain(|mark| mark.word() != Some("my"));
    let has_detail = marks.iter().skip(2).any(|mark| mark.word().is_some_and(|text| DETAILS.contains(&text)));
    if has_detail && is_word_at(marks, 1, &["update", "modify", "edit"]) {
        marks[1] = word("change");
    }
    if is_word_at(marks, 1, &["list", "display"]) {
        marks[1] = word("show");
    }
    if is_word_at(marks, 1, &["file"]) && position_of(marks, "claim").is_some() {
        marks[1] = word("submit");
    }
}

/// Converts `filing` to `file`. If several verbs are possible, the most frequent one is used.
pub fn base_of_doing(text: &str) -> Option<String> {
    const WITH_E: &[&str] = &[
        "chang",
        "creat",
        "delet",
        "fil",
        "hir",
        "mak",
        "mov",
        "prepar",
        "remov",
        "renam",
        "renew",
        "sav",
        "shar",
        "stor",
        "schedul",
        "updat",
        "us",
        "writ",
        "clos",
        "invit",
        "upgrad",
        "driv",
        "tak",
        "bak",
        "rescu",
        "configur",
        "purchas",
        "enabl",
        "disabl",
        "compil",
        "execut",
        "reschedul",
        "pars",
        "merg",
        "caus",
        "rais",
        "subscrib",
    ];
    let stem = text.strip_suffix("ing").filter(|stem| stem.len() >= 2)?;
    if let Some(base) = ["travell", "cancell", "labell", "modell"].iter().find(|each| **each == stem) {
        return Some(base[..base.len() - 1].to_owned());
    }
    if WITH_E.contains(&stem) && stem != "renew" {
        return Some(format!("{stem}e"));
    }
    let bytes = stem.as_bytes();
    let is_double = stem.len() > 3 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
    if is_double && !matches!(bytes[bytes.len() - 1], b'l' | b's' | b'e' | b'o') {
        return Some(stem[..stem.len() - 1].to_owned());
    }
    Some(stem.to_owned())
}

pub fn when(marks: &mut Vec<Mark>) {
    const TIMES: &[&str] =
        &["at what time", "at which time", "what time", "in what year", "in which year", "what year", "which year"];
    let Some(phrase) = longest_of(marks, TIMES) else { return };
    let length = phrase.split(' ').count();
    // "What time is it" asks for the current time.
    if is_word_at(marks, length, &["is", "are", "was", "did", "do", "does", "will", "can", "were", "should", "must"])
        && !is_word_at(marks, length + 1, &["it", "this"])
    {
        replace_start(marks, phrase, &["when"]);
    }
}

pub fn where_to(marks: &mut Vec<Mark>) {
    if let Some(phrase) =
        longest_of(marks, &["where do i", "where can i", "where could i", "where should i", "where would i"])
    {
        let length = phrase.split(' ').count();
        let is_find = is_word_at(marks, length, &["find"]);
        marks.splice(..length + usize::from(is_find), [word(if is_find { "where" } else { "where-to" })]);
    } else if ends(marks, "sold") && (begins(marks, "where is") || begins(marks, "where are")) {
        marks.pop();
        marks.splice(..2, [word("where-to"), word("buy")]);
    }
}

/// Rewrites `Who was the director of Alien`, `by whom was Alien directed` and `Alien was directed by whom` as `who
/// directed Alien`.
pub fn doer(marks: &mut Vec<Mark>) {
    if begins(marks, "by whom was") && marks.len() > 4 {
        let Some(verb) = marks.pop() else { return };
        marks.splice(..3, [word("who"), verb]);
    } else if ends(marks, "by whom") || ends(marks, "by who") {
        let Some(was) = position_of(marks, "was").filter(|&was| was > 0 && was + 4 == marks.len()) else { return };
        let mut turned = vec![word("who"), marks[was + 1].clone()];
        turned.extend_from_slice(&marks[..was]);
        *marks = turned;
    } else if begins(marks, "who was the") || begins(marks, "who is the") {
        let Some((_, verb)) = DOERS.iter().find(|(noun, _)| is_word_at(marks, 3, &[noun])) else { return };
        if is_word_at(marks, 4, &["of"]) && marks.len() > 5 {
            marks.splice(..5, [word("who"), word(verb)]);
        }
    }
    let starts = ["what is the name of the", "what was the name of the"];
    if let Some(start) = starts.iter().find(|start| begins(marks, start)) {
        let persons =
            ["ceo", "mayor", "president", "author", "director", "king", "queen", "boss", "manager", "founder"];
        if marks.get(6).is_some_and(|mark| matches!(mark, Mark::Word { text, .. } if persons.contains(&text.as_str())))
        {
            let is = if start.starts_with("what is") { "is" } else { "was" };
            marks.splice(..6, [word("who"), word(is), word("the")]);
        }
    }
}

/// Rewrites `Is dental care covered by the insurance` as `does the insurance cover dental care`.
pub fn done_by(marks: &mut Vec<Mark>) {
    if begins(marks, "do you allow") {
        let mut turned = vec![word("are")];
        turned.extend_from_slice(&marks[3..]);
        turned.push(word("allowed"));
        *marks = turned;
        return;
    }
    let Some(by) = position_of(marks, "by").filter(|&by| by >= 3 && by + 1 < marks.len()) else { return };
    let Some((_, verb)) = DONE_BY.iter().find(|(done, _)| is_word_at(marks, by - 1, &[done])) else { return };
    if is_word_at(marks, 0, &["is", "are"]) {
        let mut turned = vec![word("does")];
        turned.extend_from_slice(&marks[by + 1..]);
        turned.push(word(verb));
        turned.extend_from_slice(&marks[1..by - 1]);
        *marks = turned;
    } else if begins(marks, "what is") && by == 3 {
        let mut turned = vec![word("what"), word("does")];
        turned.extend_from_slice(&marks[by + 1..]);
        turned.push(word(verb));
        *marks = turned;
    }
}

/// Rewrites `Machine learning definition` as `what is machine learning`, and `the process of photosynthesis` as how it
/// works.
pub fn defined(marks: &mut Vec<Mark>) {
    if ends(marks, "definition")
        && !is_word_at(marks, 0, &QUESTION_WORDS)
        && !is_word_at(marks, 0, &DEFINITE)
        && marks.len() <= 4
    {
        marks.pop();
        marks.splice(..0, [word("what"), word("is")]);
    } else if begins(marks, "what is the process of") && marks.len() == 6 {
        replace_start(marks, "what is the process of", &["how"]);
        marks.push(word("work"));
    }
}

/// Rewrites `When logging in` as `when I log in`, if the question is about the speaker and names nobody else.
pub fn when_doing(marks: &mut Vec<Mark>) {
    let mut at = 0;
    while at + 1 < marks.len() {
        if is_word_at(marks, at, &["when", "while"]) && at > 0 {
            let doing =
                marks[at + 1].word().filter(|text| text.len() > 4 && text.ends_with("ing")).and_then(base_of_doing);
            if let Some(verb) = doing {
                marks.splice(at..at + 2, [word("when"), word(&verb)]);
            } else if is_word_at(marks, at + 1, &["i"]) && at + 2 < marks.len() {
                marks.splice(at..at + 2, [word("when")]);
            }
        }
        at += 1;
    }
}
