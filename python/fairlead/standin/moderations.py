"""`/v1/moderations`: categories by the words of each input."""

from typing import Any, Final

from fairlead.standin.answer import identifier, input_text
from fairlead.standin.failure import InvalidRequest

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


def moderate(body: dict[str, Any], model: str) -> dict[str, Any]:
    """One result for each input. Raises `InvalidRequest`."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise InvalidRequest("'input' must be a text or a list.", "input")
    results = [_result(input_text(one)) for one in texts]
    return {"id": identifier("modr-", repr(texts).encode()), "model": model, "results": results}


def _result(text: str) -> dict[str, Any]:
    hit = {category for word, category in _BAD_WORDS.items() if word in text.lower().split()}
    return {
        "flagged": bool(hit),
        "categories": {name: name in hit for name in CATEGORIES},
        "category_scores": {name: 0.9 if name in hit else 0.001 for name in CATEGORIES},
        "category_applied_input_types": {name: ["text"] for name in CATEGORIES},
    }
