"""Calls of a model through the gateway itself, on behalf of a key (`own_relay`).

Cancelling a call cancels it at the provider.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import httpx
import orjson

from fairlead.calls.own_relay import on_behalf_of, relay_client
from fairlead.errors import (
    KINDS,
    FairleadError,
    RateLimited,
    UpstreamInvalid,
    UpstreamTimeout,
)
from fairlead.settings import ControlConfig

ANSWER_DEADLINE_S: Final = 50.0
COUNT_MAX: Final = 2**53


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's text and its token counts, summed over all rounds."""

    text: str
    tokens_input: int
    tokens_output: int

    @property
    def tokens(self) -> dict[str, int]:
        """Both counts as the API shows them: `input` and `output`."""
        return {"input": self.tokens_input, "output": self.tokens_output}


class Model:
    """One model, called on behalf of one key. Without a key the request carries no credential."""

    def __init__(
        self,
        config: ControlConfig,
        owner: str | None,
        name: str,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        deadline_s: float = ANSWER_DEADLINE_S,
    ) -> None:
        self._config = config
        self._owner = owner
        self._deadline_s = deadline_s
        self._body: dict[str, Any] = {"model": name, "stream": False}
        if temperature is not None:
            self._body["temperature"] = temperature
        if max_tokens is not None:
            self._body["max_tokens"] = max_tokens

    async def ask(self, messages: list[dict[str, str]], **fields: Any) -> ModelAnswer:
        """Sends a chat request and returns the answer. An error of the gateway is raised as a `FairleadError`
        of the same kind.
        """
        headers = {} if self._owner is None else on_behalf_of(self._config, self._owner)
        try:
            async with asyncio.timeout(self._deadline_s), relay_client(self._config) as client:
                answer = await client.post(
                    "/v1/chat/completions",
                    headers=headers,
                    json={**self._body, "messages": messages, **fields},
                )
        except (TimeoutError, httpx.TimeoutException):
            raise UpstreamTimeout("The model did not answer in time.") from None
        except httpx.HTTPError as error:
            raise UpstreamInvalid(f"The gateway did not answer ({type(error).__name__}).") from None
        if answer.status_code != 200:
            raise _refusal(answer)
        try:
            # This parser refuses deep nesting and endless numbers, where the standard library's exhausts the
            # stack.
            document = orjson.loads(answer.content)
            text = document["choices"][0]["message"]["content"]
            usage = document.get("usage") or {}
        except (ValueError, KeyError, IndexError, TypeError):
            raise UpstreamInvalid("The model's answer has no text.") from None
        return ModelAnswer(
            str(text or ""),
            _count(usage, "prompt_tokens"),
            _count(usage, "completion_tokens"),
        )


def _count(usage: Any, name: str) -> int:
    """A token count of a provider's answer; 0 for anything but a plausible number."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and 0 <= count <= COUNT_MAX else 0


def _refusal(answer: httpx.Response) -> FairleadError:
    try:
        error = orjson.loads(answer.content)["error"]
        message, code = str(error["message"]), str(error["code"])
    except (ValueError, KeyError, TypeError):
        return UpstreamInvalid(f"The gateway answered {answer.status_code}.")
    after = answer.headers.get("retry-after", "")
    kind = KINDS.get(code)
    if kind is None:
        kind = RateLimited if answer.status_code == 429 else UpstreamInvalid
    return kind(
        f"The model was not asked: {message}",
        retry_after_s=int(after)
        if after.isascii() and after.isdigit() and len(after) < 10
        else None,
    )
