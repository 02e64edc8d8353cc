"""Forms of a page that a model writes: `json` (data) and `summary`.

They are made for each request and never stored in the cache of pages.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.calls.model import Model
from fairlead.errors import FairleadError, InvalidRequest
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.model.extract import extract_by_schema, summarize
from fairlead.scrape.model.schema import Schema
from fairlead.scrape.page.pool import Pool
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.settings import ControlConfig

SUMMARY_WORDS: Final = 200
ANYTHING: Final[dict[str, Any]] = {"type": ["object", "array"]}
"""The schema of an extraction for which the caller sent none."""


class ModelFailed(FetchFailed):
    """A page for which the model failed; `error` is the model's error."""

    def __init__(self, error: FairleadError, status: int | None) -> None:
        super().__init__(error.message, status=status, code="model")
        self.error = error


class ModelForms:
    """Writes the forms that one request asks for, with one model, on behalf of one key."""

    def __init__(self, config: ControlConfig, pool: Pool, owner: str) -> None:
        self._config = config
        self._pool = pool
        self._owner = owner

    async def check(self, options: ScrapeOptions) -> None:
        """`InvalidRequest` where the schema is refused."""
        if "json" in options.formats:
            await self._schema(options).check()

    async def write(
        self, page: str, options: ScrapeOptions, name: str | None
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """The requested forms by their names, and the tokens of the model `name`. `page` is Markdown.

        `InvalidRequest` where there is no model; other errors of the model are raised as they are.
        """
        if name is None:
            raise no_model()
        model = Model(self._config, self._owner, name)
        forms: dict[str, Any] = {}
        tokens = {"input": 0, "output": 0}
        if "json" in options.formats:
            prompt = options.json_options.prompt if options.json_options else None
            forms["json"], answer = await extract_by_schema(
                model, page, self._schema(options), prompt
            )
            _add(tokens, answer.tokens)
        if "summary" in options.formats:
            answer = await summarize(model, page, SUMMARY_WORDS)
            forms["summary"] = answer.text
            _add(tokens, answer.tokens)
        return forms, tokens

    def _schema(self, options: ScrapeOptions) -> Schema:
        sent = options.json_options.schema_ if options.json_options else None
        return Schema(self._pool, ANYTHING if sent is None else sent, self._owner)


def no_model() -> InvalidRequest:
    """The error for forms that need a model where none is named."""
    return InvalidRequest(
        "The formats json and summary need a model, and the setting scrapeModel is not set: send options.model.",
        param="options.model",
    )


def _add(total: dict[str, int], tokens: dict[str, int]) -> None:
    for name, count in tokens.items():
        total[name] += count
