"""Extraction of data from pages by a model, page by page, and the merged result."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import orjson

from fairlead.calls.model import Model
from fairlead.errors import (
    FairleadError,
    Overloaded,
    RateLimited,
    UpstreamOverloaded,
    UpstreamRateLimited,
)
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.jobs.table import Page
from fairlead.scrape.model.confidence import confidence_of
from fairlead.scrape.model.extract import PAGE_MAX_CHARS, extract_by_schema
from fairlead.scrape.model.forms import ANYTHING
from fairlead.scrape.requests.jobs import ExtractJobRequest
from fairlead.scrape.scraper import Scraper, ScrapeResult
from fairlead.settings import ControlConfig

TRIES: Final = 3
WAIT_S: Final = 2.0
WAIT_MAX_S: Final = 30.0

_TEMPORARY: Final = (RateLimited, Overloaded, UpstreamOverloaded, UpstreamRateLimited)


class Extraction:
    """Extracts data from the pages of one job, with one model and one schema."""

    def __init__(
        self, config: ControlConfig, scraper: Scraper, owner: str, body: ExtractJobRequest
    ) -> None:
        self._model = Model(config, owner, body.model or "")
        self._schema = scraper.schema(body.schema_ if body.schema_ is not None else ANYTHING, owner)
        self._prompt = body.prompt

    async def extract(self, scraped: ScrapeResult) -> ScrapeResult:
        """The page with the extracted data in place of its content. `FetchFailed` with the code `model` where the
        model failed.
        """
        content = scraped.document["content"]
        try:
            data, answer = await self._extract_with_retries(content)
        except FairleadError as error:
            # As `FetchFailed` it fails the page; a `FairleadError` would be taken for an error of our database.
            raise FetchFailed(error.message, status=scraped.status, code="model") from None
        page = content[:PAGE_MAX_CHARS]
        confidence = await asyncio.to_thread(confidence_of, data, self._schema.document, page)
        document = {
            "title": scraped.document["title"],
            "data": data,
            "confidence": confidence,
            "tokens": answer.tokens,
        }
        return replace(scraped, document=document)

    async def _extract_with_retries(self, content: str) -> Any:
        tries = 1
        while True:
            try:
                return await extract_by_schema(self._model, content, self._schema, self._prompt)
            except _TEMPORARY as error:
                if tries >= TRIES:
                    raise
                wait_s = min(error.retry_after_s or WAIT_S * tries, WAIT_MAX_S)
            tries += 1
            await asyncio.sleep(wait_s)


class ExtractionResult:
    """The result of an extraction: `data` of the pages that were read, and the outcome of each page in `sources`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._data: list[Any] = []
        self._sources: list[dict[str, Any]] = []
        self._tokens = {"input": 0, "output": 0}

    def add(self, pages: list[Page]) -> None:
        """Adds the next pages, in order."""
        for page in pages:
            source: dict[str, Any] = {
                "url": page.url,
                "success": page.document is not None,
                "error": page.error,
                "confidence": None,
            }
            if page.document is not None:
                document = orjson.loads(page.document)
                self._data.append(document["data"])
                source["confidence"] = document["confidence"]
                for name in self._tokens:
                    self._tokens[name] += document["tokens"][name]
            self._sources.append(source)

    def view(self) -> dict[str, Any]:
        """The result as the API shows it."""
        return {
            "data": self._data,
            "sources": self._sources,
            "model": self._model,
            "tokens": self._tokens,
        }
