"""The type of a model whose provider does not say it: by the catalogue's model of the same name, or by words
of the name.

Servers with OpenAI's API list names alone, so a model of embeddings looks like a model of chats there.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

import orjson

from fairlead.gateway.providers.catalogue import FOLDER

# Whole words of a name. The first row that fits counts.
_WORDS: tuple[tuple[str, str], ...] = (
    ("rerank", r"rerank(er|ing)?\w*|bge-reranker|semantic-ranker"),
    ("embedding", r"\w*embed\w*|bge|gte|e5|minilm|sentence-t5|voyage|arctic-embed"),
    ("moderation", r"moderations?|guardian"),
    (
        "transcription",
        r"whisper|\w*transcribe|asr|parakeet|canary|stt|speech-to-text|wav2vec2?",
    ),
    ("speech", r"tts\w*|text-to-speech|kokoro|orpheus|bark|parler|chatterbox"),
    ("realtime", r"realtime"),
    (
        "image",
        (
            r"dall-?e|gpt-image|imagen|flux(?:\.?\d)?|sdxl|sd3(?:\.5)?|stable-diffusion|stable-image|"
            r"kandinsky|playground-v\d+|image|seedream|ideogram|recraft"
        ),
    ),
    ("video", r"sora|veo|video|seedance|kling|wan\d(?:\.\d)?|hunyuanvideo|cogvideox?"),
    ("ocr", r"ocr"),
)
_PATTERNS = tuple(
    (mode, re.compile(rf"(?:^|[^a-z0-9])(?:{words})(?:$|[^a-z0-9]|(?=\d))"))
    for mode, words in _WORDS
)
# Models of chats whose names have one of the words.
_CHATS = re.compile(r"(?:image|video|audio)-(?:understanding|chat|text)|e5-mistral-chat")


@lru_cache(maxsize=20_000)
def type_of(model_id: str) -> str | None:
    """The type of a model of this name; None where neither the catalogue nor the name says it, which means chats."""
    name = model_id.lower()
    known = catalogue_types().get(bare_name(name))
    if known is not None:
        return None if known == "chat" else known
    if _CHATS.search(name):
        return None
    # Folders before the name are makers: `openai/whisper-large-v3`.
    own = name.rsplit("/", 1)[-1]
    return next((mode for mode, pattern in _PATTERNS if pattern.search(own)), None)


def bare_name(model_id: str) -> str:
    """A model's name without folders before it and without a tag behind it, in small letters."""
    return model_id.lower().rsplit("/", 1)[-1].split(":", 1)[0]


@cache
def catalogue_types() -> dict[str, str]:
    """The type of every name of the catalogue, of whichever provider. A name that providers list for different uses
    has none, and one whose file says nothing is of chats only where its words say nothing else.

    The files are read without the checks of `Catalogue`, which cost a hundred times as much.
    """
    types: dict[str, set[str]] = {}
    for path in sorted(FOLDER.glob("*.json")):
        for model in orjson.loads(path.read_bytes())["models"]:
            name = bare_name(model["id"])
            mode = model.get("mode") or _worded(name) or "chat"
            # Servers that complete texts converse as well.
            mode = "chat" if mode == "completion" else mode
            types.setdefault(name, set()).add(mode)
    return {name: next(iter(found)) for name, found in types.items() if len(found) == 1}


def _worded(name: str) -> str | None:
    return next((mode for mode, pattern in _PATTERNS if pattern.search(name)), None)


# Other lists' names for a model's use: LM Studio, Together, OpenRouter, Hugging Face.
_SPOKEN = {
    "chat": "chat",
    "llm": "chat",
    "vlm": "chat",
    "language": "chat",
    "completion": "completion",
    "embedding": "embedding",
    "embeddings": "embedding",
    "rerank": "rerank",
    "reranker": "rerank",
    "image": "image",
    "moderation": "moderation",
    "transcribe": "transcription",
    "transcription": "transcription",
    "tts": "speech",
    "video": "video",
    "ocr": "ocr",
}


def stated_type(entry: dict[str, Any]) -> str | None:
    """A model's use as its entry in a list of models says it, under one of the names that lists give to it."""
    for name in ("type", "mode", "task", "model_type"):
        value = entry.get(name)
        if isinstance(value, str) and value.lower() in _SPOKEN:
            return _SPOKEN[value.lower()]
    return None
