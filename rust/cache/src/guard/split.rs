//! Splits a text into words, numbers, quoted text and code, in their original spelling.

use super::Piece;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// In lower case. `is_name` marks capitalized words that no rule applies to, such as HTTPS, or the A of "is A above
    /// B".
    Word {
        text: String,
        is_name: bool,
    },
    Number(String),
    Quote(String),
    Code(String),
    /// The end of a clause.
    Comma,
}

impl Mark {
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word { text, is_name: false } => Some(text),
            _ => None,
        }
    }

    /// The piece without any rule applied.
    pub(super) fn verbatim(self) -> Option<Piece> {
        Some(match self {
            Self::Word { text, .. } => Piece::Word(text.into()),
            Self::Number(text) => Piece::Number(text.into()),
            Self::Quote(text) => Piece::Quote(text.into()),
            Self::Code(text) => Piece::Code(text.into()),
            Self::Comma => return None,
        })
    }
}

pub(super) fn split(text: &str) -> Vec<Mark> {
    let text =
        text.replace(['\u{2019}', '\u{2018}', '\u{02bc}'], "'").replace(['\u{201c}', '\u{201d}', '\u{201e}'], "\"");
    let mut marks = Vec::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|char: char| !char.is_whitespace()) {
        rest = &rest[start..];
        if let Some((mark, after)) = enclosed(rest) {
            marks.push(mark);
            rest = after;
            continue;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let is_first = !marks.iter().any(|mark| matches!(mark, Mark::Word { .. }));
        plain(&rest[..end], is_first, &mut marks);
        rest = &rest[end..];
    }
    marks
}

/// Text in backticks or quotation marks at the beginning, and the text after it.
fn enclosed(text: &str) -> Option<(Mark, &str)> {
    for (fence, mark) in
        [("```", Mark::Code as fn(String) -> Mark), ("`", Mark::Code), ("\"", Mark::Quote), ("'", Mark::Quote)]
    {
        let Some(inner) = text.strip_prefix(fence) else { continue };
        let end = inner.find(fence).filter(|&end| end > 0)?;
        return Some((mark(inner[..end].to_owned()), &inner[end + fence.len()..]));
    }
    None
}

/// Splits a run without white space.
fn plain(run: &str, is_first: bool, marks: &mut Vec<Mark>) {
    let core = run.trim_start_matches(['(', '[', '\u{bf}', '\u{a1}']);
    let core = core.trim_end_matches(['.', ',', '!', '?', ';', ':', '\u{2026}', '\u{ff1f}', '\u{3002}']);
    // A closing bracket belongs to the word if its opening bracket does.
    let core = if core.contains(['(', '[']) { core } else { core.trim_end_matches([')', ']']) };
    let ends_part = run.ends_with([',', ';', ':']);
    if !core.is_empty() {
        marks.push(judge(core, is_first));
        if let Some(Mark::Number(_)) = marks.last() {
            let unit = number(core).map_or("", |(_, unit)| unit);
            if !unit.is_empty() {
                let text = if unit == "%" { "percent".to_owned() } else { unit.to_owned() };
                marks.push(Mark::Word { text, is_name: true });
            }
        }
    } else if !run.trim_matches([',', '.', '?', '!', ';', ':']).is_empty() {
        marks.push(Mark::Code(run.to_owned()));
    }
    if ends_part {
        marks.push(Mark::Comma);
    }
}

fn judge(core: &str, is_first: bool) -> Mark {
    if let Some((digits, _)) = number(core) {
        return Mark::Number(digits);
    }
    let is_wordlike = core.chars().all(|char| char.is_alphabetic() || matches!(char, '\'' | '-'))
        && core.starts_with(char::is_alphabetic)
        && core.ends_with(|char: char| char.is_alphabetic() || char == '\'');
    if !is_wordlike || has_inner_capital(core) {
        return Mark::Code(core.to_owned());
    }
    let is_capitals = !core.contains(char::is_lowercase) && core != "I";
    let is_name = is_capitals && (core.chars().count() > 1 || !is_first);
    Mark::Word { text: core.to_lowercase(), is_name }
}

/// Whether a capital follows a lower-case letter: `readFile`, but not `NASA` or `Ann`.
fn has_inner_capital(core: &str) -> bool {
    core.chars().zip(core.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase())
}

/// Digits without thousands separators, and the unit attached to them: `5MB`, `30s`, `15%`.
fn number(core: &str) -> Option<(String, &str)> {
    let end = core.find(|char: char| !(char.is_ascii_digit() || matches!(char, '.' | ','))).unwrap_or(core.len());
    let (digits, unit) = core.split_at(end);
    if !digits.starts_with(|char: char| char.is_ascii_digit()) || digits.ends_with(['.', ',']) {
        return None;
    }
    let is_unit = unit == "%" || unit.chars().all(char::is_alphabetic) && unit.chars().count() <= 3;
    is_unit.then(|| (digits.replace(',', ""), unit))
}
