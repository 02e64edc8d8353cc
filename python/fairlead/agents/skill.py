"""An agent skill: name, description, prompt, and the model and key that it calls with."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fairlead.moment import Time, moment_of
from fairlead.wire import ChangeWire, Name, Wire

SLUG_MAX_CHARS: Final = 64
DEFAULT_MODEL: Final = "auto/reliable"
"""The model of a skill that names none: whichever listed model the gateway finds most dependable."""

_RAW_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _filled(text: str) -> str:
    if not text.strip() or any("\ud800" <= each <= "\udfff" for each in text):
        raise PydanticCustomError("text", "must have a character other than blanks")
    return text


def _model(text: str) -> str:
    if re.search(r"[\x00-\x20\x7f]", text):
        raise PydanticCustomError("model", "must be without blanks and control characters")
    return text


def _key_id(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9-]{1,64}", text) is None:
        raise PydanticCustomError("key_id", "must be the id of an API key, as `/api/keys` lists it")
    return text


Description = Annotated[
    str, Field(strict=True, min_length=1, max_length=2000), AfterValidator(_filled)
]
Prompt = Annotated[
    str, Field(strict=True, min_length=1, max_length=100_000), AfterValidator(_filled)
]
ModelName = Annotated[str, Field(strict=True, min_length=1, max_length=300), AfterValidator(_model)]
Temperature = Annotated[float, Field(strict=True, ge=0, le=2, allow_inf_nan=False)]
KeyId = Annotated[str, Field(strict=True), AfterValidator(_key_id)]
ClientId = Annotated[str, Field(strict=True, min_length=1, max_length=300), AfterValidator(_model)]
Clients = Annotated[list[ClientId], Field(max_length=100)]


class NewSkill(Wire):
    """The body that makes a skill."""

    name: Name
    description: Description
    prompt: Prompt = Field(description="The system prompt for the model; the caller never sees it.")
    model: ModelName | None = Field(
        None, description=f"The model that the skill calls; default `{DEFAULT_MODEL}`."
    )
    temperature: Temperature | None = None
    api_key_id: KeyId | None = Field(
        None, description="The key on whose behalf it asks: that key's limits, cost and log."
    )
    allowed_clients: Clients = Field(
        default=[],
        description="Ids of the issuer's clients that may call the agent. Without any, every client with a token may.",
    )


class SkillChange(ChangeWire):
    """The body that changes a skill: any of the fields, at least one."""

    name: Name = ""
    description: Description = ""
    prompt: Prompt = ""
    model: ModelName | None = None
    temperature: Temperature | None = None
    api_key_id: KeyId | None = None
    allowed_clients: Clients = Field(default=[])


class SkillView(Wire):
    """A skill in a response; `path` is the agent's URL path."""

    id: str
    slug: str
    path: str
    name: str
    description: str
    prompt: str
    model: str | None
    temperature: float | None
    api_key_id: str | None
    allowed_clients: list[str]
    created_at: Time
    updated_at: Time


@dataclass(frozen=True, slots=True)
class Skill:
    """A stored skill. `slug` is its name in paths."""

    id: str
    slug: str
    name: str
    description: str
    prompt: str
    model: str | None
    temperature: float | None
    api_key_id: str | None
    created_at_ms: int
    updated_at_ms: int
    allowed_clients: list[str]

    def admits(self, client_id: str | None) -> bool:
        """Whether a client may call the agent. None is a caller without a token, whom nobody can name."""
        return not self.allowed_clients or client_id in self.allowed_clients

    def view(self) -> SkillView:
        return SkillView.model_construct(
            id=self.id,
            slug=self.slug,
            path=f"/agents/{self.slug}",
            name=self.name,
            description=self.description,
            prompt=self.prompt,
            model=self.model,
            temperature=self.temperature,
            api_key_id=self.api_key_id,
            allowed_clients=self.allowed_clients,
            created_at=moment_of(self.created_at_ms),
            updated_at=moment_of(self.updated_at_ms),
        )


def slug_of(name: str) -> str:
    """The name as a path segment: unchanged where it is a valid one, empty when no valid character is left."""
    if _RAW_SLUG.fullmatch(name):
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:SLUG_MAX_CHARS].strip("-")
