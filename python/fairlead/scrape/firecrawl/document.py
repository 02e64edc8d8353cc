"""A page as Firecrawl's clients expect it, made of the document of a scrape."""

from __future__ import annotations

from typing import Any, Final

_METADATA: Final = {
    "title": "title",
    "description": "description",
    "language": "language",
    "keywords": "keywords",
    "robots": "robots",
    "author": "author",
    "generator": "generator",
    "ogTitle": "ogTitle",
    "ogUrl": "ogUrl",
    "image": "ogImage",
    "locale": "ogLocale",
    "siteName": "ogSiteName",
    "publishedTime": "publishedTime",
    "modifiedTime": "modifiedTime",
    "contentType": "contentType",
    "cachedAt": "cachedAt",
    "truncated": "truncated",
    "warnings": "warnings",
}
"""Members of our metadata, with Firecrawl's name of each."""


def firecrawl_document(
    document: dict[str, Any], *, source_url: str | None = None
) -> dict[str, Any]:
    """The page's requested formats and its metadata. `source_url` is the address that the caller sent."""
    page: dict[str, Any] = {}
    if document["contentType"] in {"markdown", "html"}:
        page[document["contentType"]] = document["content"]
    formats = document.get("formats", {})
    for name in ("markdown", "html", "rawHtml", "screenshot", "json", "summary"):
        if name in formats:
            page[name] = formats[name]
    for name in ("links", "images"):
        if name in formats:
            page[name] = list(dict.fromkeys(item["url"] for item in formats[name]))
    if "changeTracking" in formats:
        page["changeTracking"] = {**formats["changeTracking"], "visibility": "visible"}
    page["metadata"] = _metadata(document, source_url)
    return page


def _metadata(document: dict[str, Any], source_url: str | None) -> dict[str, Any]:
    ours: dict[str, Any] = document["metadata"]
    redirects = ours.get("redirects") or [document["url"]]
    return {
        **{theirs: ours[name] for name, theirs in _METADATA.items() if name in ours},
        "sourceURL": source_url or redirects[0],
        "url": document["url"],
        "statusCode": ours.get("status", 200),
        "cacheState": "hit" if ours.get("fromCache") else "miss",
        "proxyUsed": "basic",
    }
