//! Finds the content of a page, in one of two meanings: the page without its surroundings, or its article.
//!
//! The article is the element in which running text outweighs links and labels, without the parts that are not text. A
//! page with text never gives an empty result: dropped parts are restored step by step if too little remains.

use std::iter::once;

use crate::boilerplate::{drop_all, drop_chrome, drop_named};
use crate::candidates::Values;
use crate::chrome::{drop_surroundings, keep_only, left};
use crate::fit::prune;
use crate::surroundings::{Surrounding, SurroundingsByName};
use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

/// A content with fewer characters is doubted if the page has more.
const DOUBTED_BELOW: usize = 60;

/// A text with fewer characters may precede a list that is the page's purpose.
const LIST_BELOW: usize = 160;

/// The content of a page, and whether it is an article.
pub(crate) struct Found {
    pub(crate) root: usize,
    pub(crate) is_article: bool,
}

/// Drops the surroundings of the content.
pub(crate) fn main_content(tree: &mut Tree<'_>) -> Found {
    Found { root: drop_surroundings(tree), is_article: false }
}

/// Drops all but the article if that holds most of the content, else only the surroundings of the content. The heading
/// of the page stays.
pub(crate) fn article_or_main(tree: &mut Tree<'_>) -> Found {
    let whole = drop_surroundings(tree);
    let is_left: Vec<bool> = reachable(tree, whole);
    let dropped: Vec<bool> = tree.nodes.iter().map(|node| node.is_dropped).collect();
    tree.take_back();
    let values = Values::of(tree);
    let root = article(tree, &values);
    prune(tree, root);
    if holds_most(tree, &values, root, &is_left) {
        drop_consent(tree, root, &is_left);
        return Found { root: with_heading(tree, root, &is_left), is_article: true };
    }
    for (node, is_dropped) in tree.nodes.iter_mut().zip(dropped) {
        node.is_dropped = is_dropped;
    }
    Found { root: whole, is_article: false }
}

/// Drops notices of cookies, which are running text too.
fn drop_consent(tree: &mut Tree<'_>, root: usize, is_left: &[bool]) {
    let mut by_name = SurroundingsByName::default();
    let candidates: Vec<usize> = tree.below(root).filter(|each| !is_left[*each]).collect();
    for each in candidates {
        if by_name.of(tree, each) == Some(Surrounding::Consent) {
            tree.nodes[each].is_dropped = true;
        }
    }
}

/// For each node, whether it is below `root` and not dropped.
fn reachable(tree: &Tree<'_>, root: usize) -> Vec<bool> {
    let mut found = vec![false; tree.nodes.len()];
    once(root).chain(tree.below(root)).for_each(|each| found[each] = true);
    found
}

/// Restores the heading of the page, which may have been dropped with a byline or be before the article. Returns the
/// element that contains both.
fn with_heading(tree: &mut Tree<'_>, root: usize, is_left: &[bool]) -> usize {
    let is_heading = |each: &usize| {
        let node = &tree.nodes[*each];
        is_left[*each] && node.tag == Tag::H(1) && node.size > 0 && node.linked * 10 < node.size * 8
    };
    let Some(heading) = (1..tree.nodes.len()).find(is_heading) else { return root };
    let ends = tree.ends();
    if (root..ends[root]).contains(&heading) {
        restore(tree, root, heading);
    } else if ends[heading] <= root {
        keep_only(tree, &ends, heading, root);
        return ROOT;
    }
    root
}

/// Restores an element inside another one, and nothing else of the parts that were dropped with it.
fn restore(tree: &mut Tree<'_>, root: usize, wanted: usize) {
    let mut around = vec![wanted];
    let mut each = wanted;
    while each != root {
        each = tree.nodes[each].parent;
        around.push(each);
    }
    let Some(top) = around.iter().rposition(|each| tree.nodes[*each].is_dropped) else { return };
    for at in 0..top {
        let siblings: Vec<usize> = tree.children(around[at + 1]).collect();
        for each in siblings {
            tree.nodes[each].is_dropped = true;
        }
    }
    for number in &around[..=top] {
        tree.nodes[*number].is_dropped = false;
    }
}

/// Whether an element is an article: it has running text, most of the text that is left without the surroundings, and
/// half of the main element's. Beside a long article, text in links and parts with names such as `comments` do not count.
fn holds_most(tree: &Tree<'_>, values: &Values, root: usize, is_left: &[bool]) -> bool {
    let own = Amount::of(tree, values, once(root).chain(tree.below(root)).filter(|each| is_left[*each]));
    if own.running < RUNNING_MIN {
        return false;
    }
    let is_long = own.running >= LONG_MIN;
    let ends = tree.ends();
    let main = only_main(tree).map_or(0..0, |main| main..ends[main]);
    let teasers = Amount::of(tree, values, (0..is_left.len()).filter(|each| is_left[*each] && values.is_teased[*each]));
    // Parts of an article can look like teasers, but teasers have less text than the article.
    let is_trusted = is_long && teasers.running <= own.running;
    let is_counted = |each: &usize| is_left[*each] && !(is_trusted && values.is_out[*each]);
    let whole = Amount::of(tree, values, (0..is_left.len()).filter(is_counted));
    let of_main = Amount::of(tree, values, main.clone().filter(is_counted));
    let inside = Amount::of(tree, values, tree.below(root).filter(|each| main.contains(each)));
    let is_most = |part: usize, all: usize| part * 2 > all;
    let is_text = |each: &usize| is_left[*each] && (values.is_teased[*each] || !values.is_out[*each]);
    let all = Amount::of(tree, values, (0..is_left.len()).filter(is_text));
    // An article that is a small part of all text and teasers is a part of one.
    if own.unlinked * 100 < all.unlinked * PART_MIN_PERCENT {
        return false;
    }
    let is_article = is_most(own.text, whole.text)
        || is_long
            && own.unlinked * 10 >= whole.unlinked * 3
            && (is_most(own.running, whole.running) || is_most(own.unlinked, whole.unlinked));
    is_article && inside.unlinked * 2 >= of_main.unlinked
}

/// An article has at least this much running text, and a long one so much that links beside it do not count.
const RUNNING_MIN: usize = 200;
const LONG_MIN: usize = 700;
const PART_MIN_PERCENT: usize = 15;

/// How much text nodes have: all of it, outside links, and in running text.
#[derive(Default)]
struct Amount {
    text: usize,
    unlinked: usize,
    running: usize,
}

impl Amount {
    fn of(tree: &Tree<'_>, values: &Values, nodes: impl Iterator<Item = usize>) -> Amount {
        let mut sum = Amount::default();
        for each in nodes {
            sum.running += usize::try_from(values.own[each]).unwrap_or(0);
            if tree.nodes[each].tag == Tag::Text {
                let size = tree.nodes[each].size;
                sum.text += size;
                sum.unlinked += if values.is_linked[each] { 0 } else { size };
            }
        }
        sum
    }
}

/// Returns the element with the article of the page, after dropping everything else in it.
fn article(tree: &mut Tree<'_>, values: &Values) -> usize {
    if let Some(root) = values.best(tree) {
        if let Some(main) = reference(tree, root) {
            drop_named(tree, values, main);
            return main;
        }
        drop_all(tree, values, root);
        if left(tree, root) < LIST_BELOW {
            if let Some(main) = only_main(tree).filter(|main| tree.nodes[*main].size > 3 * LIST_BELOW) {
                tree.take_back();
                drop_named(tree, values, main);
                return main;
            }
        }
        if is_enough(tree, values, root) {
            return root;
        }
        tree.take_back();
        drop_chrome(tree, values, root);
        if is_enough(tree, values, root) {
            return root;
        }
        tree.take_back();
    }
    // There is no running text: a list of links, or a table of labels.
    let root = only_main(tree).unwrap_or(ROOT);
    drop_chrome(tree, values, root);
    if left(tree, root) == 0 {
        tree.take_back();
    }
    root
}

/// Whether enough remains of what the element was chosen for.
fn is_enough(tree: &Tree<'_>, values: &Values, root: usize) -> bool {
    let left = left(tree, root);
    let running = usize::try_from(values.running[root]).unwrap_or_default();
    left > 0 && (left >= DOUBTED_BELOW || tree.nodes[ROOT].size < 4 * DOUBTED_BELOW) && left * 4 >= running.min(4_000)
}

/// The only element that the author marked as the main one, unless most of the page is elsewhere.
fn only_main(tree: &Tree<'_>) -> Option<usize> {
    let mut found = (0..tree.nodes.len()).filter(|each| tree.nodes[*each].tag == Tag::Main);
    let main = found.next()?;
    (found.next().is_none() && tree.nodes[main].size * 5 >= tree.nodes[ROOT].size).then_some(main)
}

/// The page's main element if it has much code: in an API reference the text about each name is short and between
/// links.
fn reference(tree: &Tree<'_>, best: usize) -> Option<usize> {
    let main = only_main(tree)?;
    let mut each = best;
    while each > main {
        each = tree.nodes[each].parent;
    }
    if each != main {
        return None;
    }
    let (mut size, mut count) = (0, 0);
    for each in tree.below(main) {
        let is_code = |number: usize| matches!(tree.nodes[number].tag, Tag::Pre | Tag::Code);
        if is_code(each) && !is_code(tree.nodes[each].parent) {
            size += tree.nodes[each].size;
            count += 1;
        }
    }
    (size * 12 >= tree.nodes[main].size || count >= 10).then_some(main)
}
