"""`/v1/embeddings`: vectors from hashed words, so that texts which share words are near."""

import base64
import hashlib
import math
import struct
from collections import Counter
from typing import Any, Final

from fairlead.standin.answer import usage_of
from fairlead.standin.directives import Directives
from fairlead.standin.failure import InvalidRequest

DEFAULT_DIMENSIONS: Final = 256
_MOST_DIMENSIONS: Final = 4096
_MOST_INPUTS: Final = 2048


def embed(body: dict[str, Any], model: str, directives: Directives) -> dict[str, Any]:
    """Answers an embeddings request. Raises `InvalidRequest`."""
    inputs = _inputs(body.get("input"))
    dimensions = body.get("dimensions", DEFAULT_DIMENSIONS)
    if not isinstance(dimensions, int) or not 1 <= dimensions <= _MOST_DIMENSIONS:
        raise InvalidRequest(
            f"'dimensions' must be a whole number from 1 to {_MOST_DIMENSIONS}.", "dimensions"
        )
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise InvalidRequest("'encoding_format' must be 'float' or 'base64'.", "encoding_format")
    data = [
        {
            "object": "embedding",
            "index": at,
            "embedding": _encode(vector_of(words, dimensions), encoding),
        }
        for at, words in enumerate(inputs)
    ]
    usage = usage_of(directives, sum(len(words) for words in inputs), 0)
    answer: dict[str, Any] = {"object": "list", "data": data, "model": model}
    if usage:
        answer["usage"] = {name: usage[name] for name in ("prompt_tokens", "total_tokens")}
    return answer


def vector_of(words: list[str], dimensions: int) -> list[float]:
    """The unit vector of a bag of words: each word adds a direction drawn from its hash."""
    total = [0.0] * dimensions
    for word, count in Counter(words or [""]).items():
        drawn = hashlib.shake_256(word.encode()).digest(dimensions * 2)
        for at, value in enumerate(struct.unpack(f"<{dimensions}h", drawn)):
            total[at] += count * value
    length = math.sqrt(math.fsum(value * value for value in total)) or 1.0
    return [value / length for value in total]


def _inputs(given: Any) -> list[list[str]]:
    if isinstance(given, str) or (isinstance(given, list) and given and isinstance(given[0], int)):
        given = [given]
    if not isinstance(given, list) or not 1 <= len(given) <= _MOST_INPUTS:
        raise InvalidRequest(
            f"'input' must be a text, tokens, or a list of 1 to {_MOST_INPUTS} of them.", "input"
        )
    return [_words(one) for one in given]


def _words(one: Any) -> list[str]:
    if isinstance(one, str):
        return one.lower().split()
    if not isinstance(one, list):
        raise InvalidRequest("each entry of 'input' must be a text or a list of tokens.", "input")
    return [str(token) for token in one]


def _encode(vector: list[float], encoding: str) -> list[float] | str:
    packed = struct.pack(f"<{len(vector)}f", *vector)
    if encoding == "base64":
        return base64.b64encode(packed).decode()
    return list(struct.unpack(f"<{len(vector)}f", packed))
