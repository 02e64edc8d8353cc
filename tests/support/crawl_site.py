"""A part of the test site for whole crawls, `/town`: pagination, robots, a sitemap, traps, redirects, charset lies,
pages that scripts make, tables, a login form, slow and hostile pages; and `EXPECTED`, what a crawl of it must return.
"""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

LISTS, ITEMS = 5, 15
DEPTH = 6
"""The depth with which `EXPECTED` is crawled; the traps go on for ever."""
DAYS = 2 * (DEPTH - 1) + 1
"""Days of the calendar within that depth: each leads to the next two."""


def _expected() -> dict[str, str]:
    """Path to the word that the page's content has, or to `!` and the code of its failure."""
    pages = {
        "/town": "welcome",
        "/town/latin": "naïve — résumé",
        "/town/lying": "你好世界",
        "/town/shop": "",
        "/town/tables": "1890",
        "/town/door": "gate",
        "/town/slow": "patience",
        "/town/deep": "bottom",
        "/town/hidden": "sitemap",
        "/town/many": "many",
        "/town/empty": "",
        "/town/members": "!status",
        "/town/gone": "!status",
        "/town/broken": "!status",
        "/secret/town": "!robots",
        "/town/bomb": "!too_large",
        "/town/huge": "!too_large",
        "/town/cut": "!unreachable",
        "/town/binary": "!content_type",
        "/town/round": "!redirects",
        "/town/inward": "!forbidden_address",
    }
    pages |= {f"/town/list/{n}": f"list {n}" for n in range(LISTS)}
    pages |= {f"/town/item/{n}": f"item {n}" for n in range(ITEMS)}
    pages |= {f"/town/day/{n}": f"day {n}" for n in range(DAYS)}
    pages |= {f"/town/visit?session={n}": f"visit {n}" for n in range(DEPTH)}
    return pages


EXPECTED: Final = _expected()
BY_BROWSER: Final = {"/town/shop": "goods", "/town/shop/1": "goods of 1"}
"""What is different when a browser reads the shop."""


class TownPages:
    """Mixed into the site's handler, which brings `send`."""

    if TYPE_CHECKING:
        headers: Any
        send_response: Any
        send_header: Any
        end_headers: Any
        page_stuck: Any

        def send(
            self, body: bytes | str, status: int = 200, kind: str = "", **headers: str
        ) -> None: ...

    def town(self, path: str) -> None:
        parts = urlsplit(path)
        name, _, last = parts.path.removeprefix("/town").strip("/").partition("/")
        number = int(last) if last.isdigit() else 0
        match name:
            case "":
                links = [
                    path
                    for path in EXPECTED
                    if path.count("/") == 2 and "hidden" not in path and "?" not in path
                ]
                links += [
                    "/town/list/0",
                    "/town/day/0",
                    "/town/visit?session=0",
                    "/town/moved",
                    "/town#top",
                ]
                links += [
                    "/town/map.png",
                    "mailto:mayor@town.example",
                    "javascript:void(0)",
                    "http://example.invalid/",
                ]
                self.page("Town", "welcome", *links)
            case "list":
                items = [f"/town/item/{n}" for n in range(number * 3, number * 3 + 3)]
                after = [f"/town/list/{number + 1}"] if number + 1 < LISTS else []
                self.page(f"List {number}", f"list {number}", *items, *after, "/town/list/0")
            case "item":
                self.page(
                    f"Item {number}",
                    f"item {number}",
                    "/town",
                    f"/town/item/{(number + 1) % ITEMS}",
                )
            case "day":
                self.page(
                    "Day", f"day {number}", f"/town/day/{number + 1}", f"/town/day/{number + 2}"
                )
            case "visit":
                visit = int(parse_qs(parts.query)["session"][0])
                self.page("Visit", f"visit {visit}", f"/town/visit?session={visit + 1}")
            case "moved":
                self.send("", 301, Location="/town/item/3")
            case "round":
                self.send("", 302, Location="/town/round")
            case "inward":
                self.send("", 302, Location="http://169.254.169.254/latest/meta-data/")
            case "latin":
                self.send(
                    "<title>Latin</title><p>na\u00efve \u2014 r\u00e9sum\u00e9".encode("cp1252")
                )
            case "lying":
                text = "<title>\u4f60\u597d</title><p>\u4f60\u597d\u4e16\u754c"
                self.send(text.encode(), kind="text/html; charset=iso-8859-1")
            case "shop" if last:
                self.page(f"Shop {number}", f"goods of {number}")
            case "shop":
                self.send(
                    "<title>Shop</title><div id=shop></div><script>shop.innerHTML = "
                    "'<p>goods</p><a href=/town/shop/1>1</a>'</script>"
                )
            case "tables":
                self.send(
                    "<title>Tables</title><table><tr><th>Year<th>Metres<tr><td>1890<td>4.5</table>"
                )
            case "door":
                self.send(
                    "<title>Door</title><p>The gate.<form method=post action=/door><input name=password></form>"
                )
            case "members":
                self.send("<p>Members alone.", 401)
            case "gone":
                self.send("<h1>Gone</h1>", 410)
            case "broken":
                self.send("<h1>Broken</h1>", 501)
            case "slow":
                time.sleep(0.7)
                self.page("Slow", "patience")
            case "deep":
                self.send("<title>Deep</title>" + "<div>" * 100_000 + "the bottom")
            case "many":
                wild = "".join(f"<a href=/wild/{n}>{n}</a>" for n in range(20_000))
                self.send(f"<title>Many</title><p>So many.</p>{wild}")
            case "hidden":
                self.page("Hidden", "from the sitemap")
            case "empty":
                self.send("")
            case "bomb":
                self.send(gzip.compress(b"a" * 50_000_000, 9), Content_Encoding="gzip")
            case "huge":
                self.send(b"x" * (11 * 1024 * 1024))
            case "binary":
                self.send(b"\x89PNG", kind="image/png")
            case "cut":
                self.page_stuck(None)
            case _:
                self.send("<h1>Not here</h1>", 404)

    def page(self, title: str, text: str, *links: str) -> None:
        listed = " ".join(f'<a href="{link}">link</a>' for link in links)
        self.send(
            f"<title>{title}</title><main><p>This is {text}, and more.</p><p>{listed}</p></main>"
        )
