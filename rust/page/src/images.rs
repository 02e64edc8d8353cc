//! The addresses of images and embedded documents.

use std::borrow::Cow;

use crate::address::joined;
use crate::tag::Tag;
use crate::tree::Tree;

/// The attributes in which scripts find the address of an image that they load later.
const LATER: [&str; 4] = ["data-src", "data-lazy-src", "data-original", "data-url"];

/// The address of the largest form of an image, as written.
pub(crate) fn source_of<'a>(tree: &Tree<'a>, image: usize) -> Option<Cow<'a, str>> {
    let of = |name: &str| tree.attribute(image, name).filter(|value| !value.trim().is_empty());
    let largest = |value: Cow<'a, str>| largest_of(&value).map(|address| Cow::Owned(address.to_owned()));
    let own = of("srcset").and_then(largest).or_else(|| of("data-srcset").and_then(largest));
    let own = own.or_else(|| LATER.iter().find_map(|name| of(name))).or_else(|| of("src"));
    own.filter(|address| !address.trim_start().starts_with("data:")).or_else(|| {
        let picture = tree.nodes[image].parent;
        let is_source = |each: &usize| tree.nodes[*each].name == "source";
        let from_source = |each: usize| tree.attribute(each, "srcset").or_else(|| tree.attribute(each, "data-srcset"));
        if tree.nodes[picture].name != "picture" {
            return None;
        }
        tree.children(picture).filter(is_source).find_map(from_source).and_then(largest)
    })
}

/// The candidate of a `srcset` with the largest width or density. Commas divide candidates only before white space,
/// or behind a descriptor.
fn largest_of(srcset: &str) -> Option<&str> {
    let mut best: Option<(&str, f64)> = None;
    let mut rest = srcset;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() {
            return best.map(|(address, _)| address);
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let written = &rest[..end];
        let address = written.trim_end_matches(',');
        rest = &rest[end..];
        let mut size = 1.0;
        if address.len() == written.len() {
            let descriptor = &rest[..rest.find(',').unwrap_or(rest.len())];
            rest = &rest[descriptor.len()..];
            let number = descriptor.split_whitespace().next().unwrap_or_default().trim_end_matches(['w', 'x', 'h']);
            size = number.parse().unwrap_or(1.0);
        }
        if !address.is_empty() && !address.starts_with("data:") && best.is_none_or(|(_, most)| size > most) {
            best = Some((address, size));
        }
    }
}

/// The absolute address and the name of an embedded document or medium; none for one that readers do not see.
pub(crate) fn embed(tree: &Tree<'_>, number: usize, base: &str) -> Option<(String, String)> {
    if tree.nodes[number].tag != Tag::Embed {
        return None;
    }
    let is_tiny = |name: &str| {
        tree.attribute(number, name).is_some_and(|value| matches!(value.trim().trim_end_matches("px"), "0" | "1"))
    };
    if is_tiny("width") || is_tiny("height") {
        return None;
    }
    let source = ["src", "data-src", "data"]
        .iter()
        .find_map(|name| tree.attribute(number, name).filter(|value| !value.trim().is_empty()))?;
    let url = joined(base, source.trim());
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let host = host.split(['/', '?', '#']).next().unwrap_or_default().trim_start_matches("www.").to_owned();
    let title = ["title", "aria-label", "name"].iter().find_map(|name| {
        let value = tree.attribute(number, name)?;
        let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
        (!line.is_empty()).then_some(line)
    });
    Some((url, title.unwrap_or(host)))
}

#[cfg(test)]
mod tests {
    use super::largest_of;

    #[test]
    fn the_largest_candidate_is_chosen() {
        for (srcset, wanted) in [
            ("a.jpg 1x, b.jpg 2x", Some("b.jpg")),
            ("a.jpg 320w, b.jpg 1280w, c.jpg 640w", Some("b.jpg")),
            ("a,b.jpg 2x,c.jpg", Some("a,b.jpg")),
            ("a.jpg, b.jpg 1.5x", Some("b.jpg")),
            ("data:image/png;base64,xx 1x, b.jpg 0.5x", Some("b.jpg")),
            (" , ", None),
        ] {
            assert_eq!(largest_of(srcset), wanted, "{srcset}");
        }
    }
}
