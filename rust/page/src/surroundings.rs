//! Meanings of an element's tag, role and names: the parts that surround a page's content.

use std::collections::HashMap;

use crate::names::Words;
use crate::tag::Tag;
use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surrounding {
    Navigation,
    /// Navigation if it consists of links.
    Links,
    Footer,
    /// Next to the content.
    Beside,
    Consent,
    Share,
    Related,
    Advert,
    /// A form to subscribe.
    Offer,
    Form,
}

/// The surroundings that names name. A page has few names, and many elements with them.
#[derive(Default)]
pub(crate) struct SurroundingsByName<'a> {
    by_name: HashMap<&'a str, Option<Surrounding>>,
}

impl<'a> SurroundingsByName<'a> {
    /// The surrounding that an element says it is.
    pub(crate) fn of(&mut self, tree: &Tree<'a>, number: usize) -> Option<Surrounding> {
        let node = &tree.nodes[number];
        let tag = node.tag;
        let by_tag = match tag {
            Tag::Nav => Some(Surrounding::Navigation),
            Tag::Footer => Some(Surrounding::Footer),
            Tag::Aside => Some(Surrounding::Beside),
            Tag::Form => Some(Surrounding::Form),
            _ if node.name == "search" => Some(Surrounding::Navigation),
            _ => None,
        };
        if !tree.has_hints(number) || matches!(tag, Tag::H(_) | Tag::Td | Tag::Th | Tag::Tr) {
            return by_tag;
        }
        let by_role = kind_of_role(node.names.role);
        let by_name = match by_role {
            Some(Surrounding::Navigation | Surrounding::Footer) => by_role,
            _ => self.named(tag, node.names.class).or_else(|| self.named(tag, node.names.id)).or(by_role),
        };
        match (by_tag, by_name) {
            // An aside within the text is a note unless its name says more.
            (Some(Surrounding::Beside | Surrounding::Form), Some(_)) | (None, _) => by_name,
            _ => by_tag,
        }
    }

    fn named(&mut self, tag: Tag, names: &'a str) -> Option<Surrounding> {
        // The identifier of a section is often made of its heading.
        if names.is_empty() || tag == Tag::Section && !names.contains(['-', '_']) {
            return None;
        }
        *self.by_name.entry(names).or_insert_with(|| names.split_ascii_whitespace().find_map(kind_of_name))
    }
}

fn kind_of_role(role: &str) -> Option<Surrounding> {
    match role {
        "navigation" | "search" | "menu" | "menubar" | "dialog" | "alertdialog" | "tree" => {
            Some(Surrounding::Navigation)
        }
        "contentinfo" => Some(Surrounding::Footer),
        "complementary" => Some(Surrounding::Beside),
        _ => None,
    }
}

/// The surrounding that a class name or identifier names. Names that say how a page is laid out (`has-sidebar`) or what
/// belongs to an article (`article-footer`) name none.
fn kind_of_name(name: &str) -> Option<Surrounding> {
    let split = Words::of(name);
    let mut all = [""; Words::COUNT_MAX];
    let count = all.iter_mut().zip(split.iter()).map(|(place, word)| *place = word).count();
    let words = &all[..count];
    let first = *words.first()?;
    if matches!(first, "has" | "no" | "with" | "without" | "hide" | "show" | "is" | "js" | "not") {
        return None;
    }
    let has = |set: &[&str]| words.iter().any(|word| set.contains(word));
    let main_word = words.iter().rev().find(|word| !FRAMES.contains(word)).copied().unwrap_or_default();
    if matches!(words, ["cmp"]) {
        return Some(Surrounding::Consent);
    }
    if has(CONSENT) {
        return (words.len() > 1 || !matches!(first, "cookies" | "cookie" | "consent")).then_some(Surrounding::Consent);
    }
    if has(NAVIGATION) || name.starts_with("skip-") || name.starts_with("mw-editsection") {
        return Some(Surrounding::Navigation);
    }
    if SHARE.contains(&main_word) && words.len() <= 4 {
        return Some(Surrounding::Share);
    }
    if has(ADVERT) || is_advert(words) {
        return Some(Surrounding::Advert);
    }
    if RELATED.contains(&first) || RELATED.contains(&main_word) || starts_related(words) {
        return Some(Surrounding::Related);
    }
    if has(&["newsletter", "subscribe", "signup"]) {
        return Some(Surrounding::Offer);
    }
    if LINKS.contains(&main_word) || starts_links(words) {
        return Some(Surrounding::Links);
    }
    if is_footer(words) {
        return Some(Surrounding::Footer);
    }
    let is_beside = matches!(main_word, "sidebar" | "sidebars" | "rail") || matches!(words, ["widget", "area"]);
    (is_beside || name == "sphinxsidebar").then_some(Surrounding::Beside)
}

fn is_advert(words: &[&str]) -> bool {
    matches!(
        words,
        ["ad" | "ads"] | ["ad" | "ads", "slot" | "container" | "wrapper" | "banner" | "box" | "unit" | "block"]
    )
}

fn starts_related(words: &[&str]) -> bool {
    matches!(
        words,
        ["read", "next", ..]
            | ["most", "popular" | "read", ..]
            | ["more", "stories" | "articles" | "posts" | "news", ..]
            | ["trending", ..]
            | ["you", "may", ..]
    )
}

fn starts_links(words: &[&str]) -> bool {
    matches!(words, ["table", "of", "contents", ..] | ["on" | "edit", "this", "page", ..] | ["prev", "next", ..])
}

fn is_footer(words: &[&str]) -> bool {
    matches!(words, ["footer"] | ["site" | "page" | "global" | "main" | "app" | "bottom" | "sphinx", .., "footer"])
}

#[rustfmt::skip]
const CONSENT: &[&str] = &[
    "cookie", "cookies", "cookiebar", "consent", "gdpr", "onetrust", "cookielaw", "usercentrics", "didomi", "cookiebot",
];
#[rustfmt::skip]
const NAVIGATION: &[&str] = &[
    "breadcrumb", "breadcrumbs", "skiplink", "skiplinks", "editsection", "catlinks", "navbox", "printfooter",
];
const SHARE: &[&str] = &["share", "sharing", "social", "socials", "addthis", "sharedaddy", "addtoany"];
const ADVERT: &[&str] = &["advert", "advertisement", "advertisements", "adsbygoogle", "adslot", "adsense"];
#[rustfmt::skip]
const RELATED: &[&str] = &[
    "related", "recommended", "recommendations", "recirc", "outbrain", "taboola", "relatedposts", "teasers",
];
#[rustfmt::skip]
const LINKS: &[&str] = &[
    "nav", "navbar", "navigation", "menu", "submenu", "sidenav", "topnav", "pagination", "pager", "toc",
    "tableofcontents", "nextprev", "subnav", "leftnav", "toctree",
];

/// Words that only describe the layout.
const FRAMES: &[&str] = &[
    "wrap",
    "wrapper",
    "container",
    "inner",
    "outer",
    "row",
    "col",
    "column",
    "box",
    "block",
    "section",
    "area",
    "list",
    "item",
    "items",
    "group",
    "grid",
    "holder",
    "bar",
    "panel",
    "region",
    "links",
    "link",
    "left",
    "right",
    "top",
    "bottom",
    "primary",
    "secondary",
    "first",
    "last",
    "buttons",
    "button",
    "icons",
    "icon",
    "tools",
    "widget",
    "main",
    "global",
    "site",
];

#[cfg(test)]
mod tests {
    use super::{kind_of_name, Surrounding};

    #[test]
    fn sure_names_are_known_and_others_are_not() {
        for (name, wanted) in [
            ("cookie-banner", Some(Surrounding::Consent)),
            ("cookies", None),
            ("share-buttons", Some(Surrounding::Share)),
            ("share-price", None),
            ("related-posts", Some(Surrounding::Related)),
            ("main-nav", Some(Surrounding::Links)),
            ("site-footer", Some(Surrounding::Footer)),
            ("article-footer", None),
            ("has-sidebar", None),
            ("sidebarLeft", Some(Surrounding::Beside)),
            ("newsletter-signup", Some(Surrounding::Offer)),
            ("ad-slot", Some(Surrounding::Advert)),
            ("header", None),
            ("", None),
        ] {
            assert_eq!(kind_of_name(name), wanted, "{name}");
        }
    }
}
