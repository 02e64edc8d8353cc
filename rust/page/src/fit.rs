//! Removes blocks with little content, for the option `fit`.

use crate::chrome::left;
use crate::tag::Tag;
use crate::tree::Tree;

/// Removes blocks with little content, by the share of links and the number of words. Headings, tables and code are
/// kept.
pub(crate) fn prune(tree: &mut Tree<'_>, root: usize) {
    let mut pruned = Vec::new();
    // For each node, whether a block that is kept is inside.
    let mut holds_kept = vec![false; tree.nodes.len()];
    let is_kept = |tag: Tag| matches!(tag, Tag::Table | Tag::Pre | Tag::H(_) | Tag::Figure);
    for number in (1..tree.nodes.len()).rev() {
        let node = &tree.nodes[number];
        if !node.is_dropped && (holds_kept[number] || is_kept(node.tag)) {
            holds_kept[node.parent] = true;
        }
    }
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
        if is_judged && !holds_kept[number] {
            let text = (node.size - node.linked.min(node.size)) as f64;
            let density = if node.size > 0 { text / node.size as f64 } else { 0.0 };
            let words = if node.size < 40 { tree.line(number).split(' ').filter(|w| !w.is_empty()).count() } else { 9 };
            if density < 0.48 || words < 2 {
                tree.nodes[number].is_dropped = true;
                pruned.push(number);
                continue;
            }
        }
        waiting.extend(tree.children(number));
    }
    if left(tree, root) == 0 {
        for number in pruned {
            tree.nodes[number].is_dropped = false;
        }
    }
}
