//! Collects the links of a page while it is read: each address once, with its text.

use crate::attributes::attribute_of;
use crate::Link;
use std::collections::HashSet;

pub(crate) const LINKS_MAX: usize = 10_000;
const LINK_TEXT_MAX_CHARS: usize = 500;

#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) found: Vec<Link>,
    known: HashSet<String>,
    open: Option<Link>,
}

impl Links {
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(crate) fn begin(&mut self, attributes: &str, is_void: bool) {
        self.end();
        if self.found.len() >= LINKS_MAX {
            return;
        }
        let Some(href) = attribute_of(attributes, "href") else { return };
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || self.known.contains(href) {
            return;
        }
        self.open = Some(Link { href: href.to_owned(), text: String::new() });
        if is_void {
            self.end();
        }
    }

    pub(crate) fn text(&mut self, text: &str) {
        if let Some(open) = &mut self.open {
            if open.text.len() < LINK_TEXT_MAX_CHARS * 8 {
                open.text.push_str(text);
            }
        }
    }

    pub(crate) fn end(&mut self) {
        if let Some(mut link) = self.open.take() {
            let line = link.text.split_whitespace().collect::<Vec<_>>().join(" ");
            link.text = match line.char_indices().nth(LINK_TEXT_MAX_CHARS) {
                Some((end, _)) => line[..end].to_owned(),
                None => line,
            };
            self.known.insert(link.href.clone());
            self.found.push(link);
        }
    }
}
