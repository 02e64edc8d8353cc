//! Writes the inside of a line as Markdown.

use crate::address::joined;
use crate::formula::{formula, mark, written_formula};
use crate::images::{embed, source_of};
use crate::markdown::Writer;
use crate::plain::one_line;
use crate::spelling::escape;
use crate::tag::Tag;

impl Writer<'_, '_> {
    pub(crate) fn inlines(&self, number: usize, out: &mut String) {
        for child in self.tree.children(number) {
            self.inline(child, out);
        }
    }

    pub(crate) fn inline(&self, number: usize, out: &mut String) {
        let node = &self.tree.nodes[number];
        match node.tag {
            Tag::Text => escape(&node.text, out),
            Tag::Wbr | Tag::Tex => {}
            Tag::Br => out.push('\n'),
            Tag::Img => {
                if self.has_images {
                    self.image(number, out);
                }
            }
            Tag::Embed => {
                if let Some((url, title)) = embed(self.tree, number, self.base) {
                    out.extend(self.reference(&title, &url));
                }
            }
            Tag::Code => {
                let code = one_line(self.tree, number);
                if !code.is_empty() {
                    push_code(&code, out);
                }
            }
            Tag::Math => {
                if let Some(formula) = formula(self.tree, number) {
                    push_formula(&formula, out);
                }
            }
            Tag::Span | Tag::Div | Tag::P if written_formula(self.tree, number).is_some() => {
                if let Some(formula) = written_formula(self.tree, number) {
                    push_formula(&formula, out);
                }
            }
            tag if tag.divides() => {
                out.push(' ');
                self.inlines(number, out);
                out.push(' ');
            }
            Tag::Sup | Tag::Sub => {
                out.push_str(mark(self.tree, number, out.chars().next_back()));
                self.inlines(number, out);
            }
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
        let core = out[from..].trim_end();
        // Marks between a word and a sign are no emphasis.
        let is_in_word = out[..from].ends_with(char::is_alphanumeric)
            && core.starts_with(|c: char| !c.is_alphanumeric() && !c.is_whitespace());
        let core = core.trim_start();
        if !core.is_empty() && !core.contains('\n') && !is_in_word {
            between(out, from, mark, mark);
        }
    }

    fn link(&self, number: usize, out: &mut String) {
        let from = out.len();
        self.inlines(number, out);
        let core = out[from..].trim();
        if core.is_empty() || core.contains('\n') {
            return;
        }
        let target = self.tree.attribute(number, "href").and_then(|href| self.target(&href));
        if let Some(target) = target {
            between(out, from, "[", &format!("]({target})"));
        }
    }

    fn image(&self, number: usize, out: &mut String) {
        let Some(source) = source_of(self.tree, number) else { return };
        let Some(target) = self.target(&source) else { return };
        let alt = self.tree.attribute(number, "alt").unwrap_or_default();
        out.push_str("![");
        escape(&alt.split_whitespace().collect::<Vec<_>>().join(" "), out);
        out.push_str("](");
        out.push_str(&target);
        out.push(')');
    }

    /// A link with this text, if the address can be one.
    pub(crate) fn reference(&self, text: &str, url: &str) -> Option<String> {
        let target = self.target(url)?;
        let mut out = "[".to_owned();
        escape(text, &mut out);
        out.push_str("](");
        out.push_str(&target);
        out.push(')');
        Some(out)
    }

    /// The absolute address of a link to another page.
    pub(crate) fn target(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let target = joined(self.base, href);
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
}

fn push_code(code: &str, out: &mut String) {
    if !code.contains('`') {
        out.push('`');
        out.push_str(code);
        out.push('`');
        return;
    }
    let mut ticks = "``".to_owned();
    while code.contains(&ticks) {
        ticks.push('`');
    }
    let blank = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    for part in [&*ticks, blank, code, blank, &*ticks] {
        out.push_str(part);
    }
}

fn push_formula((tex, is_display): &(String, bool), out: &mut String) {
    let mark = if *is_display { "$$" } else { "$" };
    out.push_str(mark);
    out.push_str(tex);
    out.push_str(mark);
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
