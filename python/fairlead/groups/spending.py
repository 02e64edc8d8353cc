"""The amounts used and left of every limit of a group, and of the groups above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import Field

from fairlead import _core
from fairlead.groups.snapshot import compile_limits
from fairlead.groups.table import StoredGroup, find_group
from fairlead.moment import Time, moment_of, now_ms
from fairlead.money import usd_of
from fairlead.records.group_tree import read_tree
from fairlead.store.file import Connection
from fairlead.store.services import Services
from fairlead.usage.budgets.spent import Question, spent_of
from fairlead.wire import Wire

Unit = Literal["usd", "tokens", "requests"]
_UNITS: Final[dict[str, Unit]] = {"usd_micros": "usd", "tokens": "tokens", "requests": "requests"}


class LimitUse(Wire):
    """A limit, and what all keys of the group together have used of it in this window: settled calls; the newest may
    take a second to show.
    """

    field: str = Field(description="The field that sets it.")
    unit: Unit
    limit: float
    used: float
    unpriced_requests: int = Field(
        description="With `usd`: requests whose cost is not known, or not all of it, because a model has no price; "
        "`used` leaves them out. Else 0."
    )
    left: float
    starts_at: Time
    resets_at: Time


class LevelSpending(Wire):
    id: str
    name: str
    limits: list[LimitUse]


class GroupSpending(Wire):
    """Levels from the group to the top: a call needs budget at each level."""

    levels: list[LevelSpending]


@dataclass(frozen=True, slots=True)
class _Counted:
    """A limit in the snapshot's form, and its window in Unix milliseconds."""

    group_id: str
    limit: dict[str, Any]
    starts_ms: int
    ends_ms: int


async def read_spending(services: Services, group_id: str) -> GroupSpending:
    """Levels from the group to the topmost."""

    def read_levels(con: Connection) -> list[StoredGroup]:
        path = (find_group(con, level.id) for level in read_tree(con).path(group_id))
        return [group for group in path if group is not None]

    levels = await services.state.read(read_levels)
    at_ms = now_ms()
    counted = [
        _Counted(group.id, limit, *_window(limit, at_ms))
        for group in levels
        for limit in compile_limits(group.fields)
    ]
    sums = await _read_used(services, counted)
    uses: dict[str, list[LimitUse]] = {group.id: [] for group in levels}
    for each, (used, unpriced) in zip(counted, sums, strict=True):
        uses[each.group_id].append(_use(each, used, unpriced))
    return GroupSpending.model_construct(
        levels=[
            LevelSpending.model_construct(
                id=group.id, name=group.fields.name, limits=uses[group.id]
            )
            for group in levels
        ]
    )


async def _read_used(services: Services, counted: list[_Counted]) -> list[tuple[int, int]]:
    """The amount used of each limit, and the number of requests without a price beside an amount of money."""
    amounts = [
        Question(group_id=each.group_id, unit=each.limit["unit"], from_ms=each.starts_ms)
        for each in counted
    ]
    if not amounts:
        return []
    unpriced = [each.model_copy(update={"unit": "unpriced_requests"}) for each in amounts]
    sums = await spent_of(services.state, services.usage, amounts + unpriced)
    return [
        (used, left_out if question.unit == "usd_micros" else 0)
        for question, used, left_out in zip(
            amounts, sums[: len(amounts)], sums[len(amounts) :], strict=True
        )
    ]


def _window(limit: dict[str, Any], at_ms: int) -> tuple[int, int]:
    (period, value), *_ = limit["period"].items()
    if period == "seconds":
        length_ms = value * 1000
        starts_ms = at_ms - at_ms % length_ms
        return starts_ms, starts_ms + length_ms
    return _core.limit_window(period, value, at_ms, limit["zone"])


def _use(counted: _Counted, used: int, unpriced: int) -> LimitUse:
    unit, amount = counted.limit["unit"], counted.limit["amount"]
    shown = usd_of if unit == "usd_micros" else float
    return LimitUse.model_construct(
        field=counted.limit["name"],
        unit=_UNITS[unit],
        limit=shown(amount),
        used=shown(used),
        unpriced_requests=unpriced,
        left=shown(max(0, amount - used)),
        starts_at=moment_of(counted.starts_ms),
        resets_at=moment_of(counted.ends_ms),
    )
