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
    if !tree.has_hints(number) {
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

/// The words of a name in lower case: `relatedLinks`, `related-links` and `related_links` have the same.
pub(crate) struct Words {
    text: [u8; Words::LENGTH_MAX],
    places: [(usize, usize); Words::COUNT_MAX],
    count: usize,
}

impl Words {
    const LENGTH_MAX: usize = 128;
    pub(crate) const COUNT_MAX: usize = 8;

    pub(crate) fn of(name: &str) -> Words {
        let mut words = Words { text: [0; Words::LENGTH_MAX], places: [(0, 0); Words::COUNT_MAX], count: 0 };
        let bytes = name.as_bytes();
        let mut start = 0;
        for at in 0..=bytes.len().min(Words::LENGTH_MAX) {
            let is_end = at == bytes.len()
                || at == Words::LENGTH_MAX
                || !bytes[at].is_ascii_alphabetic() && bytes[at].is_ascii();
            let is_hump = !is_end && at > start && bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
            if is_end || is_hump {
                if at > start && words.count < Words::COUNT_MAX {
                    words.places[words.count] = (start, at);
                    words.count += 1;
                }
                start = if is_hump { at } else { at + 1 };
            }
            if !is_end {
                words.text[at] = bytes[at].to_ascii_lowercase();
            }
        }
        words
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &str> {
        // A word that is cut within a character is none.
        self.places[..self.count].iter().map(|(start, end)| std::str::from_utf8(&self.text[*start..*end]).unwrap_or(""))
    }
}

/// The hint from one name. The last word decides, so `article-footer` is a footer and `sidebar-content` is content.
fn hint_of_name(name: &str) -> Hint {
    let mut kinds = [Kind::Other; Words::COUNT_MAX];
    let mut count = 0;
    for (kind, word) in kinds.iter_mut().zip(Words::of(name).iter()) {
        *kind = kind_of(word);
        count += 1;
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
    match word {
        "nav" | "navbar" | "navigation" | "menu" | "submenu" | "footer" | "breadcrum" | "breadcrumbs" | "crum"
        | "comment" | "comments" | "commentlist" | "cmt" | "disqus" | "respond" | "cookie" | "cookies" | "consent"
        | "gdpr" | "onetrust" | "outbrain" | "taboola" | "modal" | "popup" | "overlay" | "masthead" | "paywall"
        | "advertisement" | "advert" | "adsbygoogle" | "dianomi" | "revcontent" | "trackback" | "trackbacks"
        | "navbox" | "catlinks" | "editsection" | "headerlink" | "skip" | "skiplink" | "toc" | "noprint" => {
            Kind::Chrome
        }
        "share" | "sharing" | "shares" | "sharedaddy" | "addthis" | "social" | "related" | "recommended"
        | "recommendations" | "recommend" | "recirc" | "promo" | "promos" | "promotion" | "sponsor" | "sponsored"
        | "ad" | "ads" | "banner" | "newsletter" | "newsletters" | "subscribe" | "subscription" | "signup"
        | "pagination" | "pager" | "paging" | "toolbar" | "tools" | "widget" | "widgets" | "tags" | "taglist"
        | "hubs" | "keywords" | "topics" | "categories" | "copyright" | "legal" | "login" | "sidebar" | "rail"
        | "aside" | "byline" | "bylines" | "author" | "authors" | "bio" | "dateline" | "date" | "time"
        | "timestamp" | "meta" | "metadata" | "posted" | "submitted" | "signature" | "sig" | "profile"
        | "postprofile" | "poster" | "postdetails" | "userinfo" | "user" | "membership" | "relatedposts" | "teaser"
        | "teasers" | "teaserbox" | "inset" | "cta" | "kicker" | "rating" | "ratings" | "reviews" | "review"
        | "print" | "attribution" | "disclaimer" | "disclosure" | "infobox" | "feedback" | "reactions" | "likes"
        | "votes" | "votecell" | "notes" | "more" | "also" | "interstitial" | "catcher" | "enhancement"
        | "bookmark" | "price" | "buybox" | "cart" | "reply" | "replies" | "moderatorbar" | "keyinfo" | "prev"
        | "previous" | "next" | "nextprev" | "download" | "poll" | "quiz" | "follow" | "donate" | "donation"
        | "source" | "sources" | "correction" | "trending" | "popular" | "latest" | "timestamps" | "dropdown"
        | "flyout" | "flyouts" | "mega" | "ta" | "tabs" => Kind::Beside,
        "caption" | "captions" | "figcaption" | "credit" | "credits" | "legend" => Kind::Caption,
        "article" | "post" | "entry" | "story" | "news" | "blog" | "page" | "main" | "single" | "product" | "topic"
        | "rich" | "storytext" => Kind::Page,
        "body" | "content" | "contents" | "text" | "copy" | "description" | "paragraph" | "prose" | "markdown"
        | "markup" => Kind::Text,
        "wrap" | "wrapper" | "container" | "inner" | "outer" | "row" | "col" | "column" | "box" | "block"
        | "section" | "area" | "list" | "item" | "items" | "group" | "grid" | "holder" | "bar" | "panel" | "region"
        | "module" | "component" | "links" | "link" | "line" | "info" | "el" | "x" | "left" | "right" | "top"
        | "bottom" | "primary" | "secondary" | "first" | "last" | "clearfix" | "js" | "css" | "c" | "id" | "slot"
        | "zone" | "card" | "title" | "heading" | "headline" | "head" | "header" | "stories" | "posts" | "articles"
        | "buttons" | "button" | "icons" => Kind::Frame,
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
