"""What stands around an article: heads with scripts, menus, footers, consent, teasers, sharing, comments. Each comes in
several constructions, drawn by the page's dice.
"""
# ruff: noqa: E501, PERF401 - markup is as wide as markup is

from __future__ import annotations

import json
import random

from tests.unit.python.scrape.reading.prose import Prose

_PLACES = [
    "World",
    "Business",
    "Sport",
    "Culture",
    "Opinion",
    "Science",
    "Travel",
    "Health",
    "Tech",
    "Food",
    "Money",
    "Weather",
    "Local",
    "Video",
    "Podcasts",
    "Style",
    "Books",
    "Film",
    "Gardens",
    "Motoring",
    "Education",
]
_FOOT = [
    "About us",
    "Contact",
    "Privacy policy",
    "Terms of use",
    "Advertise with us",
    "Careers",
    "Help centre",
    "Accessibility",
    "Newsletters",
    "Subscriptions",
    "Corrections",
    "Cookie settings",
    "Site map",
    "RSS",
    "Imprint",
]
_CONSENT = [
    "We and our partners store and access information on a device, such as unique identifiers in cookies, to process personal data.",
    "You may accept or manage your choices by clicking below, including your right to object where legitimate interest is used.",
    "These choices will be signalled to our partners and will not affect browsing data. You can change them at any time in the privacy centre.",
    "Strictly necessary cookies are required for the site to function and cannot be switched off in our systems.",
    "Performance cookies allow us to count visits and traffic sources so that we can measure and improve the performance of our site.",
]
_OFFERS = [
    "Sign up for our daily briefing and get the day's top stories delivered straight to your inbox every morning.",
    "Get unlimited access to all of our journalism. Subscribe today and save half of the price for the first year.",
    "By submitting your address you agree to our terms of use and confirm that you have read our privacy policy.",
]


class Furniture:
    def __init__(self, prose: Prose, dice: random.Random) -> None:
        self.prose = prose
        self.dice = dice
        self._count = 0

    def href(self) -> str:
        self._count += 1
        kind = self.dice.randint(0, 2)
        return (
            f"/{self.dice.choice(_PLACES).lower()}/{self._count}",
            f"https://www.site.example/p/{self._count}.html",
            f"?page_id={self._count}&ref={self.dice.randint(1, 99)}",
        )[kind]

    def name(self) -> str:
        last = [
            "Harlow",
            "Winter",
            "Okafor",
            "Lindqvist",
            "Moreau",
            "Castell",
            "Brandt",
            "Ueda",
            "Farouk",
            "Petrenko",
        ]
        return f"{self.dice.choice('ABCDEFGHJKLMNPRSTVW')}. {self.dice.choice(last)}"

    def date(self) -> str:
        month = self.dice.choice(["January", "March", "May", "July", "October", "December"])
        day, year = self.dice.randint(1, 28), self.dice.randint(2009, 2026)
        return self.dice.choice(
            [
                f"{month} {day}, {year}",
                f"{day} {month} {year}",
                f"{year}-0{self.dice.randint(1, 9)}-{day:02}",
                f"{day:02}.0{self.dice.randint(1, 9)}.{year} 1{self.dice.randint(0, 9)}:05",
            ]
        )

    def script(self, kilobytes: int) -> str:
        names = [f"w{self.dice.randint(100, 999)}" for _ in range(12)]
        # Markup in strings: none, closed, or with ends escaped so that no end tag is seen in the script.
        markup = self.dice.choice(
            ["x", "x", "x", "x", "<i></i>", '<div class=\\"x\\"></div>', "<b></b>", "<p>x<\\/p>"]
        )
        lines, size = [], 0
        while size < kilobytes * 1000:
            one, two = self.dice.choice(names), self.dice.choice(names)
            lines.append(
                f'if(window.{one}&&{one}.length<{self.dice.randint(1, 99)}){{{two}.push(["{markup}",{{id:"{one}-{two}"}}]);}}'
            )
            size += len(lines[-1])
        return f"<script>{''.join(lines)}</script>"

    def head(self, title: str, article_body: str = "") -> str:
        card = {
            "@context": "https://schema.org",
            "@type": "NewsArticle",
            "headline": title,
            "datePublished": "2024-03-05",
            "author": {"@type": "Person", "name": self.name()},
        }
        if article_body:
            card["articleBody"] = article_body
        icons = "".join(
            f'<link rel="preload" href="/static/{n}.js" as="script">'
            for n in range(self.dice.randint(0, 12))
        )
        rules = "".join(
            f".c{n}{{margin:{n}px;color:#{n:03}}}" for n in range(self.dice.randint(20, 400))
        )
        return (
            f'<head><meta charset="utf-8"><title>{title} | Site</title><meta name="description" content="{self.prose.headline()}">'
            f'<meta property="og:title" content="{title}"><meta property="og:type" content="article"><meta name="viewport" content="width=device-width">'
            f'<script type="application/ld+json">{json.dumps(card, ensure_ascii=False)}</script>{icons}<style>{rules}</style>'
            f"{self.script(self.dice.randint(5, 160))}</head>"
        )

    def anchors(self, count: int, gap: str = " ") -> str:
        return gap.join(
            f'<a href="{self.href()}">{self.prose.headline()}</a>' for _ in range(count)
        )

    def items(self, count: int) -> str:
        return "".join(
            f'<li><a href="{self.href()}">{self.prose.headline()}</a></li>' for _ in range(count)
        )

    def menu(self, count: int, below: int) -> str:
        """Items with their own items below."""
        parts = []
        for number in range(count):
            inner = "".join(
                f'<li class="menu-item"><a href="{self.href()}">{self.dice.choice(_PLACES)} {n}</a></li>'
                for n in range(below)
            )
            parts.append(
                f'<li class="menu-item menu-item-{number}"><a href="{self.href()}">{self.dice.choice(_PLACES)}</a><ul class="sub-menu">{inner}</ul></li>'
            )
        return f"<ul>{''.join(parts)}</ul>"

    def mega(self) -> str:
        """The top of a page, from a few links to a menu of hundreds."""
        kind = self.dice.randint(0, 4)
        few = " ".join(
            f'<a class="l{n}" href="{self.href()}">{each}</a>'
            for n, each in enumerate(self.dice.sample(_PLACES, 9))
        )
        if kind == 0:
            return f'<header id="masthead"><a class="skip-link" href="#main">Skip to content</a><div class="logo"><a href="/">The Site</a></div><nav>{self.menu(8, 0)}</nav></header>'
        if kind == 1:
            return f'<div class="top"><div class="top-inner"><a href="/">The Site</a> {few}</div><div class="mega">{self.menu(12, 14)}</div><form action="/s"><input name="q"><button>Search</button></form></div>'
        if kind == 2:
            return f'<header class="Header_root__x1"><div>{few}</div><div aria-hidden="true" class="drawer">{self.menu(14, 12)}</div><a href="/login">Sign in</a></header>'
        if kind == 3:
            blurbs = "".join(
                f'<div class="flyout"><h4>{self.prose.headline()}</h4><p>{self.prose.sentence()}</p><a href="{self.href()}">More</a></div>'
                for _ in range(4)
            )
            return f'<div id="hd"><div id="nav-wrap">{self.menu(7, 6)}<div class="flyouts">{blurbs}</div></div></div>'
        return f'<nav class="navbar navbar-default" role="navigation"><div class="container"><ul class="nav navbar-nav">{self.items(7)}</ul></div></nav>'

    def foot(self) -> str:
        links = [f'<a href="{self.href()}">{each}</a>' for each in self.dice.sample(_FOOT, 10)]
        legal = "Copyright 2026 The Site and its licensors. All rights reserved. No part of this page may be copied without written permission of the publisher."
        kind = self.dice.randint(0, 3)
        if kind == 0:
            return f"<footer><ul>{''.join(f'<li>{each}</li>' for each in links)}</ul><p>{legal}</p></footer>"
        if kind == 1:
            columns = "".join(
                f'<div class="col"><h5>{self.prose.headline()}</h5><ul>{self.items(14)}</ul></div>'
                for _ in range(self.dice.randint(4, 12))
            )
            return f'<div id="footer"><div class="cols">{columns}</div><div class="about"><p>{self.prose.sentences(3)}</p></div><div class="legal">{" | ".join(links)}<br>{legal}</div></div>'
        if kind == 2:
            return f'<div class="ft"><p class="small">{" &middot; ".join(links)}</p><p class="small">{legal} {self.prose.sentence()}</p></div>'
        return f'<footer class="site-footer"><div class="widget-area"><section class="widget widget_text"><h2>About</h2><p>{self.prose.sentences(2)}</p></section><section class="widget"><h2>Recent</h2><ul>{self.items(6)}</ul></section></div><div class="site-info">{legal}</div></footer>'

    def cookie(self) -> str:
        kind = self.dice.randint(0, 4)
        if kind == 0:
            return ""
        text = "".join(
            f"<p>{each}</p>" for each in self.dice.sample(_CONSENT, self.dice.randint(1, 5))
        )
        if kind == 1:
            return f'<div id="onetrust-consent-sdk"><div class="ot-sdk-row" role="alertdialog"><h2>We value your privacy</h2>{text}<button>Accept all</button></div></div>'
        if kind == 2:
            return f'<div class="cc-window cc-banner" role="dialog">{text}<a class="cc-btn" href="#">Got it</a></div>'
        if kind == 3:
            return f'<section class="gdpr"><div>{text}</div><button>Agree</button> <button>Reject</button></section>'
        return f'<div class="cookie-notice" style="display:none">{text}</div>'

    def share(self) -> str:
        nets = ["Facebook", "Twitter", "WhatsApp", "Email", "LinkedIn", "Reddit"]
        kind = self.dice.randint(0, 3)
        if kind == 0:
            items = "".join(f'<li><a href="#{n}">Share on {n}</a></li>' for n in nets)
            return f'<ul class="social-list">{items}</ul>'
        if kind == 1:
            items = "".join(
                f'<li><a href="?share={n}"><span>Click to share on {n} (Opens in new window)</span></a></li>'
                for n in nets
            )
            return f'<div class="sharedaddy sd-sharing-enabled"><h3 class="sd-title">Share this:</h3><ul>{items}</ul></div>'
        if kind == 2:
            icons = "".join(
                f'<a href="https://share.example/{n}" aria-label="{n}"><svg><path d="M0 0h1"></path></svg></a>'
                for n in nets
            )
            return f'<div class="s-bar"><span>Share</span>{icons}<span class="count">{self.dice.randint(2, 900)} shares</span></div>'
        buttons = " ".join(f'<a class="addthis_button_{n}">{n}</a>' for n in nets)
        return f'<div class="addthis_toolbox">{buttons}</div>'

    def offer(self) -> str:
        text = self.dice.choice(_OFFERS)
        kind = self.dice.randint(0, 3)
        if kind == 0:
            return f'<div class="newsletter-signup"><h4>Sign up</h4><p>{text}</p><form><input type="email"><button>Go</button></form></div>'
        if kind == 1:
            return f'<aside class="inline-promo"><p><strong>{text}</strong></p></aside>'
        if kind == 2:
            return f'<div class="nl-box"><div>{text}</div><div><a href="{self.href()}">Subscribe</a></div></div>'
        return f'<p class="promo-line"><em><a href="{self.href()}">{text}</a></em></p>'

    def related(self) -> str:
        kind = self.dice.randint(0, 4)
        if kind == 0:
            return f'<div class="related"><h3>Related stories</h3><ul>{self.items(5)}</ul></div>'
        if kind == 1:
            return f'<aside class="inset"><h4>Read more</h4>{self.anchors(3, "<br>")}</aside>'
        if kind == 2:
            return f'<p><strong>READ MORE: <a href="{self.href()}">{self.prose.headline()} {self.prose.headline()}</a></strong></p>'
        if kind == 3:
            return f'<div class="component-x"><span>See also</span><div>{self.teasers(3, "div")}</div></div>'
        return f'<div class="wp-block-group more"><p>More from this section</p><ul>{self.items(4)}</ul></div>'

    def teasers(self, count: int, tag: str = "article", names: str = "card") -> str:
        parts = []
        for number in range(count):
            parts.append(
                f'<{tag} class="{names} {names}-{number}"><a href="{self.href()}"><img src="/t{number}.jpg" alt="{self.prose.headline()}"></a><div class="{names}-in"><span class="kicker">{self.dice.choice(_PLACES)}</span><h3><a href="{self.href()}">{self.prose.headline()}</a></h3><p>{self.prose.sentence()}</p><time>{self.date()}</time></div></{tag}>'
            )
        return "".join(parts)

    def rail(self) -> str:
        """A column beside the article."""
        kind = self.dice.randint(0, 3)
        if kind == 0:
            return f'<aside class="rail"><h3>Most read</h3><ol>{self.items(10)}</ol></aside>'
        if kind == 1:
            return f'<div class="sidebar"><div class="widget"><h3>Latest</h3>{self.teasers(5, "div", "item")}</div><div class="widget"><h3>Tags</h3>{self.anchors(12, ", ")}</div></div>'
        if kind == 2:
            return f'<div id="secondary" class="widget-area"><aside class="widget widget_text"><h2>About me</h2><p>{self.prose.sentences(4)}</p></aside><aside class="widget"><h2>Archives</h2><ul>{self.items(14)}</ul></aside></div>'
        return f'<div class="col-4"><div class="box">{self.anchors(8, "<br>")}</div><div class="box"><p>{self.prose.sentences(2)} <a href="{self.href()}">More</a></p></div></div>'

    def comments(self, count: int) -> str:
        kind = self.dice.randint(0, 3)
        one = [
            (self.name(), self.date(), self.prose.sentences(self.dice.randint(1, 4)))
            for _ in range(count)
        ]
        if kind == 0:
            inner = "".join(
                f'<li class="comment" id="comment-{n}"><article class="comment-body"><footer class="comment-meta"><b class="fn">{name}</b> <a href="#c{n}">{date}</a></footer><div class="comment-content"><p>{text}</p></div><div class="reply"><a href="#r{n}">Reply</a></div></article></li>'
                for n, (name, date, text) in enumerate(one)
            )
            return f'<div id="comments" class="comments-area"><h2 class="comments-title">{count} thoughts</h2><ol class="comment-list">{inner}</ol><div id="respond"><h3>Leave a Reply</h3><form><p>Your email address will not be published. Required fields are marked.</p><textarea></textarea></form></div></div>'
        if kind == 1:
            inner = "".join(
                f'<div class="cmt"><div class="u">{name}</div><div class="d">{date}</div><div class="t">{text}</div></div>'
                for name, date, text in one
            )
            return f'<section class="user-comments"><h3>Comments</h3>{inner}</section>'
        if kind == 2:
            inner = "".join(
                f'<dt id="c{n}"><a href="{self.href()}">{name}</a> said...</dt><dd class="comment-body"><p>{text}</p></dd><dd class="comment-footer">{date}</dd>'
                for n, (name, date, text) in enumerate(one)
            )
            return f'<div class="comments" id="comments"><h4>{count} comments:</h4><dl id="comments-block">{inner}</dl></div>'
        inner = "".join(
            f"<div><p>{text}</p><small>{name}, {date}</small></div>" for name, date, text in one
        )
        return f'<div id="disqus_thread" class="discussion">{inner}</div>'

    def bio(self) -> str:
        name = self.name()
        kind = self.dice.randint(0, 2)
        text = f"{name} is a reporter who covers the region. {self.prose.sentence()} Follow on social media or write to the desk."
        if kind == 0:
            return f'<div class="author-bio"><img src="/a.jpg" alt=""><h4>About the author</h4><p>{text}</p></div>'
        if kind == 1:
            return f'<section class="about-author"><a href="{self.href()}">{name}</a><div>{text}</div></section>'
        return f'<div class="abh_box"><div class="abh_text">{text}</div><a href="{self.href()}">Latest posts by {name}</a></div>'
