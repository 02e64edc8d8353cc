//! Writes Markdown: headings, paragraphs, lists, tables, code, quotes, links, images, formulas. The depth of the tree is
//! limited, and so is the recursion.

use std::sync::LazyLock;

use regex::Regex;

use crate::code::{code_text, is_code_table, language};
use crate::formula::written_formula;
use crate::images::embed;
use crate::spelling::{tidy, visible};
use crate::tag::Tag;
use crate::tree::Tree;

static LINE_START: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:#{1,6}\s|[-+]\s|>|[0-9]+[.)]\s)").expect("a constant"));

/// The element's content as Markdown, without white space at its ends.
pub(crate) fn markdown(tree: &Tree<'_>, root: usize, base: &str, has_images: bool) -> String {
    let writer = Writer { tree, base, has_images, holders: holders(tree) };
    let mut out = String::with_capacity(tree.nodes[root].size * 2);
    for block in writer.blocks(root) {
        if !block.trim().is_empty() {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push_str(&block);
        }
    }
    visible(&out)
}

/// For each node, whether a block is inside.
fn holders(tree: &Tree<'_>) -> Vec<bool> {
    let mut holders = vec![false; tree.nodes.len()];
    for number in (1..tree.nodes.len()).rev() {
        let node = &tree.nodes[number];
        if holders[number] || node.tag.divides() {
            holders[node.parent] = true;
        }
    }
    holders
}

pub(crate) struct Writer<'t, 'a> {
    pub(crate) tree: &'t Tree<'a>,
    pub(crate) base: &'t str,
    pub(crate) has_images: bool,
    holders: Vec<bool>,
}

impl Writer<'_, '_> {
    pub(crate) fn blocks(&self, number: usize) -> Vec<String> {
        let mut out = Vec::new();
        let mut line = String::new();
        for child in self.tree.children(number) {
            if self.is_block(child) {
                flush(&mut line, &mut out);
                self.block(child, &mut out);
            } else {
                self.inline(child, &mut line);
            }
        }
        flush(&mut line, &mut out);
        out
    }

    /// Whether an element begins a line, because it is a block or holds one.
    fn is_block(&self, number: usize) -> bool {
        let tag = self.tree.nodes[number].tag;
        let is_in_line = matches!(tag, Tag::Code | Tag::Math | Tag::Sup | Tag::Sub | Tag::Control | Tag::Text);
        tag.divides() || !is_in_line && self.holders[number]
    }

    pub(crate) fn holds_block(&self, number: usize) -> bool {
        self.holders[number]
    }

    pub(crate) fn block(&self, number: usize, out: &mut Vec<String>) {
        match self.tree.nodes[number].tag {
            Tag::H(level) => self.heading(number, level, out),
            Tag::Hr => out.push("---".to_owned()),
            Tag::Pre => self.code(number, out),
            Tag::Ul | Tag::Ol | Tag::Menu => {
                let items = self.items(number);
                if !items.is_empty() {
                    out.push(items);
                }
            }
            Tag::Table if is_code_table(self.tree, number) => self.code(number, out),
            Tag::Table => self.table(number, out),
            Tag::Blockquote => {
                let text = self.blocks(number).join("\n\n");
                if !text.trim().is_empty() {
                    let lines: Vec<String> =
                        text.trim().lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
                    out.push(lines.join("\n"));
                }
            }
            Tag::Dd => {
                let mut inner = self.blocks(number);
                if let Some(first) = inner.first_mut() {
                    first.insert_str(0, ": ");
                }
                out.append(&mut inner);
            }
            Tag::Embed => {
                if let Some((url, title)) = embed(self.tree, number, self.base) {
                    out.extend(self.reference(&title, &url));
                }
            }
            Tag::A => self.linked_blocks(number, out),
            Tag::Div | Tag::P if written_formula(self.tree, number).is_some() => {
                let mut line = String::new();
                self.inline(number, &mut line);
                out.push(line);
            }
            _ => out.append(&mut self.blocks(number)),
        }
    }

    /// A heading on one line.
    fn heading(&self, number: usize, level: u8, out: &mut Vec<String>) {
        let text = self.one_line(number);
        if !text.is_empty() {
            out.push(format!("{} {text}", &"######"[..usize::from(level)]));
        }
    }

    /// The blocks inside a link. The first line of text becomes the link.
    fn linked_blocks(&self, number: usize, out: &mut Vec<String>) {
        let mut inner = self.blocks(number);
        let target = self.tree.attribute(number, "href").and_then(|href| self.target(&href));
        if let Some(target) = target {
            let first = inner
                .iter_mut()
                .find(|block| !block.starts_with(['`', '|', '!', '[', '>', '-']) && !block.contains('\n'));
            if let Some(first) = first {
                let marks = first.bytes().take_while(|b| *b == b'#').count();
                let text_at = if first[marks..].starts_with(' ') { marks + 1 } else { 0 };
                *first = format!("{}[{}]({target})", &first[..text_at], &first[text_at..]);
            }
        }
        out.append(&mut inner);
    }

    fn code(&self, number: usize, out: &mut Vec<String>) {
        let raw = code_text(self.tree, number);
        let code = raw.strip_prefix('\n').unwrap_or(&raw).trim_end();
        if code.trim().is_empty() {
            return;
        }
        let mut fence = "```".to_owned();
        while code.contains(&fence) {
            fence.push('`');
        }
        out.push(format!("{fence}{}\n{code}\n{fence}", language(self.tree, number)));
    }

    pub(crate) fn one_line(&self, number: usize) -> String {
        let mut line = String::new();
        self.inlines(number, &mut line);
        let text = tidy(&line);
        if text.contains('\n') {
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        } else {
            text
        }
    }
}

/// Ends a line of text, which becomes a paragraph.
fn flush(line: &mut String, out: &mut Vec<String>) {
    if line.is_empty() {
        return;
    }
    let mut text = tidy(line);
    line.clear();
    if !text.is_empty() {
        if LINE_START.is_match(&text) {
            text.insert(0, '\\');
        }
        out.push(text);
    }
}
