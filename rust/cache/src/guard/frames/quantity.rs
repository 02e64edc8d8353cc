//! Questions about amounts, distances, counts, differences and reasons.

use super::manner::base_of_doing;
use crate::guard::sentence::{begins, ends, is_word_at, position_of, replace_start, word};
use crate::guard::split::Mark;
use crate::guard::words::english::{DEFINITE, JUDGEMENTS, MEASURES};

pub fn price(marks: &mut Vec<Mark>) {
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
        // There are three common ways to ask for pay.
        if let Some(start) = begin.filter(|start| marks.len() > 3 && (start.starts_with("how") || ends(marks, "earn")))
        {
            marks.pop();
            replace_start(marks, start, &["pay"]);
        }
    }
}

pub fn measure(marks: &mut Vec<Mark>) {
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

/// Rewrites `How long does the warranty last` as `how long is the warranty`.
pub fn lasts(marks: &mut Vec<Mark>) {
    if (begins(marks, "how long does") || begins(marks, "how long do")) && ends(marks, "last") && marks.len() > 4 {
        marks.pop();
        marks[2] = word("is");
    }
}

/// The distance between two places does not depend on their order.
pub fn distance(marks: &mut Vec<Mark>) {
    let rest = if begins(marks, "how far is") && position_of(marks, "from").is_some() {
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

/// Sorts the two things of a comparison, so that their order does not matter.
pub fn pair(marks: &mut Vec<Mark>, rest: Vec<Mark>, head: &str, joints: &[&str]) {
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

/// Rewrites `How many people live in Lagos` as `what is the population of Lagos`.
pub fn population(marks: &mut Vec<Mark>) {
    let start = ["how many people live in", "how many people are there in", "how many inhabitants are there in"];
    if let Some(start) = start.iter().find(|start| begins(marks, start)) {
        let rest = marks.split_off(start.split(' ').count());
        *marks = vec![word("what")];
        marks.extend(rest);
        marks.push(word("population"));
    }
}

pub fn difference(marks: &mut Vec<Mark>) {
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
    let (Some(start), Some(from)) = (start, position_of(marks, "from")) else { return };
    let is_of_two = from > 3 && is_word_at(marks, from - 1, &["differ", "different"]);
    if is_of_two {
        let mut rest = marks.split_off(start.split(' ').count());
        rest.remove(from - 1 - start.split(' ').count());
        pair(marks, rest, "difference", &["from"]);
    }
}

/// Rewrites `How many days does a year have` and `how many days are there in a year` as `how many days are in a year`.
pub fn how_many(marks: &mut Vec<Mark>) {
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

/// Rewrites `What makes the sky blue` as `why is the sky blue`, and `why do earthquakes happen` as `what causes
/// earthquakes`.
pub fn reason(marks: &mut Vec<Mark>) {
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
        let is_general = !is_word_at(marks, start.split(' ').count(), &DEFINITE);
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
        // The continuous and the simple form of the verb ask for the same reason.
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

/// Rewrites `Is eating raw eggs safe` as `is it safe to eat raw eggs`.
pub fn judgement(marks: &mut Vec<Mark>) {
    let is_doing = marks.get(1).and_then(Mark::word).is_some_and(|text| text.len() > 5 && text.ends_with("ing"));
    if !(is_word_at(marks, 0, &["is"]) && is_doing && marks.len() > 2) {
        return;
    }
    if !is_word_at(marks, marks.len() - 1, &JUDGEMENTS) {
        return;
    }
    let Some(verb) = marks[1].word().and_then(base_of_doing) else { return };
    let Some(last) = marks.pop() else { return };
    marks.splice(..2, [word("is"), word("it"), last, word("to"), word(&verb)]);
}
