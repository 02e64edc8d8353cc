"""Guardrails read every text-carrying member of the vendors' types.

The members come from the SDKs of OpenAI, Anthropic and Google, so that an update of an SDK brings its new
ones here. A member is either judged, or its name is listed below with the reason why people and models
never write into it.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import orjson
import pydantic
import pytest
import typing_extensions

from fairlead import _core

MAIL: Final = "ada@example.org"
REDACT: Final = b'{"pii_masker": "redact"}'

SURFACES: Final = (
    *("chat", "completions", "responses", "messages", "gemini", "realtime"),
    *("embeddings", "images", "audio", "moderations"),
)


@functools.cache
def roots() -> dict[str, list[Any]]:
    """The types of each surface. Every process collects this file; one imports the SDKs, when it runs these tests."""
    import anthropic.types
    import openai.types.audio
    import openai.types.chat
    import openai.types.realtime
    import openai.types.responses
    from google.genai import types as google

    return {
        "chat": [
            openai.types.chat.CompletionCreateParams,
            openai.types.chat.ChatCompletion,
            openai.types.chat.ChatCompletionChunk,
        ],
        "completions": [openai.types.CompletionCreateParams, openai.types.Completion],
        "responses": [
            openai.types.responses.ResponseCreateParams,
            openai.types.responses.Response,
            openai.types.responses.ResponseStreamEvent,
        ],
        "messages": [
            anthropic.types.MessageCreateParams,
            anthropic.types.Message,
            anthropic.types.RawMessageStreamEvent,
        ],
        "gemini": [
            google.GenerateContentResponse,
            google.ContentDict,
            google.Content,
            google.GenerationConfig,
            google.EmbedContentResponse,
        ],
        "realtime": [
            openai.types.realtime.RealtimeClientEventParam,
            openai.types.realtime.RealtimeServerEvent,
        ],
        "embeddings": [openai.types.EmbeddingCreateParams],
        "images": [openai.types.ImageGenerateParams, openai.types.ImagesResponse],
        "audio": [
            openai.types.audio.SpeechCreateParams,
            openai.types.audio.TranscriptionCreateResponse,
            openai.types.audio.TranscriptionStreamEvent,
            openai.types.audio.TranslationCreateResponse,
        ],
        "moderations": [openai.types.ModerationCreateParams],
    }


ID: Final = "an id or a name by which something is found again"
CHOICE: Final = "one of a list of values"
ADDRESS: Final = "an address, or a credential that is meant for it"
ENCODED: Final = "base64, or what only its maker can read"
SETTINGS: Final = "settings, schemas or figures: nothing inside is judged"
NOT_TEXT: Final = {
    ID: (
        "approval_request_id call_id container container_id conversation conversation_id "
        "event_id file_id id item_id jsonPath json_path model modelVersion name namespace "
        "previous_item_id previous_response_id prompt_cache_key responseId response_id "
        "safety_identifier server_label system_fingerprint tool_call_id tool_name "
        "tool_use_id user voice voiceName"
    ),
    CHOICE: ("mimeType mime_type mode output_format responseMimeType role type"),
    ADDRESS: ("fileUri file_uri file_url gcsUri image_url uri url"),
    ENCODED: (
        "audio b64_json data encrypted_content encrypted_index encrypted_stdout file_data "
        "obfuscation partial_image_b64 result signature"
    ),
    SETTINGS: (
        "embeddings format functions logit_bias logprobs logprobsResult metadata "
        "response_format responseJsonSchema responseSchema safetyRatings tools usage "
        "usageMetadata"
    ),
}
KNOWN: Final = {name for names in NOT_TEXT.values() for name in names.split()}
"""`data` and `result` are texts too, where their object is not a picture, sound, a video or base64."""


def members_of(kind: type) -> dict[str, Any]:
    """The members of a vendor's type, by the names that go over the wire, with their types."""
    if issubclass(kind, pydantic.BaseModel):
        return {info.alias or name: info.annotation for name, info in kind.model_fields.items()}
    return typing_extensions.get_type_hints(kind)


def parts_of(annotation: Any) -> Iterator[tuple[bool, Any]]:
    """What a member may be, without unions: whether it is in a list, and the type."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated or origin in (typing_extensions.Required, typing_extensions.NotRequired):
        yield from parts_of(inner[0])
    elif origin in (Union, types.UnionType):
        for each in inner:
            yield from parts_of(each)
    elif origin is dict:
        yield False, {}
    elif isinstance(annotation, typing_extensions.TypeAliasType):
        yield from parts_of(annotation.__value__)
    elif origin is not None and origin is not Literal and inner:
        for _, each in parts_of(inner[0]):
            yield True, each
    else:
        yield False, annotation


def is_type(kind: Any) -> bool:
    return isinstance(kind, type) and (
        issubclass(kind, pydantic.BaseModel) or typing_extensions.is_typeddict(kind)
    )


def kind_of(kind: type) -> dict[str, str]:
    """The `type` that an object of this type says it is of."""
    for _, each in parts_of(members_of(kind).get("type", str)):
        if get_origin(each) is Literal:
            return {"type": get_args(each)[0]}
    return {}


def body(path: list[tuple[str, bool, dict[str, str]]], leaf: Any) -> bytes:
    """JSON with this value at the end of the path."""
    value = leaf
    for name, is_list, siblings in reversed(path):
        value = {**siblings, name: [value] if is_list else value}
    return orjson.dumps(value)


def is_judged(path: list[tuple[str, bool, dict[str, str]]], leaf: Any = MAIL) -> bool:
    found, _ = _core.judge_guardrails(body(path, leaf), REDACT, [])
    return bool(found)


@functools.cache
def unjudged(surface: str) -> set[str]:
    """The names of all members of a surface that take a free text and are not judged."""
    return {name for root in roots()[surface] for name in unjudged_below(root)}


def unjudged_below(root: Any) -> Iterator[str]:
    todo: list[tuple[Any, list[tuple[str, bool, dict[str, str]]]]] = [
        (kind, []) for _, kind in parts_of(root)
    ]
    seen = set()
    while todo:
        kind, path = todo.pop()
        if kind in seen:
            continue
        seen.add(kind)
        assert is_type(kind), kind
        siblings = kind_of(kind)
        for name, annotation in members_of(kind).items():
            for is_list, part in parts_of(annotation):
                here = [*path, (name, is_list, siblings)]
                if part in (str, Any, object) and not is_judged(here):
                    yield name
                elif part == {} or is_type(part):
                    if not is_judged(here, {"some_member": MAIL}):
                        yield name
                    elif is_type(part):
                        todo.append((part, here))


@pytest.mark.parametrize("surface", SURFACES)
def test_a_text_of_the_vendors_types_is_judged(surface: str) -> None:
    new = unjudged(surface) - KNOWN
    assert not new, "judge them in names.rs, or say in NOT_TEXT why they are no text"


def test_what_is_said_to_be_no_text_is_known_and_not_judged() -> None:
    """No name stays in the list that no vendor has any more."""
    names = {name for surface in roots() for name in unjudged(surface)}
    assert KNOWN - names == set()


def test_enough_is_looked_at() -> None:
    """The walk reaches what is deep inside: a text of each vendor that only a nested type has."""
    seen = set()
    assert tuple(roots()) == SURFACES
    for kinds in roots().values():
        for root in kinds:
            seen |= {name for _, kind in parts_of(root) for name in reached(kind)}
    deep = {"cited_text", "document_title", "context", "suffix", "code", "logs", "thinking"}
    deep |= {"transcript", "revised_prompt", "partial_json", "stringValue", "webSearchQueries"}
    assert deep <= seen


def reached(root: Any) -> set[str]:
    todo, seen, names = [root], set(), set()
    while todo:
        kind = todo.pop()
        if kind in seen or not is_type(kind):
            continue
        seen.add(kind)
        for name, annotation in members_of(kind).items():
            names.add(name)
            todo.extend(part for _, part in parts_of(annotation) if is_type(part))
    return names
