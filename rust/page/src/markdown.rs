//! Writes Markdown (headings, paragraphs, lists, tables, code, quotes, links, images) and plain text with one line per
//! block. The depth of the tree is limited, and so is the recursion.

use std::sync::LazyLock;

use regex::Regex;

use crate::address::joined;
use crate::parts::{language, rows};
use crate::tag::Tag;
use crate::tree::Tree;

static LINE_START: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:#{1,6}\s|[-+]\s|>|[0-9]+[.)]\s)").expect("a constant"));

/// Short rows are padded with at most about this many empty cells.
const PADDED_CELLS_MAX: usize = 10_000;

/// The element's content as Markdown, without white space at its ends.
pub(crate) fn markdown(tree: &Tree<'_>, root: usize, base: &str, has_images: bool) -> String {
    let writer = Writer { tree, base, is_plain: false, has_images };
    let mut out = String::with_capacity(tree.nodes[root].size * 2);
    for block in writer.blocks(root) {
        if !block.trim().is_empty() {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push_str(&block);
        }
    }
    visible(&without_gaps(&out))
}

/// The element's text.
pub(crate) fn plain(tree: &Tree<'_>, root: usize) -> String {
    let writer = Writer { tree, base: "", is_plain: true, has_images: false };
    let mut out = String::with_capacity(tree.nodes[root].size);
    for block in writer.blocks(root) {
        let line = block.trim();
        if !line.is_empty() {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(line);
        }
    }
    visible(&out)
}

struct Writer<'t, 'a> {
    tree: &'t Tree<'a>,
    base: &'t str,
    is_plain: bool,
    has_images: bool,
}

impl Writer<'_, '_> {
    fn blocks(&self, number: usize) -> Vec<String> {
        let mut out = Vec::new();
        let mut line = String::new();
        for child in self.tree.children(number) {
            let tag = self.tree.nodes[child].tag;
            if tag.is_block() || (!tag.is_inline() && self.has_block(child)) {
                self.flush(&mut line, &mut out);
                self.block(child, &mut out);
            } else {
                self.inline(child, &mut line);
            }
        }
        self.flush(&mut line, &mut out);
        out
    }

    fn flush(&self, line: &mut String, out: &mut Vec<String>) {
        if line.is_empty() {
            return;
        }
        let mut text = tidy(line);
        line.clear();
        if !text.is_empty() {
            if !self.is_plain && LINE_START.is_match(&text) {
                text.insert(0, '\\');
            }
            out.push(text);
        }
    }

    fn has_block(&self, number: usize) -> bool {
        self.tree.children(number).any(|child| self.tree.nodes[child].tag.is_block())
    }

    fn block(&self, number: usize, out: &mut Vec<String>) {
        match self.tree.nodes[number].tag {
            Tag::H(level) => {
                let text = self.one_line(number);
                if !text.is_empty() {
                    out.push(if self.is_plain { text } else { format!("{} {text}", &"######"[..usize::from(level)]) });
                }
            }
            Tag::Hr if self.is_plain => {}
            Tag::Hr => out.push("---".to_owned()),
            Tag::Pre => self.code(number, out),
            Tag::Ul | Tag::Ol | Tag::Menu => {
                let items = self.items(number);
                if !items.is_empty() {
                    out.push(items.join("\n"));
                }
            }
            Tag::Table => self.table(number, out),
            Tag::Blockquote if !self.is_plain => {
                let text = self.blocks(number).join("\n\n");
                if !text.trim().is_empty() {
                    let lines: Vec<String> =
                        text.trim().lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
                    out.push(lines.join("\n"));
                }
            }
            Tag::Dd if !self.is_plain => {
                let mut inner = self.blocks(number);
                if let Some(first) = inner.first_mut() {
                    first.insert_str(0, ": ");
                }
                out.append(&mut inner);
            }
            _ => out.append(&mut self.blocks(number)),
        }
    }

    fn code(&self, number: usize, out: &mut Vec<String>) {
        let raw = self.tree.raw_text(number).replace("\r\n", "\n");
        let code = raw.strip_prefix('\n').unwrap_or(&raw).trim_end();
        if code.trim().is_empty() {
            return;
        }
        if self.is_plain {
            out.push(code.to_owned());
            return;
        }
        let mut fence = "```".to_owned();
        while code.contains(&fence) {
            fence.push('`');
        }
        out.push(format!("{fence}{}\n{code}\n{fence}", language(self.tree, number)));
    }

    fn items(&self, number: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let mut count = 1;
        for child in self.tree.children(number) {
            let mut parts = Vec::new();
            match self.tree.nodes[child].tag {
                Tag::Li => parts = self.blocks(child),
                Tag::Ul | Tag::Ol => self.block(child, &mut parts),
                _ => continue,
            }
            parts.retain(|part| !part.trim().is_empty());
            if parts.is_empty() {
                continue;
            }
            if self.is_plain {
                lines.append(&mut parts);
                continue;
            }
            let mark = if self.tree.nodes[number].tag == Tag::Ol { format!("{count}. ") } else { "- ".to_owned() };
            count += 1;
            let text = parts.join("\n");
            lines.push(if text.contains('\n') {
                format!("{mark}{}", text.replace('\n', &format!("\n{}", " ".repeat(mark.len()))))
            } else {
                mark + &text
            });
        }
        lines
    }

    fn table(&self, number: usize, out: &mut Vec<String>) {
        let rows = rows(self.tree, number);
        let is_layout = |tag: Tag| {
            matches!(tag, Tag::Ul | Tag::Ol | Tag::Table | Tag::Pre | Tag::H(1..=3) | Tag::Section | Tag::Article)
        };
        // A table with blocks in its cells is a layout and not data.
        let cells = || rows.iter().flatten().copied();
        let is_text =
            |cell: usize| self.tree.children(cell).filter(|each| self.tree.nodes[*each].tag == Tag::P).nth(1).is_some();
        if cells().any(|cell| is_text(cell) || self.tree.below(cell).any(|each| is_layout(self.tree.nodes[each].tag))) {
            for cell in cells() {
                out.append(&mut self.blocks(cell));
            }
            return;
        }
        let texts: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| self.one_line(*cell)).collect()).collect();
        if self.is_plain {
            out.extend(texts.iter().map(|row| row.join("\t")));
            return;
        }
        let width = texts.iter().map(Vec::len).max().unwrap_or(0);
        let count: usize = texts.iter().map(Vec::len).sum();
        // Short rows are padded, unless one row with many cells would add too many cells to the others.
        let is_filled = texts.len().saturating_mul(width) <= PADDED_CELLS_MAX + 4 * count;
        let mut lines = Vec::with_capacity(texts.len() + 1);
        for (at_row, row) in texts.iter().enumerate() {
            let width = if is_filled || at_row == 0 { width } else { row.len() };
            let cells = (0..width).map(|at| row.get(at).map_or(String::new(), |cell| cell.replace('|', "\\|")));
            lines.push(format!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
            if at_row == 0 {
                lines.push(format!("| {} |", vec!["---"; width].join(" | ")));
            }
        }
        if !lines.is_empty() {
            out.push(lines.join("\n"));
        }
    }

    fn one_line(&self, number: usize) -> String {
        let mut line = String::new();
        self.inlines(number, &mut line);
        tidy(&line).replace('\n', " ")
    }

    fn inlines(&self, number: usize, out: &mut String) {
        for child in self.tree.children(number) {
            self.inline(child, out);
        }
    }

    fn inline(&self, number: usize, out: &mut String) {
        let node = &self.tree.nodes[number];
        match node.tag {
            Tag::Text if self.is_plain => out.push_str(&node.text),
            Tag::Text => escape(&node.text, out),
            Tag::Wbr => {}
            Tag::Br => out.push('\n'),
            Tag::Img => {
                if self.has_images && !self.is_plain {
                    self.image(number, out);
                }
            }
            Tag::Code => {
                let code = self.tree.line(number);
                if self.is_plain || code.is_empty() {
                    out.push_str(&code);
                } else {
                    let ticks = if code.contains('`') { "``" } else { "`" };
                    out.push_str(ticks);
                    out.push_str(&code);
                    out.push_str(ticks);
                }
            }
            tag if tag.is_block() => {
                out.push(' ');
                self.inlines(number, out);
                out.push(' ');
            }
            _ if self.is_plain => self.inlines(number, out),
            Tag::Strong => self.wrapped(number, "**", out),
            Tag::Em => self.wrapped(number, "*", out),
            Tag::Del => self.wrapped(number, "~~", out),
            Tag::A => self.link(number, out),
            _ => self.inlines(number, out),
        }
    }

    fn wrapped(&self, number: usize, mark: &str, out: &mut String) {
        let from = out.len();
        self.inlines(number, out);
        let core = out[from..].trim();
        if !core.is_empty() && !core.contains('\n') {
            between(out, from, mark, mark);
        }
    }

    fn link(&self, number: usize, out: &mut String) {
        let from = out.len();
        self.inlines(number, out);
        let core = out[from..].trim();
        let href = self.tree.attribute(number, "href").unwrap_or_default();
        let href = href.trim();
        if core.is_empty() || core.contains('\n') || href.is_empty() || href.starts_with('#') {
            return;
        }
        if let Some(target) = target(self.base, href) {
            between(out, from, "[", &format!("]({target})"));
        }
    }

    fn image(&self, number: usize, out: &mut String) {
        let source = self.tree.attribute(number, "src").unwrap_or_default();
        let Some(target) = target(self.base, source.trim()) else { return };
        let alt = self.tree.attribute(number, "alt").unwrap_or_default();
        out.push_str("![");
        escape(&alt.split_whitespace().collect::<Vec<_>>().join(" "), out);
        out.push_str("](");
        out.push_str(&target);
        out.push(')');
    }
}

/// Puts marks around the text written since `from`, inside its white space.
fn between(out: &mut String, from: usize, before: &str, after: &str) {
    let written = &out[from..];
    let lead = written.len() - written.trim_start().len();
    let tail = written.len() - written.trim_end().len();
    let end = out.len() - tail;
    out.insert_str(end, after);
    out.insert_str(from + lead, before);
}

fn target(base: &str, href: &str) -> Option<String> {
    let target = joined(base, href);
    if !["http://", "https://", "mailto:"].iter().any(|start| target.starts_with(start)) {
        return None;
    }
    if !target.contains([' ', '(', ')', '\n', '\t', '\r']) {
        return Some(target);
    }
    let mut out = String::with_capacity(target.len() + 8);
    for c in target.chars() {
        match c {
            ' ' => out.push_str("%20"),
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '\n' | '\t' | '\r' => {}
            c => out.push(c),
        }
    }
    Some(out)
}

fn escape(text: &str, out: &mut String) {
    let is_special = |c: char| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<');
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        out.push_str(&rest[..at]);
        out.push('\\');
        out.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Collapses white space and removes it at line ends.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (count, line) in text.split('\n').enumerate() {
        if count > 0 {
            out.push('\n');
        }
        let mut is_after_blank = false;
        for c in line.trim().chars() {
            if c != ' ' || !is_after_blank {
                out.push(c);
            }
            is_after_blank = c == ' ';
        }
    }
    let trimmed = out.trim();
    if trimmed.len() == out.len() {
        out
    } else {
        trimmed.to_owned()
    }
}

fn without_gaps(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut feeds = 0;
    for c in text.chars() {
        feeds = if c == '\n' { feeds + 1 } else { 0 };
        if feeds <= 2 {
            out.push(c);
        }
    }
    out
}

/// Removes invisible characters, because hidden text is not meant for the reader.
fn visible(text: &str) -> String {
    let is_unseen = |c: char| {
        matches!(
            c,
            '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2064}'
                | '\u{feff}'
                | '\u{ad}'
                | '\u{e0000}'..='\u{e007f}'
        )
    };
    let text = text.trim();
    if text.contains(is_unseen) {
        text.chars().filter(|c| !is_unseen(*c)).collect::<String>().trim().to_owned()
    } else {
        text.to_owned()
    }
}
