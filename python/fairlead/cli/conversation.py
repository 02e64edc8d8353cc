"""A conversation with one model through the gateway: messages so far, answers as they come. No tools are offered."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.failure import CommandFailed

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

PATH: Final = "/v1/chat/completions"
_EVENT_MAX_BYTES: Final = 16 * 2**20
_REQUEST_ID: Final = "x-gateway-request-id"


@dataclass(slots=True)
class Conversation:
    """Messages that were said, the model that answers next, and the ids of the requests that were made."""

    model: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    request_ids: list[str] = field(default_factory=list)
    max_tokens: int | None = None

    def add_question(self, text: str, attachments: list[dict[str, Any]]) -> None:
        """Adds what the user says next."""
        content: Any = text
        if attachments:
            content = [*attachments, {"type": "text", "text": text}]
        self.messages.append({"role": "user", "content": content})

    def ask(self, instance: Instance) -> dict[str, Any]:
        """The answer in one piece, as the API gives it."""
        return instance.post(PATH, self._body())

    def stream(self, instance: Instance) -> Generator[str, None, None]:
        """The answer piece by piece; kept as a message, also when it is left half way.

        Raises `CommandFailed` where the provider fails, or breaks off before the end.
        """
        pieces: list[str] = []
        body = self._body() | {"stream": True}
        try:
            with instance.stream("POST", PATH, json=body) as answer:
                if request_id := answer.headers.get(_REQUEST_ID):
                    self.request_ids.append(request_id)
                for piece in _texts(answer.iter_bytes()):
                    pieces.append(piece)
                    yield piece
        finally:
            if pieces:
                self.messages.append({"role": "assistant", "content": "".join(pieces)})
            elif self.messages and self.messages[-1]["role"] == "user":
                # A question without an answer would be asked again with the next one.
                self.messages.pop()

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": self.messages}
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        return body


def _texts(chunks: Iterator[bytes]) -> Iterator[str]:
    """The texts of a stream's chunks up to its `[DONE]`. Raises `CommandFailed`."""
    for data in _events(chunks):
        if data == b"[DONE]":
            return
        try:
            document = json.loads(data)
        except ValueError:
            raise CommandFailed("the answer holds an event that is no JSON.") from None
        if isinstance(document, dict) and document.get("error"):
            raise CommandFailed(_sentence(document["error"]))
        yield from _delta_texts(document)
    raise CommandFailed("the answer broke off before its end.")


def _events(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The data of server-sent events, one line each as chat completions have them."""
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        *lines, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        if len(rest) > _EVENT_MAX_BYTES:
            raise CommandFailed(f"the answer has an event of more than {_EVENT_MAX_BYTES} bytes.")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[len(b"data:") :].strip()


def _delta_texts(document: Any) -> Iterator[str]:
    choices = document.get("choices") if isinstance(document, dict) else None
    for choice in choices if isinstance(choices, list) else []:
        delta = choice.get("delta") if isinstance(choice, dict) else None
        text = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(text, str) and text:
            yield text


def _sentence(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else None
    return str(message or "the answer ended with an error.")
