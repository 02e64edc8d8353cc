"""Colours, templates, headers and the chosen theme of the gateway's own pages."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, get_args

from fastapi import Request, Response
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

Theme = Literal["auto", "light", "dark"]
THEMES: Final[tuple[Theme, ...]] = get_args(Theme)
THEME_COOKIE: Final = "fairlead_theme"

HERE: Final = Path(__file__).parent
COLOURS: Final = (HERE / "colours.css").read_text(encoding="utf-8")
FRAME: Final = (HERE / "frame.css").read_text(encoding="utf-8")
"""The style of `style/frame.html`: the navigation, the theme and who is signed in, around a page."""


def page_environment(folder: Path, **names: Any) -> Environment:
    """Templates of a package; shared templates are under `style/`. Text is escaped."""
    shared = PrefixLoader({"style": FileSystemLoader(HERE / "templates")})
    made = Environment(
        loader=ChoiceLoader([FileSystemLoader(folder), shared]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # The files come with the package: nobody changes them, and a page has a dozen to look at.
        auto_reload=False,
    )
    made.globals.update(names)
    return made


def theme_of(request: Request) -> Theme:
    """The theme that this browser's user chose; `auto` follows the system."""
    chosen = request.cookies.get(THEME_COOKIE)
    return next((theme for theme in THEMES if theme == chosen), "auto")


class NavigationSource(Protocol):
    """The pages of the console, for the navigation of pages that are not part of it."""

    def navigation(self) -> Sequence[tuple[str, Sequence[Any]]]:
        """The pages by group; each has `address`, `path`, `title` and `icon`."""

    def navigation_has(self, address: str) -> bool:
        """Whether the page at an address, or one above it, is in the navigation."""


def frame_fields(request: Request, *, manages: bool) -> dict[str, Any]:
    """The fields of `style/frame.html`, but for `person`. The application knows the console's pages."""
    source: NavigationSource = request.app.state.navigation
    return {
        "here": request.url.path,
        "theme": theme_of(request),
        "navigation": source.navigation() if manages else (),
        "navigation_has": source.navigation_has,
    }


def make_nonce() -> str:
    """A word that no page can guess, for the policy of one answer."""
    return secrets.token_urlsafe(16)


def guard_headers(*, style: str, script: str = "", connects: bool = False) -> dict[str, str]:
    """Headers of a page: its sources of styles and scripts, nothing from elsewhere, in no frame, in
    no cache.
    """
    policy = ["default-src 'none'", f"style-src {style}"]
    if script:
        policy.append(f"script-src {script}")
    if connects:
        policy += ["connect-src 'self'", "img-src 'self'"]
    policy += ["form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
    return {
        "cache-control": "no-store",
        "content-security-policy": "; ".join(policy),
        "x-frame-options": "DENY",
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }


def version_of(*assets: bytes) -> str:
    """A word that changes with the assets, for their addresses."""
    return hashlib.sha256(b"".join(assets)).hexdigest()[:12]


def asset(body: bytes, kind: str) -> Response:
    """A file whose address changes with its content."""
    headers = {
        "cache-control": "public, max-age=31536000, immutable",
        "x-content-type-options": "nosniff",
    }
    return Response(body, 200, headers, kind)
