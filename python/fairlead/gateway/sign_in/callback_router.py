"""`GET /api/oauth/<provider>/callback`: the page that a browser comes back to from a provider's sign-in."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from fairlead.errors import FairleadError, InvalidRequest
from fairlead.gateway.providers.table import Connection as ProviderConnection
from fairlead.gateway.sign_in.browser import finish, take_flow
from fairlead.store.services import Services, ServicesDep
from fairlead.style.page_style import COLOURS, guard_headers, page_environment, theme_of

router = APIRouter(prefix="/api/oauth/{provider}", tags=["providers"])

TEMPLATES: Final = Path(__file__).parent / "templates"
STYLE: Final = COLOURS + (TEMPLATES / "returned.css").read_text(encoding="utf-8")
_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
# The code in the page's address goes to nobody.
HEADERS: Final = {**guard_headers(style=f"'sha256-{_HASH}'"), "referrer-policy": "no-referrer"}
_pages: Final = page_environment(TEMPLATES)
Text = Annotated[str | None, Query(max_length=8192)]


@router.get(
    "/callback",
    response_class=HTMLResponse,
    summary="Redirect target after a sign-in at a provider",
)
async def callback(
    provider: str,
    request: Request,
    services: ServicesDep,
    code: Text = None,
    state: Text = None,
    error: Text = None,
) -> Response:
    """A page with the result of the sign-in. `state` belongs to a sign-in that `authorize` started, and works
    once.
    """
    connection, refusal, status = None, None, 200
    try:
        connection = await _end(services, provider, code, state, error)
    except FairleadError as failure:
        refusal, status = failure.message, failure.status
    page = _pages.get_template("returned.html").render(
        style=STYLE, theme=theme_of(request), connection=connection, refusal=refusal
    )
    return HTMLResponse(page, status, HEADERS)


async def _end(
    services: Services, provider: str, code: str | None, state: str | None, error: str | None
) -> ProviderConnection:
    if not state:
        raise InvalidRequest("The address has no state: start the sign-in again.", param="state")
    if error or not code:
        # The sign-in has ended, so that nobody ends it otherwise.
        await take_flow(services, provider, state)
        error_text = "".join(each for each in error or "" if each.isprintable())[:100]
        reason = (
            f"The provider refused the sign-in: {error_text}."
            if error_text
            else "The address has no code."
        )
        raise InvalidRequest(reason, param="code")
    return await finish(services, provider, code, state)
