"""The agent response envelope, schema version 1.0: the response of every reverse-task tool.

Optional additions keep the version; 1.1 is for additions that clients must branch on, 2.0 for other outcomes,
continuations, guards or kinds of failure. Absent members are left out, never `null`. The schema is published at
`/api/tasks/envelope.schema.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

SCHEMA_VERSION: Final = "1.0"

Outcome = Literal["success", "partial", "blocked"]
ToolClass = Literal["task", "orchestration", "rebuild", "analysis"]
RouteHint = Literal[
    "stay_on_task_flow", "switch_to_orchestration", "switch_to_rebuild", "switch_to_analysis"
]
Params = dict[str, Any]

_CLOSED = ConfigDict(
    extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
)
_OPEN = ConfigDict(
    extra="allow", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
)


class _Part(BaseModel):
    model_config = _CLOSED


class Invoke(_Part):
    """A tool call, ready to be made."""

    tool: str
    params: Params | SkipJsonSchema[None] = None


class InvokeHint(_Part):
    """The parameters of a tool, for a client that builds the call itself."""

    required_params: list[str]
    optional_params: list[str] | SkipJsonSchema[None] = None
    example: Params | SkipJsonSchema[None] = None


class Continuation(_Part):
    """The next call. When not ready, the call may be made but makes no progress."""

    ready: bool
    reason: str
    tool: str | SkipJsonSchema[None] = None
    params: Params | SkipJsonSchema[None] = None
    invoke: Invoke | SkipJsonSchema[None] = None
    invoke_hint: InvokeHint | SkipJsonSchema[None] = None
    tool_class: ToolClass | SkipJsonSchema[None] = None
    route_hint: RouteHint | SkipJsonSchema[None] = None
    strategy: str | SkipJsonSchema[None] = None
    resume_command: str | SkipJsonSchema[None] = None
    action_key: str | SkipJsonSchema[None] = None


class RouteGuard(_Part):
    """The tools to stay with."""

    preferred_tool_class: ToolClass | SkipJsonSchema[None] = None
    route_hint: RouteHint | SkipJsonSchema[None] = None
    avoid_tools: list[str] | SkipJsonSchema[None] = None


class FallbackPlan(BaseModel):
    """The calls to make when the current approach fails."""

    model_config = _OPEN

    reason: str | SkipJsonSchema[None] = None
    recommended_strategy: str | SkipJsonSchema[None] = None
    steps: list[Invoke] | SkipJsonSchema[None] = None


class Envelope(BaseModel):
    """A response. Tools add further members beside these."""

    model_config = _OPEN

    schema_version: Literal["1.0"]
    outcome: Outcome
    detail_level: Literal["minimal", "standard"]
    continuation: Continuation
    response_summary: str | SkipJsonSchema[None] = None
    diagnostics: Params | SkipJsonSchema[None] = None
    should_resume: bool | SkipJsonSchema[None] = None
    should_switch_strategy: bool | SkipJsonSchema[None] = None
    next_best_tool: str | SkipJsonSchema[None] = None
    next_best_params: Params | SkipJsonSchema[None] = None
    error_code: str | SkipJsonSchema[None] = None
    error_type: str | SkipJsonSchema[None] = None
    retryable: bool | SkipJsonSchema[None] = None
    blocked_by: str | SkipJsonSchema[None] = None
    route_guard: RouteGuard | SkipJsonSchema[None] = None
    fallback_plan: FallbackPlan | SkipJsonSchema[None] = None

    @model_validator(mode="after")
    def _is_of_one_mind(self) -> Envelope:
        if self.outcome == "blocked" and self.continuation.ready:
            raise ValueError("a blocked answer is not ready to continue")
        return self

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Serialises as pydantic does, without absent members."""
        return super().model_dump(**{**options, "exclude_none": True})


def envelope_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a response."""
    schema: dict[str, Any] = _plain(Envelope.model_json_schema(mode="validation"))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:fairlead:agent-envelope:1.0",
        **schema,
        "title": "Agent response envelope 1.0",
    }


def _plain(schema: Any) -> Any:
    """A JSON Schema without its generated titles and null defaults."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _plain(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else _plain(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and value is None)
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(envelope_schema(), indent=2) + "\n", "utf-8")
