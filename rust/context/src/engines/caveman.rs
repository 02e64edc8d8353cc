//! Removes phrases without content from prose: greetings, hedges, long connectives. The rule packs list them.

use std::ops::Range;

use crate::conversation::Piece;
use crate::protect;

use super::lite::tidied;
use super::pack::{bare, pack_of, Pack, Rule};
use super::{each, prose_pack, Context, Proposal};

/// The maximum number of passes over a text. Removing a phrase may form another one.
const PASSES: usize = 4;

pub(super) fn propose(pieces: &[Piece<'_>], context: &Context<'_>) -> Vec<Proposal> {
    let is_wanted = |pack: &Pack| context.languages.is_empty() || context.languages.contains(&pack.language);
    each(pieces, context, |piece| {
        let pack = prose_pack(piece).filter(|pack| is_wanted(pack))?;
        settled(&piece.text, pack)
    })
}

/// The text after as many passes as change it; `None` if nothing changes, or if it still changes after the last pass.
pub(super) fn settled(text: &str, pack: &Pack) -> Option<String> {
    let mut text = shortened(text, pack)?;
    for _ in 1..PASSES {
        match shortened(&text, pack) {
            Some(shorter) => text = shorter,
            None => return is_settled(&text, pack).then_some(text),
        }
    }
    None
}

/// Whether another run would change nothing, because the text is still recognized as the same language.
pub(super) fn is_settled(text: &str, pack: &Pack) -> bool {
    pack_of(text).is_none_or(|again| std::ptr::eq(again, pack))
}

/// One pass; `None` if nothing is removed.
fn shortened(text: &str, pack: &Pack) -> Option<String> {
    let mut edits: Vec<Edit<'_>> = Vec::new();
    let mut start = 0;
    let end = text.len();
    for span in protect::spans(text).into_iter().chain(std::iter::once(end..end)) {
        if pack.is_unspaced {
            characters(text, start..span.start, pack, &mut edits);
        } else {
            words(text, start..span.start, pack, &mut edits);
        }
        start = span.end;
    }
    let shorter = (!edits.is_empty()).then(|| applied(text, &edits))?;
    let shorter = tidied(&shorter).unwrap_or(shorter);
    (shorter.len() < text.len()).then_some(shorter)
}

/// A byte range of a text and its replacement.
type Edit<'p> = (Range<usize>, &'p str);

fn words<'p>(text: &str, range: Range<usize>, pack: &'p Pack, edits: &mut Vec<Edit<'p>>) {
    let found = word_spans(text, range);
    let lower: Vec<String> = found.iter().map(|span| text[span.clone()].to_lowercase()).collect();
    let mut at = 0;
    while at < found.len() {
        let Some(rule) = pack
            .rules
            .get(&lower[at])
            .and_then(|rules| rules.iter().find(|rule| fits(rule, text, &found[at..], &lower[at..])))
        else {
            at += 1;
            continue;
        };
        let last = at + rule.words.len() - 1;
        edits.push((extent(text, found[at].start..found[last].end, rule), &rule.replacement));
        at = last + 1;
    }
}

/// The words without the punctuation around them, as offsets in `text`.
fn word_spans(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let rest = &text[at..range.end];
        let skipped = rest.len() - rest.trim_start().len();
        let rest = &rest[skipped..];
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let word = &rest[..length];
        let inner = bare(word);
        if !inner.is_empty() {
            let lead = word.find(inner).unwrap_or_default();
            spans.push(at + skipped + lead..at + skipped + lead + inner.len());
        }
        at += skipped + length;
    }
    spans
}

/// Whether the rule's words are here, separated only by a space, or by a comma and a space.
fn fits(rule: &Rule, text: &str, found: &[Range<usize>], lower: &[String]) -> bool {
    let count = rule.words.len();
    lower.len() >= count
        && rule.words.iter().eq(&lower[..count])
        && found[..count].windows(2).all(|pair| matches!(&text[pair[0].end..pair[1].start], " " | ", "))
}

/// The range to remove with a phrase: also a comma and the space after it, or before the end of a sentence the space
/// before it.
fn extent(text: &str, phrase: Range<usize>, rule: &Rule) -> Range<usize> {
    if !rule.replacement.is_empty() {
        return phrase;
    }
    let before = text[..phrase.start].trim_end_matches([' ', ',']);
    let rest = &text[phrase.end..];
    let opens = before.is_empty() || before.ends_with(['.', '!', '?', '\n']);
    let marks: &[char] = if opens { &[',', '.', '!', '?'] } else { &[','] };
    let after = rest.trim_start_matches(marks);
    let spaces = after.len() - after.trim_start_matches(' ').len();
    let end = phrase.end + (rest.len() - after.len()) + spaces;
    let ends_here =
        after.trim_start_matches(' ').starts_with(['.', '!', '?', ';', ':', ')', '\n']) || end == text.len();
    let start = if ends_here { before.len() } else { phrase.start };
    start..end
}

fn characters<'p>(text: &str, range: Range<usize>, pack: &'p Pack, edits: &mut Vec<Edit<'p>>) {
    let mut at = range.start;
    while let Some(first) = text[at..range.end].chars().next() {
        let rest = &text[at..range.end];
        let mut buffer = [0; 4];
        let rules = pack.rules.get(&*first.encode_utf8(&mut buffer));
        let found = rules.and_then(|rules| rules.iter().find(|rule| starts_with(rest, &rule.words)));
        let length = found.map_or(first.len_utf8(), |rule| rule.words.iter().map(String::len).sum());
        if let Some(rule) = found {
            edits.push((at..at + length, &rule.replacement));
        }
        at += length;
    }
}

fn starts_with(text: &str, characters: &[String]) -> bool {
    let mut rest = text;
    characters.iter().all(|character| rest.strip_prefix(character.as_str()).map(|after| rest = after).is_some())
}

fn applied(text: &str, edits: &[Edit<'_>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, replacement) in edits {
        // Two phrases may share the space between them.
        if range.start > at {
            out.push_str(&text[at..range.start]);
        }
        out.push_str(replacement);
        at = at.max(range.end);
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::pack::packs;

    fn english(text: &str) -> Option<String> {
        shortened(text, &packs()[0])
    }

    #[test]
    fn phrases_go_and_the_sense_stays() {
        let text = "Could you please check order NC-1 in order to see it, thank you very much. Do not send it.";
        assert_eq!(english(text).as_deref(), Some("check order NC-1 to see it. Do not send it."));
        assert_eq!(english("Do not send 3."), None);
    }

    #[test]
    fn what_is_quoted_stays() {
        assert_eq!(english("\"could you please\""), None);
    }
}
