//! The part of a page that is its main content: the element whose running text outweighs its links and labels, without
//! what stands in it and is no part of the text. No page with text is read as nothing: what is left out is taken back
//! step by step where too little stays.

use crate::boilerplate::{drop_all, drop_chrome, drop_named};
use crate::candidates::Values;
use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

/// A content with fewer characters is doubted where the page has more.
const DOUBTED_BELOW: usize = 60;

/// A text with fewer characters may stand over a list that is what its page is for.
const LIST_BELOW: usize = 160;

/// The element that holds what the page is about; what is not about it is dropped below it.
pub(crate) fn main_content(tree: &mut Tree<'_>) -> usize {
    let values = Values::of(tree);
    if let Some(root) = values.best(tree) {
        if let Some(main) = reference(tree, root) {
            drop_named(tree, &values, main);
            return main;
        }
        drop_all(tree, &values, root);
        if left(tree, root) < LIST_BELOW {
            if let Some(main) = only_main(tree).filter(|main| tree.nodes[*main].size > 3 * LIST_BELOW) {
                tree.take_back();
                drop_named(tree, &values, main);
                return main;
            }
        }
        if is_enough(tree, &values, root) {
            return root;
        }
        tree.take_back();
        drop_chrome(tree, &values, root);
        if is_enough(tree, &values, root) {
            return root;
        }
        tree.take_back();
    }
    // No running text: a list of links, a table of labels.
    let root = only_main(tree).unwrap_or(ROOT);
    drop_chrome(tree, &values, root);
    if left(tree, root) == 0 {
        tree.take_back();
    }
    root
}

fn left(tree: &Tree<'_>, root: usize) -> usize {
    let is_text = |each: &usize| tree.nodes[*each].tag == Tag::Text;
    tree.below(root).filter(is_text).map(|each| tree.nodes[each].text.trim().len()).sum()
}

/// Whether dropping has left what the element was chosen for.
fn is_enough(tree: &Tree<'_>, values: &Values, root: usize) -> bool {
    let left = left(tree, root);
    let running = usize::try_from(values.running[root]).unwrap_or_default();
    left > 0 && (left >= DOUBTED_BELOW || tree.nodes[ROOT].size < 4 * DOUBTED_BELOW) && left * 4 >= running.min(4_000)
}

/// The one element that its author calls the main one, if most of the page is not elsewhere.
fn only_main(tree: &Tree<'_>) -> Option<usize> {
    let mut found = (0..tree.nodes.len()).filter(|each| tree.nodes[*each].tag == Tag::Main);
    let main = found.next()?;
    (found.next().is_none() && tree.nodes[main].size * 5 >= tree.nodes[ROOT].size).then_some(main)
}

/// The page's main element where it has much code: what is said of each name there is short, and stands between links.
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
