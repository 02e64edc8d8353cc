"""The supported engines: how each encodes a search request and its results.

Pure functions over JSON, without I/O. SearXNG needs no key and covers every engine with a compatible API.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args
from urllib.parse import urlencode

import orjson

from fairlead.errors import UpstreamInvalid
from fairlead.net.url import split_url
from fairlead.search.query import SearchQuery, SearchResult

Kind = Literal["searxng", "brave", "serper", "tavily", "exa"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request to an engine, relative to its base URL."""

    method: Literal["GET", "POST"]
    path: str
    headers: dict[str, str]
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """The request encoder and the response decoder of an engine."""

    base_url: str | None
    """Where it is unless the operator says otherwise; None: the operator must say."""
    needs_key: bool
    build_request: Callable[[SearchQuery, str], Request]
    read: Callable[[dict[str, Any]], list[SearchResult]]


def read_results(kind: str, body: bytes) -> list[SearchResult]:
    """The results in a response. `UpstreamInvalid` when it is malformed."""
    try:
        document = orjson.loads(body)
        found = ENGINES[kind].read(document)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        hint = ": allow `format=json` there" if kind == "searxng" else ""
        raise UpstreamInvalid(f"The answer is not in the format of {kind}{hint}.") from None
    return [one for one in found if _is_address(one.url)]


def _is_address(url: str) -> bool:
    try:
        return split_url(url).scheme in ("http", "https")
    except ValueError:
        return False


def text_with_domains(query: SearchQuery) -> str:
    """The query text with its domain filters, for engines that take them as operators in the text."""
    words = [query.query]
    wanted = [f"site:{domain}" for domain in query.filters.include_domains]
    if wanted:
        words.append(wanted[0] if len(wanted) == 1 else f"({' OR '.join(wanted)})")
    words += [f"-site:{domain}" for domain in query.filters.exclude_domains]
    return " ".join(words)


def _json(headers: dict[str, str], path: str, body: dict[str, Any]) -> Request:
    fields = {name: value for name, value in body.items() if value not in (None, [])}
    return Request(
        "POST", path, {"content-type": "application/json", **headers}, orjson.dumps(fields)
    )


def _get(headers: dict[str, str], path: str, query: dict[str, Any]) -> Request:
    parameters = {name: value for name, value in query.items() if value is not None}
    return Request("GET", f"{path}?{urlencode(parameters)}", headers)


def _text(row: dict[str, Any], *names: str) -> str:
    return next((str(row[name]) for name in names if row.get(name)), "")


def _found(
    row: dict[str, Any], *, snippet: tuple[str, ...], date: tuple[str, ...] = (), url: str = "url"
) -> SearchResult:
    score = row.get("score")
    return SearchResult(
        title=_text(row, "title")[:500],
        url=_text(row, url)[:2048],
        snippet=_text(row, *snippet)[:2000],
        score=float(score) if isinstance(score, int | float) else None,
        published_at=_text(row, *date)[:64] or None,
    )


def _searxng_request(query: SearchQuery, _: str) -> Request:
    safe = {"off": "0", "moderate": "1", "strict": "2"}.get(query.filters.safe_search or "")
    return _get(
        {},
        "/search",
        {
            "q": text_with_domains(query),
            "format": "json",
            "language": query.language,
            "safesearch": safe,
            "categories": "news" if query.search_type == "news" else None,
            "pageno": query.offset // 10 + 1 if query.offset else None,
            "time_range": query.time_range
            if query.time_range in ("day", "month", "year")
            else None,
        },
    )


def _brave_request(query: SearchQuery, key: str) -> Request:
    fresh = {"hour": "pd", "day": "pd", "week": "pw", "month": "pm", "year": "py"}
    return _get(
        {"x-subscription-token": key, "accept": "application/json"},
        "/news/search" if query.search_type == "news" else "/web/search",
        {
            "q": text_with_domains(query),
            "count": min(20, query.max_results),
            "offset": query.offset // 20 or None,
            "country": query.country,
            "search_lang": query.language[:2].lower() if query.language else None,
            "freshness": fresh.get(query.time_range),
            "safesearch": query.filters.safe_search,
        },
    )


def _read_brave(document: dict[str, Any]) -> list[SearchResult]:
    inner = document.get("web", document)
    return [
        _found(row, snippet=("description",), date=("page_age", "age")) for row in inner["results"]
    ]


def _serper_request(query: SearchQuery, key: str) -> Request:
    past = {"hour": "qdr:h", "day": "qdr:d", "week": "qdr:w", "month": "qdr:m", "year": "qdr:y"}
    return _json(
        {"x-api-key": key},
        "/news" if query.search_type == "news" else "/search",
        {
            "q": text_with_domains(query),
            "num": query.max_results,
            "gl": query.country,
            "hl": query.language,
            "tbs": past.get(query.time_range),
            "page": query.offset // 10 + 1 if query.offset else None,
        },
    )


def _read_serper(document: dict[str, Any]) -> list[SearchResult]:
    rows = document["news"] if "news" in document else document["organic"]
    return [_found(row, snippet=("snippet",), date=("date",), url="link") for row in rows]


def _tavily_request(query: SearchQuery, key: str) -> Request:
    return _json(
        {"authorization": f"Bearer {key}"},
        "/search",
        {
            "query": query.query,
            "max_results": min(20, query.max_results),
            "topic": "news" if query.search_type == "news" else "general",
            "time_range": query.time_range if query.time_range not in ("any", "hour") else None,
            "include_domains": query.filters.include_domains,
            "exclude_domains": query.filters.exclude_domains,
        },
    )


def _exa_request(query: SearchQuery, key: str) -> Request:
    return _json(
        {"x-api-key": key},
        "/search",
        {
            "query": query.query,
            "numResults": query.max_results,
            "category": "news" if query.search_type == "news" else None,
            "includeDomains": query.filters.include_domains,
            "excludeDomains": query.filters.exclude_domains,
            "contents": {"text": {"maxCharacters": 500}},
        },
    )


def _rows(
    document: dict[str, Any], snippet: tuple[str, ...], date: tuple[str, ...]
) -> list[SearchResult]:
    return [_found(row, snippet=snippet, date=date) for row in document["results"]]


ENGINES: Final[dict[str, Engine]] = {
    "searxng": Engine(
        None,
        False,
        _searxng_request,
        lambda document: _rows(document, ("content",), ("publishedDate",)),
    ),
    "brave": Engine("https://api.search.brave.com/res/v1", True, _brave_request, _read_brave),
    "serper": Engine("https://google.serper.dev", True, _serper_request, _read_serper),
    "tavily": Engine(
        "https://api.tavily.com",
        True,
        _tavily_request,
        lambda document: _rows(document, ("content",), ("published_date",)),
    ),
    "exa": Engine(
        "https://api.exa.ai",
        True,
        _exa_request,
        lambda document: _rows(document, ("text", "summary"), ("publishedDate",)),
    ),
}
