"""The calls that a page's scripts make: what was asked, what came back, and what both look like.

Only calls of scripts (`fetch`, `XMLHttpRequest`) are noted. A body is shown by its shape and a bounded sample; headers
are not shown, because they carry what a page is logged in with.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson

from fairlead.scrape.browser.process import first_line

CALLS_MAX: Final = 100
SETTLE_MS: Final = 8000
BODIES_DEADLINE_S: Final = 5.0
BODY_MAX_BYTES: Final = 1024 * 1024
SAMPLE_MAX_CHARS: Final = 2000
URL_MAX_CHARS: Final = 2048
DEPTH_MAX: Final = 5
FIELDS_MAX: Final = 40

_KINDS: Final = frozenset(["xhr", "fetch"])
_TEXTUAL: Final = ("json", "xml", "text", "javascript", "graphql", "urlencoded")
_NAMES: Final = ((bool, "boolean"), (int, "number"), (float, "number"), (str, "string"))


class Calls:
    """The calls of one page, in the order in which they began."""

    def __init__(self) -> None:
        self._views: dict[Any, dict[str, Any]] = {}
        self._begun: dict[Any, float] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self.more = 0
        """Calls beyond `CALLS_MAX`, which are counted and not shown."""

    def watch(self, page: Any) -> None:
        """Records the calls of this page and its frames from now on."""
        page.on("request", self._begin)
        page.on("requestfinished", self._finish)
        page.on("requestfailed", self._fail)

    async def settled(self, page: Any) -> None:
        """Waits until the page calls no more, at most `SETTLE_MS`."""
        # A page that never stops calling is shown as far as it went.
        with contextlib.suppress(Exception):
            await page.wait_for_load_state("networkidle", timeout=SETTLE_MS)
        if self._reading:
            await asyncio.wait(self._reading, timeout=BODIES_DEADLINE_S)

    def view(self) -> list[dict[str, Any]]:
        """The calls as the API shows them."""
        return list(self._views.values())

    def _begin(self, request: Any) -> None:
        if request.resource_type not in _KINDS:
            return
        if len(self._views) >= CALLS_MAX:
            self.more += 1
            return
        self._begun[request] = time.monotonic()
        self._views[request] = {
            "method": request.method,
            "url": request.url[:URL_MAX_CHARS],
            "resourceType": request.resource_type,
            "state": "open",
            "status": None,
            "contentType": None,
            "request": _request_summary(request),
            "response": None,
        }

    def _fail(self, request: Any) -> None:
        if (view := self._views.get(request)) is not None:
            view |= {"state": "failed", "error": str(request.failure or "")[:200]}

    def _finish(self, request: Any) -> None:
        if request in self._views:
            task = asyncio.ensure_future(self._read(request))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)

    async def _read(self, request: Any) -> None:
        view = self._views[request]
        view["durationMs"] = round((time.monotonic() - self._begun[request]) * 1000)
        try:
            async with asyncio.timeout(BODIES_DEADLINE_S):
                answer = await request.response()
                if answer is None:
                    return
                kind = answer.headers.get("content-type", "")[:200]
                view |= {"state": "done", "status": answer.status, "contentType": kind}
                size = (await request.sizes())["responseBodySize"]
                # A body that is too large to be parsed is not transferred either.
                body = await answer.body() if size <= BODY_MAX_BYTES else None
        except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
            view["error"] = f"The answer could not be read: {first_line(error)}"
            return
        view["response"] = {
            "bytes": len(body) if body is not None else size,
            **_summary(body, kind),
        }


def _request_summary(request: Any) -> dict[str, Any] | None:
    body = request.post_data_buffer
    if not body:
        return None
    kind = request.headers.get("content-type", "")[:200]
    return {"contentType": kind, "bytes": len(body), **_summary(body[: BODY_MAX_BYTES + 1], kind)}


def _summary(body: bytes | None, kind: str) -> dict[str, Any]:
    """`shape` and `sample` of a body, as far as there are any."""
    if body is None or len(body) > BODY_MAX_BYTES:
        return {"shape": None, "sample": None}
    sample = None
    if any(each in kind.lower() for each in _TEXTUAL):
        sample = body[: 4 * SAMPLE_MAX_CHARS].decode("utf-8", "replace")[:SAMPLE_MAX_CHARS]
    if "urlencoded" in kind.lower():
        return {"shape": dict.fromkeys(_names(body), "string"), "sample": sample}
    try:
        return {"shape": shape_of(orjson.loads(body), 0), "sample": sample}
    except ValueError:
        return {"shape": None, "sample": sample}


def _names(body: bytes) -> list[str]:
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000
        )
    except ValueError:
        return []
    return [name[:200] for name, _ in pairs][:FIELDS_MAX]


def shape_of(value: Any, depth: int) -> Any:
    """A JSON value with names of types in place of its values: the first element of each list, `FIELDS_MAX` fields
    of each object, `DEPTH_MAX` levels.
    """
    if isinstance(value, dict):
        if depth >= DEPTH_MAX:
            return "object"
        fields = list(value)[:FIELDS_MAX]
        return {name[:200]: shape_of(value[name], depth + 1) for name in fields}
    if isinstance(value, list):
        if depth >= DEPTH_MAX:
            return "array"
        return [shape_of(each, depth + 1) for each in value[:1]]
    return next((name for kind, name in _NAMES if isinstance(value, kind)), "null")
