"""Records of one page, by the selectors that were given, those that were found before, or new ones: in this order, the
first that finds enough. A model is answer only where none does, or where the caller says so.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

import orjson

from fairlead.calls.model import Model, ModelAnswer
from fairlead.errors import FairleadError, InvalidRequest, UpstreamTimeout
from fairlead.moment import now_ms
from fairlead.net.url import split_url
from fairlead.scrape.calls import read_page, resolve_model
from fairlead.scrape.css.heal import SelectorTrial, find_selectors
from fairlead.scrape.css.schema import AutoOptions, CssSchema, RecordsRequest
from fairlead.scrape.css.table import find_css_schema, store_css_schema
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.scraper import ScrapeResult, scraper_of
from fairlead.store.services import Services

HEALTHY_RATIO: Final = 0.5
HEALING_MAX_S: Final = 40.0

Source = Literal["cache", "provided", "derived", "healed"]
Health = Literal["healthy", "degraded", "unknown"]
Attempt = Callable[[CssSchema], Awaitable[SelectorTrial]]


@dataclass(frozen=True, slots=True)
class RecordsResult:
    """The records and where their selectors came from. `note` says why a page that needed healing was not healed."""

    page: ScrapeResult
    trial: SelectorTrial | None
    source: Source
    is_blank: bool = False
    note: str | None = None
    model: str | None = None
    answer: ModelAnswer | None = None

    @property
    def health(self) -> Health:
        """`unknown` for a page without text; else whether enough of the fields are filled."""
        if self.is_blank:
            return "unknown"
        return "healthy" if self.trial is not None and _is_enough(self.trial) else "degraded"

    def view(self) -> dict[str, Any]:
        """The result as the API shows it."""
        metadata = dict(self.page.document["metadata"])
        if self.answer is not None:
            metadata |= {"model": self.model, "tokens": self.answer.tokens}
        records = self.trial.records if self.trial else []
        view: dict[str, Any] = {
            "success": True,
            "url": self.page.url,
            "data": records,
            "recordCount": len(records),
            "health": self.health,
            "healthy": self.health == "healthy",
            "fieldFillRatio": self.trial.ratio if self.trial else 0.0,
            "source": self.source,
            "healed": self.source == "healed",
            "metadata": metadata,
        }
        if self.trial is not None:
            view["cssSchema"] = self.trial.schema.plan
        if self.note is not None:
            view["note"] = self.note
        return view


class _HealingLocks:
    """Locks by key, so that one call at a time asks a model for the selectors of a page; the others then find them
    stored.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())


def page_key(owner: str, url: str, ask: RecordsRequest) -> str:
    """The key under which a page's selectors are stored. It leaves out the query: pages of one path look alike."""
    parts = split_url(url)
    fields = [field.model_dump(mode="json") for field in ask.fields]
    text = orjson.dumps([owner, parts.scheme, parts.netloc, parts.path, fields])
    return hashlib.sha256(text).hexdigest()


@dataclass(frozen=True, slots=True)
class RecordsPage:
    """A page that records are read from: for whom, how, and the key under which its selectors are stored."""

    owner: str
    url: str
    options: AutoOptions
    key: str


async def extract_records(
    services: Services, wanted: RecordsPage, ask: RecordsRequest, *, force_reheal: bool = False
) -> RecordsResult:
    """The page's records. `InvalidRequest` where the page or the given selectors cannot be read, and where a model
    is needed and none is named. An error of the model is raised where there are no other records to fall back on.
    """
    owner, options, key = wanted.owner, wanted.options, wanted.key
    if force_reheal:
        # Healing needs the page as it is now.
        options = options.model_copy(update={"skip_cache": True})
    page = await _read(services, wanted.url, options, owner)

    async def attempt(schema: CssSchema) -> SelectorTrial:
        return await _attempt(services, owner, page, schema)

    best: tuple[SelectorTrial, Source] | None = None
    if ask.css_schema is not None:
        best = (await attempt(ask.css_schema), "provided")
    if best is None or not _is_enough(best[0]):
        best = _better(best, await _from_cache(services, key, attempt))
    if best is not None and _is_enough(best[0]) and not force_reheal:
        return RecordsResult(page, *best)
    overview = await _select(services, owner, page, None)
    if overview["is_blank"]:
        trial, source = best or (None, "derived")
        return RecordsResult(page, trial, source, is_blank=True)
    async with _lock(services, key):
        if not force_reheal:
            best = _better(best, await _from_cache(services, key, attempt))
            if best is not None and _is_enough(best[0]):
                return RecordsResult(page, *best)
        try:
            name = await resolve_model(services, options.model)
            model = Model(services.config, owner, name, temperature=options.temperature)
            async with _in_time():
                found, answer = await find_selectors(
                    model, overview["outline"], ask.fields, attempt, HEALTHY_RATIO
                )
        except FairleadError as fault:
            if best is None or force_reheal:
                raise
            return RecordsResult(
                page, *best, note=f"The selectors were not repaired: {fault.message}"
            )
        source = "derived" if best is None else "healed"
        if _is_enough(found):
            plan = found.schema.plan
            await services.state.database.write(
                lambda con: store_css_schema(con, key, owner, plan, now_ms())
            )
    if best is not None and not _is_enough(found) and best[0].rank >= found.rank:
        note = "The selectors were not repaired: the model's find no more than the old ones."
        return RecordsResult(page, *best, note=note, model=name, answer=answer)
    return RecordsResult(page, found, source, model=name, answer=answer)


def _lock(services: Services, key: str) -> asyncio.Lock:
    return services.singleton(_HealingLocks, _HealingLocks).lock(key)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """Bounds the model to less than the request's deadline, so that older records can still be the answer."""
    try:
        async with asyncio.timeout(HEALING_MAX_S):
            yield
    except TimeoutError:
        raise UpstreamTimeout(f"The model found no selectors within {HEALING_MAX_S:g} s.") from None


async def _read(services: Services, url: str, options: AutoOptions, owner: str) -> ScrapeResult:
    read = options.model_dump(exclude={"temperature", "model"})
    read |= {"extractor_format": "html", "only_main_content": False}
    scrape_options = ScrapeOptions.model_validate(read, by_name=True, by_alias=False)
    page = await read_page(services, url, scrape_options, owner)
    kind = page.document["metadata"]["contentType"]
    if kind not in ("text/html", "application/xhtml+xml", ""):
        raise InvalidRequest(f"The address holds {kind[:80]}: selectors are for HTML.", param="url")
    return page


async def _select(
    services: Services, owner: str, page: ScrapeResult, plan: dict[str, Any] | None
) -> dict[str, Any]:
    html = page.document["content"]
    try:
        return await scraper_of(services).select(page.url, html, plan, owner)
    except FetchFailed as failure:
        raise failure.as_refusal(url=page.url) from None


async def check_selectors(services: Services, schema: CssSchema) -> None:
    """`InvalidRequest` names the first selector that cannot be read."""
    try:
        found = await scraper_of(services).select("http://x/", "", schema.plan)
    except FetchFailed as failure:
        raise InvalidRequest(failure.reason, param="cssSchema") from None
    _raise_first(found["problems"])


async def _attempt(
    services: Services, owner: str, page: ScrapeResult, schema: CssSchema
) -> SelectorTrial:
    found = await _select(services, owner, page, schema.plan)
    _raise_first(found["problems"])
    return SelectorTrial(schema, found["records"], found["fill_ratio"])


def _raise_first(problems: list[str]) -> None:
    if problems:
        raise InvalidRequest(f"cssSchema.{problems[0]}.", param="cssSchema")


async def _from_cache(
    services: Services, key: str, attempt: Attempt
) -> tuple[SelectorTrial, Source] | None:
    cached = await services.state.read(lambda con: find_css_schema(con, key, now_ms()))
    if cached is None:
        return None
    return await attempt(CssSchema.model_validate(cached)), "cache"


def _better(
    one: tuple[SelectorTrial, Source] | None, other: tuple[SelectorTrial, Source] | None
) -> tuple[SelectorTrial, Source] | None:
    if one is None or other is None:
        return one or other
    return other if other[0].rank > one[0].rank else one


def _is_enough(trial: SelectorTrial) -> bool:
    return trial.ratio >= HEALTHY_RATIO
