//! Writes plain text: every word of the tree, in order. A block begins a line; tabs divide the cells of a row.

use crate::code::code_text;
use crate::formula::{formula, mark};
use crate::grid::is_layout;
use crate::spelling::visible;
use crate::tag::Tag;
use crate::tree::Tree;

/// The text of an element.
pub(crate) fn plain(tree: &Tree<'_>, root: usize) -> String {
    let mut writer = Writer { tree, out: String::with_capacity(tree.nodes[root].size + 16), tables: 0, cells: 0 };
    writer.write(root);
    visible(&writer.out)
}

/// The text of an element on one line.
pub(crate) fn one_line(tree: &Tree<'_>, root: usize) -> String {
    let text = plain(tree, root);
    if text.contains(['\n', '\t']) {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        text
    }
}

enum Step {
    Enter(usize),
    Leave(Tag),
}

struct Writer<'t, 'a> {
    tree: &'t Tree<'a>,
    out: String,
    /// The number of open tables of data, whose rows are lines.
    tables: usize,
    /// The number of cells so far in the row.
    cells: usize,
}

impl Writer<'_, '_> {
    fn write(&mut self, root: usize) {
        let mut waiting = vec![];
        self.push_children(root, &mut waiting);
        while let Some(step) = waiting.pop() {
            match step {
                Step::Enter(number) => self.enter(number, &mut waiting),
                Step::Leave(Tag::Table) => {
                    self.tables = self.tables.saturating_sub(1);
                    self.line();
                }
                Step::Leave(tag) => self.divide(tag),
            }
        }
    }

    fn push_children(&self, number: usize, waiting: &mut Vec<Step>) {
        let start = waiting.len();
        waiting.extend(self.tree.children(number).map(Step::Enter));
        waiting[start..].reverse();
    }

    fn enter(&mut self, number: usize, waiting: &mut Vec<Step>) {
        let node = &self.tree.nodes[number];
        match node.tag {
            Tag::Text => self.text(&node.text),
            Tag::Br => self.divide(Tag::P),
            Tag::Tex | Tag::Wbr | Tag::Img | Tag::Embed | Tag::Hr => {}
            Tag::Pre => {
                self.line();
                let code = code_text(self.tree, number);
                self.out.push_str(code.strip_prefix('\n').unwrap_or(&code).trim_end());
                self.line();
            }
            Tag::Math if node.size == 0 => {
                if let Some((text, _)) = formula(self.tree, number) {
                    self.text(&format!("${text}$"));
                }
            }
            tag => {
                if matches!(tag, Tag::Sup | Tag::Sub) {
                    self.out.push_str(mark(self.tree, number, self.out.chars().next_back()));
                }
                if tag == Tag::Table && !is_layout(self.tree, number) {
                    self.line();
                    self.tables += 1;
                    waiting.push(Step::Leave(Tag::Table));
                } else if self.tables > 0 && matches!(tag, Tag::Td | Tag::Th) {
                    self.cell();
                } else if tag.divides() {
                    self.divide(tag);
                    waiting.push(Step::Leave(if tag == Tag::Table { Tag::Div } else { tag }));
                }
                self.push_children(number, waiting);
            }
        }
    }

    /// Divides blocks by lines; within a table of data rows by lines and cells by tabs.
    fn divide(&mut self, tag: Tag) {
        match tag {
            _ if self.tables == 0 => self.line(),
            Tag::Tr | Tag::RowGroup | Tag::Caption => self.line(),
            _ => self.text(" "),
        }
    }

    fn cell(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if self.cells > 0 {
            self.out.push('\t');
        }
        self.cells += 1;
    }

    fn line(&mut self) {
        self.cells = 0;
        self.out.truncate(self.out.trim_end().len());
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn text(&mut self, text: &str) {
        let is_after_blank = self.out.is_empty() || self.out.ends_with([' ', '\n', '\t']);
        self.out.push_str(if is_after_blank { text.trim_start() } else { text });
    }
}
