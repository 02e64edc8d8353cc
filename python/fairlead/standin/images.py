"""`/v1/images/*`: small images whose colours come from the prompt."""

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

from fairlead.standin.answer import CREATED_S, count_tokens
from fairlead.standin.directives import Directives
from fairlead.standin.failure import InvalidRequest
from fairlead.standin.stream import Frames, event

_SIDE: Final = 32
_MOST_IMAGES: Final = 10
_TOKENS_EACH: Final = 272


def images(body: dict[str, Any], directives: Directives, seed: bytes = b"") -> dict[str, Any]:
    """The answer in one piece; `seed` is what an edit starts from. Raises `InvalidRequest`."""
    prompt, count = _prompt_and_count(body)
    data = [
        {"b64_json": base64.b64encode(_png(prompt, seed, at)).decode(), "revised_prompt": prompt}
        for at in range(count)
    ]
    answer: dict[str, Any] = {"created": CREATED_S, "data": data, "output_format": "png"}
    return answer | ({"usage": usage} if (usage := _usage(prompt, count, directives)) else {})


def frames(body: dict[str, Any], directives: Directives, name: str, seed: bytes = b"") -> Frames:
    """The answer as typed events: first the `partial_images` of each image, then each whole image."""
    prompt, count = _prompt_and_count(body)
    partial = min(3, int(body.get("partial_images") or 0))

    def content() -> Iterator[bytes]:
        for at in range(count):
            for number in range(partial):
                yield _image_event(
                    f"{name}.partial_image", prompt, seed, at, partial_image_index=number
                )

    tail = [
        _image_event(f"{name}.completed", prompt, seed, at, usage=_usage(prompt, 1, directives))
        for at in range(count)
    ]
    return Frames([], content(), tail)


def _image_event(kind: str, prompt: str, seed: bytes, at: int, **more: Any) -> bytes:
    drawn = base64.b64encode(_png(prompt, seed, at)).decode()
    return event(kind, b64_json=drawn, created_at=CREATED_S, **more)


def _prompt_and_count(body: dict[str, Any]) -> tuple[str, int]:
    prompt, count = body.get("prompt"), body.get("n") or 1
    if not isinstance(prompt, str) or not prompt:
        raise InvalidRequest("'prompt' must be a text.", "prompt")
    try:
        count = int(count)
    except (TypeError, ValueError):
        count = 0
    if not 1 <= count <= _MOST_IMAGES:
        raise InvalidRequest(f"'n' must be a whole number from 1 to {_MOST_IMAGES}.", "n")
    return prompt, count


def _usage(prompt: str, count: int, directives: Directives) -> dict[str, Any] | None:
    if not directives.usage:
        return None
    prompt_tokens = count_tokens(prompt) if directives.tokens_in is None else directives.tokens_in
    image_tokens = _TOKENS_EACH * count if directives.tokens_out is None else directives.tokens_out
    return {
        "input_tokens": prompt_tokens,
        "output_tokens": image_tokens,
        "total_tokens": prompt_tokens + image_tokens,
        "input_tokens_details": {"text_tokens": prompt_tokens, "image_tokens": 0},
    }


def _png(prompt: str, seed: bytes, at: int) -> bytes:
    """A square of two colours."""
    drawn = hashlib.sha256(prompt.encode() + seed + bytes([at])).digest()
    rows = b"".join(
        b"\0" + (drawn[:3] if row < _SIDE // 2 else drawn[3:6]) * _SIDE for row in range(_SIDE)
    )
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
