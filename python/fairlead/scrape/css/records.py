"""Records of one page, by the selectors that were given, those that were found before, or new ones: in this order, the
first that finds enough. A model is asked only where none does, or where the caller says so.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import orjson

from fairlead.errors import FairleadError, InvalidRequest, UpstreamTimeout
from fairlead.model import Asked, Model
from fairlead.moment import now_ms
from fairlead.scrape.css.heal import Tried, find_selectors
from fairlead.scrape.css.schema import AutoOptions, CssAsk, CssSchema
from fairlead.scrape.css.table import find_css_schema, store_css_schema
from fairlead.scrape.fetch import FetchFailed
from fairlead.scrape.options import ScrapeOptions
from fairlead.scrape.router import model_name, read_page
from fairlead.scrape.scraper import Scraped, scraper_of
from fairlead.store.services import Services

HEALTHY_RATIO: Final = 0.5
HEALING_MAX_S: Final = 40.0

Source = Literal["cache", "provided", "derived", "healed"]
Health = Literal["healthy", "degraded", "unknown"]
Attempt = Callable[[CssSchema], Awaitable[Tried]]


@dataclass(frozen=True, slots=True)
class Extracted:
    """The records and how they were come by. `note` says why a page that needed healing was not healed."""

    page: Scraped
    tried: Tried | None
    source: Source
    is_blank: bool = False
    note: str | None = None
    model: str | None = None
    asked: Asked | None = None

    @property
    def health(self) -> Health:
        """Of a page without any text nothing can be said."""
        if self.is_blank:
            return "unknown"
        return "healthy" if self.tried is not None and _is_enough(self.tried) else "degraded"

    def view(self) -> dict[str, Any]:
        """As it is answered."""
        metadata = dict(self.page.document["metadata"])
        if self.asked is not None:
            metadata |= {"model": self.model, "tokens": self.asked.tokens}
        records = self.tried.records if self.tried else []
        view: dict[str, Any] = {
            "success": True,
            "url": self.page.url,
            "data": records,
            "recordCount": len(records),
            "health": self.health,
            "healthy": self.health == "healthy",
            "fieldFillRatio": self.tried.ratio if self.tried else 0.0,
            "source": self.source,
            "healed": self.source == "healed",
            "metadata": metadata,
        }
        if self.tried is not None:
            view["cssSchema"] = self.tried.schema.plan
        if self.note is not None:
            view["note"] = self.note
        return view


class _Healings:
    """One model is asked at a time for the selectors of one key: who waited finds what was found meanwhile."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())


def page_key(owner: str, url: str, ask: CssAsk) -> str:
    """Under what selectors of a page are kept: whatever the query, the same path looks the same."""
    parts = urlsplit(url)
    asked = [field.model_dump(mode="json") for field in ask.fields]
    text = orjson.dumps([owner, parts.scheme, parts.netloc, parts.path, asked])
    return hashlib.sha256(text).hexdigest()


async def extract_records(
    services: Services,
    owner: str,
    url: str,
    ask: CssAsk,
    options: AutoOptions,
    *,
    key: str,
    is_forced: bool = False,
) -> Extracted:
    """The page's records. `InvalidRequest` where the page or the given selectors cannot be read, and where a model is
    needed and none is named; what the model's refusal is where there are no other records to fall back on.
    """
    if is_forced:
        # What is to be healed is the page as it is now.
        options = options.model_copy(update={"skip_cache": True})
    page = await _read(services, url, options, owner)

    async def attempt(schema: CssSchema) -> Tried:
        return await _attempt(services, owner, page, schema)

    best: tuple[Tried, Source] | None = None
    if ask.css_schema is not None:
        best = (await attempt(ask.css_schema), "provided")
    if best is None or not _is_enough(best[0]):
        best = _better(best, await _from_cache(services, key, attempt))
    if best is not None and _is_enough(best[0]) and not is_forced:
        return Extracted(page, *best)
    seen = await _select(services, owner, page, None)
    if seen["is_blank"]:
        tried, source = best or (None, "derived")
        return Extracted(page, tried, source, is_blank=True)
    async with _lock(services, key):
        if not is_forced:
            best = _better(best, await _from_cache(services, key, attempt))
            if best is not None and _is_enough(best[0]):
                return Extracted(page, *best)
        try:
            name = await model_name(services, options.model)
            model = Model(services.config, owner, name, temperature=options.temperature)
            async with _in_time():
                found, asked = await find_selectors(
                    model, seen["outline"], ask.fields, attempt, HEALTHY_RATIO
                )
        except FairleadError as fault:
            if best is None or is_forced:
                raise
            return Extracted(page, *best, note=f"The page was not healed: {fault.message}")
        source = "derived" if best is None else "healed"
        if _is_enough(found):
            plan = found.schema.plan
            await services.state.database.write(
                lambda con: store_css_schema(con, key, owner, plan, now_ms())
            )
    if best is not None and not _is_enough(found) and best[0].rank >= found.rank:
        note = "The page was not healed: the model's selectors find no more than the old ones."
        return Extracted(page, *best, note=note, model=name, asked=asked)
    return Extracted(page, found, source, model=name, asked=asked)


def _lock(services: Services, key: str) -> asyncio.Lock:
    return services.singleton(_Healings, _Healings).lock(key)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """Less than the request has, so that what there is can still be answered."""
    try:
        async with asyncio.timeout(HEALING_MAX_S):
            yield
    except TimeoutError:
        raise UpstreamTimeout(f"The model found no selectors within {HEALING_MAX_S:g} s.") from None


async def _read(services: Services, url: str, options: AutoOptions, owner: str) -> Scraped:
    read = options.model_dump(exclude={"temperature", "model"})
    read |= {"extractor_format": "html", "only_main_content": False}
    asked = ScrapeOptions.model_validate(read, by_name=True, by_alias=False)
    page = await read_page(services, url, asked, owner)
    kind = page.document["metadata"]["contentType"]
    if kind not in ("text/html", "application/xhtml+xml", ""):
        raise InvalidRequest(f"The address holds {kind[:80]}: selectors are for HTML.", param="url")
    return page


async def _select(
    services: Services, owner: str, page: Scraped, plan: dict[str, Any] | None
) -> dict[str, Any]:
    html = page.document["content"]
    try:
        return await scraper_of(services).select(page.url, html, plan, owner)
    except FetchFailed as failure:
        raise failure.as_refusal(url=page.url) from None


async def check_selectors(services: Services, schema: CssSchema) -> None:
    """`InvalidRequest` names the first that is none."""
    try:
        found = await scraper_of(services).select("http://x/", "", schema.plan)
    except FetchFailed as failure:
        raise InvalidRequest(failure.reason, param="cssSchema") from None
    _refuse(found["wrongs"])


async def _attempt(services: Services, owner: str, page: Scraped, schema: CssSchema) -> Tried:
    found = await _select(services, owner, page, schema.plan)
    _refuse(found["wrongs"])
    return Tried(schema, found["records"], found["fill_ratio"])


def _refuse(wrongs: list[str]) -> None:
    if wrongs:
        raise InvalidRequest(f"cssSchema.{wrongs[0]}.", param="cssSchema")


async def _from_cache(
    services: Services, key: str, attempt: Attempt
) -> tuple[Tried, Source] | None:
    kept = await services.state.read(lambda con: find_css_schema(con, key, now_ms()))
    if kept is None:
        return None
    return await attempt(CssSchema.model_validate(kept)), "cache"


def _better(
    one: tuple[Tried, Source] | None, other: tuple[Tried, Source] | None
) -> tuple[Tried, Source] | None:
    if one is None or other is None:
        return one or other
    return other if other[0].rank > one[0].rank else one


def _is_enough(tried: Tried) -> bool:
    return tried.ratio >= HEALTHY_RATIO
