//! Finds the possible beginning of a finding at the end of an incomplete text.
//!
//! Each pattern is converted into a second one, which matches any beginning of a match at the end of the text. Because
//! it is derived from the pattern itself, a stream always holds back what the pattern needs.

use regex::Regex;
use regex_syntax::hir::{Hir, HirKind, Literal, Look, Repetition};

/// Matches the longest end of a text that may begin a match of one of these patterns. There is always a match, at least
/// of the empty end.
pub(super) fn beginnings<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Regex {
    let made = patterns
        .into_iter()
        .map(|pattern| regex_syntax::parse(pattern).map(|hir| beginning(&hir)).map_err(|error| error.to_string()))
        .collect::<Result<Vec<Hir>, String>>()
        .map(|each| Hir::concat(vec![Hir::alternation(each), Hir::look(Look::End)]).to_string())
        .and_then(|pattern| Regex::new(&pattern).map_err(|error| error.to_string()));
    match made {
        Ok(regex) => regex,
        Err(error) => unreachable!("no beginnings can be made of a pattern: {error}"),
    }
}

/// Matches any prefix of what `whole` matches, including the empty one and the whole.
fn beginning(whole: &Hir) -> Hir {
    match whole.kind() {
        // The text after the end is unknown, so it may be a boundary.
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(Repetition { max: Some(0), .. }) => Hir::empty(),
        HirKind::Literal(Literal(bytes)) => {
            let text = String::from_utf8_lossy(bytes);
            text.chars().rev().fold(Hir::empty(), |rest, character| {
                let mut buffer = [0; 4];
                let first = Hir::literal(character.encode_utf8(&mut buffer).as_bytes());
                repeated(Hir::concat(vec![first, rest]), Some(1))
            })
        }
        HirKind::Class(_) => repeated(whole.clone(), Some(1)),
        HirKind::Repetition(Repetition { max, sub, .. }) => match sub.kind() {
            HirKind::Class(_) => repeated((**sub).clone(), *max),
            _ => Hir::concat(vec![repeated((**sub).clone(), max.map(|max| max - 1)), beginning(sub)]),
        },
        HirKind::Capture(capture) => beginning(&capture.sub),
        HirKind::Concat(parts) => parts.iter().rev().fold(Hir::empty(), |rest, part| {
            Hir::alternation(vec![Hir::concat(vec![part.clone(), rest]), beginning(part)])
        }),
        HirKind::Alternation(either) => Hir::alternation(either.iter().map(beginning).collect()),
    }
}

fn repeated(sub: Hir, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition { min: 0, max, greedy: true, sub: Box::new(sub) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_is_met_and_nothing_else() {
        let regex = beginnings([r"(?-u:\b)ab[0-9]{2,3}(?:xy|z)+(?-u:\b)"]);
        let start = |text: &str| regex.find(text).map(|found| found.start());
        for whole in ["ab12xy", "ab123zxyz", "ab00z"] {
            for end in 0..=whole.len() {
                assert_eq!(start(&format!("- {}", &whole[..end])), Some(2), "{}", &whole[..end]);
            }
        }
        for (text, at) in
            [("ab1 ", 4), ("aab1", 4), ("abx", 3), ("ab1x", 4), ("ab12xa", 6), ("ab1ab", 5), ("ab1-ab", 4)]
        {
            assert_eq!(start(text), Some(at), "{text}");
        }
    }
}
