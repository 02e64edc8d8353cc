//! Pages from their text to their content.

use proptest::prelude::*;

use crate::{growth, read, Form, Holding, Link, ReadOptions};

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
    assert_eq!(page.content.as_deref(), Some("a\nd menu item\ng"));
    let main = read(html, BASE, all(Form::Text, true, false));
    assert_eq!(main.content.as_deref(), Some("a\ng"));
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
    read(html, BASE, all(Form::Text, true, true)).content.unwrap()
}

fn main_markdown(html: &str) -> String {
    read(html, BASE, all(Form::Markdown, true, false)).content.unwrap()
}

const SENTENCE: &str = "The ferry crosses both rivers in one long curve, and it stops when the wind is in the north. ";

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
        let html =
            format!("<div class=\"{name}\"><p>{0}</p><p>{0}</p></div><p class=\"x\">Imprint</p>", SENTENCE.repeat(3));
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
    let teaser = format!("<article><h2><a href=\"/t\">Another story of the day</a></h2><p>{SENTENCE}</p></article>");
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
        assert!(!main_markdown(html).is_empty(), "{html}");
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
        format!("<table><tr>{}</tr>{}</table>", "<td>x</td>".repeat(many / 4), "<tr><td>y</td></tr>".repeat(many / 4)),
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

#[test]
fn a_stray_quote_ends_nothing() {
    let html = "<p>before</p><a href=\"/x\" \"=\"\">link</a><p>after</p><input type=\"text=\" \"=\"\"><p>end</p>";
    let page = read(html, BASE, all(Form::Text, false, false));
    assert_eq!(page.content.as_deref(), Some("before\nlink\nafter\nend"));
    assert_eq!(page.links, [Link { href: "/x".to_owned(), text: "link".to_owned() }]);
}

#[test]
fn code_has_its_lines_and_its_language() {
    let sphinx = "<div class=\"highlight-python3 notranslate\"><div class=\"highlight\"><pre><span>a</span> = 1\n</pre></div></div>";
    let lines = "<pre><code class=\"lang-js\"><div class=\"line\">a</div><div class=\"line\"></div><div class=\"line\">b</div></code></pre>";
    let shiki = "<pre data-language=\"ts\"><code><span class=\"line\">a</span>\n<span class=\"line\"></span>\n<span class=\"line\">b</span></code></pre>";
    let numbers = "<table class=\"highlighttable\"><tbody><tr><td class=\"linenos\"><pre>1\n2</pre></td><td class=\"code\"><pre>a\nb</pre></td></tr></tbody></table>";
    let rows = "<table><tbody><tr><td class=\"blob-num\">1</td><td class=\"blob-code\">a</td></tr><tr><td class=\"blob-num\">2</td><td class=\"blob-code\">  b</td></tr></tbody></table>";
    for (html, wanted) in [
        (sphinx, "```python3\na = 1\n```"),
        ("<pre><code>npm i x<br>npm run x<br></code></pre>", "```\nnpm i x\nnpm run x\n```"),
        (lines, "```js\na\n\nb\n```"),
        (shiki, "```ts\na\n\nb\n```"),
        (numbers, "```\na\nb\n```"),
        (rows, "```\na\n  b\n```"),
        ("<pre>a\n\n\n\nb</pre>", "```\na\n\n\n\nb\n```"),
        ("<div class=\"highlight highlight-source-shell\"><pre>ls</pre></div>", "```shell\nls\n```"),
        (
            "<pre><span class=\"linenos\">1</span>import json\n<span class=\"linenos\">2</span>x</pre>",
            "```\nimport json\nx\n```",
        ),
    ] {
        assert_eq!(markdown(html), wanted, "{html}");
    }
}

#[test]
fn lists_images_formulas_and_embeds_keep_what_they_say() {
    for (html, wanted) in [
        ("<ol start=\"3\"><li>a</li><li value=\"9\">b</li><li>c</li></ol>", "3. a\n9. b\n10. c"),
        ("<ul><li><input type=\"checkbox\" checked=\"\"> a</li><li><p><input type=\"checkbox\"> b</p></li></ul>", "- [x] a\n- [ ] b"),
        ("<ul><li><p>a</p><p>b</p></li><li>c</li></ul>", "- a\n\n  b\n- c"),
        ("<ul>x<li>a</li><ul><li>b</li></ul></ul>", "- x\n- a\n  - b"),
        ("<img alt=\"x\"><p>a</p>", "a"),
        ("<p><img src=\"s.gif\" data-src=\"l.jpg\" alt=\"x\"></p>", "![x](http://site.example/a/l.jpg)"),
        ("<p><img src=\"s.jpg\" srcset=\"m.jpg 2x, l.jpg 3x\" alt=\"x\"></p>", "![x](http://site.example/a/l.jpg)"),
        ("<p>10<sup>6</sup> and 2<sub>10</sub>, 1<sup>st</sup>, H<sub>2</sub>O</p>", "10^6 and 2_10, 1st, H2O"),
        ("<p>E = <math alttext=\"mc^2\"><mi>m</mi></math>.</p>", "E = $mc^2$."),
        ("<p>a<math><semantics><mi>x</mi><annotation encoding=\"application/x-tex\">x_1</annotation></semantics></math></p>", "a$x_1$"),
        ("<span class=\"katex\"><span class=\"katex-mathml\"><math><semantics><mi>y</mi><annotation encoding=\"application/x-tex\">y</annotation></semantics></math></span><span class=\"katex-html\" aria-hidden=\"true\">y</span></span>", "$y$"),
        ("<p>is <span class=\"math\">\\(a_b\\)</span></p>", "is $a_b$"),
        ("<p>a</p><iframe src=\"/v\" title=\"A film\">x</iframe><p>b</p>", "a\n\n[A film](http://site.example/v)\n\nb"),
        ("<h2>Head<a class=\"headerlink\" href=\"#h\">\u{b6}</a></h2>", "## Head"),
        ("<a href=\"/x\"><h3>Head</h3><p>Text</p></a>", "### [Head](http://site.example/x)\n\nText"),
        ("<svg><title>t</title><g><text>a label</text></g></svg><p>b</p>", "a label\n\nb"),
    ] {
        assert_eq!(markdown(html), wanted, "{html}");
    }
}

#[test]
fn the_source_of_a_formula_is_not_visible() {
    let math =
        "<math><semantics><mi>x</mi><annotation encoding=\"application/x-tex\">y</annotation></semantics></math>";
    for html in [format!("<p>{math}</p>"), format!("<pre>{math}</pre>")] {
        assert_eq!(read(&html, BASE, all(Form::Text, false, false)).content.as_deref(), Some("x"), "{html}");
    }
}

#[test]
fn tables_are_grids() {
    let html = "<table><caption>Season</caption><thead><tr><th rowspan=\"2\">Boat</th><th colspan=\"2\">Races</th></tr><tr>\
                <th>Won</th><th>Lost</th></tr></thead><tbody><tr><td><p>a</p><p>b</p></td><td>1</td><td></td></tr></tbody></table>";
    let wanted = "Season\n\n| Boat | Races | Races |\n| --- | --- | --- |\n| Boat | Won | Lost |\n| a<br>b | 1 |  |";
    assert_eq!(markdown(html), wanted);
    let tables = read(html, BASE, all(Form::Nothing, false, false)).tables.unwrap();
    let json = serde_json::to_value(&tables).unwrap();
    assert_eq!(json[0]["caption"], "Season");
    assert_eq!(json[0]["headers"], serde_json::json!(["Boat", "Races", "Races"]));
    assert_eq!(json[0]["rows"], serde_json::json!([["Boat", "Won", "Lost"], ["a b", "1", ""]]));
    assert_eq!(
        read(html, BASE, all(Form::Text, false, false)).content.unwrap(),
        "Season\nBoat\tRaces\nWon\tLost\na b\t1"
    );
}

#[test]
fn the_surroundings_go_and_everything_else_stays() {
    let html = "<header class=\"site-header\"><a href=\"/\">Home</a></header><div id=\"x\"><h1>Prices</h1><p>19 EUR</p><h3>\
                <button aria-expanded=\"false\" aria-controls=\"q\">Why?</button></h3><div id=\"q\" hidden=\"\">Because.</div>\
                <dl><dt class=\"sig\"><span class=\"sig-name\">f</span><span class=\"sig-paren\">(</span>a)</dt><dd>Does.</dd></dl>\
                <form><label>Mail</label><input type=\"email\"></form></div><footer><p>Subscribe for updates each week, and \
                read what we write.</p></footer>";
    let wanted = "# Prices\n\n19 EUR\n\n### Why?\n\nBecause.\n\nf(a)\n\n: Does.";
    assert_eq!(main_markdown(html), wanted);
    let fit = read(html, BASE, all(Form::Markdown, true, true)).content.unwrap();
    assert_eq!(fit, wanted);
}

#[test]
fn what_a_limit_left_out_is_counted() {
    let page = read(&"<p>ab</p>".repeat(400_000), BASE, all(Form::Text, false, false));
    let left = page.content.unwrap().split_whitespace().count();
    assert!(page.is_cut && left < 400_000);
    assert_eq!(page.cut_bytes, 2 * (400_000 - left));
    assert!(!read("<p>ab</p>", BASE, all(Form::Text, false, false)).is_cut);
}
