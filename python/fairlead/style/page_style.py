"""Colours, templates, headers and the chosen theme of the gateway's own pages."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any, Final, Literal, get_args

from fastapi import Request, Response
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

Theme = Literal["auto", "light", "dark"]
THEMES: Final[tuple[Theme, ...]] = get_args(Theme)
THEME_COOKIE: Final = "fairlead_theme"

HERE: Final = Path(__file__).parent
COLOURS: Final = (HERE / "colours.css").read_text(encoding="utf-8")


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
