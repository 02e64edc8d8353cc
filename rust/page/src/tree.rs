//! A page as a tree of its visible elements, with the sizes that the selection of the content uses.
//!
//! Elements nested deeper than `reader::DEPTH_MAX` become siblings of their ancestor at that depth, which limits
//! recursion. Nodes beyond `reader::NODES_MAX` are dropped, and counted in `cut_bytes`.

use std::borrow::Cow;

use crate::attributes::{attribute_of, unescaped, Attributes, Names};
use crate::tag::{is_bare, Tag};

/// The attribute that a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Name,
    Role,
    Item,
}

/// The body.
pub(crate) const ROOT: usize = 0;
const NONE: usize = usize::MAX;

/// An element or a run of text. Sizes are in characters: `size` of all text inside, `linked` of the text inside links.
/// `links` is the number of links. An anchor without a target does not count, nor does a heading's anchor to itself.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) tag: Tag,
    pub(crate) name: &'a str,
    pub(crate) text: Cow<'a, str>,
    attributes: &'a str,
    pub(crate) names: Names<'a>,
    pub(crate) parent: usize,
    first: usize,
    last: usize,
    next: usize,
    pub(crate) is_dropped: bool,
    pub(crate) size: usize,
    pub(crate) linked: usize,
    pub(crate) links: usize,
    pub(crate) is_link: bool,
}

/// The tree. Nodes are numbered in document order.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) nodes: Vec<Node<'a>>,
    /// The bytes of text in hidden elements, which are skipped by default.
    pub(crate) hidden_bytes: usize,
    /// The bytes of visible text beyond the most nodes that are read.
    pub(crate) cut_bytes: usize,
    /// Nodes that are never part of the text: links of headings to themselves, numbers of lines.
    pub(crate) marks: Vec<usize>,
}

impl<'a> Tree<'a> {
    /// A tree of the body alone.
    pub(crate) fn new(capacity: usize) -> Tree<'a> {
        let mut tree = Tree { nodes: Vec::with_capacity(capacity), hidden_bytes: 0, cut_bytes: 0, marks: Vec::new() };
        tree.push(Tag::Body, "body", Cow::Borrowed(""), "", NONE);
        tree
    }

    pub(crate) fn push(
        &mut self,
        tag: Tag,
        name: &'a str,
        text: Cow<'a, str>,
        attributes: &'a str,
        parent: usize,
    ) -> usize {
        let size = if text.is_ascii() { text.len() } else { text.chars().count() };
        let number = self.nodes.len();
        let href = if tag == Tag::A { attribute_of(attributes, "href") } else { None };
        // A heading's anchor to itself is not a link.
        let is_anchor = || href.as_ref().is_some_and(|href| href.starts_with('#'));
        let is_link = href.is_some() && !(matches!(self.nodes[parent].tag, Tag::H(_)) && is_anchor());
        self.nodes.push(Node {
            tag,
            name,
            text,
            attributes,
            names: Names::default(),
            parent,
            first: NONE,
            last: NONE,
            next: NONE,
            is_dropped: false,
            size,
            linked: 0,
            links: 0,
            is_link,
        });
        if parent != NONE {
            match self.nodes[parent].last {
                NONE => self.nodes[parent].first = number,
                last => self.nodes[last].next = number,
            }
            self.nodes[parent].last = number;
        }
        number
    }

    /// Gives the last element the address of its `source` if it is a medium without one.
    pub(crate) fn add_source(&mut self, attributes: &'a str) {
        if let Some(last) = self.nodes.last_mut().filter(|last| matches!(last.name, "video" | "audio")) {
            if attribute_of(last.attributes, "src").is_none() {
                last.attributes = attributes;
            }
        }
    }

    pub(crate) fn measure(&mut self) {
        for number in (1..self.nodes.len()).rev() {
            let node = &mut self.nodes[number];
            if node.is_link {
                (node.linked, node.links) = (node.size, 1);
            }
            let (parent, size, linked, links) = (node.parent, node.size, node.linked, node.links);
            let parent = &mut self.nodes[parent];
            parent.size += size;
            parent.linked += linked;
            parent.links += links;
        }
    }

    /// The size of text outside links.
    pub(crate) fn unlinked(&self, number: usize) -> usize {
        self.nodes[number].size.saturating_sub(self.nodes[number].linked)
    }

    /// For each node, the number behind its last descendant.
    pub(crate) fn ends(&self) -> Vec<usize> {
        let mut ends: Vec<usize> = (1..=self.nodes.len()).collect();
        for number in (1..self.nodes.len()).rev() {
            let parent = self.nodes[number].parent;
            ends[parent] = ends[parent].max(ends[number]);
        }
        ends
    }

    /// Whether an element has one of these class names.
    pub(crate) fn has_class(&self, number: usize, is_one: impl Fn(&str) -> bool) -> bool {
        self.nodes[number].names.class.split_ascii_whitespace().any(is_one)
    }

    /// Whether the next sibling of a node is dropped.
    pub(crate) fn next_is_dropped(&self, number: usize) -> bool {
        let mut next = self.nodes[number].next;
        while next != NONE && self.nodes[next].tag == Tag::Text && self.nodes[next].text.trim().is_empty() {
            next = self.nodes[next].next;
        }
        next != NONE && self.nodes[next].is_dropped
    }

    /// Restores every dropped node except for the marks.
    pub(crate) fn take_back(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.is_dropped = false);
        self.drop_marks();
    }

    pub(crate) fn drop_marks(&mut self) {
        for number in &self.marks {
            self.nodes[*number].is_dropped = true;
        }
    }

    pub(crate) fn children(&self, number: usize) -> Children<'_, 'a> {
        Children { tree: self, next: self.nodes[number].first }
    }

    /// The siblings behind a node.
    pub(crate) fn behind(&self, number: usize) -> Children<'_, 'a> {
        Children { tree: self, next: self.nodes[number].next }
    }

    /// The descendants of a node in document order.
    pub(crate) fn below(&self, number: usize) -> Below<'_, 'a> {
        let mut waiting = Vec::new();
        if self.nodes[number].first != NONE {
            waiting.push(self.nodes[number].first);
        }
        Below { tree: self, waiting }
    }

    /// The value of an attribute; `""` if it has none.
    pub(crate) fn attribute(&self, number: usize, name: &str) -> Option<Cow<'a, str>> {
        attribute_of(self.nodes[number].attributes, name)
    }

    /// The names and values of a node's attributes.
    pub(crate) fn attributes(&self, number: usize) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        Attributes { rest: self.nodes[number].attributes }.map(|(name, value)| (name, unescaped(value)))
    }

    /// Whether a node has attributes that describe it.
    pub(crate) fn has_hints(&self, number: usize) -> bool {
        let node = &self.nodes[number];
        !node.attributes.is_empty() && !is_bare(node.name) && node.tag != Tag::Control
    }

    /// The attributes that hint at the meaning of a node, as written.
    pub(crate) fn hints_of(&self, number: usize) -> impl Iterator<Item = (Source, &'a str)> {
        Attributes { rest: self.nodes[number].attributes }.filter_map(|(name, value)| match name {
            "class" | "id" => Some((Source::Name, value)),
            "role" => Some((Source::Role, value)),
            "itemprop" => Some((Source::Item, value)),
            _ => None,
        })
    }

    /// The text of all descendants, as it is joined in the page.
    pub(crate) fn tight_text(&self, number: usize) -> String {
        self.below(number).map(|each| &*self.nodes[each].text).collect()
    }

    /// The text that follows an element directly.
    pub(crate) fn text_behind(&self, number: usize) -> Option<&str> {
        let next = self.nodes.get(self.nodes[number].next)?;
        (next.tag == Tag::Text && !next.is_dropped).then(|| &*next.text)
    }

    /// Whether a field is the box of a task in a list.
    pub(crate) fn is_box(&self, number: usize) -> bool {
        let parent = self.nodes[number].parent;
        self.nodes[number].name == "input"
            && self.attribute(number, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("checkbox"))
            && (self.nodes[parent].tag == Tag::Li
                || parent != ROOT && self.nodes[self.nodes[parent].parent].tag == Tag::Li)
    }

    /// The text of all descendants on one line, with single spaces.
    pub(crate) fn line(&self, number: usize) -> String {
        let mut out = String::new();
        for each in self.below(number) {
            for word in self.nodes[each].text.split_whitespace() {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(word);
            }
        }
        out
    }
}

/// The children that were not dropped.
pub(crate) struct Children<'t, 'a> {
    tree: &'t Tree<'a>,
    next: usize,
}

impl Iterator for Children<'_, '_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.next != NONE {
            let number = self.next;
            let node = &self.tree.nodes[number];
            self.next = node.next;
            if !node.is_dropped {
                return Some(number);
            }
        }
        None
    }
}

pub(crate) struct Below<'t, 'a> {
    tree: &'t Tree<'a>,
    waiting: Vec<usize>,
}

impl Iterator for Below<'_, '_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while let Some(number) = self.waiting.pop() {
            let node = &self.tree.nodes[number];
            if node.next != NONE {
                self.waiting.push(node.next);
            }
            if node.is_dropped {
                continue;
            }
            if node.first != NONE {
                self.waiting.push(node.first);
            }
            return Some(number);
        }
        None
    }
}
