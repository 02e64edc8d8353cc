//! Reads the text of a body, as Lexbor writes it, into a tree.

use std::borrow::Cow;

use memchr::memchr;

use crate::attributes::{attribute_of, find_end, unescaped, StartTag};
use crate::code::is_line_of_code;
use crate::links::Links;
use crate::tag::{is_never_read, is_raw, is_void, Tag};
use crate::tree::{Tree, ROOT};
use crate::visible::{repeats_formula, Panels, Sight};
use crate::Link;

const DEPTH_MAX: usize = 150;
const NODES_MAX: usize = 450_000;

/// Reads a well-formed body and all of its links.
pub(crate) fn read(html: &str, sight: Sight) -> (Tree<'_>, Vec<Link>) {
    let mut reader = Reader {
        tree: Tree::new(html.len() / 24 + 16),
        links: Links::default(),
        panels: Panels::default(),
        open: Vec::new(),
        parent: ROOT,
        pre: 0,
        headings: 0,
        unread: 0,
        picture: Picture::None,
        is_within_hidden: false,
        sight,
    };
    let mut rest = html;
    while !rest.is_empty() {
        let at = memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
        if at > 0 {
            reader.text(&rest[..at]);
            rest = &rest[at..];
        } else if rest.starts_with("<!--") {
            rest = &rest[rest.find("-->").map_or(rest.len(), |end| end + 3)..];
        } else if rest.starts_with("</") || rest.starts_with("<!") || rest.starts_with("<?") {
            let end = memchr(b'>', rest.as_bytes()).unwrap_or(rest.len());
            if let Some(name) = rest[..end].strip_prefix("</") {
                reader.end_tag(name);
            }
            rest = &rest[(end + 1).min(rest.len())..];
        } else {
            let tag = StartTag::read(rest);
            rest = reader.start_tag(&tag, &rest[tag.end..]);
        }
    }
    reader.tree.measure();
    (reader.tree, reader.links.found)
}

/// An open element below the body.
struct Open<'a> {
    name: &'a str,
    /// The node that its children are added to.
    parent: usize,
    /// What to restore when it ends, for text within a drawing.
    resumed: Option<usize>,
    /// Whether its white space is kept.
    is_pre: bool,
}

/// Whether a drawing (SVG) is open, whose `text` elements are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Picture {
    None,
    /// Open since this number of open elements.
    Since(usize),
    /// Within a part that is not drawn, which began at this number of open elements.
    Silent(usize, usize),
}

/// The tree so far, and the open elements.
struct Reader<'a> {
    tree: Tree<'a>,
    links: Links,
    panels: Panels<'a>,
    open: Vec<Open<'a>>,
    parent: usize,
    /// The numbers of open `pre` elements, of open elements whose buttons are read, and of open elements that are skipped.
    pre: usize,
    headings: usize,
    unread: usize,
    picture: Picture,
    is_within_hidden: bool,
    sight: Sight,
}

impl<'a> Reader<'a> {
    fn text(&mut self, raw: &'a str) {
        if self.links.is_open() {
            self.links.text(&unescaped(raw));
        }
        if self.unread > 0 {
            if self.is_within_hidden {
                self.tree.hidden_bytes += raw.trim().len();
            }
        } else if self.tree.nodes.len() >= NODES_MAX {
            self.tree.cut_bytes += raw.trim().len();
        } else {
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
        let Some(closed) = self.open.pop_if(|open| open.name == name) else { return };
        self.picture = match self.picture {
            Picture::Since(start) if self.open.len() == start => Picture::None,
            Picture::Silent(start, part) if self.open.len() == part => Picture::Since(start),
            other => other,
        };
        if let Some(unread) = closed.resumed {
            self.unread = unread;
            self.parent = self.open.last().map_or(ROOT, |open| open.parent);
        } else if self.unread > 0 {
            self.unread -= 1;
        } else {
            self.parent = self.open.last().map_or(ROOT, |open| open.parent);
            self.pre -= usize::from(closed.is_pre);
            self.headings -= usize::from(holds_questions(name) && self.headings > 0);
        }
    }

    /// Opens an element, of which `rest` is the text behind its tag. Returns the text to read next.
    fn start_tag(&mut self, tag: &StartTag<'a>, rest: &'a str) -> &'a str {
        let (name, attributes) = (tag.name, tag.attributes);
        if name == "body" && self.open.is_empty() {
            return rest;
        }
        if name == "a" || name == "area" {
            self.links.begin(attributes, name == "area");
        }
        if tag.may_open {
            self.panels.add(attributes);
        }
        let is_out = self.is_out(tag);
        if is_raw(name) {
            return self.raw(tag, rest, is_out);
        }
        let (mut resumed, mut is_pre) = (None, false);
        let kind = Tag::of(name);
        let mut node = self.parent;
        let is_full = self.tree.nodes.len() >= NODES_MAX;
        if self.unread == 0
            && !is_full
            && (!is_out || matches!(kind, Tag::Embed | Tag::Control) && !self.is_within_hidden)
        {
            node = self.tree.push(kind, name, Cow::Borrowed(""), attributes, self.parent);
            self.tree.nodes[node].names = tag.names;
        } else if name == "source" {
            self.tree.add_source(attributes);
        }
        if is_void(name) {
            return rest;
        }
        let is_drawn_text = matches!(self.picture, Picture::Since(_)) && matches!(name, "text" | "foreignObject");
        if is_drawn_text && !is_full {
            resumed = Some(self.unread);
            self.unread = 0;
            node = self.tree.push(Tag::OtherBlock, name, Cow::Borrowed(""), attributes, self.parent);
            self.parent = node;
        } else if is_out {
            self.draw(name);
            self.unread += 1;
        } else {
            is_pre = is_preformatted(name)
                || kind == Tag::Td && tag.names.class.split_ascii_whitespace().any(is_line_of_code);
            self.pre += usize::from(is_pre);
            self.headings += usize::from(holds_questions(name));
            if self.open.len() < DEPTH_MAX {
                self.parent = node;
            }
        }
        self.open.push(Open { name, parent: self.parent, resumed, is_pre });
        rest
    }

    /// Whether an element and its content are not read.
    fn is_out(&mut self, tag: &StartTag<'a>) -> bool {
        if self.unread > 0 {
            return true;
        }
        let (name, attributes) = (tag.name, tag.attributes);
        let is_out = match name {
            "button" => !self.is_question(attributes),
            "template" => attribute_of(attributes, "shadowrootmode").is_none_or(|mode| mode != "open"),
            "dialog" => attribute_of(attributes, "open").is_none(),
            "annotation" => attribute_of(attributes, "encoding").is_none_or(|kind| !kind.contains("x-tex")),
            "annotation-xml" => true,
            _ => is_never_read(name),
        };
        self.is_within_hidden = !is_out && tag.may_hide && self.panels.is_hidden(attributes, self.sight);
        is_out || self.is_within_hidden || repeats_formula(tag.names.class)
    }

    /// Whether a button has the text of a heading, a question or a tab.
    fn is_question(&self, attributes: &str) -> bool {
        self.headings > 0
            || attributes.contains("aria-controls")
                && (attribute_of(attributes, "role").as_deref() == Some("tab")
                    || attributes.contains("aria-expanded") && !attributes.contains("aria-haspopup"))
    }

    /// Notes that a drawing begins, or a part of it that is not drawn.
    fn draw(&mut self, name: &str) {
        self.picture = match (self.picture, name) {
            (Picture::None, "svg") if self.unread == 0 && !self.is_within_hidden => Picture::Since(self.open.len()),
            (
                Picture::Since(start),
                "defs" | "symbol" | "title" | "desc" | "metadata" | "clipPath" | "mask" | "marker" | "pattern",
            ) => Picture::Silent(start, self.open.len()),
            (other, _) => other,
        };
    }

    /// Reads an element whose content is not markup. Its end tag comes next and closes nothing.
    fn raw(&mut self, tag: &StartTag<'a>, rest: &'a str, is_out: bool) -> &'a str {
        let end = match tag.name {
            // Nothing in the page ends this element.
            "plaintext" => rest.rfind("</plaintext>").unwrap_or(rest.len()),
            name => find_end(rest, name),
        };
        let kind = Tag::of(tag.name);
        if self.unread == 0 && (!is_out || kind == Tag::Embed && !self.is_within_hidden) {
            if self.tree.nodes.len() < NODES_MAX {
                let node = self.tree.push(kind, tag.name, Cow::Borrowed(""), tag.attributes, self.parent);
                if !is_out {
                    self.tree.push(Tag::Text, "", Cow::Borrowed(&rest[..end]), "", node);
                }
            } else if !is_out {
                self.tree.cut_bytes += rest[..end].trim().len();
            }
        }
        &rest[end..]
    }
}

fn is_preformatted(name: &str) -> bool {
    matches!(name, "pre" | "listing")
}

/// Elements whose buttons show their text.
fn holds_questions(name: &str) -> bool {
    matches!(name, "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "dt" | "summary" | "legend")
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
