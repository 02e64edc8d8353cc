"""The body of `POST /v1/messages/batches`."""

from __future__ import annotations

from typing import Annotated, Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from fairlead.errors import InvalidRequest
from fairlead.gateway.batches.lines import LINE_MAX_BYTES, LINES_MAX
from fairlead.text.invalid import invalid_request

ENDPOINT: Final = "/v1/messages"
ID_PATTERN: Final = r"^[a-zA-Z0-9_-]{1,64}$"

BODY_SCHEMA: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "additionalProperties": False,
                "required": ["requests"],
                "properties": {
                    "requests": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": LINES_MAX,
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["custom_id", "params"],
                            "properties": {
                                "custom_id": {"type": "string", "pattern": ID_PATTERN},
                                "params": {"type": "object"},
                            },
                        },
                    }
                },
            }
        }
    },
}
"""The body as the API's description shows it. The route parses it in a thread: FastAPI would block the event loop."""


class MessageRequest(BaseModel):
    """One request of a batch: its name in the results, and the body of a messages request."""

    model_config = ConfigDict(extra="forbid")

    custom_id: Annotated[StrictStr, Field(pattern=ID_PATTERN)]
    params: dict[str, Any]


class MessageBatchFields(BaseModel):
    """The requests of a batch."""

    model_config = ConfigDict(extra="forbid")

    requests: Annotated[list[MessageRequest], Field(min_length=1, max_length=LINES_MAX)]


def input_of(body: bytes) -> tuple[bytes, int]:
    """The input file for a body, and how many requests it has. `InvalidRequest`. Blocking: not for the event loop."""
    try:
        fields = MessageBatchFields.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError:
        raise InvalidRequest("The body must be a JSON object with `requests`.") from None
    except ValidationError as fault:
        raise invalid_request(fault.errors()) from None
    places: dict[str, int] = {}
    lines = []
    for place, request in enumerate(fields.requests):
        param = f"requests[{place}]"
        if (earlier := places.setdefault(request.custom_id, place)) != place:
            raise InvalidRequest(
                f"{param}.custom_id is already used by requests[{earlier}].",
                param=f"{param}.custom_id",
            )
        if request.params.get("stream"):
            raise InvalidRequest(
                f"{param}.params.stream must be false: a batch does not stream.",
                param=f"{param}.params.stream",
            )
        line = orjson.dumps(
            {
                "custom_id": request.custom_id,
                "method": "POST",
                "url": ENDPOINT,
                "body": request.params,
            }
        )
        if len(line) > LINE_MAX_BYTES:
            raise InvalidRequest(f"{param} has more than {LINE_MAX_BYTES} bytes.", param=param)
        lines.append(line + b"\n")
    return b"".join(lines), len(lines)
