//! Formulas, and numbers that are raised or lowered.

use crate::tag::Tag;
use crate::tree::Tree;

/// The TeX source of a formula, else the text of its symbols; and whether it is a separate line.
pub(crate) fn formula(tree: &Tree<'_>, math: usize) -> Option<(String, bool)> {
    let source = tree.below(math).find(|each| tree.nodes[*each].tag == Tag::Tex).map(|each| tree.line(each));
    let text = source
        .or_else(|| tree.attribute(math, "alttext").map(|text| text.trim().to_owned()))
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| tree.tight_text(math));
    let is_display = tree.attribute(math, "display").is_some_and(|value| value.eq_ignore_ascii_case("block"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some((text, is_display))
}

/// TeX in the text of an element that a script turns into a formula, without its brackets.
pub(crate) fn written_formula(tree: &Tree<'_>, number: usize) -> Option<(String, bool)> {
    let is_formula = |name: &str| matches!(name, "math" | "arithmatex" | "MathJax" | "mathjax" | "tex" | "katex-src");
    if !tree.has_class(number, is_formula) {
        return None;
    }
    let text = tree.line(number);
    let inner = |start: &str, end: &str| {
        let inner = text.strip_prefix(start)?.strip_suffix(end)?.trim();
        (!inner.is_empty()).then(|| inner.to_owned())
    };
    inner("\\(", "\\)").map(|tex| (tex, false)).or_else(|| inner("\\[", "\\]").map(|tex| (tex, true)))
}

/// What to write before a raised or lowered text, so that a number does not join the one before or behind it.
pub(crate) fn mark(tree: &Tree<'_>, number: usize, before: Option<char>) -> &'static str {
    let text = tree.tight_text(number);
    let text = text.trim();
    let Some(before) = before.filter(|c| c.is_alphanumeric() || *c == ')') else { return "" };
    let is_number = text.trim_start_matches(['-', '\u{2212}', '+']).starts_with(|c: char| c.is_numeric());
    let is_letter = text.chars().count() == 1 && text.chars().all(char::is_alphabetic);
    let behind = tree.text_behind(number).and_then(|text| text.chars().next());
    match tree.nodes[number].tag {
        // Ordinals of several languages: 1o, 2a, 3e.
        Tag::Sup if is_number || is_letter && before.is_numeric() && !matches!(text, "o" | "a" | "e" | "º" | "ª") => {
            "^"
        }
        Tag::Sub if is_number && (before.is_numeric() || behind.is_some_and(char::is_numeric)) => "_",
        _ => "",
    }
}
