//! The meaning of an element's class, id and role. Authors choose them for style sheets, so they are only hints:
//! `candidates` and `boilerplate` require other signs before anything is dropped.

use crate::tag::Tag;
use crate::tree::{Source, Tree};

/// The probable meaning of an element's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hint {
    /// The body of an article.
    Body,
    Nothing,
    /// Next to the text: share buttons, tags, bylines, captions.
    Beside,
    /// Not the text, unless there is hardly any other: menus, comments, consent dialogs.
    Chrome,
    /// An entry in a list of other pages. No name indicates this.
    Teaser,
}

/// The hint from an element's tag, role and names.
pub(crate) fn hint(tree: &Tree<'_>, number: usize) -> Hint {
    let by_tag = match tree.nodes[number].tag {
        Tag::Nav | Tag::Footer | Tag::Menu => Hint::Chrome,
        Tag::Aside | Tag::Form | Tag::Header => Hint::Beside,
        Tag::Body | Tag::Text | Tag::H(1) | Tag::A | Tag::Code | Tag::Pre => return Hint::Nothing,
        _ => Hint::Nothing,
    };
    if !tree.has_attributes(number) {
        return by_tag;
    }
    let mut found = by_tag;
    let mut is_body = false;
    for value in tree.hints_of(number) {
        match value {
            (Source::Role, role) => found = found.max(hint_of_role(role)),
            (Source::Item, "articleBody") => is_body = true,
            (Source::Item, _) => {}
            (Source::Name, names) => {
                for name in names.split_ascii_whitespace() {
                    match hint_of_name(name) {
                        Hint::Body => is_body = true,
                        other => found = found.max(other),
                    }
                }
            }
        }
    }
    if is_body && found < Hint::Chrome {
        Hint::Body
    } else {
        found
    }
}

fn hint_of_role(role: &str) -> Hint {
    match role {
        "navigation" | "contentinfo" | "search" | "menu" | "menubar" | "dialog" | "alertdialog" | "alert" => {
            Hint::Chrome
        }
        "banner" | "complementary" | "toolbar" | "tablist" | "note" => Hint::Beside,
        _ => Hint::Nothing,
    }
}

/// The hint from one name. `relatedLinks`, `related-links` and `related_links` are equal. The last word decides, so
/// `article-footer` is a footer and `sidebar-content` is content.
fn hint_of_name(name: &str) -> Hint {
    const WORDS_MAX: usize = 8;
    let mut words: [&str; WORDS_MAX] = [""; WORDS_MAX];
    let mut count = 0;
    let bytes = name.as_bytes();
    let mut start = 0;
    for at in 0..=bytes.len() {
        let is_end = at == bytes.len() || !bytes[at].is_ascii_alphabetic() && bytes[at].is_ascii();
        let is_hump = !is_end && at > start && bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
        if is_end || is_hump {
            if at > start && count < WORDS_MAX {
                words[count] = &name[start..at];
                count += 1;
            }
            start = if is_hump { at } else { at + 1 };
        }
        if at > 120 {
            break;
        }
    }
    let mut kinds = [Kind::Other; WORDS_MAX];
    for (kind, word) in kinds.iter_mut().zip(&words[..count]) {
        *kind = kind_of(word);
    }
    let kinds = &kinds[..count];
    let Some(last) = kinds.iter().rposition(|kind| *kind != Kind::Frame) else { return Hint::Nothing };
    let kinds = &kinds[..=last];
    let is_any = |wanted: Kind| kinds.contains(&wanted);
    match kinds[last] {
        _ if is_any(Kind::Caption) => Hint::Beside,
        Kind::Chrome => Hint::Chrome,
        Kind::Beside => Hint::Beside,
        Kind::Text if kinds[0] == Kind::Chrome => Hint::Chrome,
        Kind::Text if is_any(Kind::Beside) || is_any(Kind::Chrome) => Hint::Nothing,
        Kind::Text if is_any(Kind::Page) => Hint::Body,
        _ if kinds[0] == Kind::Chrome => Hint::Chrome,
        _ if kinds[0] == Kind::Beside || is_any(Kind::Chrome) => Hint::Beside,
        _ => Hint::Nothing,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Chrome,
    Beside,
    /// The caption of a picture, or a part of it.
    Caption,
    /// The main subject of a page: an article, a post.
    Page,
    /// The text of an article or a post.
    Text,
    /// A name that only describes the layout.
    Frame,
    Other,
}

fn kind_of(word: &str) -> Kind {
    const LONGEST: usize = 16;
    let mut lower = [0u8; LONGEST];
    let Some(lower) = lower.get_mut(..word.len()) else { return Kind::Other };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    match &*lower {
        b"nav" | b"navbar" | b"navigation" | b"menu" | b"submenu" | b"footer" | b"breadcrumb" | b"breadcrumbs"
        | b"crumb" | b"comment" | b"comments" | b"commentlist" | b"cmt" | b"disqus" | b"respond" | b"cookie"
        | b"cookies" | b"consent" | b"gdpr" | b"onetrust" | b"outbrain" | b"taboola" | b"modal" | b"popup"
        | b"overlay" | b"masthead" | b"paywall" | b"advertisement" | b"advert" | b"adsbygoogle" | b"dianomi"
        | b"revcontent" | b"trackback" | b"trackbacks" | b"navbox" | b"catlinks" | b"editsection" | b"headerlink"
        | b"skip" | b"skiplink" | b"toc" | b"noprint" => Kind::Chrome,
        b"share" | b"sharing" | b"shares" | b"sharedaddy" | b"addthis" | b"social" | b"related" | b"recommended"
        | b"recommendations" | b"recommend" | b"recirc" | b"promo" | b"promos" | b"promotion" | b"sponsor"
        | b"sponsored" | b"ad" | b"ads" | b"banner" | b"newsletter" | b"newsletters" | b"subscribe"
        | b"subscription" | b"signup" | b"pagination" | b"pager" | b"paging" | b"toolbar" | b"tools" | b"widget"
        | b"widgets" | b"tags" | b"taglist" | b"hubs" | b"keywords" | b"topics" | b"categories" | b"copyright"
        | b"legal" | b"login" | b"sidebar" | b"rail" | b"aside" | b"byline" | b"bylines" | b"author" | b"authors"
        | b"bio" | b"dateline" | b"date" | b"time" | b"timestamp" | b"meta" | b"metadata" | b"posted"
        | b"submitted" | b"signature" | b"sig" | b"profile" | b"postprofile" | b"poster" | b"postdetails"
        | b"userinfo" | b"user" | b"membership" | b"relatedposts" | b"teaser" | b"teasers" | b"teaserbox"
        | b"inset" | b"cta" | b"kicker" | b"rating" | b"ratings" | b"reviews" | b"review" | b"print"
        | b"attribution" | b"disclaimer" | b"disclosure" | b"infobox" | b"feedback" | b"reactions" | b"likes"
        | b"votes" | b"votecell" | b"notes" | b"more" | b"also" | b"interstitial" | b"catcher" | b"enhancement"
        | b"bookmark" | b"price" | b"buybox" | b"cart" | b"reply" | b"replies" | b"moderatorbar" | b"keyinfo"
        | b"prev" | b"previous" | b"next" | b"nextprev" | b"download" | b"poll" | b"quiz" | b"follow" | b"donate"
        | b"donation" | b"source" | b"sources" | b"correction" | b"trending" | b"popular" | b"latest"
        | b"timestamps" | b"dropdown" | b"flyout" | b"flyouts" | b"mega" | b"tab" | b"tabs" => Kind::Beside,
        b"caption" | b"captions" | b"figcaption" | b"credit" | b"credits" | b"legend" => Kind::Caption,
        b"article" | b"post" | b"entry" | b"story" | b"news" | b"blog" | b"page" | b"main" | b"single" | b"product"
        | b"topic" | b"rich" | b"storytext" => Kind::Page,
        b"body" | b"content" | b"contents" | b"text" | b"copy" | b"description" | b"paragraph" | b"prose"
        | b"markdown" | b"markup" => Kind::Text,
        b"wrap" | b"wrapper" | b"container" | b"inner" | b"outer" | b"row" | b"col" | b"column" | b"box" | b"block"
        | b"section" | b"area" | b"list" | b"item" | b"items" | b"group" | b"grid" | b"holder" | b"bar" | b"panel"
        | b"region" | b"module" | b"component" | b"links" | b"link" | b"line" | b"info" | b"el" | b"x" | b"left"
        | b"right" | b"top" | b"bottom" | b"primary" | b"secondary" | b"first" | b"last" | b"clearfix" | b"js"
        | b"css" | b"c" | b"id" | b"slot" | b"zone" | b"card" | b"title" | b"heading" | b"headline" | b"head"
        | b"header" | b"stories" | b"posts" | b"articles" | b"buttons" | b"button" | b"icons" => Kind::Frame,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{hint_of_name, Hint};

    #[test]
    fn a_name_is_what_it_says_last_unless_it_begins_as_chrome() {
        for (name, wanted) in [
            ("article-footer", Hint::Chrome),
            ("sidebar-content", Hint::Nothing),
            ("articleBody", Hint::Body),
            ("RichTextArticleBody", Hint::Body),
            ("entry-content", Hint::Body),
            ("entry-meta", Hint::Beside),
            ("comment-content", Hint::Chrome),
            ("related_links", Hint::Beside),
            ("share-bar", Hint::Beside),
            ("wp-caption-text", Hint::Beside),
            ("cmp-text", Hint::Nothing),
            ("css-1x2y3z", Hint::Nothing),
            ("", Hint::Nothing),
        ] {
            assert_eq!(hint_of_name(name), wanted, "{name}");
        }
    }
}
