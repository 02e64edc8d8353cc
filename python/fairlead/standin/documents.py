"""`/v1/rerank`, `/v1/ocr` and a SearXNG instance's `/search`: answers about documents."""

from typing import Any, Final

from fairlead.standin.answer import identifier, input_text
from fairlead.standin.directives import Directives
from fairlead.standin.failure import InvalidRequest

_MOST_DOCUMENTS: Final = 1000


def rerank(body: dict[str, Any], model: str, directives: Directives) -> dict[str, Any]:
    """Documents by the share of the query's words that they have. Raises `InvalidRequest`."""
    query, documents = body.get("query"), body.get("documents")
    if not isinstance(query, str) or not query:
        raise InvalidRequest("'query' must be a text.", "query")
    if not isinstance(documents, list) or not 1 <= len(documents) <= _MOST_DOCUMENTS:
        raise InvalidRequest(f"'documents' must be a list of 1 to {_MOST_DOCUMENTS}.", "documents")
    words = set(query.lower().split())
    results: list[dict[str, Any]] = [
        {
            "index": at,
            "relevance_score": len(words & set(input_text(one).lower().split())) / len(words),
            **({"document": {"text": input_text(one)}} if body.get("return_documents") else {}),
        }
        for at, one in enumerate(documents)
    ]
    results.sort(key=lambda result: (-result["relevance_score"], result["index"]))
    count = body.get("top_n") or len(results)
    tokens = sum(len(input_text(one).split()) for one in documents) + len(words)
    total = tokens if directives.tokens_in is None else directives.tokens_in
    usage = {"usage": {"total_tokens": total}} if directives.usage else {}
    return {"model": model, "results": results[: int(count)], **usage}


def ocr(body: dict[str, Any], model: str) -> dict[str, Any]:
    """One page that names the document. Raises `InvalidRequest`."""
    document = body.get("document")
    place = (
        document.get("document_url") or document.get("image_url")
        if isinstance(document, dict)
        else document
    )
    if isinstance(place, dict):
        place = place.get("url")
    if not isinstance(place, str):
        raise InvalidRequest("'document' must name a document.", "document")
    shown = place if not place.startswith("data:") else place.partition(";")[0]
    pages = [{"index": 0, "markdown": f"# A document\n\nIt came from {shown[:200]}", "images": []}]
    return {"pages": pages, "model": model, "usage_info": {"pages_processed": 1}}


def search_results(query: str) -> dict[str, Any]:
    """The response of a SearXNG instance under `/search?format=json`."""
    return {
        "query": query,
        "results": [
            {
                "title": f"{query}, page {number}",
                "url": f"https://example.com/{identifier('', query.encode())[:8]}/{number}",
                "content": f"The stand-in's result {number} for {query}.",
                "engine": "standin",
                "score": 1 / number,
            }
            for number in range(1, 11)
        ],
    }
