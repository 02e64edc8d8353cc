//! Finds the main content of a page: the element in which running text outweighs links and labels, without the parts
//! that are not text. A page with text never gives an empty result: dropped parts are restored step by step if too
//! little remains.

use crate::boilerplate::{drop_all, drop_chrome, drop_named};
use crate::candidates::Values;
use crate::tag::Tag;
use crate::tree::{Tree, ROOT};

/// A content with fewer characters is doubted if the page has more.
const DOUBTED_BELOW: usize = 60;

/// A text with fewer characters may precede a list that is the page's purpose.
const LIST_BELOW: usize = 160;

/// Returns the element with the main content of the page, after dropping everything else in it.
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
    // There is no running text: a list of links, or a table of labels.
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
