//! Marks that a page puts beside its text: links of headings to themselves, and numbers of lines.

use crate::code::is_line_number;
use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

/// Drops the links of headings to themselves, and, with `has_numbers`, the line numbers of code.
pub(crate) fn drop_marks(tree: &mut Tree<'_>, has_numbers: bool) {
    let is_mark = |number: &usize| match tree.nodes[*number].tag {
        Tag::A => is_permalink(tree, *number),
        Tag::Td | Tag::Div | Tag::Span | Tag::Pre | Tag::Code => has_numbers && is_line_number(tree, *number),
        _ => false,
    };
    tree.marks = (1..tree.nodes.len()).filter(is_mark).collect();
    tree.drop_marks();
}

/// Whether a link has no words and leads to a place on the page.
fn is_permalink(tree: &Tree<'_>, number: usize) -> bool {
    let node = &tree.nodes[number];
    let Some(href) = tree.attribute(number, "href").filter(|href| href.contains('#') && node.size <= 4) else {
        return false;
    };
    let mut parent = node.parent;
    if parent != ROOT && tree.nodes[parent].tag.is_inline() {
        parent = tree.nodes[parent].parent;
    }
    let is_named = |name: &str| {
        matches!(
            name,
            "headerlink" | "permalink" | "anchor" | "hash-link" | "anchorjs-link" | "heading-anchor" | "header-anchor"
        )
    };
    let is_at_heading = matches!(tree.nodes[parent].tag, Tag::H(_) | Tag::Caption)
        || matches!(tree.nodes[parent].name, "dt" | "figcaption")
        || tree.has_class(number, is_named);
    is_at_heading
        && (href.starts_with('#') || tree.has_class(number, is_named))
        && !tree
            .below(number)
            .any(|each| tree.nodes[each].tag == Tag::Img || tree.nodes[each].text.chars().any(char::is_alphanumeric))
}
