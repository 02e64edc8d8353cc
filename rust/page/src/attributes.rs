//! Tags as text: their names, their attributes, and the entities in them.
//!
//! Lexbor writes an attribute as ` name="value"`. A value holds no `"`, but a name can hold any character other than
//! white space, `/`, `>` and a later `=`: the source `<a href="/x"">` has an attribute whose name is `"`. So a quote
//! begins a value only behind `=`.

use memchr::memchr;
use std::borrow::Cow;

/// A start tag: its name, its attributes as written, and the offset behind its `>`.
#[derive(Default)]
pub(crate) struct StartTag<'a> {
    pub(crate) name: &'a str,
    pub(crate) attributes: &'a str,
    pub(crate) end: usize,
    pub(crate) names: Names<'a>,
    /// Whether an attribute may hide the element, and whether one may name a panel that it opens.
    pub(crate) may_hide: bool,
    pub(crate) may_open: bool,
}

/// The attributes that are read most often, as written; empty without one.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) class: &'a str,
    pub(crate) id: &'a str,
    pub(crate) role: &'a str,
}

impl<'a> StartTag<'a> {
    /// Reads the tag at the start of `text`, which begins with `<`.
    pub(crate) fn read(text: &'a str) -> StartTag<'a> {
        let bytes = text.as_bytes();
        let name_end = bytes[1..].iter().position(|b| is_delimiter(*b) || *b == b'>').map_or(bytes.len(), |at| at + 1);
        let mut tag = StartTag { name: &text[1..name_end], ..StartTag::default() };
        let mut at = name_end;
        while let Some(part) = Part::at(text, at) {
            at = part.end;
            match part.name {
                "class" => tag.names.class = short(part.value),
                "id" => tag.names.id = part.value,
                "role" => tag.names.role = part.value,
                "hidden" | "aria-hidden" | "style" => tag.may_hide = true,
                "aria-controls" | "data-target" | "data-bs-target" => tag.may_open = true,
                _ => {}
            }
        }
        let attributes_end = at + bytes[at..].iter().take_while(|b| is_delimiter(**b)).count();
        tag.attributes = &text[name_end..at];
        tag.end = (attributes_end + 1).min(bytes.len());
        tag
    }
}

/// The beginning of a value that is longer than in any real page.
fn short(value: &str) -> &str {
    const LENGTH_MAX: usize = 4_000;
    if value.len() <= LENGTH_MAX {
        return value;
    }
    let end = (0..=LENGTH_MAX).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
    &value[..end]
}

fn is_delimiter(b: u8) -> bool {
    b.is_ascii_whitespace() || b == b'/'
}

/// One attribute, and the offset behind it.
struct Part<'a> {
    name: &'a str,
    value: &'a str,
    end: usize,
}

impl<'a> Part<'a> {
    fn at(text: &'a str, from: usize) -> Option<Part<'a>> {
        let bytes = text.as_bytes();
        let start = from + bytes[from..].iter().take_while(|b| is_delimiter(**b)).count();
        if bytes.get(start).is_none_or(|b| *b == b'>') {
            return None;
        }
        let is_end = |b: &u8| matches!(b, b'=' | b'>') || is_delimiter(*b);
        // The first character of a name can be `=`.
        let length = bytes[start + 1..].iter().position(is_end).unwrap_or(bytes.len() - start - 1);
        let name_end = start + 1 + length;
        let name = &text[start..name_end];
        if !bytes[name_end..].starts_with(b"=\"") {
            return Some(Part { name, value: "", end: name_end });
        }
        let value_at = name_end + 2;
        let value_end = memchr(b'"', &bytes[value_at..]).map_or(bytes.len(), |length| value_at + length);
        Some(Part { name, value: &text[value_at..value_end], end: (value_end + 1).min(bytes.len()) })
    }
}

/// Iterates over the attributes of a tag, with values as written.
pub(crate) struct Attributes<'a> {
    pub(crate) rest: &'a str,
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let part = Part::at(self.rest, 0)?;
        self.rest = &self.rest[part.end..];
        Some((part.name, part.value))
    }
}

pub(crate) fn attribute_of<'a>(attributes: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    Attributes { rest: attributes }.find(|(name, _)| *name == wanted).map(|(_, value)| unescaped(value))
}

/// The offset of `</name`.
pub(crate) fn find_end(rest: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let after = &rest.as_bytes()[from + at + 2..];
        if after.len() >= name.len() && after[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
            return from + at;
        }
        from += at + 2;
    }
    rest.len()
}

pub(crate) fn unescaped(raw: &str) -> Cow<'_, str> {
    if memchr(b'&', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr(b'&', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&nbsp;", '\u{a0}')]
            .into_iter()
            .find(|(name, _)| rest.starts_with(name));
        let (written, length) = known.map_or(('&', 1), |(name, c)| (c, name.len()));
        out.push(written);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

pub(crate) fn escape(text: &str, quotes: bool, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if quotes => out.push_str("&quot;"),
            '\'' if quotes => out.push_str("&#x27;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Attributes, StartTag};

    #[test]
    fn a_quote_begins_a_value_only_behind_an_equals_sign() {
        for (html, name, attributes, end) in [
            ("<a href=\"/x\" \"=\"\">link", "a", vec![("href", "/x"), ("\"", "")], 18),
            ("<p ''=\"\" a\"=\"1\" =\"x\"=\"\">", "p", vec![("''", ""), ("a\"", "1"), ("=\"x\"", "")], 24),
            ("<a\"b<c>x", "a\"b<c", vec![], 7),
            ("<p b=\"a > b\">c", "p", vec![("b", "a > b")], 13),
            ("<p hidden>", "p", vec![("hidden", "")], 10),
            ("<p b=\"never closed", "p", vec![("b", "never closed")], 18),
            ("<é é=\"é\">", "é", vec![("é", "é")], 12),
        ] {
            let tag = StartTag::read(html);
            let found: Vec<_> = Attributes { rest: tag.attributes }.collect();
            assert_eq!((tag.name, found, tag.end), (name, attributes, end), "{html}");
        }
    }
}
