"""A view as HTML, in the frame of the console, with the headers that guard it."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2.runtime import Macro
from starlette.requests import Request
from starlette.responses import HTMLResponse

from fairlead.dashboard import chart, figures, form
from fairlead.dashboard.chart_markup import draw_columns, draw_rows
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.registry import navigation, navigation_has
from fairlead.money import without_price
from fairlead.style.page_style import (
    COLOURS,
    FRAME,
    guard_headers,
    make_nonce,
    page_environment,
    theme_of,
    version_of,
)

HERE: Final = Path(__file__).parent
# The higher levels take twice the time for a twentieth less.
GZIP_LEVEL: Final = 5


def _joined(kind: str) -> bytes:
    """The console's own file of a kind, then those of single pages."""
    files = sorted((HERE / "static").glob(f"*.{kind}"), key=lambda each: each.stem != "console")
    return b"\n".join(each.read_bytes() for each in files)


STYLE: Final = COLOURS.encode() + FRAME.encode() + _joined("css")
SCRIPT: Final = _joined("js")
ICON: Final = (HERE / "static" / "console.svg").read_bytes()

templates = page_environment(
    HERE / "templates", assets=version_of(STYLE, SCRIPT), chart=chart, form=form
)
templates.filters.update(
    count=figures.count,
    exact=figures.exact,
    money=figures.money,
    cost=figures.cost,
    total=figures.total,
    without_price=without_price,
    total_of=figures.total_of,
    ms=figures.milliseconds,
    share=figures.share,
    size=figures.size,
    ago=figures.ago,
    moment=figures.moment,
    short=figures.short,
    indented=figures.indented,
    capitalize_first=figures.capitalize_first,
    change=figures.change,
    seconds=figures.seconds,
    draw_columns=draw_columns,
    draw_rows=draw_rows,
)
# Components are names of every template, so that a block can be drawn separately too.
for _file in ("style/icons.html", "parts.html", "key_choice.html"):
    _module = templates.get_template(_file).module
    templates.globals.update(
        {name: part for name, part in vars(_module).items() if isinstance(part, Macro)}
    )


@dataclass(frozen=True, slots=True)
class Toast:
    """A note that something was done; `undo` is the token by which it can be undone."""

    words: str
    undo: str | None = None


def answer(page: Page | None, visit: Visit, view: View, toast: Toast | None = None) -> HTMLResponse:
    """The whole page."""
    nonce = make_nonce()
    text = templates.get_template(view.template).render(
        **_fields(page, visit, view), nonce=nonce, toast=toast
    )
    headers = guard_headers(style="'self'", script=f"'nonce-{nonce}'", connects=True)
    body = text.encode()
    if visit.request.method == "GET" and takes_gzip(visit.request):
        # Pages that answer a form may show a secret beside what was typed, so they are never compressed.
        body = gzip.compress(body, GZIP_LEVEL, mtime=0)
        headers = {**headers, "content-encoding": "gzip"}
    return HTMLResponse(body, view.status, {**headers, "vary": "accept-encoding"})


def takes_gzip(request: Request) -> bool:
    """Whether the browser reads gzip."""
    codings = request.headers.get("accept-encoding", "").split(",")
    return "gzip" in {each.strip() for each in codings}


def parts(page: Page, visit: Visit, view: View, names: Iterable[str]) -> dict[str, str]:
    """The blocks `live_<name>` of a view, by name."""
    template = templates.get_template(view.template)
    context = template.new_context({**_fields(page, visit, view), "nonce": "", "toast": None})
    return {
        name: "".join(template.blocks[f"live_{name}"](context))
        for name in names
        if f"live_{name}" in template.blocks
    }


def _fields(page: Page | None, visit: Visit, view: View) -> dict[str, Any]:
    return {
        "page": page,
        "person": visit.person,
        "may": visit.api.may,
        "failure": visit.failure,
        "query": visit.query,
        "theme": theme_of(visit.request),
        "navigation": navigation() if visit.person.manages else (),
        "navigation_has": navigation_has,
        "is_live": bool(view.live),
        "here": visit.path,
        **view.fields,
    }
