"""The pages of the authorization server, and the headers that shut them to frames and caches.

The header has the policy that is promised; a second one in the page itself narrows it to the page's
own style and script.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from fastapi.responses import HTMLResponse

from fairlead.identity.pages import STYLE, TEMPLATES
from fairlead.style.page_style import page_environment

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "frame-ancestors 'none'; base-uri 'none'",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}

_SCRIPT = (TEMPLATES / "connect.js").read_text(encoding="utf-8")

_pages = page_environment(TEMPLATES)


def page(
    name: str,
    status: int = 200,
    *,
    form_action: str = "'none'",
    with_script: bool = False,
    **fields: Any,
) -> HTMLResponse:
    """The page. `form_action` is where its forms may lead, redirects included."""
    script = f"script-src '{_hash(_SCRIPT)}'; connect-src 'self'; " if with_script else ""
    policy = (
        f"default-src 'none'; style-src '{_hash(STYLE)}'; {script}"
        f"form-action {form_action}; base-uri 'none'"
    )
    text = _pages.get_template(name).render(
        style=STYLE, policy=policy, script=_SCRIPT if with_script else None, **fields
    )
    return HTMLResponse(text, status, HEADERS)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
