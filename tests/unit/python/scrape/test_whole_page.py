"""A page is read to its end: every visible word that Lexbor finds, however broken the markup, and a note of what is
missing.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, Final

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from fairlead.scrape.page.extract import ReadOptions, Source, extract

KINDS: Final = Path(__file__).parent / "kinds"
MUTATIONS: Final = 400
# Left out by rule: see "What is left out" in docs/how-to/read-the-web.md.
# fmt: off
LEFT_OUT: Final = frozenset([
    "script", "style", "noscript", "template", "title", "head", "svg", "annotation", "object", "embed", "canvas",
    "select", "datalist", "textarea", "dialog", "audio", "video", "iframe", "noembed", "noframes",
])
# fmt: on
HEADINGS: Final = frozenset(["h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary", "legend"])
HIDDEN: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:[^.0-9]|$)", re.IGNORECASE
)
# fmt: off
PIECES: Final = [
    '"', "'", "<", ">", "</div>", "<div>", "</p>", "<table>", "</table>", '<a href="/x"">', "=", "<!--", "-->", "<b>",
    "</b>", "<p x=", "&", "&lt;", "\0", "<tr>", "<li>", "</script>", "<pre>", "<!", "<?", "</", "<xmp>", "<h1>",
    "<form>", "<td>", "<i>", "</body>", "<br/", '<img src="/a.png"">', '<a"b>', '<p ="x">', "<style>", "<select>",
]
# fmt: on


def read(
    html: str | bytes,
    form: str = "text",
    content_type: str = "text/html; charset=utf-8",
    **options: Any,
) -> dict[str, Any]:
    body = html if isinstance(html, bytes) else html.encode("utf-8", "replace")
    source = Source("http://site.example/a", body, content_type)
    document, _ = extract(
        source, ReadOptions(form=form, **({"only_main_content": False} | options))
    )
    return document


def add_words(node: LexborNode, found: list[str], *, in_heading: bool = False) -> None:
    for child in node.iter(include_text=True):
        tag = child.tag or ""
        if tag == "-text":
            found.append(child.text_content or "")
        elif not tag.startswith("-") and tag not in LEFT_OUT and (tag != "button" or in_heading):
            attributes = child.attributes
            if "hidden" not in attributes and not HIDDEN.search(attributes.get("style") or ""):
                add_words(child, found, in_heading=in_heading or tag in HEADINGS)


def letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def words_of_lexbor(html: str) -> str:
    found: list[str] = []
    body = LexborHTMLParser(html).body
    if body is not None:
        add_words(body, found)
    return letters("".join(found))


def mutated(html: str, dice: random.Random) -> str:
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(html))
        if dice.random() < 0.7:
            html = html[:at] + dice.choice(PIECES) + html[at:]
        else:
            html = html[:at] + html[at + dice.randrange(1, 40) :]
    return html


def test_broken_pages_have_the_words_of_lexbors_tree() -> None:
    dice = random.Random(31)
    # Panels that a button opens are read although they are hidden, so this page differs by rule.
    pages = [
        each.read_text()
        for each in sorted(KINDS.glob("*.html"))
        if "aria-controls" not in each.read_text()
    ]
    assert len(pages) >= 20
    for _ in range(MUTATIONS):
        html = mutated(dice.choice(pages), dice)
        assert letters(read(html)["content"]) == words_of_lexbor(html), html


@pytest.mark.parametrize(
    "tag",
    [
        '<a href="/x"">link</a>',
        '<div class="a"" id=b>link</div>',
        '<img src="/a.png"">link',
        '<input type="text=""">link',
        "<p '>link</p>",
        '<a"b>link',
        '<script><!-- document.write("<script src=x></script>") --></script>link',
        "<svg><style>a&lt;/style&gt;<p>b</p></style></svg>link",
    ],
)
@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_page_is_read_beyond_broken_markup(tag: str, form: str) -> None:
    content = read(f"<p>before</p>{tag}<p>after</p><p>end</p>", form)["content"]
    assert re.sub(r"\W+", " ", content).split()[0] == "before"
    assert "link" in content
    assert content.endswith("after\n\nend" if form == "markdown" else "after\nend")


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        ('<p>a</p><iframe srcdoc="<p>in a frame</p>"></iframe>', "a\n\nin a frame"),
        ("<div><template shadowrootmode=open><p>in a shadow</p></template></div>", "in a shadow"),
        ('<p>E is <script type="math/tex">mc^2</script>.</p>', "E is $mc^2$."),
        ("<p>می‌خواهم 👩‍👧</p>", "می‌خواهم 👩‍👧"),
        ("<p>a</p><xmp><b>b</b></xmp>", "a\n\n```\n<b>b</b>\n```"),
        ("<video><source src=/film.mp4></video>", "[site.example](http://site.example/film.mp4)"),
    ],
)
def test_what_a_browser_shows_is_in_the_markdown(html: str, wanted: str) -> None:
    assert read(html, "markdown")["content"] == wanted


def test_elements_of_xhtml_end_where_they_say() -> None:
    html = '<html xmlns="http://www.w3.org/1999/xhtml"><body><script src="a.js"/><p>text</p></body></html>'
    assert read(html, content_type="application/xhtml+xml")["content"] == "text"


@pytest.mark.parametrize(
    ("html", "warning"),
    [
        ("<div id=root></div><script src=/a.js></script>", "app_shell"),
        (
            "<body><noscript>You need to enable JavaScript to run this app.</noscript><script src=/a.js></script>",
            "app_shell",
        ),
        ("<p>Loading...</p><script src=/a.js></script>", "app_shell"),
        (
            "<title>Just a moment...</title><p>Checking your browser before you go on.</p>",
            "bot_check",
        ),
        ("<h1>Verify you are human</h1><div class=g-recaptcha></div>", "bot_check"),
        ("<h1>Sign in</h1><form><input name=u><input type=password></form>", "login_wall"),
        ("<p>You must log in to read this.</p>", "login_wall"),
        (
            "<h1>Before you continue</h1><p>We use cookies. Accept all cookies?</p><button>Accept</button>",
            "consent_wall",
        ),
        ("<frameset><frame src=/menu><frame src=/text></frameset>", "frames_left_out"),
        ("<p>text</p><iframe src=https://other.example/></iframe>", "frames_left_out"),
    ],
)
def test_a_wall_or_a_shell_is_a_warning(html: str, warning: str) -> None:
    assert warning in read(html, only_main_content=True)["metadata"]["warnings"]


@pytest.mark.parametrize(
    "html",
    [
        "<h1>Prices</h1><p>Boat: 19 EUR</p><script src=/a.js></script>",
        "<p>"
        + "The ferry crosses both rivers. We accept no cookies. Log in to pay. " * 60
        + "</p>",
        "<h1>Bread</h1><p>Bake for an hour.</p>",
        "",
    ],
)
def test_a_page_with_its_content_has_no_warning(html: str) -> None:
    assert "warnings" not in read(html)["metadata"]
    assert "truncated" not in read(html)["metadata"]


def test_what_a_limit_left_out_is_reported() -> None:
    count = 320_000
    document = read("<p>ab" * count)
    metadata = document["metadata"]
    left = len(document["content"].split())
    assert 0 < left < count
    assert (metadata["truncated"], metadata["truncatedBytes"]) == (True, 2 * (count - left))
    assert "truncated" in metadata["warnings"]


def test_a_list_that_was_cut_is_reported() -> None:
    metadata = read("<table><tr><th>a<th>b<tr><td>1<td>2</table>" * 201, lists=["tables"])[
        "metadata"
    ]
    assert metadata["truncated"] is True


RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>Harbour news</title><description>All of it.</description>
<item><title>Ice</title><link>https://port.example/ice</link><pubDate>Mon, 02 Mar 2026 08:00:00 GMT</pubDate>
<dc:creator>Jo</dc:creator><description>short</description>
<content:encoded><![CDATA[<p>Long <b>text</b>.</p>]]></content:encoded></item>
<item><title>Thaw &amp; tide</title><link>/thaw</link>
<description>&lt;p&gt;Soon.&lt;/p&gt;</description></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Harbour</title><entry><title>Ice</title>
<link rel="self" href="/self"/><link href="https://port.example/ice"/><updated>2026-03-02</updated><author><name>Jo</name></author>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Long text.</p></div></content></entry></feed>"""


@pytest.mark.parametrize("content_type", ["application/rss+xml", "text/xml; charset=utf-8"])
def test_an_rss_feed_is_a_page(content_type: str) -> None:
    document = read(RSS, "markdown", content_type, lists=["links"])
    assert document["title"] == "Harbour news"
    assert document["content"] == (
        "# Harbour news\n\nAll of it.\n\n## [Ice](https://port.example/ice)\n\nMon, 02 Mar 2026 08:00:00 GMT · Jo\n\n"
        "Long **text**.\n\n## [Thaw & tide](http://site.example/thaw)\n\nSoon."
    )
    assert [each["url"] for each in document["formats"]["links"]] == [
        "https://port.example/ice",
        "http://site.example/thaw",
    ]


def test_an_atom_feed_is_a_page() -> None:
    content = read(ATOM, "markdown", "application/atom+xml")["content"]
    assert (
        content
        == "# Harbour\n\n## [Ice](https://port.example/ice)\n\n2026-03-02 · Jo\n\nLong text."
    )


@pytest.mark.parametrize(
    "text",
    [
        "<rss><channel>",
        '<!DOCTYPE rss [<!ENTITY a "b">]><rss><channel><title>&a;</title></channel></rss>',
    ],
)
def test_a_broken_or_hostile_feed_is_a_block_of_code(text: str) -> None:
    assert read(text, "markdown", "application/rss+xml")["content"] == f"```\n{text}\n```"
