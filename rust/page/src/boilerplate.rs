//! Blocks inside an article that are not part of its text: share buttons, related links, offers, bylines, captions,
//! comments. No single sign is enough to drop a block that holds much of the text.

use crate::candidates::{is_block, Values};
use crate::grid::is_layout;
use crate::names::Hint;
use crate::phrases::{is_boilerplate, PHRASE_MAX};
use crate::tag::Tag;
use crate::tree::Tree;

/// Drops elements that their tag or name identifies as page chrome, as long as most of the text remains.
pub(crate) fn drop_chrome(tree: &mut Tree<'_>, values: &Values, root: usize) {
    walk(tree, root, |_, number| values.hints[number] == Hint::Chrome && values.is_believed(number, root));
}

/// Drops elements that their tag or name identifies as not part of the text.
pub(crate) fn drop_named(tree: &mut Tree<'_>, values: &Values, root: usize) {
    walk(tree, root, |_, number| values.is_believed(number, root));
}

/// Drops everything that is not part of the article's text.
pub(crate) fn drop_all(tree: &mut Tree<'_>, values: &Values, root: usize) {
    let zones = Zones::of(tree, values, root);
    walk(tree, root, |tree, number| is_boilerplate_at(tree, values, &zones, number));
    drop_headline(tree, values, &zones);
    drop_empty_headings(tree, root);
}

fn walk(tree: &mut Tree<'_>, root: usize, mut is_out: impl FnMut(&Tree<'_>, usize) -> bool) {
    let mut waiting: Vec<usize> = tree.children(root).collect();
    while let Some(number) = waiting.pop() {
        // Class names inside code come from a syntax highlighter.
        if matches!(tree.nodes[number].tag, Tag::Text | Tag::Pre | Tag::Code | Tag::Math) {
            continue;
        }
        // The rows of a table and the terms of a list belong together.
        let is_whole = match tree.nodes[number].tag {
            Tag::Dl => true,
            Tag::Table => !is_layout(tree, number),
            _ => false,
        };
        if is_out(tree, number) {
            tree.nodes[number].is_dropped = true;
        } else if !is_whole {
            waiting.extend(tree.children(number));
        }
    }
}

/// The beginning and end of an article's text.
struct Zones {
    root: usize,
    first: usize,
    last: usize,
    /// The size of all running text.
    total: i64,
    /// For each node, the number after its last descendant.
    ends: Vec<usize>,
}

impl Zones {
    fn of(tree: &Tree<'_>, values: &Values, root: usize) -> Zones {
        let ends = tree.ends();
        let all = root..ends[root];
        let is_out = |number: usize| {
            let mut each = number;
            while each != root {
                if values.is_believed(each, root) {
                    return true;
                }
                each = tree.nodes[each].parent;
            }
            false
        };
        let text = |least: i64| move |each: &usize| values.own[*each] >= least && !is_out(*each);
        let first = all.clone().find(text(70)).or_else(|| all.clone().find(text(1))).unwrap_or(root);
        let last = all.rev().find(text(1)).unwrap_or(root);
        Zones { root, first, last, total: values.running[root], ends }
    }

    fn is_before(&self, number: usize) -> bool {
        self.ends[number] <= self.first
    }

    fn is_behind(&self, number: usize) -> bool {
        number > self.last
    }
}

fn is_boilerplate_at(tree: &Tree<'_>, values: &Values, zones: &Zones, number: usize) -> bool {
    let node = &tree.nodes[number];
    let running = values.running[number];
    let is_small = running * 5 <= zones.total;
    let is_long_paragraph = matches!(node.tag, Tag::P | Tag::Li | Tag::Td) && values.own[number] > 200;
    if values.is_believed(number, zones.root)
        && (values.hints[number] != Hint::Beside || !is_long_paragraph && !is_picture(tree, number))
    {
        return true;
    }
    if matches!(node.name, "figcaption" | "address") && is_small {
        return true;
    }
    if !is_block(node.tag) && node.tag != Tag::Other {
        return false;
    }
    if node.size <= PHRASE_MAX
        && node.size > 0
        && is_small
        && is_boilerplate(&tree.line(number), node.linked * 3 > node.size)
    {
        return true;
    }
    if matches!(node.tag, Tag::Pre | Tag::Td | Tag::Th | Tag::Caption | Tag::Hr | Tag::H(_)) || node.name == "dt" {
        return false;
    }
    let is_linked = node.linked * 2 > node.size;
    if node.tag == Tag::Table {
        return is_small && node.linked * 10 > node.size * 7;
    }
    // The items of a list are kept or dropped together.
    if node.tag == Tag::Li {
        return false;
    }
    let is_negative = values.net[number] < 0
        && is_small
        && !tree.below(number).any(|each| matches!(tree.nodes[each].tag, Tag::Pre | Tag::Code));
    if is_negative && (is_linked || node.links > 0 && running == 0) {
        return true;
    }
    let is_label = running == 0 && node.size > 0 && node.size < 250;
    if is_label && (zones.is_before(number) || zones.is_behind(number)) {
        let is_listing = matches!(node.tag, Tag::Ul | Tag::Ol | Tag::Dl) && zones.is_behind(number) && node.links == 0;
        return !is_listing
            && !tree.below(number).any(|each| matches!(tree.nodes[each].tag, Tag::Pre | Tag::Table | Tag::H(_)));
    }
    // A box of labels within the text, with few sentences for its size.
    is_negative && running * 4 < i64::try_from(node.size).unwrap_or(i64::MAX) && node.links > 0
}

/// A picture with its caption. The caption alone is not part of the article's text.
fn is_picture(tree: &Tree<'_>, number: usize) -> bool {
    let is_named = || tree.attribute(number, "class").is_some_and(|names| names.contains("caption"));
    (tree.nodes[number].tag == Tag::Figure || is_named())
        && tree.below(number).any(|each| tree.nodes[each].tag == Tag::Img)
}

/// Drops headlines below the first level, such as those of a series, if they are apart from the text or next to a byline.
fn drop_headline(tree: &mut Tree<'_>, values: &Values, zones: &Zones) {
    let mut around = Vec::new();
    let mut each = zones.first;
    while each != zones.root {
        each = tree.nodes[each].parent;
        around.push(each);
    }
    let is_headline = |tree: &Tree<'_>, number: usize| match tree.nodes[number].tag {
        Tag::H(2..=4) => {
            let names = tree.attribute(number, "class").unwrap_or_default();
            tree.nodes[number].linked * 2 > tree.nodes[number].size
                || names.contains("title")
                || names.contains("headline")
                || tree.nodes[tree.nodes[number].parent].tag == Tag::Header
        }
        _ => false,
    };
    let found: Vec<usize> = (zones.root + 1..zones.first).filter(|each| is_headline(tree, *each)).collect();
    let has_byline = (zones.root + 1..zones.first).any(|each| {
        tree.nodes[each].is_dropped && tree.nodes[each].size > 0 && !matches!(values.hints[each], Hint::Chrome)
    });
    for number in found {
        if has_byline || !around.contains(&tree.nodes[number].parent) || tree.nodes[number].linked > 0 {
            tree.nodes[number].is_dropped = true;
        }
    }
}

/// Drops headings without content: a final heading, and those whose section was dropped.
fn drop_empty_headings(tree: &mut Tree<'_>, root: usize) {
    let mut empty = Vec::new();
    let mut pending: Vec<(usize, u8)> = Vec::new();
    let mut until = 0;
    for number in tree.below(root) {
        let node = &tree.nodes[number];
        match node.tag {
            Tag::H(level) => {
                let is_cut = |number: usize| tree.next_is_dropped(number);
                pending.retain(|(each, own)| {
                    if *own >= level && is_cut(*each) {
                        empty.push(*each);
                    }
                    *own < level
                });
                pending.push((number, level));
                until = number;
            }
            Tag::Text if !node.text.trim().is_empty() => {
                let mut each = node.parent;
                while each > until {
                    each = tree.nodes[each].parent;
                }
                if each != until || until == 0 {
                    pending.clear();
                }
            }
            Tag::Img => pending.clear(),
            _ => {}
        }
    }
    empty.extend(pending.into_iter().filter(|(_, level)| *level > 1).map(|(number, _)| number));
    for number in empty {
        tree.nodes[number].is_dropped = true;
    }
}
