//! Writes elements as HTML.

use std::borrow::Cow;

use crate::address::joined;
use crate::attributes::escape;
use crate::images::source_of;
use crate::tag::{is_void, Tag};
use crate::tree::Tree;

const ATTRIBUTES: [&str; 18] = [
    "href", "src", "alt", "title", "class", "id", "colspan", "rowspan", "scope", "start", "value", "type", "checked",
    "open", "lang", "dir", "datetime", "encoding",
];

impl Tree<'_> {
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
                Step::Open(each) if self.nodes[each].tag == Tag::Control && self.nodes[each].size == 0 => {
                    if self.is_box(each) {
                        self.opening(each, base, &mut out);
                    }
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
        let image = if self.nodes[number].tag == Tag::Img { source_of(self, number) } else { None };
        let own = self.attributes(number).filter(|(name, _)| image.is_none() || *name != "src");
        for (name, mut value) in own.chain(image.clone().map(|source| ("src", source))) {
            if !ATTRIBUTES.contains(&name) {
                continue;
            }
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
