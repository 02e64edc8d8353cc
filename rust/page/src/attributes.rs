//! Tags as text: their end, their attributes, and the entities in them.

use memchr::memchr;
use std::borrow::Cow;

/// The offset after the `>` that ends a tag. A `>` in a quoted value is skipped.
pub(crate) fn end_of_tag(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'>' => return at + 1,
            b'"' => at += 2 + memchr(b'"', &bytes[at + 1..]).unwrap_or(bytes.len()),
            _ => at += 1,
        }
    }
    bytes.len()
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

/// Iterates over attributes, which are written ` name="value"`. The value contains no bare `"`.
pub(crate) struct Attributes<'a> {
    pub(crate) rest: &'a str,
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest.as_bytes();
        let cut = bytes.iter().position(|b| *b == b'=' || b.is_ascii_whitespace()).unwrap_or(bytes.len());
        let (name, after) = self.rest.split_at(cut);
        let (value, after) = match after.strip_prefix("=\"") {
            Some(quoted) => match memchr(b'"', quoted.as_bytes()) {
                Some(end) => (&quoted[..end], &quoted[end + 1..]),
                None => (quoted, ""),
            },
            None => ("", after.get(1..).unwrap_or_default()),
        };
        self.rest = after;
        Some((name, value))
    }
}

pub(crate) fn attribute_of<'a>(attributes: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    Attributes { rest: attributes }.find(|(name, _)| *name == wanted).map(|(_, value)| unescaped(value))
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
