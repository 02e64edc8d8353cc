"""From a skeleton of markup to a page and the text that a careful reader would mark as its article.

A skeleton is HTML with directives in double braces. `⟦` and `⟧` stand around what belongs to the article, `⟪` and `⟫`
around what does not although it stands between them (captions, boxes within the text).

    ps N [class]    N paragraphs in `<p>`           br N        N paragraphs with `<br><br>` between them
    open N          the same, `<p>` never closed    divs N [class]  the same in `<div>`
    t, s N, h, w N  a paragraph, sentences, a headline, words      lis N       items of sentences
    title, name, date, num, href                    rep N ... end   the part N times
    and what `Furniture` has: head, mega, foot, cookie, share, offer, related, rail, bio, teasers N, comments N, ...
"""

from __future__ import annotations

import random
import re
import zlib
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Final

from tests.unit.python.scrape.reading.furniture import Furniture
from tests.unit.python.scrape.reading.prose import LANGUAGES, Prose

SKELETONS: Final = Path(__file__).parent / "skeletons"
_DIRECTIVE: Final = re.compile(r"\{\{([a-z]+)((?: [^}]*)?)\}\}")
_REPEAT: Final = re.compile(r"\{\{rep (\d+)\}\}(.*?)\{\{end\}\}", re.DOTALL)
_MARKS: Final = re.compile("[⟦⟧⟪⟫]")
_INLINE: Final = re.compile(r"</?(?:a|b|i|em|strong|span|font|u|code|sup|q|mark|abbr)\b[^>]*>")
_TAG: Final = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class Page:
    name: str
    html: str
    wanted: str


class Filling:
    """The directives of one page."""

    def __init__(self, language: str, seed: int) -> None:
        self.dice = random.Random(seed)
        self.prose = Prose(language, self.dice)
        self.furniture = Furniture(self.prose, self.dice)
        self.title = self.prose.headline()

    def filled(self, skeleton: str) -> str:
        skeleton = _REPEAT.sub(lambda found: found[2] * int(found[1]), skeleton)
        return _DIRECTIVE.sub(lambda found: self._one(found[1], found[2].split()), skeleton)

    def _one(self, name: str, words: list[str]) -> str:
        number = int(words[0]) if words and words[0].isdigit() else 1
        rest = words[1:] if words and words[0].isdigit() else words
        match name:
            case "ps":
                names = f' class="{" ".join(rest)}"' if rest else ""
                return "\n".join(
                    f"<p{names}>{self._rich()}</p>" for _ in range(self._about(number))
                )
            case "open":
                return "\n".join(f"<p>{self._rich()}" for _ in range(self._about(number)))
            case "br":
                return "<br><br>\n".join(self._rich() for _ in range(self._about(number)))
            case "divs":
                names = f' class="{" ".join(rest)}"' if rest else ""
                return "\n".join(
                    f"<div{names}>{self._rich()}</div>" for _ in range(self._about(number))
                )
            case "lis":
                return "".join(f"<li>{self.prose.sentence()}</li>" for _ in range(number))
            case "t":
                return self.prose.paragraph()
            case "s":
                return self.prose.sentences(number)
            case "h":
                return self.prose.headline()
            case "w":
                return self.prose.words(number)
            case "title":
                return self.title
            case "num":
                return str(self.dice.randint(2, 999))
            case "head":
                return self.furniture.head(self.title)
            case (
                "name"
                | "date"
                | "href"
                | "mega"
                | "foot"
                | "cookie"
                | "share"
                | "offer"
                | "related"
                | "rail"
                | "bio"
            ):
                return str(getattr(self.furniture, name)())
            case "menu":
                return self.furniture.menu(number, int(rest[0]))
            case "as":
                return self.furniture.anchors(number, " ".join(rest) or " ")
            case "links":
                return self.furniture.items(number)
            case "script":
                return self.furniture.script(number)
            case "comments":
                return self.furniture.comments(number)
            case "teasers":
                return self.furniture.teasers(number, *rest)
        raise ValueError(f"no directive is named {name!r}")

    def _about(self, count: int) -> int:
        """Some paragraphs more or fewer; articles are half as long again as their skeletons say."""
        if count < 3:
            return count
        return count * 3 // 2 + self.dice.randint(-count // 3, count // 2)

    def _rich(self) -> str:
        """A paragraph, now and then with a link or emphasis in it."""
        text = self.prose.paragraph()
        kind = self.dice.random()
        if kind > 0.3 or " " not in text:
            return text
        words = text.split(" ")
        at = self.dice.randrange(max(1, len(words) - 3))
        part = " ".join(words[at : at + 3])
        tag = (
            ('<a href="/in/text">', "</a>")
            if kind < 0.18
            else ("<em>", "</em>")
            if kind < 0.25
            else ("<strong>", "</strong>")
        )
        return " ".join([*words[:at], f"{tag[0]}{part}{tag[1]}", *words[at + 3 :]])


def page_of(path: Path, turn: int) -> Page:
    """The page of a skeleton file `name.language.html`; each turn has other text and other furniture."""
    name, language = path.name.removesuffix(".html").rsplit(".", 1)
    if language not in LANGUAGES:
        raise ValueError(f"{path.name} names no known language")
    filled = Filling(language, zlib.crc32(f"{name} {turn}".encode())).filled(
        path.read_text("utf-8")
    )
    return Page(f"{name}-{turn}", _MARKS.sub("", filled), _wanted(filled))


def pages(half: str, turns: int = 2) -> list[Page]:
    """All pages of `tuned` or `held`."""
    return [
        page_of(path, turn)
        for path in sorted((SKELETONS / half).glob("*.html"))
        for turn in range(turns)
    ]


def _wanted(filled: str) -> str:
    found, is_in, is_out = [], False, False
    for part in re.split("([⟦⟧⟪⟫])", filled):
        match part:
            case "⟦":
                is_in = True
            case "⟧":
                is_in = False
            case "⟪" | "⟫":
                is_out = part == "⟪"
            case _ if is_in and not is_out:
                found.append(part)
    text = _TAG.sub(" ", _INLINE.sub("", "\n".join(found)))
    return " ".join(unescape(text).split())
