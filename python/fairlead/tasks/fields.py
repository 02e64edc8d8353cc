"""Request models of the reverse-task tools."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, field_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from fairlead.tasks.environment import ERROR_MAX_CHARS
from fairlead.tasks.plan import FailureType, Strategy
from fairlead.tasks.task import EvidenceKind, Judgement, Stage, Status

DATA_MAX_BYTES: Final = 64 * 1024

Action = Literal[
    "list",
    "get",
    "summarize",
    "progress",
    "update",
    "timeline",
    "archive",
    "restore",
    "search",
    "tag",
    "prune",
    "compare",
]

TaskId = Annotated[
    StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", description="The task's id.")
]
Line = Annotated[StrictStr, Field(min_length=1, max_length=500)]
Text = Annotated[StrictStr, Field(min_length=1, max_length=ERROR_MAX_CHARS)]
Tag = Annotated[StrictStr, Field(pattern=r"^[\w.:-]{1,64}$")]
Capability = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Capabilities = Annotated[list[Capability], Field(max_length=500)]
Many = Annotated[StrictInt, Field(ge=1, le=500)]
OutputMode = Annotated[
    Literal["compact", "verbose"],
    Field(description="`compact` leaves out what repeats or explains."),
]


def _bounded(value: Any) -> Any:
    try:
        size = len(orjson.dumps(value))
    except TypeError:
        raise PydanticCustomError(
            "data", "must be JSON whose integers have 64 bits at most"
        ) from None
    if size > DATA_MAX_BYTES:
        raise PydanticCustomError(
            "data", "must be at most {most} bytes as JSON", {"most": DATA_MAX_BYTES}
        )
    return value


class _TaskRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class SuccessCriteria(_TaskRequest):
    """Judgements of the success criteria. Criteria that are not sent stay as they are."""

    local_rebuild: Judgement | SkipJsonSchema[None] = None
    server_acceptance: Judgement | SkipJsonSchema[None] = None
    browser_alignment: Judgement | SkipJsonSchema[None] = None
    notes: Text | SkipJsonSchema[None] = None


class NewEvidence(_TaskRequest):
    """A finding.

    `data` has `message` for a runtime error, `capability` for a patch, `path` for an artifact, `expected` and
    `actual` for a divergence. `criterion` names the success criteria that the finding supports, `resolves` the
    numbers of divergences that are fixed.
    """

    kind: EvidenceKind
    summary: Line
    data: dict[str, Any] = {}

    _data_is_bounded = field_validator("data")(_bounded)


class ManageRequest(_TaskRequest):
    """The body of `manage_reverse_task`. All actions but `list`, `search` and `prune` need `taskId`."""

    action: Action
    task_id: TaskId | SkipJsonSchema[None] = None
    output_mode: OutputMode = "verbose"
    limit: Many = 50
    timeline_limit: Many = 20
    evidence_limit: Many = 20
    include_archived: StrictBool = False
    query: Line | SkipJsonSchema[None] = None
    tag: Tag | SkipJsonSchema[None] = None
    tags: Annotated[list[Tag], Field(max_length=50)] = []
    replace_tags: StrictBool = False
    prune_older_than_days: Annotated[StrictInt, Field(ge=0, le=36_500)] = 30
    other_task_id: TaskId | SkipJsonSchema[None] = None
    task_slug: Line | SkipJsonSchema[None] = None
    target_url: Annotated[StrictStr, Field(max_length=2048)] | SkipJsonSchema[None] = None
    goal: Text | SkipJsonSchema[None] = Field(
        None, description="With `update` and an id that no task has, makes the task."
    )
    current_stage: Stage | SkipJsonSchema[None] = None
    status: Status | SkipJsonSchema[None] = None
    current_summary: Text | SkipJsonSchema[None] = None
    next_step_hint: Line | SkipJsonSchema[None] = None
    success_criteria: SuccessCriteria | SkipJsonSchema[None] = None
    evidence: Annotated[list[NewEvidence], Field(max_length=100)] = []
    result: Text | SkipJsonSchema[None] = None
    next: Line | SkipJsonSchema[None] = None
    detail: Text | SkipJsonSchema[None] = None
    stage: Stage | SkipJsonSchema[None] = Field(
        None, description="The time of a line of the timeline."
    )
    timeline_action: Line | SkipJsonSchema[None] = None
    timeline_status: Line | SkipJsonSchema[None] = None


class StepReport(_TaskRequest):
    """The outcome of a step that the agent took."""

    status: Literal["ok", "error"]
    result: Any = None
    error: Text | SkipJsonSchema[None] = None
    error_type: FailureType | SkipJsonSchema[None] = None

    _result_is_bounded = field_validator("result")(_bounded)


class OrchestrateRequest(_TaskRequest):
    """The body of `orchestrate_reverse_task`. Without `execute` the plan is shown and nothing is done."""

    task_id: TaskId
    strategy: Strategy | SkipJsonSchema[None] = None
    execute: StrictBool = False
    resume: StrictBool = False
    stop_on_error: StrictBool = True
    persist_state: StrictBool = True
    include_summary: StrictBool = True
    output_mode: OutputMode = "verbose"
    skip_steps: Annotated[list[Line], Field(max_length=20)] = []
    only_steps: Annotated[list[Line], Field(max_length=20)] = []
    from_step: Line | SkipJsonSchema[None] = None
    execution_overrides: Annotated[dict[str, StepReport], Field(max_length=20)] = {}
    observed_capabilities: Capabilities | SkipJsonSchema[None] = None


class HealthRequest(_TaskRequest):
    """The body of `get_rebuild_health_report`."""

    task_id: TaskId
    output_mode: OutputMode = "verbose"
    observed_capabilities: Capabilities | SkipJsonSchema[None] = None


class DiffRequest(_TaskRequest):
    """The body of `diff_env_requirements`. With `taskId` the error is stored as evidence."""

    runtime_error: Text
    observed_capabilities: Capabilities
    task_id: TaskId | SkipJsonSchema[None] = None
    output_mode: OutputMode = "verbose"
