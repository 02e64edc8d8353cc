"""Generates a skill from a plain description: a model writes it, and it must pass the validation of skills."""

from __future__ import annotations

import secrets
from typing import Final

from pydantic import Field, ValidationError

from fairlead.agents.skill import Description, KeyId, ModelName, NewSkill, SkillView
from fairlead.calls.model import Model
from fairlead.calls.structured_output import InvalidOutput, json_of, request_output
from fairlead.errors import UpstreamInvalid
from fairlead.wire import Wire

ANSWER_MAX_CHARS: Final = 150_000


class GenerateSkill(Wire):
    """The body: a description of the wanted agent."""

    description: Description = Field(
        description="A description of the agent's purpose, in plain words."
    )
    model: ModelName | None = Field(None, description="Who writes it, and what it asks later.")
    api_key_id: KeyId | None = Field(None, description="The key on whose behalf both ask.")
    save: bool = Field(False, strict=True, description="Store it as well.")


class Generated(Wire):
    """The generated skill; `saved` is its record if it was stored."""

    skill: NewSkill
    saved: SkillView | None


async def generate_skill(model: Model, wanted: GenerateSkill) -> NewSkill:
    """Generates a skill. An invalid answer is retried once, then raises `UpstreamInvalid`."""
    mark = secrets.token_hex(8)
    messages = [
        {
            "role": "system",
            "content": (
                "You write the definition of an AI agent. Answer with one JSON object and nothing "
                'else: {"name": "short, lower case, words joined by -", "description": "one '
                'sentence for its callers", "prompt": "the system prompt: who the agent is, how '
                'it works, what it does not do, in which form it answers"}. The purpose of the agent '
                f"is between the marks <wish-{mark}> and </wish-{mark}>."
            ),
        },
        {"role": "user", "content": f"<wish-{mark}>\n{wanted.description}\n</wish-{mark}>"},
    ]

    async def parse(text: str) -> NewSkill:
        return _read(text, wanted)

    try:
        output = await request_output(
            model, messages, parse, _correction, answer_max_chars=ANSWER_MAX_CHARS
        )
    except InvalidOutput as fault:
        raise UpstreamInvalid(
            f"The model's answer was no valid agent skill, even after a retry: {fault}."
        ) from None
    return output.value


def _correction(problems: list[str]) -> str:
    return f"That is not a valid object: {problems[0]}. Answer with the object alone."


def _read(text: str, wanted: GenerateSkill) -> NewSkill:
    """Parses a skill from an answer, or raises `InvalidOutput`."""
    try:
        written = json_of(text)
    except ValueError:
        raise InvalidOutput("it is not JSON") from None
    if not isinstance(written, dict):
        raise InvalidOutput("it is not an object")
    try:
        return NewSkill.model_validate(
            {
                **{name: written.get(name) for name in ("name", "description", "prompt")},
                "model": wanted.model,
                "apiKeyId": wanted.api_key_id,
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidOutput(f"{first['loc'][0]} {first['msg']}") from None
