//! A page as a tree of its visible elements, with the sizes that the selection of the content uses.
//!
//! Elements nested deeper than `DEPTH_MAX` become siblings of their ancestor at that depth, which limits recursion.
//! Nodes beyond `NODES_MAX` are dropped.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memchr;
use regex::Regex;

use crate::address::joined;
use crate::attributes::{attribute_of, end_of_tag, escape, find_end, unescaped, Attributes};
use crate::links::Links;
use crate::tag::{is_bare, is_never_read, is_raw, is_void, Tag};
use crate::Link;

const DEPTH_MAX: usize = 150;
const NODES_MAX: usize = 300_000;
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

static HIDDEN_STYLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:[^.0-9]|$)").expect("a constant")
});

/// An element or a run of text. Sizes are in characters: `size` of all text inside, `linked` of the text inside links.
/// `links` is the number of links. An anchor without a target does not count, nor does a heading's anchor to itself.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) tag: Tag,
    pub(crate) name: &'a str,
    pub(crate) text: Cow<'a, str>,
    attributes: &'a str,
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
    /// The size in bytes of text in hidden elements, which are skipped by default.
    pub(crate) hidden_bytes: usize,
}

/// Reads a body: the tree so far, and the open elements.
struct Reader<'a> {
    tree: Tree<'a>,
    links: Links,
    /// The open elements below the body: the node that children are added to, and the element's name.
    open: Vec<(usize, &'a str)>,
    parent: usize,
    /// The numbers of open `pre` elements, and of open elements that are skipped.
    pre: usize,
    unread: usize,
    is_within_hidden: bool,
    /// Hidden elements are read too.
    has_hidden: bool,
}

impl<'a> Reader<'a> {
    fn text(&mut self, raw: &'a str) {
        if self.links.is_open() {
            self.links.text(&unescaped(raw));
        }
        if self.unread > 0 && self.is_within_hidden {
            self.tree.hidden_bytes += raw.trim().len();
        }
        if self.unread == 0 && self.tree.nodes.len() < NODES_MAX {
            let text = if self.pre > 0 { unescaped(raw) } else { single_blanks(unescaped(raw)) };
            self.tree.push(Tag::Text, "", text, "", self.parent);
        }
    }

    fn end_tag(&mut self, name: &str) {
        if name == "a" || name == "area" {
            self.links.end();
        }
        // The serialized input closes elements in order, so any other end tag belongs to an element that was not
        // opened.
        if self.open.last().is_some_and(|(_, open_name)| *open_name == name) {
            self.open.pop();
            if self.unread > 0 {
                self.unread -= 1;
            } else {
                self.parent = self.open.last().map_or(ROOT, |(node, _)| *node);
                self.pre -= usize::from(name == "pre" && self.pre > 0);
            }
        }
    }

    /// Opens an element. `inside` is its tag without the brackets, and `rest` the text after it. Returns the text to
    /// read next.
    fn start_tag(&mut self, inside: &'a str, rest: &'a str) -> &'a str {
        let cut = inside.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(cut);
        if name == "body" && self.open.is_empty() {
            return rest;
        }
        if name == "a" || name == "area" {
            self.links.begin(attributes, name == "area");
        }
        let is_unseen = || !self.has_hidden && !is_bare(name) && is_hidden(attributes);
        let mut is_out = self.unread > 0 || is_never_read(name) || self.tree.nodes.len() >= NODES_MAX;
        if self.unread == 0 {
            self.is_within_hidden = !is_out && is_unseen();
            is_out |= self.is_within_hidden;
        }
        if is_raw(name) {
            // Its end tag comes next and closes nothing.
            return &rest[find_end(rest, name)..];
        }
        let mut node = self.parent;
        if !is_out {
            let stored_attributes = if is_bare(name) { "" } else { attributes };
            node = self.tree.push(Tag::of(name), name, Cow::Borrowed(""), stored_attributes, self.parent);
        }
        if is_void(name) {
            return rest;
        }
        if is_out {
            self.unread += 1;
        } else {
            self.pre += usize::from(name == "pre");
            if self.open.len() < DEPTH_MAX {
                self.parent = node;
            }
        }
        self.open.push((self.parent, name));
        rest
    }
}

impl<'a> Tree<'a> {
    /// Reads a well-formed body and all of its links. `has_hidden` also reads hidden elements.
    pub(crate) fn read(html: &'a str, has_hidden: bool) -> (Tree<'a>, Vec<Link>) {
        let mut tree = Tree { nodes: Vec::with_capacity(html.len() / 24 + 16), hidden_bytes: 0 };
        tree.push(Tag::Body, "body", Cow::Borrowed(""), "", NONE);
        let mut reader = Reader {
            tree,
            links: Links::default(),
            open: Vec::new(),
            parent: ROOT,
            pre: 0,
            unread: 0,
            is_within_hidden: false,
            has_hidden,
        };
        let mut rest = html;
        while !rest.is_empty() {
            let at = memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
            if at > 0 {
                reader.text(&rest[..at]);
                rest = &rest[at..];
                continue;
            }
            if rest.starts_with("<!--") {
                let end = rest.find("-->").map_or(rest.len(), |end| end + 3);
                rest = &rest[end..];
                continue;
            }
            let end = end_of_tag(rest);
            let inside = rest[1..end].trim_end_matches('>');
            rest = &rest[end..];
            if inside.starts_with(['!', '?']) {
                continue;
            }
            if let Some(name) = inside.strip_prefix('/') {
                reader.end_tag(name);
            } else {
                rest = reader.start_tag(inside, rest);
            }
        }
        reader.tree.measure();
        (reader.tree, reader.links.found)
    }

    fn push(&mut self, tag: Tag, name: &'a str, text: Cow<'a, str>, attributes: &'a str, parent: usize) -> usize {
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

    fn measure(&mut self) {
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

    /// Whether the next sibling of a node is dropped.
    pub(crate) fn next_is_dropped(&self, number: usize) -> bool {
        let mut next = self.nodes[number].next;
        while next != NONE && self.nodes[next].tag == Tag::Text && self.nodes[next].text.trim().is_empty() {
            next = self.nodes[next].next;
        }
        next != NONE && self.nodes[next].is_dropped
    }

    /// Restores every dropped node.
    pub(crate) fn take_back(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.is_dropped = false);
    }

    pub(crate) fn children(&self, number: usize) -> Children<'_, 'a> {
        Children { tree: self, next: self.nodes[number].first }
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

    pub(crate) fn has_attributes(&self, number: usize) -> bool {
        !self.nodes[number].attributes.is_empty()
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

    /// The text of all descendants, unchanged.
    pub(crate) fn raw_text(&self, number: usize) -> String {
        self.below(number).map(|each| &*self.nodes[each].text).collect()
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

    /// The node as HTML, without scripts and styles and with absolute addresses.
    pub(crate) fn html(&self, number: usize, base: &str) -> String {
        enum Step {
            Open(usize),
            Close(usize),
        }
        let mut out = String::with_capacity(self.nodes[number].size * 2);
        let mut waiting = vec![Step::Open(number)];
        while let Some(step) = waiting.pop() {
            match step {
                Step::Close(each) => {
                    out.push_str("</");
                    out.push_str(self.nodes[each].name);
                    out.push('>');
                }
                Step::Open(each) if self.nodes[each].tag == Tag::Text => {
                    escape(&self.nodes[each].text, false, &mut out);
                }
                Step::Open(each) => {
                    self.opening(each, base, &mut out);
                    if !is_void(self.nodes[each].name) {
                        waiting.push(Step::Close(each));
                        let start = waiting.len();
                        waiting.extend(self.children(each).map(Step::Open));
                        waiting[start..].reverse();
                    }
                }
            }
        }
        out
    }

    fn opening(&self, number: usize, base: &str, out: &mut String) {
        out.push('<');
        out.push_str(self.nodes[number].name);
        for name in ["href", "src", "alt", "title", "class", "id", "colspan", "rowspan", "lang", "datetime"] {
            let Some(mut value) = self.attribute(number, name) else { continue };
            if matches!(name, "href" | "src") {
                let target = joined(base, value.trim());
                if !["http://", "https://", "mailto:", "#"].iter().any(|start| target.starts_with(start)) {
                    continue;
                }
                value = Cow::Owned(target);
            }
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape(&value, true, out);
            out.push('"');
        }
        out.push('>');
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

fn is_hidden(attributes: &str) -> bool {
    if attributes.is_empty() {
        return false;
    }
    attributes.contains("hidden")
        && (attribute_of(attributes, "hidden").is_some()
            || attribute_of(attributes, "aria-hidden").as_deref() == Some("true"))
        || attribute_of(attributes, "style").is_some_and(|style| HIDDEN_STYLE.is_match(&style))
}

fn single_blanks(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut is_after_blank = false;
    let is_single = text.chars().all(|c| {
        let is_fine = if c.is_whitespace() { c == ' ' && !is_after_blank } else { true };
        is_after_blank = c.is_whitespace();
        is_fine
    });
    if is_single {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    is_after_blank = false;
    for c in text.chars() {
        if !c.is_whitespace() {
            out.push(c);
        } else if !is_after_blank {
            out.push(' ');
        }
        is_after_blank = c.is_whitespace();
    }
    Cow::Owned(out)
}
