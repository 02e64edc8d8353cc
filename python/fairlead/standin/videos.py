"""Google's videos: a long-running operation to start, poll and read files from.

Nothing is kept: the operation's name says when it began, how long it takes, how many videos it makes
and whether it fails.
"""

import time
from typing import Any, Final

from fairlead.standin.directives import Directives
from fairlead.standin.failure import FAULT_MESSAGE, InvalidRequest

FAILS: Final = "fail"
"""A word in a prompt that makes the operation end in an error, as a prompt against the provider's rules does."""
FILTERED: Final = "filtered"
"""A word in a prompt that makes the operation end without a video, filtered as unsafe."""
SAMPLES_MAX: Final = 4
_READY_AFTER_MS: Final = 200


def start(body: dict[str, Any], model: str, directives: Directives) -> dict[str, Any]:
    """The name of a new operation; the knob `first_ms` says how long it takes. Raises `InvalidRequest`."""
    instances = body.get("instances")
    if not isinstance(instances, list) or len(instances) != 1:
        raise InvalidRequest("instances must have one entry.")
    prompt = instances[0].get("prompt") if isinstance(instances[0], dict) else None
    if not isinstance(prompt, str) or not prompt:
        raise InvalidRequest("prompt is required.")
    parameters = body.get("parameters") or {}
    unknown = body.keys() - {"instances", "parameters"}
    if unknown:
        raise InvalidRequest(f'Invalid JSON payload received. Unknown name "{min(unknown)}"')
    samples = parameters.get("sampleCount", 1)
    if not isinstance(samples, int) or not 1 <= samples <= SAMPLES_MAX:
        raise InvalidRequest(f"sampleCount must be 1 to {SAMPLES_MAX}.")
    ready_ms = time.time_ns() // 1_000_000 + (directives.first_ms or _READY_AFTER_MS)
    words = prompt.lower().split()
    ends = "e" if FAILS in words else "f" if FILTERED in words else "v"
    return {"name": f"models/{model}/operations/{ready_ms}{ends}{samples}"}


def operation(model: str, name: str, origin: str) -> dict[str, Any] | None:
    """The operation as it is now; `None` for a name that `start` does not give."""
    for ends in "efv":
        ready, found, samples = name.partition(ends)
        if found and ready.isdecimal() and samples.isdecimal():
            break
    else:
        return None
    document: dict[str, Any] = {"name": f"models/{model}/operations/{name}"}
    if time.time_ns() // 1_000_000 < int(ready):
        return document
    document["done"] = True
    if ends == "e":
        return document | {"error": {"code": 3, "message": FAULT_MESSAGE}}
    result: dict[str, Any] = {
        "generatedSamples": [
            {"video": {"uri": f"{origin}/v1beta/files/{ready}n{number}:download?alt=media"}}
            for number in range(int(samples))
        ]
    }
    if ends == "f":
        result = {"raiMediaFilteredCount": int(samples), "raiMediaFilteredReasons": ["A reason."]}
    kind = "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse"
    return document | {"response": {"@type": kind, "generateVideoResponse": result}}


def content(name: str) -> bytes:
    """A video's bytes."""
    return b"\x00\x00\x00\x18ftypmp42" + name.encode() * 64
