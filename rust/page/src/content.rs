//! The part of a page that is its main content: what the author marked as such, else the element under which most of the
//! running text stands; without navigation, sharing, related links and the like.

use std::sync::LazyLock;

use regex::Regex;

use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

static CHROME_NAME: LazyLock<Regex> = LazyLock::new(|| {
    name(
        "nav(?:bar|igation)?|menu|side-?bar|foot(?:er)?|bread-?crumbs?|share|sharing|social|comments?|related\
         |recommend(?:ed|ations)?|promo(?:tion)?s?|sponsor(?:ed)?|ad(?:s|vert(?:isement)?)?|banner|cookies?|consent\
         |newsletter|subscribe|signup|pag(?:er|ination)|popup|modal|toolbar|widget|tags?|skip|masthead|copyright|legal\
         |disqus|outbrain|taboola|login|more-stories|author-?(?:box|bio)",
    )
});
static CONTENT_NAME: LazyLock<Regex> =
    LazyLock::new(|| name("article|post|entry|content|body|main|story|text|document|markdown"));

/// One of the words, standing alone in a class or id.
fn name(words: &str) -> Regex {
    Regex::new(&format!(r"(?i)(?:^|[\s_-])(?:{words})(?:$|[\s_-])")).expect("a constant")
}

/// The element that holds what the page is about; what is not about it is dropped below it.
pub(crate) fn main_content(tree: &mut Tree<'_>) -> usize {
    let root = declared(tree).or_else(|| scored(tree)).unwrap_or(ROOT);
    strip(tree, root);
    root
}

fn declared(tree: &Tree<'_>) -> Option<usize> {
    let mut marked: [Vec<usize>; 3] = Default::default();
    for number in 0..tree.nodes.len() {
        let tag = tree.nodes[number].tag;
        if tree.has_attributes(number) && tree.attribute(number, "itemprop").as_deref() == Some("articleBody") {
            marked[0].push(number);
        }
        if tag == Tag::Article {
            marked[1].push(number);
        } else if tag == Tag::Main
            || (tree.has_attributes(number) && tree.attribute(number, "role").as_deref() == Some("main"))
        {
            marked[2].push(number);
        }
    }
    let size = |number: usize| tree.nodes[number].size;
    for found in marked {
        // The first of the largest.
        let Some(best) = found.iter().copied().rev().max_by_key(|number| size(*number)) else { continue };
        // Many small articles are the teasers of a list: the list is the content.
        if found.len() > 2 && size(best) * 2 < found.iter().map(|number| size(*number)).sum() {
            continue;
        }
        if size(best) >= 200 || size(best) * 3 >= size(ROOT) {
            return Some(best);
        }
    }
    None
}

fn scored(tree: &Tree<'_>) -> Option<usize> {
    let mut scores: Vec<Option<f64>> = vec![None; tree.nodes.len()];
    let mut order: Vec<usize> = Vec::new();
    for number in 0..tree.nodes.len() {
        let block = &tree.nodes[number];
        let is_text = matches!(block.tag, Tag::P | Tag::Pre | Tag::Blockquote | Tag::Dd | Tag::Td | Tag::Li);
        if !is_text || block.size < 25 || is_in_chrome(tree, number) {
            continue;
        }
        let size = block.size as f64;
        let score = (1.0 + size / 60.0) * (1.0 - (block.linked as f64 / size).min(1.0));
        let (mut parent, mut share) = (block.parent, 1.0);
        for _ in 0..4 {
            if parent >= tree.nodes.len() {
                break;
            }
            let start = scores[parent].unwrap_or_else(|| {
                order.push(parent);
                if CONTENT_NAME.is_match(&tree.names(parent)) {
                    10.0
                } else {
                    0.0
                }
            });
            scores[parent] = Some(start + score * share);
            (parent, share) = (tree.nodes[parent].parent, share * 0.6);
        }
    }
    let of = |number: usize| scores.get(number).copied().flatten().unwrap_or(0.0);
    let mut best = *order.first()?;
    for number in order {
        if of(number) > of(best) {
            best = number;
        }
    }
    // Text that goes on beside it belongs to it: then the parent is the content.
    while of(tree.nodes[best].parent) > of(best) * 0.75 {
        best = tree.nodes[best].parent;
    }
    Some(best)
}

fn strip(tree: &mut Tree<'_>, root: usize) {
    let mut waiting: Vec<usize> = tree.children(root).collect();
    while let Some(number) = waiting.pop() {
        if tree.nodes[number].tag == Tag::Text {
            continue;
        }
        if is_chrome(tree, number, root == ROOT) || is_link_list(tree, number) {
            tree.nodes[number].is_dropped = true;
        } else {
            waiting.extend(tree.children(number));
        }
    }
}

fn is_chrome(tree: &Tree<'_>, number: usize, is_whole: bool) -> bool {
    let node = &tree.nodes[number];
    match node.tag {
        Tag::Nav | Tag::Footer | Tag::Menu => return true,
        Tag::Aside | Tag::Form => return node.running <= 600,
        Tag::Header => {
            return is_whole && !tree.below(number).any(|each| matches!(tree.nodes[each].tag, Tag::H(1 | 2)));
        }
        Tag::Body
        | Tag::Main
        | Tag::Article
        | Tag::H(1 | 2)
        | Tag::P
        | Tag::Pre
        | Tag::Code
        | Tag::Table
        | Tag::Span
        | Tag::A
        | Tag::Td
        | Tag::Tr
        | Tag::RowGroup => return false,
        _ => {}
    }
    if !tree.has_attributes(number) {
        return false;
    }
    if tree.attribute(number, "role").is_some_and(|role| is_chrome_role(&role)) {
        return true;
    }
    node.running <= 600 && is_chrome_name(&tree.names(number))
}

fn is_chrome_role(role: &str) -> bool {
    matches!(
        role,
        "navigation" | "banner" | "contentinfo" | "complementary" | "search" | "menu" | "menubar" | "dialog" | "alert"
    )
}

fn is_chrome_name(names: &str) -> bool {
    !names.is_empty() && CHROME_NAME.is_match(names)
}

/// A block of next to nothing but links, too many of them for a sentence.
fn is_link_list(tree: &Tree<'_>, number: usize) -> bool {
    let node = &tree.nodes[number];
    matches!(node.tag, Tag::Ul | Tag::Ol | Tag::Div | Tag::Section)
        && node.links >= 4
        && (node.size == 0 || node.linked as f64 / node.size as f64 > 0.8)
}

fn is_in_chrome(tree: &Tree<'_>, number: usize) -> bool {
    let mut parent = tree.nodes[number].parent;
    for _ in 0..12 {
        if parent >= tree.nodes.len() || tree.nodes[parent].tag == Tag::Body {
            return false;
        }
        let is_tag = matches!(tree.nodes[parent].tag, Tag::Nav | Tag::Footer | Tag::Aside | Tag::Form | Tag::Menu);
        if is_tag {
            return true;
        }
        if tree.has_attributes(parent) {
            if tree.attribute(parent, "role").is_some_and(|role| is_chrome_role(&role)) {
                return true;
            }
            let names = tree.names(parent);
            if is_chrome_name(&names) && !CONTENT_NAME.is_match(&names) {
                return true;
            }
        }
        parent = tree.nodes[parent].parent;
    }
    false
}

/// Takes out blocks that say little, by what share of them is links and how many words they have. Headings, tables and
/// code stay.
pub(crate) fn prune(tree: &mut Tree<'_>, root: usize) {
    let is_kept = |tag: Tag| matches!(tag, Tag::Table | Tag::Pre | Tag::H(_) | Tag::Figure);
    let mut waiting: Vec<usize> = tree.children(root).collect();
    while let Some(number) = waiting.pop() {
        let node = &tree.nodes[number];
        if is_kept(node.tag)
            || matches!(
                node.tag,
                Tag::Td | Tag::Th | Tag::Tr | Tag::RowGroup | Tag::A | Tag::Span | Tag::Code | Tag::Text
            )
        {
            continue;
        }
        let is_judged = matches!(node.tag, Tag::Div | Tag::Section | Tag::Ul | Tag::Ol | Tag::P | Tag::Dl);
        if is_judged && !tree.below(number).any(|each| is_kept(tree.nodes[each].tag)) {
            let text = (node.size - node.linked.min(node.size)) as f64;
            let density = if node.size > 0 { text / node.size as f64 } else { 0.0 };
            let words = if node.size < 40 { tree.line(number).split(' ').filter(|w| !w.is_empty()).count() } else { 9 };
            if density < 0.48 || words < 2 {
                tree.nodes[number].is_dropped = true;
                continue;
            }
        }
        waiting.extend(tree.children(number));
    }
}
