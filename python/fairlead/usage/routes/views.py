"""Usage as the API shows it: money as integer micro-dollars and as a USD number, times as ISO
8601.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fairlead.moment import Time, iso, moment_of
from fairlead.money import usd_of

if TYPE_CHECKING:
    from fairlead.usage.sums.history_series import HistorySeries


UNPRICED: Final = "Requests whose cost is not known, or not all of it: a model has no price. The cost leaves them out."


class View(BaseModel):
    """A body of an answer: camelCase names."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class HistoryRow(View):
    """One group. What it is not grouped by is null. Latencies are milliseconds, percentiles right
    to one per cent.
    """

    bucket: Time | None = Field(description="Start of the minute, hour, day or month, UTC.")
    provider: str | None
    model: str | None
    key_id: str | None
    endpoint: str | None
    connection_id: str | None
    combo: str | None
    session: str | None = Field(description="The session's tag, or else its id.")
    status: int | None
    error_kind: str | None = Field(
        description="The reason of failed requests, with `reason` in `groupBy`; null for the others."
    )
    group_id: str | None = Field(description="The group that the key was in then.")
    requests: int
    errors: int = Field(description="Requests with another outcome than `completed`.")
    tokens_input: int
    tokens_output: int
    tokens_cached: int
    tokens_reasoning: int
    tokens_cache_write: int
    cost_usd_micros: int
    cost_usd: float
    unpriced_requests: int = Field(description=UNPRICED)
    avg_latency_ms: float
    p50_latency_ms: float | None = Field(description="Null where percentiles were not asked for.")
    p95_latency_ms: float | None
    p99_latency_ms: float | None
    p50_chosen_ms: float | None = Field(
        description="The gateway's own time: from a request's admission until its targets were chosen. "
        "Only for the sum of all requests (`groupBy=total`, no filter) of at most the last "
        "two minutes; else null."
    )
    p99_chosen_ms: float | None
    p50_provider_ms: float | None = Field(
        description="The time at providers: from there until the last byte, for requests that called "
        "one. Only for the sum of all requests of at most the last two minutes; else null."
    )
    p99_provider_ms: float | None
    is_other: bool = Field(
        description="With `top`: the sum of the groups that are not among the largest."
    )


class HistoryGroup(View):
    """One of the largest groups over time: its sums, one for each of `buckets`. What it is not grouped by is null."""

    provider: str | None
    model: str | None
    key_id: str | None
    endpoint: str | None
    connection_id: str | None
    combo: str | None
    session: str | None
    status: int | None
    error_kind: str | None
    group_id: str | None
    is_other: bool = Field(description="The sum of all groups that are not among the largest.")
    requests: Sequence[int]
    errors: Sequence[int]
    tokens_input: Sequence[int]
    tokens_output: Sequence[int]
    cost_usd_micros: Sequence[int]
    unpriced_requests: Sequence[int]


class HistorySeriesView(View):
    """The largest groups over time, largest first, and the sum of the others last."""

    buckets: Sequence[Time] = Field(description="The start of each, UTC.")
    groups: list[HistoryGroup]


class History(View):
    history: list[HistoryRow]
    total: int
    totals: HistoryRow | None = Field(
        description="The sum of all groups, with `totals=true`; null for nothing."
    )
    series: HistorySeriesView | None = Field(
        description="The largest groups over time, with `series`; else null."
    )
    limit: int
    offset: int
    from_: Time = Field(alias="from")
    to: Time
    group_by: Sequence[str]


class GuardrailFinding(View):
    """A guardrail's finding and the action taken. The matched text is never stored."""

    guardrail: str
    found: str
    action: str


class FailedAttempt(View):
    """An attempt at a provider that failed, after which another was made, or none."""

    connection_id: str
    model: str = Field(description="By the provider's name.")
    error_kind: str
    ended_ms: float = Field(description="Milliseconds after the admission.")
    provider_status: int | None = Field(
        description="HTTP status of the provider's answer; null where it did not answer."
    )
    provider_code: str | None = Field(description="The provider's code for the error.")
    provider_type: str | None = Field(description="The provider's type of the error.")
    provider_request_id: str | None = Field(description="The id that the provider gave the call.")
    provider_message: str | None = Field(
        description="The provider's message: masked, at most 300 bytes, and not to be trusted."
    )
    rejection_reason: str | None = Field(
        description="Why the provider rejected the request: `overflow`, `model`, `credential`, "
        "`access`, `parameter`, `policy`, `request`, or `translation.refused` if the gateway wrote "
        "the body that the provider calls invalid; null for other failures."
    )
    rejected_member: str | None = Field(
        description="The member of the request that the provider's error names."
    )


class LogRow(View):
    """A settled request in short."""

    request_id: str
    timestamp: Time
    key_id: str | None
    endpoint: str
    model: str | None
    provider: str | None
    connection_id: str | None
    stream: bool
    status: int
    outcome: str
    error_kind: str | None
    error_message: str | None = Field(
        description="The message that the caller received: masked, at most 300 bytes."
    )
    tokens_input: int
    tokens_output: int
    cost_usd_micros: int
    cost_usd: float
    is_unpriced: bool = Field(
        description="Whether a model that took part has no price: the cost leaves its part out, and is 0 where "
        "nothing has a price."
    )
    latency_ms: float
    ttft_ms: float | None
    cache: str | None
    guardrails: list[GuardrailFinding]


class RequestLogRow(LogRow):
    """A settled request in full."""

    worker_id: str
    principal_kind: str
    group_path: str | None = Field(
        description="The groups that the key was in, from the topmost down, separated by `/`."
    )
    tags: list[str] = Field(description="The tags of the key and its groups.")
    session_tag: str | None
    session_id: str | None
    combo: str | None
    strategy: str | None
    cache_kind: str | None
    cost_saved_usd_micros: int | None
    compression: str | None = Field(description="The pipeline that made the conversation shorter.")
    compression_tokens_before: int | None
    compression_tokens_after: int | None
    compression_ms: float | None
    compression_rejected: str | None = Field(
        description="Why texts stayed as they were: `engine:reason=count`, separated by commas."
    )
    compression_saved_usd_micros: int | None
    cache_hold: str | None = Field(
        description="If the conversation stays with the target whose provider has it cached: `held` on the "
        "target of the last turn, `moved` to another, or `begun`."
    )
    trace_id: str | None
    span_id: str | None
    parent_span_id: str | None
    method: str
    path: str
    upstream_model: str | None
    tokens_cached: int
    tokens_reasoning: int
    tokens_cache_write: int
    tokens_cache_write_hour: int = Field(description="The part that is cached for an hour.")
    service_tier: str | None = Field(
        description="`batch`, `flex`, `priority` or `ultrafast`, as the provider said; null: as usual."
    )
    chaos: str | None = Field(
        description="The fault that the call was given by its key's `chaosModeEnabled`."
    )
    price_tiers: list[str] = Field(
        description="The prices behind the cost, in addition to the plain prices of input and output: "
        "a service tier, `above_272000`, `cached_input`, `per_image`, ...; `unpriced` "
        "where it has none."
    )
    chosen_ms: float | None = Field(
        description="When its targets were chosen, milliseconds after its admission."
    )
    attempts: int
    failed_attempts: list[FailedAttempt]
    bytes_request: int
    bytes_response: int
    has_bodies: bool = Field(
        description="Whether `/api/usage/logs/{id}/body` has what was asked and answered, and `/headers` "
        "the headers that steered it. False while the store of files does not answer."
    )


class Logs(View):
    """A page of the log. `next` is what `after` takes for the page that follows; null at the end."""

    logs: list[LogRow]
    total: int
    limit: int
    offset: int
    next: str | None


class RequestLogs(View):
    """A page of the log in full. `next` is what `after` takes for the page that follows; null at the end."""

    logs: list[RequestLogRow]
    total: int
    limit: int
    offset: int
    next: str | None


def show_history_row(row: dict[str, Any]) -> HistoryRow:
    """A row of `read_history`."""
    return HistoryRow.model_validate(history_json(row))


def history_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `read_history` as a `HistoryRow` is sent. A page has hundreds, and a model of each would be most of
    what the answer costs.
    """
    shown = {sent: row.get(name) for name, sent in _HISTORY_NAMES}
    bucket_ms = row.get("bucket_ms")
    shown["bucket"] = None if bucket_ms is None else iso(moment_of(bucket_ms))
    shown["costUsd"] = usd_of(row["cost_usd_micros"])
    shown["isOther"] = bool(row.get("is_other"))
    for sent, name in _HISTORY_LATENCIES:
        value = row[name]
        shown[sent] = None if value is None else round(value, 3)
    return shown


def series_json(series: HistorySeries) -> dict[str, Any]:
    """The series of a history as a `HistorySeriesView` is sent."""
    return {
        "buckets": [iso(moment_of(bucket_ms)) for bucket_ms in series.buckets],
        "groups": [
            {
                **{sent: group.names.get(name) for name, sent in _GROUP_NAMES},
                "isOther": group.is_other,
                **{to_camel(name): values for name, values in group.sums.items()},
            }
            for group in series.groups
        ],
    }


_GROUP_NAMES = tuple(
    (name, to_camel(name)) for name in HistoryGroup.model_fields if name in HistoryRow.model_fields
)
_HISTORY_NAMES = tuple((name, to_camel(name)) for name in HistoryRow.model_fields)
_HISTORY_LATENCIES = tuple(
    (to_camel(name), name) for name in HistoryRow.model_fields if name.endswith("_latency_ms")
)


def show_log_row(row: dict[str, Any]) -> LogRow:
    """A row of `read_log`, in short."""
    return LogRow.model_construct(**_shown(row, LogRow))


def show_request_log_row(
    row: dict[str, Any], *, has_bodies: bool, is_confined: bool = False
) -> RequestLogRow:
    """A row of `read_log`, in full. Callers that are confined to their own rows are not shown what providers said to
    the operator, as they were not when they called.
    """
    shown = _shown(row, RequestLogRow)
    if is_confined:
        shown["failed_attempts"] = [
            each.model_copy(update=_NO_WORDS) for each in shown["failed_attempts"]
        ]
    return RequestLogRow.model_construct(**shown, has_bodies=has_bodies)


_NO_WORDS = dict.fromkeys(
    ("provider_code", "provider_type", "provider_request_id", "provider_message", "rejected_member")
)


def _shown(row: dict[str, Any], view: type[LogRow]) -> dict[str, Any]:
    shown = {name: row[name] for name in view.model_fields if name in row}
    shown["timestamp"] = moment_of(row["ts_ms"])
    shown["cost_usd"] = usd_of(row["cost_usd_micros"])
    shown["is_unpriced"] = "unpriced" in (row["price_tiers"] or "").split(",")
    shown["guardrails"] = _findings(row["guardrails"])
    if "tags" in shown:
        shown["tags"] = shown["tags"].strip(",").split(",") if shown["tags"] else []
    if "price_tiers" in shown:
        shown["price_tiers"] = shown["price_tiers"].split(",") if shown["price_tiers"] else []
        shown["tokens_cache_write_hour"] = shown["tokens_cache_write_hour"] or 0
        shown["failed_attempts"] = read_failed_attempts(row["failed_attempts"])
    return shown


def read_failed_attempts(text: str | None) -> list[FailedAttempt]:
    """The attempts in a record's text (docs/explanation/contracts.md), separated by commas."""
    return [_failed_attempt(one.split(";")) for one in text.split(",")] if text else []


def _failed_attempt(parts: Sequence[str]) -> FailedAttempt:
    """An attempt of four parts, of nine if the provider answered, or of eleven if it rejected the request."""
    connection_id, error_kind, ended_ms, model, *answered = parts
    status, *words = answered or ("",)
    words += [""] * (6 - len(words))
    code, type_, request_id, message, reason, member = [unquote(word) or None for word in words]
    return FailedAttempt.model_construct(
        connection_id=connection_id,
        error_kind=error_kind,
        ended_ms=float(ended_ms),
        model=unquote(model),
        provider_status=int(status) if status else None,
        provider_code=code,
        provider_type=type_,
        provider_request_id=request_id,
        provider_message=message,
        rejection_reason=reason,
        rejected_member=member,
    )


def _findings(text: str | None) -> list[GuardrailFinding]:
    """The findings in a record's text: `pii-masker;found=email;action=warn, ...`."""
    found = []
    for one in text.split(", ") if text else ():
        guardrail, *rest = one.split(";")
        members = dict(each.partition("=")[::2] for each in rest)
        found.append(
            GuardrailFinding.model_construct(
                guardrail=guardrail,
                found=members.get("found", ""),
                action=members.get("action", ""),
            )
        )
    return found
