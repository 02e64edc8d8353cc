//! Writes lists as Markdown.

use crate::markdown::Writer;
use crate::tag::Tag;

/// The numbers of an ordered list.
struct Numbers {
    next: i64,
    step: i64,
}

impl Writer<'_, '_> {
    /// A list, one item after the other.
    pub(crate) fn items(&self, number: usize) -> String {
        let mut numbers = self.numbers(number);
        let mut out = String::new();
        let mut indent = 2;
        for child in self.tree.children(number) {
            let tag = self.tree.nodes[child].tag;
            let mut parts = Vec::new();
            if tag == Tag::Li {
                parts = self.blocks(child);
            } else {
                self.block_or_line(child, &mut parts);
            }
            parts.retain(|part| !part.trim().is_empty());
            // A list directly in a list belongs to the item before it.
            let continues = matches!(tag, Tag::Ul | Tag::Ol) && !out.is_empty();
            let task = if tag == Tag::Li { self.task(child) } else { "" };
            if parts.is_empty() && task.is_empty() {
                continue;
            }
            if !out.is_empty() {
                out.push('\n');
            }
            if continues {
                push_indented(&" ".repeat(indent), &joined(&parts), &mut out);
                continue;
            }
            let mark = match &mut numbers {
                Some(numbers) => self.number(child, numbers),
                None => "- ".to_owned(),
            };
            indent = mark.len();
            out.push_str(&mark);
            out.push_str(task);
            let mut text = String::new();
            push_indented(&" ".repeat(indent), &joined(&parts), &mut text);
            out.push_str(text.trim_start());
        }
        out
    }

    fn block_or_line(&self, number: usize, parts: &mut Vec<String>) {
        if self.tree.nodes[number].tag.divides() || self.holds_block(number) {
            self.block(number, parts);
        } else {
            let mut line = String::new();
            self.inline(number, &mut line);
            parts.push(line.trim().to_owned());
        }
    }

    fn numbers(&self, list: usize) -> Option<Numbers> {
        if self.tree.nodes[list].tag != Tag::Ol {
            return None;
        }
        let start = self.tree.attribute(list, "start").and_then(|value| value.trim().parse().ok());
        let is_reversed = self.tree.attribute(list, "reversed").is_some();
        let items = || self.tree.children(list).filter(|each| self.tree.nodes[*each].tag == Tag::Li).count();
        let first = start.unwrap_or_else(|| if is_reversed { i64::try_from(items()).unwrap_or(1) } else { 1 });
        Some(Numbers { next: first, step: if is_reversed { -1 } else { 1 } })
    }

    fn number(&self, item: usize, numbers: &mut Numbers) -> String {
        if let Some(own) = self.tree.attribute(item, "value").and_then(|value| value.trim().parse().ok()) {
            numbers.next = own;
        }
        // Markdown has no negative numbers.
        let written = numbers.next.clamp(0, 999_999_999);
        numbers.next = numbers.next.saturating_add(numbers.step);
        format!("{written}. ")
    }

    /// The box of a task, if the item begins with one.
    fn task(&self, item: usize) -> &'static str {
        for each in self.tree.below(item) {
            match self.tree.nodes[each].tag {
                Tag::Control if self.tree.is_box(each) => {
                    return if self.tree.attribute(each, "checked").is_some() { "[x] " } else { "[ ] " };
                }
                Tag::Text if !self.tree.nodes[each].text.trim().is_empty() => return "",
                Tag::Ul | Tag::Ol => return "",
                _ => {}
            }
        }
        ""
    }
}

/// The blocks of an item. An empty line divides paragraphs; a list follows its text directly.
fn joined(parts: &[String]) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() {
            out.push_str(if is_list(part) { "\n" } else { "\n\n" });
        }
        out.push_str(part);
    }
    out
}

/// A paragraph that looks like a list has a backslash before its mark.
fn is_list(block: &str) -> bool {
    let digits = block.bytes().take_while(u8::is_ascii_digit).count();
    block.starts_with("- ") || digits > 0 && block[digits..].starts_with(". ")
}

fn push_indented(indent: &str, text: &str, out: &mut String) {
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        if !line.is_empty() {
            out.push_str(indent);
            out.push_str(line);
        }
    }
}
