"""`/v1/moderations`, `/v1/rerank`, `/v1/ocr` and a search engine: answers that follow from the words alone."""

from typing import Any, Final

from fairlead.standin.answer import identifier
from fairlead.standin.failure import InvalidRequest
from fairlead.standin.knobs import Knobs

CATEGORIES: Final = (
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/instructions",
    "self-harm/intent",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
)
_BAD_WORDS: Final = {"kill": "violence", "hate": "hate", "idiot": "harassment"}
_MOST_DOCUMENTS: Final = 1000


def moderate(body: dict[str, Any], model: str) -> dict[str, Any]:
    """One result for each input. Raises `InvalidRequest`."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise InvalidRequest("'input' must be a text or a list.", "input")
    results = [_moderated(_text(one)) for one in texts]
    return {"id": identifier("modr-", repr(texts).encode()), "model": model, "results": results}


def rerank(body: dict[str, Any], model: str, knobs: Knobs) -> dict[str, Any]:
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
            "relevance_score": len(words & set(_text(one).lower().split())) / len(words),
            **({"document": {"text": _text(one)}} if body.get("return_documents") else {}),
        }
        for at, one in enumerate(documents)
    ]
    results.sort(key=lambda result: (-result["relevance_score"], result["index"]))
    count = body.get("top_n") or len(results)
    tokens = sum(len(_text(one).split()) for one in documents) + len(words)
    total = tokens if knobs.tokens_in is None else knobs.tokens_in
    usage = {"usage": {"total_tokens": total}} if knobs.usage else {}
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
    """What a SearXNG instance answers under `/search?format=json`."""
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


def _moderated(text: str) -> dict[str, Any]:
    hit = {category for word, category in _BAD_WORDS.items() if word in text.lower().split()}
    return {
        "flagged": bool(hit),
        "categories": {name: name in hit for name in CATEGORIES},
        "category_scores": {name: 0.9 if name in hit else 0.001 for name in CATEGORIES},
        "category_applied_input_types": {name: ["text"] for name in CATEGORIES},
    }


def _text(one: Any) -> str:
    return str(one.get("text", "")) if isinstance(one, dict) else str(one)
