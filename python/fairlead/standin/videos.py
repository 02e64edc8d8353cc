"""Google's long-running videos: begun, asked for until they are there, and read as files.

Nothing is kept: the operation's name says when it began, how long it takes, how many videos it makes
and whether it fails.
"""

import time
from typing import Any, Final

from fairlead.standin.failure import InvalidRequest
from fairlead.standin.knobs import Knobs

FAILS: Final = "fail"
"""A prompt with this word comes to an error, as one that breaks the provider's rules."""
FILTERED: Final = "filtered"
"""A prompt with this word is done without a video."""
SAMPLES_MAX: Final = 4
_READY_AFTER_MS: Final = 200


def begin(body: dict[str, Any], model: str, knobs: Knobs) -> dict[str, Any]:
    """The operation, as it begins; the knob `first_ms` says how long it takes. Raises `InvalidRequest`."""
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
    ready_ms = time.time_ns() // 1_000_000 + (knobs.first_ms or _READY_AFTER_MS)
    words = prompt.lower().split()
    ends = "e" if FAILS in words else "f" if FILTERED in words else "v"
    return {"name": f"models/{model}/operations/{ready_ms}{ends}{samples}"}


def operation(model: str, name: str, origin: str) -> dict[str, Any] | None:
    """The operation as it is now; None for a name that was never given."""
    for ends in "efv":
        ready, found, samples = name.partition(ends)
        if found and ready.isdecimal() and samples.isdecimal():
            break
    else:
        return None
    told: dict[str, Any] = {"name": f"models/{model}/operations/{name}"}
    if time.time_ns() // 1_000_000 < int(ready):
        return told
    told["done"] = True
    if ends == "e":
        return told | {"error": {"code": 3, "message": "The stand-in was asked to fail."}}
    made: dict[str, Any] = {
        "generatedSamples": [
            {"video": {"uri": f"{origin}/v1beta/files/{ready}n{number}:download?alt=media"}}
            for number in range(int(samples))
        ]
    }
    if ends == "f":
        made = {"raiMediaFilteredCount": int(samples), "raiMediaFilteredReasons": ["A reason."]}
    kind = "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse"
    return told | {"response": {"@type": kind, "generateVideoResponse": made}}


def content(name: str) -> bytes:
    """A video's bytes."""
    return b"\x00\x00\x00\x18ftypmp42" + name.encode() * 64
