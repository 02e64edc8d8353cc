//! Frames of English questions, each brought into one form: who, what, how, how much.

use super::lists::{BOUNDS, DEFINITE, QUESTION_WORDS};
use super::phrases::{
    ANYWHERE, DETAILS, DOERS, DONE_BY, HEADS_FOR, HEADS_OF, HOW_TO, HOW_TO_DOING, JUDGEMENTS, MEASURES, OF_YOU,
    PARTICIPLES, TASKS, TOOLS, WRITE, WRITINGS,
};
use super::sentence::{begins, ends, is_word_at, longest_of, replace_start, word};
use super::split::Mark;

/// Phrases that mean the same wherever they stand.
pub(super) fn plain_phrases(marks: &mut Vec<Mark>) {
    let mut at = 0;
    while at < marks.len() {
        let fits = ANYWHERE.iter().filter(|(from, _)| matches_at(marks, at, from)).max_by_key(|(from, _)| from.len());
        if let Some((from, to)) = fits {
            // One that is not followed by anything is the end of a sentence, and says another thing: "what do I have to".
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

/// Brings a question into the form of its frame. `true`: it asks how something is done.
pub(super) fn turn(marks: &mut Vec<Mark>) -> bool {
    ask_last(marks);
    few_words(marks);
    if how_to(marks) {
        return true;
    }
    when(marks);
    where_to(marks);
    doer(marks);
    done_by(marks);
    defined(marks);
    price(marks);
    lasts(marks);
    measure(marks);
    distance(marks);
    population(marks);
    difference(marks);
    how_many(marks);
    reason(marks);
    judgement(marks);
    have(marks);
    writing(marks);
    example(marks);
    code(marks);
    give(marks);
    false
}

fn place(marks: &[Mark], text: &str) -> Option<usize> {
    marks.iter().position(|mark| mark.word() == Some(text))
}

/// `I would like to delete my account, how do I do that` as `how to delete my account`.
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
    if is_tool && is_word_at(marks, 1, TASKS) && marks.len() > 2 {
        marks.splice(..0, [word("how"), word("to")]);
    } else if ends(marks, "how to") && is_word_at(marks, 0, TASKS) {
        marks.truncate(marks.len() - 2);
        marks.splice(..0, [word("how"), word("to")]);
    } else if is_word_at(marks, 0, &["correct"]) && is_word_at(marks, 1, &["the", "this", "my", "all"]) {
        marks[0] = word("fix");
    }
}

/// `Is dental care covered by the insurance` as `does the insurance cover dental care`.
fn done_by(marks: &mut Vec<Mark>) {
    if begins(marks, "do you allow") {
        let mut turned = vec![word("are")];
        turned.extend_from_slice(&marks[3..]);
        turned.push(word("allowed"));
        *marks = turned;
        return;
    }
    let Some(by) = place(marks, "by").filter(|&by| by >= 3 && by + 1 < marks.len()) else { return };
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

/// `Machine learning definition` as `what is machine learning`, `the process of photosynthesis` as how it works.
fn defined(marks: &mut Vec<Mark>) {
    if ends(marks, "definition")
        && !is_word_at(marks, 0, QUESTION_WORDS)
        && !is_word_at(marks, 0, DEFINITE)
        && marks.len() <= 4
    {
        marks.pop();
        marks.splice(..0, [word("what"), word("is")]);
    } else if begins(marks, "what is the process of") && marks.len() == 6 {
        replace_start(marks, "what is the process of", &["how"]);
        marks.push(word("work"));
    }
}

fn how_to(marks: &mut Vec<Mark>) -> bool {
    if let Some(phrase) = longest_of(marks, HOW_TO) {
        let length = phrase.split(' ').count();
        let is_of_you = phrase.ends_with("you")
            && (is_word_at(marks, length, OF_YOU)
                || marks.iter().any(|mark| matches!(mark.word(), Some("my" | "your" | "our" | "me" | "us"))));
        if is_of_you {
            return false;
        }
        replace_start(marks, phrase, &["how-to"]);
        mine_in_how_to(marks);
        return true;
    }
    if let Some(phrase) = longest_of(marks, HOW_TO_DOING) {
        let length = phrase.split(' ').count();
        let Some(verb) = marks.get(length).and_then(Mark::word).and_then(base_of_doing) else { return false };
        marks.splice(..=length, [word("how-to"), word(&verb)]);
        mine_in_how_to(marks);
        return true;
    }
    // "How is interest calculated" asks how to calculate it.
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

/// Who asks how to do a thing means his own where nothing else is said; a change of what one has is an update.
fn mine_in_how_to(marks: &mut Vec<Mark>) {
    marks.retain(|mark| mark.word() != Some("my"));
    let has_detail = marks.iter().skip(2).any(|mark| mark.word().is_some_and(|text| DETAILS.contains(&text)));
    if has_detail && is_word_at(marks, 1, &["update", "modify", "edit"]) {
        marks[1] = word("change");
    }
    if is_word_at(marks, 1, &["list", "display"]) {
        marks[1] = word("show");
    }
    if is_word_at(marks, 1, &["file"]) && place(marks, "claim").is_some() {
        marks[1] = word("submit");
    }
}

/// `filing` as `file`: of what may be, the one that is spelled so most often.
fn base_of_doing(text: &str) -> Option<String> {
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
        "delet",
        "enabl",
        "disabl",
        "compil",
        "execut",
        "reschedul",
        "mov",
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

fn when(marks: &mut Vec<Mark>) {
    const TIMES: &[&str] =
        &["at what time", "at which time", "what time", "in what year", "in which year", "what year", "which year"];
    let Some(phrase) = longest_of(marks, TIMES) else { return };
    let length = phrase.split(' ').count();
    // "What time is it" asks for the clock.
    if is_word_at(marks, length, &["is", "are", "was", "did", "do", "does", "will", "can", "were", "should", "must"])
        && !is_word_at(marks, length + 1, &["it", "this"])
    {
        replace_start(marks, phrase, &["when"]);
    }
}

fn where_to(marks: &mut Vec<Mark>) {
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

/// `Who was the director of Alien`, `by whom was Alien directed` and `Alien was directed by whom` as `who directed Alien`.
fn doer(marks: &mut Vec<Mark>) {
    if begins(marks, "by whom was") && marks.len() > 4 {
        let Some(verb) = marks.pop() else { return };
        marks.splice(..3, [word("who"), verb]);
    } else if ends(marks, "by whom") || ends(marks, "by who") {
        let Some(was) = place(marks, "was").filter(|&was| was > 0 && was + 4 == marks.len()) else { return };
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

fn price(marks: &mut Vec<Mark>) {
    for start in ["what is the price of", "what is the cost of", "how much is", "how much are"] {
        if begins(marks, start) {
            replace_start(marks, start, &["price"]);
            return;
        }
    }
    let begin = ["how much does", "how much do", "what does", "what do"].into_iter().find(|start| begins(marks, start));
    if let Some(start) = begin.filter(|_| ends(marks, "cost") && marks.len() > 3) {
        marks.pop();
        replace_start(marks, start, &["price"]);
    } else if ends(marks, "earn") || ends(marks, "make") {
        // Pay is asked for in three ways.
        if let Some(start) = begin.filter(|start| marks.len() > 3 && (start.starts_with("how") || ends(marks, "earn")))
        {
            marks.pop();
            replace_start(marks, start, &["pay"]);
        }
    }
}

fn measure(marks: &mut Vec<Mark>) {
    if is_word_at(marks, 0, &["how"]) && is_word_at(marks, 2, &["is", "are", "was", "were"]) && marks.len() > 3 {
        let adjective = marks[1].word().unwrap_or_default();
        if let Some((_, noun)) = MEASURES.iter().find(|(each, _)| *each == adjective) {
            let was = marks[2].clone();
            marks.drain(..3);
            marks.splice(..0, [word("what"), was]);
            marks.push(word(noun));
        }
    } else if (begins(marks, "how much does") || begins(marks, "how much do"))
        && ends(marks, "weigh")
        && marks.len() > 4
    {
        marks.pop();
        marks.splice(..3, [word("what"), word("is")]);
        marks.push(word("weight"));
    } else if begins(marks, "at what temperature does") && ends(marks, "boil") && marks.len() > 5 {
        marks.pop();
        marks.splice(..4, [word("what"), word("is")]);
        marks.extend([word("boiling"), word("point")]);
    }
}

/// `How long does the warranty last` as `how long is the warranty`.
fn lasts(marks: &mut Vec<Mark>) {
    if (begins(marks, "how long does") || begins(marks, "how long do")) && ends(marks, "last") && marks.len() > 4 {
        marks.pop();
        marks[2] = word("is");
    }
}

/// `When logging in` as `when I log in`: who tells of himself and names nobody else.
pub(super) fn when_doing(marks: &mut Vec<Mark>) {
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

/// The distance of two places is the same from either.
fn distance(marks: &mut Vec<Mark>) {
    let rest = if begins(marks, "how far is") && place(marks, "from").is_some() {
        marks.split_off(3)
    } else if let Some(start) =
        ["what is the distance between", "what is the distance from"].iter().find(|start| begins(marks, start))
    {
        marks.split_off(start.split(' ').count())
    } else {
        return;
    };
    pair(marks, rest, "distance", &["and", "to", "from"]);
}

/// Puts what is said of two things regardless of their order.
fn pair(marks: &mut Vec<Mark>, rest: Vec<Mark>, head: &str, joints: &[&str]) {
    let joint = rest.iter().position(|mark| mark.word().is_some_and(|text| joints.contains(&text)));
    let several = rest.iter().filter(|mark| mark.word().is_some_and(|text| joints.contains(&text))).count();
    let Some(joint) = joint.filter(|&joint| several == 1 && joint > 0 && joint + 1 < rest.len()) else {
        marks.extend(rest);
        return;
    };
    let bare = |part: &[Mark]| -> Vec<Mark> {
        part.iter().filter(|mark| !matches!(mark.word(), Some("the" | "a" | "an"))).cloned().collect()
    };
    let (mut left, mut right) = (bare(&rest[..joint]), bare(&rest[joint + 1..]));
    if format!("{right:?}") < format!("{left:?}") {
        std::mem::swap(&mut left, &mut right);
    }
    marks.clear();
    marks.push(word(head));
    marks.append(&mut left);
    marks.push(word("and"));
    marks.append(&mut right);
}

/// `How many people live in Lagos` as `what is the population of Lagos`.
fn population(marks: &mut Vec<Mark>) {
    let start = ["how many people live in", "how many people are there in", "how many inhabitants are there in"];
    if let Some(start) = start.iter().find(|start| begins(marks, start)) {
        let rest = marks.split_off(start.split(' ').count());
        *marks = vec![word("what")];
        marks.extend(rest);
        marks.push(word("population"));
    }
}

fn difference(marks: &mut Vec<Mark>) {
    let starts = [
        "what is the difference between",
        "what are the differences between",
        "what are differences between",
        "explain the difference between",
        "explain the differences between",
        "describe the difference between",
        "describe the differences between",
        "the difference between",
        "differences between",
        "difference between",
    ];
    if let Some(start) = starts.iter().find(|start| begins(marks, start)) {
        let rest = marks.split_off(start.split(' ').count());
        if rest.iter().filter(|mark| mark.word() == Some("and")).count() == 1 {
            pair(marks, rest, "difference", &["and"]);
        } else {
            *marks = vec![word("difference")];
            marks.extend(rest);
        }
        return;
    }
    let start = ["how does", "how do", "how is", "how are"].iter().find(|start| begins(marks, start));
    let (Some(start), Some(from)) = (start, place(marks, "from")) else { return };
    let is_of_two = from > 3 && is_word_at(marks, from - 1, &["differ", "different"]);
    if is_of_two {
        let mut rest = marks.split_off(start.split(' ').count());
        rest.remove(from - 1 - start.split(' ').count());
        pair(marks, rest, "difference", &["from"]);
    }
}

/// `How many days does a year have` and `how many days are there in a year` as `how many days are in a year`.
fn how_many(marks: &mut Vec<Mark>) {
    if !(begins(marks, "how many") || begins(marks, "how much")) {
        return;
    }
    if ends(marks, "have") {
        let does = marks.iter().position(|mark| matches!(mark.word(), Some("does" | "do")));
        if let Some(does) = does.filter(|&does| does > 2 && does + 2 < marks.len()) {
            if !is_word_at(marks, does + 1, &["i", "you", "we", "they", "it", "he", "she"]) {
                marks.pop();
                marks[does] = word("in");
            }
        }
        return;
    }
    marks.retain(|mark| mark.word() != Some("there"));
}

/// `What makes the sky blue` as `why is the sky blue`; `why do earthquakes happen` as `what causes earthquakes`.
fn reason(marks: &mut Vec<Mark>) {
    if begins(marks, "what makes") && marks.len() > 3 && !is_word_at(marks, 2, &["a", "an"]) {
        replace_start(marks, "what makes", &["why"]);
    } else if begins(marks, "what made") && marks.len() > 3 && !is_word_at(marks, 2, &["a", "an"]) {
        replace_start(marks, "what made", &["why", "did"]);
    }
    let happens = ["happen", "occur"];
    let causes = [
        "what is the cause of",
        "what are the causes of",
        "what causes",
        "describe the causes of",
        "list the causes of",
    ];
    if let Some(start) = causes.iter().find(|start| begins(marks, start)) {
        let is_general = !is_word_at(marks, start.split(' ').count(), DEFINITE);
        if is_general || start.contains("cause of") {
            replace_start(marks, start, &["cause"]);
        }
    } else if (begins(marks, "why do") || begins(marks, "why does"))
        && happens.iter().any(|last| ends(marks, last))
        && marks.len() > 3
    {
        marks.pop();
        marks.splice(..2, [word("cause")]);
    } else if is_word_at(marks, 0, &["why"]) && is_word_at(marks, 1, &["is", "are", "am"]) {
        // What goes on and what happens again have one reason.
        let doing = marks
            .iter()
            .skip(2)
            .position(|mark| mark.word().is_some_and(|text| text.len() > 5 && text.ends_with("ing")));
        if let Some(at) = doing.map(|at| at + 2).filter(|&at| at > 2 && at <= 5) {
            if let Some(verb) = marks[at].word().and_then(base_of_doing) {
                marks[at] = word(&verb);
            }
        }
    }
}

/// `Is eating raw eggs safe` as `is it safe to eat raw eggs`.
fn judgement(marks: &mut Vec<Mark>) {
    let is_doing = marks.get(1).and_then(Mark::word).is_some_and(|text| text.len() > 5 && text.ends_with("ing"));
    if !(is_word_at(marks, 0, &["is"]) && is_doing && marks.len() > 2) {
        return;
    }
    if !is_word_at(marks, marks.len() - 1, JUDGEMENTS) {
        return;
    }
    let Some(verb) = marks[1].word().and_then(base_of_doing) else { return };
    let Some(last) = marks.pop() else { return };
    marks.splice(..2, [word("is"), word("it"), last, word("to"), word(&verb)]);
}

/// `Is there parking at the hotel` as `does the hotel have parking`, and ways to ask whether there is something at all.
fn have(marks: &mut Vec<Mark>) {
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
        let Some(have) = place(marks, "have").filter(|&have| have > 2 && have + 1 < marks.len()) else { return };
        let mut turned = vec![word("have")];
        turned.extend_from_slice(&marks[have + 1..]);
        turned.push(word("at"));
        turned.extend_from_slice(&marks[1..have]);
        *marks = turned;
    }
}

/// Ways to ask for a text that is to be written.
fn writing(marks: &mut Vec<Mark>) {
    let verb = usize::from(is_word_at(marks, 0, &["i"]));
    if !is_word_at(marks, verb, WRITE) {
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

fn example(marks: &mut Vec<Mark>) {
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

/// Code is explained by what it does and by what it means.
fn code(marks: &mut Vec<Mark>) {
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

/// Ways to ask for what both sides know of, as `what is`.
fn give(marks: &mut Vec<Mark>) {
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
    if !is_counted && !is_known || is_word_at(marks, at, QUESTION_WORDS) {
        if is_word_at(marks, 0, &["display", "list"]) {
            marks[0] = word("show");
        }
        return;
    }
    // The way to somewhere is shown, and a name is given to a thing that has none.
    replace_start(marks, start, &["what", "is"]);
}

/// The only tool or language that is named goes first, and the word that ties it to the sentence goes away.
pub(super) fn tool_first(marks: &mut Vec<Mark>) {
    let is_tool = |mark: &Mark| matches!(mark, Mark::Word { text, .. } if TOOLS.contains(&text.as_str()));
    let mut places = marks.iter().enumerate().filter(|(_, mark)| is_tool(mark)).map(|(at, _)| at);
    let (Some(at), None) = (places.next(), places.next()) else { return };
    let is_frame = |mark: &Mark| {
        matches!(mark.word(), Some("how-to" | "what" | "why" | "where" | "where-to" | "whether" | "write"))
    };
    if marks.len() < 3 || at == 1 && is_frame(&marks[0]) && marks.len() < 4 {
        return;
    }
    let joint = at.checked_sub(1).filter(|&before| is_word_at(marks, before, &["in", "on", "with", "for", "of"]));
    // After another word that ties, the place matters: "from Python", "than Java", "to Excel".
    let tied =
        ["from", "to", "than", "and", "or", "without", "into", "as", "versus", "vs", "instead", "via", "by", "not"];
    if at.checked_sub(1).is_some_and(|before| is_word_at(marks, before, &tied))
        || is_word_at(marks, at + 1, &tied) && joint.is_none()
    {
        return;
    }
    // A tool that does something, or to which something is done, is not where it is done.
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

/// `the planets in the solar system` as `the planets of the solar system`, `a recipe for lasagna` as `a lasagna recipe`.
pub(super) fn nouns(marks: &mut Vec<Mark>) {
    for at in 1..marks.len() {
        let is_in = is_word_at(marks, at, &["in"]) && is_word_at(marks, at - 1, HEADS_OF);
        let is_about = is_word_at(marks, at, &["for", "about"]) && is_word_at(marks, at - 1, HEADS_FOR);
        if is_in || is_about {
            marks[at] = word("of");
        }
    }
    own_first(marks);
}

/// `the capital of France` and `France's capital` as `France capital`.
fn own_first(marks: &mut Vec<Mark>) {
    let is_bound = |mark: &Mark| matches!(mark, Mark::Word { text, is_name: false } if BOUNDS.contains(&text.as_str()));
    let is_of = |mark: &Mark| mark.word() == Some("of");
    // From the last to the first, so that what belongs to an owner is gathered before the owner moves.
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
        // The articles go along: a house is not the house.
        let mut turned: Vec<Mark> = marks[of + 1..end].to_vec();
        turned.extend_from_slice(&marks[head..of]);
        marks.splice(head..end, turned);
    }
    marks.retain(|mark| mark.word() != Some("'s"));
}
