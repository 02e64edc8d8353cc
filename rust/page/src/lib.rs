//! Extracts the content of a web page. The input is HTML that a conforming parser has read and serialized: every
//! element is closed, in order, and only `&amp; &lt; &gt; &quot; &nbsp;` are escaped. All processing is linear in the
//! size of the page, limited in depth, and deterministic.
//!
//! Read the modules in this order: `tag`, `attributes`, `links` and `tree` (the elements and links of a page),
//! `address` (absolute links), `names` (hints from classes and roles), `candidates` (elements that may hold the text),
//! `boilerplate` and `phrases` (parts that are never the text), `content` (the choice among candidates), `parts`
//! (blocks of the text), `fit` (removes blocks with little content), `markdown` (output), `nesting` (pages too deep to
//! parse), `patterns` (the addresses that a caller's expressions match).

#![forbid(unsafe_code)]

mod address;
mod attributes;
mod boilerplate;
mod candidates;
mod content;
mod fit;
#[cfg(test)]
#[path = "../../context/src/growth.rs"]
mod growth;
mod links;
mod markdown;
mod names;
mod nesting;
mod parts;
mod patterns;
mod phrases;
mod tag;
mod tree;

use serde::Serialize;

pub use crate::address::joined;
pub use crate::nesting::flattened;
pub use crate::patterns::{AddressPatterns, PatternFault, PatternLists};

/// The output format of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// No content.
    Nothing,
    /// Elements without scripts and styles, with absolute addresses.
    Html,
    Markdown,
    /// One line per block.
    Text,
}

/// How to read a page. `fit` also removes blocks with little content, and images.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // four independent options
pub struct ReadOptions {
    pub form: Form,
    pub only_main_content: bool,
    pub fit: bool,
    pub tables: bool,
    pub code: bool,
    pub images: bool,
}

/// The content of a page. `links` are those of the whole page, including hidden parts, each `href` once and as written.
#[derive(Debug, Serialize)]
pub struct Holding {
    pub content: Option<String>,
    pub links: Vec<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<parts::Table>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Vec<parts::Code>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<parts::Image>>,
}

/// One link: its target as written, and its text on one line.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Link {
    pub href: String,
    pub text: String,
}

/// A page that shows fewer characters and hides many more is read as if it showed them.
const VISIBLE_MIN: usize = 200;

/// Reads the page's body, `<body ...>...</body>` or its inner HTML. Addresses are relative to `base`.
pub fn read(html: &str, base: &str, want: ReadOptions) -> Holding {
    let (mut tree, links) = tree::Tree::read(html, false);
    let is_main = want.only_main_content || want.fit;
    if is_main && tree.nodes[tree::ROOT].size < VISIBLE_MIN && tree.hidden_bytes > 10 * VISIBLE_MIN {
        // Some pages show all of their text only after a script has run.
        tree = tree::Tree::read(html, true).0;
    }
    let root = if is_main { content::main_content(&mut tree) } else { tree::ROOT };
    if want.fit {
        fit::prune(&mut tree, root);
    }
    let content = match want.form {
        Form::Nothing => None,
        Form::Html => Some(tree.html(root, base)),
        Form::Markdown => Some(markdown::markdown(&tree, root, base, !want.fit)),
        Form::Text => Some(markdown::plain(&tree, root)),
    };
    Holding {
        content,
        links,
        tables: want.tables.then(|| parts::tables(&tree, root)),
        code: want.code.then(|| parts::code(&tree, root)),
        images: want.images.then(|| parts::images(&tree, root, base)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{growth, read, Form, Holding, Link, ReadOptions};

    const BASE: &str = "http://site.example/a/b";

    fn all(form: Form, only_main_content: bool, fit: bool) -> ReadOptions {
        ReadOptions { form, only_main_content, fit, tables: true, code: true, images: true }
    }

    fn markdown(html: &str) -> String {
        read(html, BASE, all(Form::Markdown, false, false)).content.unwrap()
    }

    #[test]
    fn every_element_has_its_markdown() {
        for (html, wanted) in [
            ("<body><h2>A  b</h2><p>One <b>two </b>three</p></body>", "## A b\n\nOne **two** three"),
            ("<p>a &amp; b &lt;i&gt;&nbsp;c</p>", "a & b \\<i> c"),
            ("<p>1. not a list</p><p># no head</p>", "\\1. not a list\n\n\\# no head"),
            ("<ol><li>a</li><li>b<ul><li>c</li></ul></li></ol>", "1. a\n2. b\n   - c"),
            ("<p><a href=\"../x?y#z\">x</a> <a href=\"#top\">top</a></p>", "[x](http://site.example/x?y#z) top"),
            ("<p><a href=\"javascript:x()\">x</a></p>", "x"),
            ("<pre class=\"language-rust\"><code>a\n  b &lt; c\n</code></pre>", "```rust\na\n  b < c\n```"),
            ("<p>a <code>b`c</code></p>", "a ``b`c``"),
            ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
            (
                "<table><tbody><tr><th>a</th><th>b</th></tr><tr><td>1|2</td></tr></tbody></table>",
                "| a | b |\n| --- | --- |\n| 1\\|2 |  |",
            ),
            ("<p>a<br>b</p><hr>", "a\nb\n\n---"),
            ("<dl><dt>a</dt><dd>b</dd></dl>", "a\n\n: b"),
            ("<p><img src=\"i (1).png\" alt=\"a_b\"></p>", "![a\\_b](http://site.example/a/i%20%281%29.png)"),
            ("<p>a\u{200b}b\u{e0041}</p>", "ab"),
        ] {
            assert_eq!(markdown(html), wanted, "{html}");
        }
    }

    #[test]
    fn what_is_not_seen_is_not_told_but_its_links_are_known() {
        let html = "<p>a</p><p hidden=\"\">b</p><p style=\"display: none\">c</p><p aria-hidden=\"true\">d \
                    <a href=\"/menu\">menu  item</a></p><script>if (a < b) { \"</p>\" }</script><button>e</button>\
                    <!-- <p>f</p> --><p style=\"font-size:0.9em\">g</p>";
        let page = read(html, BASE, all(Form::Text, false, false));
        assert_eq!(page.content.as_deref(), Some("a\ng"));
        assert_eq!(page.links, [Link { href: "/menu".to_owned(), text: "menu item".to_owned() }]);
    }

    #[test]
    fn the_main_content_is_what_the_author_marked() {
        let text = "A sentence that is long enough to count as running text of the page. ".repeat(4);
        let html = format!(
            "<nav><a href=\"/\">Home</a></nav><main><article><h1>Head</h1><p>{text}</p><div class=\"share-box\">Share \
             </div></article></main><footer>Foot</footer>"
        );
        let page = read(&html, BASE, all(Form::Markdown, true, false));
        assert_eq!(page.content, Some(format!("# Head\n\n{}", text.trim())));
        let fit = read(&html, BASE, all(Form::Html, true, true)).content.unwrap();
        assert!(fit.starts_with("<article><h1>Head</h1><p>"), "{fit}");
    }

    #[test]
    fn depth_and_count_are_bounded() {
        let deep = format!("{}text{}", "<div>".repeat(10_000), "</div>".repeat(10_000));
        assert_eq!(markdown(&deep), "text");
        let wide = "<p>x</p>".repeat(400_000);
        assert!(markdown(&wide).len() < 4 * 300_000);
    }

    fn text(html: &str) -> String {
        read(html, BASE, all(Form::Text, true, false)).content.unwrap()
    }

    const SENTENCE: &str =
        "The ferry crosses both rivers in one long curve, and it stops when the wind is in the north. ";

    #[test]
    fn text_between_line_breaks_is_content() {
        let part = SENTENCE.repeat(3);
        let html = format!(
            "<div id=\"nav\"><a href=\"/a\">One</a> <a href=\"/b\">Two</a></div><div class=\"sidebar-content\">{part}<br><br>\
             {part}<br>{part}</div><div><a href=\"/x\">Another page</a><br><a href=\"/y\">And one more</a></div>"
        );
        assert_eq!(text(&html).matches("The ferry").count(), 9);
        assert!(!text(&html).contains("Another"));
    }

    #[test]
    fn names_drop_nothing_that_is_most_of_the_text() {
        for name in ["sidebar", "comments", "related", "share", "footer", "nav", "advertisement"] {
            let html = format!(
                "<div class=\"{name}\"><p>{0}</p><p>{0}</p></div><p class=\"x\">Imprint</p>",
                SENTENCE.repeat(3)
            );
            assert_eq!(text(&html).matches("The ferry").count(), 6, "{name}");
        }
    }

    #[test]
    fn parts_beside_each_other_are_one_content() {
        let part = format!("<section><h2>Part</h2><p>{}</p></section>", SENTENCE.repeat(3));
        let html = format!("<main><h1>Head</h1>{part}<div class=\"ad\">Buy a boat today.</div>{part}{part}</main>");
        assert_eq!(text(&html).matches("The ferry").count(), 9);
        assert!(!text(&html).contains("boat"));
    }

    #[test]
    fn the_largest_article_is_not_the_content_where_it_is_a_teaser() {
        let teaser =
            format!("<article><h2><a href=\"/t\">Another story of the day</a></h2><p>{SENTENCE}</p></article>");
        let html = format!("<div class=\"story\"><p>{}</p></div><div>{}</div>", SENTENCE.repeat(8), teaser.repeat(4));
        assert_eq!(text(&html).matches("The ferry").count(), 8);
    }

    #[test]
    fn a_page_with_text_is_never_nothing() {
        for html in [
            "<nav><a href=\"/a\">One</a></nav>",
            "<footer>Word</footer>",
            "<aside><p>Hello</p></aside>",
            "<div class=\"comments\">short</div>",
            "<table><tr><td><a href=\"/x\">x</a></td></tr></table>",
            "<ul><li><a href=\"/a\">One page</a></li><li><a href=\"/b\">Two pages</a></li></ul>",
        ] {
            assert!(!text(html).is_empty(), "{html}");
        }
        let hidden = format!("<div style=\"visibility: hidden\"><p>{}</p></div>", SENTENCE.repeat(30));
        assert_eq!(text(&hidden).matches("The ferry").count(), 30);
    }

    #[test]
    fn names_within_code_are_those_of_a_highlighter() {
        let html = format!(
            "<p>{0}</p><pre><code>x = 1 <span class=\"comment\"># one</span></code></pre><p>{0}</p>",
            SENTENCE.repeat(3)
        );
        assert!(text(&html).contains("x = 1 # one"));
    }

    /// Pages that are difficult for some step; their size grows with `times`.
    fn hostile_pages(times: usize) -> [String; 9] {
        let many = 6_000 * times;
        [
            format!("{}{SENTENCE}{}", "<div class=\"share\">".repeat(many), "</div>".repeat(many)),
            "<div class=\"related-links\"><a href=\"/x\">x</a></div>".repeat(many),
            "<h2><a href=\"/x\">x</a></h2><p>y</p>".repeat(many / 2),
            format!("<div class=\"{}\">{SENTENCE}</div>", "share-nav-".repeat(4 * many)),
            format!("<div class=\"{}\">{SENTENCE}</div>", "a ".repeat(10 * many)),
            format!("<p>{}</p>", "a, ".repeat(10 * many)),
            format!("<div>{}</div>", "<span>a</span><br>".repeat(many)),
            format!("{}x", "<article><h3><a href=\"/\">t</a></h3>".repeat(many / 3)),
            format!(
                "<table><tr>{}</tr>{}</table>",
                "<td>x</td>".repeat(many / 4),
                "<tr><td>y</td></tr>".repeat(many / 4)
            ),
        ]
    }

    #[test]
    fn hostile_pages_take_linear_time() {
        let (small, large) = (hostile_pages(1), hostile_pages(growth::GROWTH));
        for (number, (small, large)) in small.iter().zip(&large).enumerate() {
            growth::check(&number.to_string(), |times| {
                let html = if times == 1 { small } else { large };
                let page = read(html, BASE, ReadOptions { tables: false, ..all(Form::Markdown, true, true) });
                assert!(page.content.unwrap().len() <= 4 * html.len(), "{number}");
            });
        }
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("<div class=\"nav\">".to_owned()),
            Just("</div>".to_owned()),
            Just("<p>".to_owned()),
            Just("</p>".to_owned()),
            Just("<a href=\"/x\">".to_owned()),
            Just("</a>".to_owned()),
            Just("<pre>".to_owned()),
            Just("</pre>".to_owned()),
            Just("<table><tr><td>".to_owned()),
            Just("</td></tr></table>".to_owned()),
            Just("<script>".to_owned()),
            Just("</script>".to_owned()),
            Just("<li hidden=\"\">".to_owned()),
            Just("<img src=\"".to_owned()),
            ".{0,12}",
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn nothing_that_comes_is_a_panic_and_the_same_gives_the_same(html in pieces()) {
            for form in [Form::Nothing, Form::Html, Form::Markdown, Form::Text] {
                for (main, fit) in [(false, false), (true, false), (true, true)] {
                    let text = |page: Holding| serde_json::to_string(&page).unwrap();
                    let first = text(read(&html, BASE, all(form, main, fit)));
                    prop_assert_eq!(first, text(read(&html, BASE, all(form, main, fit))));
                }
            }
        }
    }
}
