"""`/v1/audio/*`: speech as one tone for each word, and its transcription.

The recording carries its text in a separate chunk, as players allow, so that it can be transcribed again. Every
recording is WAV, whatever format was requested, except `pcm`.
"""

import hashlib
import math
import struct
from collections.abc import Iterator
from typing import Any, Final

from fairlead.standin.answer import count_tokens
from fairlead.standin.directives import Directives
from fairlead.standin.failure import InvalidRequest
from fairlead.standin.stream import Frames, frame

_RATE_HZ: Final = 8000
_WORD_SAMPLES: Final = _RATE_HZ // 8
_MOST_WORDS: Final = 2000
_PIECE_BYTES: Final = 4096
_TEXT_CHUNK: Final = b"fltx"


def synthesize(body: dict[str, Any], directives: Directives) -> tuple[str, list[bytes]]:
    """The content type and the pieces of a recording. Raises `InvalidRequest`."""
    text = body.get("input")
    if not isinstance(text, str) or not text:
        raise InvalidRequest("'input' must be a text.", "input")
    if not isinstance(body.get("voice"), str | dict):
        raise InvalidRequest("'voice' must be the name of a voice.", "voice")
    words = (
        text.split()[:_MOST_WORDS]
        if directives.chunks is None
        else text.split()[: directives.chunks]
    )
    samples = b"".join(_tone(word) for word in words)
    is_raw = body.get("response_format") == "pcm"
    whole = samples if is_raw else _wav(samples, text)
    pieces = [whole[at : at + _PIECE_BYTES] for at in range(0, len(whole), _PIECE_BYTES)]
    return "audio/pcm" if is_raw else "audio/wav", pieces


def transcribe(recording: bytes, name: str) -> str:
    """The text that a recording carries, or for any other a sentence with its size and name."""
    at = recording.find(_TEXT_CHUNK)
    if recording[:4] == b"RIFF" and at > 0:
        size = int(struct.unpack_from("<I", recording, at + 4)[0])
        return recording[at + 8 : at + 8 + size].decode("utf-8", "replace").rstrip("\0")
    return f"A recording of {len(recording)} bytes, called {name}."


def transcript(
    text: str, wanted: str, task: str, directives: Directives
) -> tuple[str, bytes | dict[str, Any]]:
    """The content type and body of a transcript in the format that is wanted. Raises `InvalidRequest`."""
    seconds = round(len(text.split()) / 8, 3)
    if wanted == "text":
        return "text/plain; charset=utf-8", text.encode() + b"\n"
    if wanted == "srt":
        return (
            "application/x-subrip",
            f"1\n00:00:00,000 --> {_clock(seconds, ',')}\n{text}\n\n".encode(),
        )
    if wanted == "vtt":
        return "text/vtt", f"WEBVTT\n\n00:00:00.000 --> {_clock(seconds, '.')}\n{text}\n\n".encode()
    answer: dict[str, Any] = {"text": text}
    if directives.usage:
        answer["usage"] = transcript_usage(text, directives)
    if wanted == "verbose_json":
        segment = {
            "id": 0,
            "seek": 0,
            "start": 0.0,
            "end": seconds,
            "text": text,
            "tokens": [],
            "temperature": 0.0,
            "avg_logprob": 0.0,
            "compression_ratio": 1.0,
            "no_speech_prob": 0.0,
        }
        answer |= {"task": task, "language": "english", "duration": seconds, "segments": [segment]}
    elif wanted not in ("json", ""):
        raise InvalidRequest("'response_format' is not known.", "response_format")
    return "application/json", answer


def transcript_usage(text: str, directives: Directives) -> dict[str, Any]:
    """The usage of a transcription, as OpenAI counts audio."""
    audio_tokens = 10 * len(text.split()) if directives.tokens_in is None else directives.tokens_in
    text_tokens = count_tokens(text) if directives.tokens_out is None else directives.tokens_out
    return {
        "type": "tokens",
        "input_tokens": audio_tokens,
        "output_tokens": text_tokens,
        "total_tokens": audio_tokens + text_tokens,
    }


def transcript_frames(text: str, directives: Directives) -> Frames:
    """A streamed transcript: the words one by one, then all of them."""

    def content() -> Iterator[bytes]:
        for word in text.split():
            yield frame({"type": "transcript.text.delta", "delta": f"{word} "})

    done: dict[str, Any] = {"type": "transcript.text.done", "text": text}
    if directives.usage:
        done["usage"] = transcript_usage(text, directives)
    return Frames([], content(), [frame(done)])


def _tone(word: str) -> bytes:
    """A tone of 1/8 s, its pitch drawn from the word."""
    pitch_hz = 220 + hashlib.sha256(word.encode()).digest()[0]
    return struct.pack(
        f"<{_WORD_SAMPLES}h",
        *(
            round(6000 * math.sin(2 * math.pi * pitch_hz * at / _RATE_HZ))
            for at in range(_WORD_SAMPLES)
        ),
    )


def _wav(samples: bytes, text: str) -> bytes:
    words = text.encode()
    words += b"\0" * (len(words) % 2)
    shape = struct.pack("<HHIIHH", 1, 1, _RATE_HZ, 2 * _RATE_HZ, 2, 16)
    chunks = ((b"fmt ", shape), (_TEXT_CHUNK, words), (b"data", samples))
    content = b"".join(name + struct.pack("<I", len(part)) + part for name, part in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(content)) + b"WAVE" + content


def _clock(seconds: float, point: str) -> str:
    whole = int(seconds)
    thousandths = round((seconds - whole) * 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{point}{thousandths:03}"
