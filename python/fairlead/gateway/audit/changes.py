"""The fields that a change gave another value: the sent body against the thing as it was shown."""

from __future__ import annotations

from typing import Any

from fairlead.wire import Wire


class FieldChange(Wire):
    """A field by its name in JSON, with its value before and after; secrets are `***` in both."""

    field: str
    before: Any | None
    after: Any | None


def changes_of(sent: object, before: object) -> list[FieldChange]:
    """The sent fields that the thing has and that differ, in the order in which they were sent.

    Members of the body that are no fields of the thing (a password, a revision) are left out.
    """
    record = _record_of(before)
    if not isinstance(sent, dict) or record is None:
        return []
    return [
        FieldChange(field=name, before=record[name], after=value)
        for name, value in sent.items()
        if name in record and record[name] != value
    ]


def _record_of(view: object) -> dict[str, Any] | None:
    """The record inside an answer such as `{"node": {...}}`, or the answer itself."""
    if not isinstance(view, dict):
        return None
    inner = list(view.values())
    if len(inner) == 1 and isinstance(inner[0], dict):
        return inner[0]
    return view
