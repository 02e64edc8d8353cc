"""The APIs of a provider that serves its models by several: Claude, Gemini and others on one cloud account.

The catalogue lists them in `apis`, and the first that serves a model applies. A model that none of them serves is
called in the provider's own dialect, at its own address.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairlead.gateway.providers.facts import FactSection

Dialect = Literal["openai", "openai-responses", "anthropic", "gemini"]
Protocol = Literal[
    "vertex-raw-predict",
    "bedrock-invoke",
    "bedrock-converse",
    "cohere-chat",
    # The calls of models that are not for conversations.
    "bedrock-titan-embed",
    "bedrock-cohere-embed",
    "bedrock-rerank",
    "bedrock-canvas",
    "bedrock-stability",
    "vertex-predict-embed",
]
# The types of models that an API can be for.
ApiMode = Literal["chat", "embedding", "rerank", "image"]
# The parts of an address that a connection gives: fields of `ProviderSpecific`.
Variable = Literal["region", "project", "resource", "workspace", "account"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DerivedPart(_Section):
    """A part of an address that depends on another one: `values` for some of its values, else `usual`, which may
    contain the other part in braces.
    """

    of: Variable
    usual: str
    values: dict[str, str] = {}

    def fill(self, parts: dict[str, str]) -> str:
        """The text for a connection whose parts are known."""
        value = parts[self.of]
        return self.values.get(value) or self.usual.format_map(parts)


class ApiSection(_Section):
    """One API: the patterns of its models, and how they are called.

    `models` and `no` are patterns with `*`. `mode` is the type of the models. `strip` is a prefix of model names
    that URLs do not contain. `protocol` says how the dialect's requests are sent, where that is not the
    dialect's own API.
    """

    models: tuple[str, ...] = Field(min_length=1)
    no: tuple[str, ...] = ()
    # Models that match `models` but that the API does not serve. No list shows them.
    unlisted: tuple[str, ...] = ()
    mode: ApiMode = "chat"
    dialect: Dialect
    protocol: Protocol | None = None
    base_url: str = Field(pattern=r"^https://")
    strip: str | None = None
    # The service in the scope of an Amazon signature, where it is not the provider's own.
    aws_service: str | None = None
    facts: FactSection | None = None

    def has(self, model_id: str) -> bool:
        """Whether calls of the model go to this API."""
        return _fits(model_id, self.models) and not _fits(model_id, self.no)

    def serves(self, model_id: str, mode: str) -> bool:
        """Whether the API has the model, for calls of its type."""
        return mode == self.mode and self.has(model_id) and not _fits(model_id, self.unlisted)


def _fits(model_id: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(model_id, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Api:
    """One API of a connection: its section, its address, and the id of its facts."""

    section: ApiSection
    base_url: str
    facts: str
    aws: dict[str, str] | None

    def in_snapshot(self) -> dict[str, Any]:
        """The API as the relay gets it."""
        section = self.section
        return {
            "models": list(section.models),
            "except": list(section.no),
            "dialect": section.dialect,
            "protocol": section.protocol or "own",
            "base_url": self.base_url,
            "strip": section.strip,
            "aws": self.aws,
            "facts": self.facts,
        }


def chat_api(models: list[str], base_url: str, facts: str) -> dict[str, Any]:
    """OpenAI's chat completions as the relay gets them, for some models of a provider of its responses."""
    return {
        "models": models,
        "except": [],
        "dialect": "openai",
        "protocol": "own",
        "base_url": base_url,
        "strip": None,
        "aws": None,
        "facts": facts,
    }
