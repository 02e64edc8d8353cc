//! What an element's tag, role and names say about it: the parts that surround a page's content.

use crate::names::Words;
use crate::tag::Tag;
use crate::tree::{Source, Tree};

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

/// The surrounding that an element says it is.
pub(crate) fn kind_of_element(tree: &Tree<'_>, number: usize) -> Option<Surrounding> {
    let tag = tree.nodes[number].tag;
    let by_tag = match tag {
        Tag::Nav => Some(Surrounding::Navigation),
        Tag::Footer => Some(Surrounding::Footer),
        Tag::Aside => Some(Surrounding::Beside),
        Tag::Form => Some(Surrounding::Form),
        _ if tree.nodes[number].name == "search" => Some(Surrounding::Navigation),
        _ => None,
    };
    if !tree.has_hints(number) || matches!(tag, Tag::H(_) | Tag::Td | Tag::Th | Tag::Tr) {
        return by_tag;
    }
    let mut by_name = None;
    for (source, value) in tree.hints_of(number) {
        let found = match source {
            Source::Role => kind_of_role(value),
            Source::Item => None,
            // The identifier of a section is often made of its heading.
            Source::Name if tag == Tag::Section && !value.contains('-') && !value.contains('_') => None,
            Source::Name => value.split_ascii_whitespace().find_map(kind_of_name),
        };
        by_name = by_name.or(found);
    }
    match (by_tag, by_name) {
        // An aside within the text is a note unless its name says more.
        (Some(Surrounding::Beside | Surrounding::Form), Some(_)) | (None, _) => by_name,
        _ => by_tag,
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
    let (first, last) = (*words.first()?, *words.last()?);
    if matches!(first, "has" | "no" | "with" | "without" | "hide" | "show" | "is" | "js" | "not") {
        return None;
    }
    let has = |set: &[&str]| words.iter().any(|word| set.contains(word));
    let ends =
        |set: &[&str]| words.iter().rev().find(|word| !FRAMES.contains(word)).is_some_and(|word| set.contains(word));
    if has(&[
        "cookie",
        "cookies",
        "cookiebar",
        "consent",
        "gdpr",
        "onetrust",
        "cookielaw",
        "usercentrics",
        "didomi",
        "cookiebot",
    ]) {
        return (words.len() > 1 || !matches!(first, "cookies" | "cookie" | "consent")).then_some(Surrounding::Consent);
    }
    if has(&["breadcrumb", "breadcrumbs", "skiplink", "skiplinks", "editsection", "catlinks", "navbox", "printfooter"])
        || name.starts_with("skip-")
        || name.starts_with("mw-editsection")
    {
        return Some(Surrounding::Navigation);
    }
    if ends(&["share", "sharing", "social", "socials", "addthis", "sharedaddy", "addtoany"]) && words.len() <= 4 {
        return Some(Surrounding::Share);
    }
    if has(&["advert", "advertisement", "advertisements", "adsbygoogle", "adslot", "adsense"])
        || matches!(
            words,
            ["ad" | "ads"] | ["ad" | "ads", "slot" | "container" | "wrapper" | "banner" | "box" | "unit" | "block"]
        )
    {
        return Some(Surrounding::Advert);
    }
    if matches!(
        first,
        "related" | "recommended" | "recommendations" | "recirc" | "outbrain" | "taboola" | "relatedposts"
    ) || ends(&["related", "recommended", "recommendations", "recirc", "teasers"])
        || matches!(
            words,
            ["read", "next", ..]
                | ["most", "popular" | "read", ..]
                | ["more", "stories" | "articles" | "posts" | "news", ..]
                | ["trending", ..]
                | ["you", "may", ..]
        )
    {
        return Some(Surrounding::Related);
    }
    if has(&["newsletter", "subscribe", "signup"]) {
        return Some(Surrounding::Offer);
    }
    if ends(&[
        "nav",
        "navbar",
        "navigation",
        "menu",
        "submenu",
        "sidenav",
        "topnav",
        "pagination",
        "pager",
        "toc",
        "tableofcontents",
        "nextprev",
        "subnav",
        "leftnav",
        "toctree",
    ]) || matches!(
        words,
        ["table", "of", "contents", ..]
            | ["on", "this", "page", ..]
            | ["prev", "next", ..]
            | ["edit", "this", "page", ..]
    ) {
        return Some(Surrounding::Links);
    }
    if last == "footer"
        && (words.len() == 1 || matches!(first, "site" | "page" | "global" | "main" | "app" | "bottom" | "sphinx"))
    {
        return Some(Surrounding::Footer);
    }
    if ends(&["sidebar", "sidebars", "rail"]) || matches!(words, ["widget", "area"]) || name == "sphinxsidebar" {
        return Some(Surrounding::Beside);
    }
    None
}

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
