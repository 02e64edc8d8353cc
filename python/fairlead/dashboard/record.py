"""A record that two tabs may edit, and how the second one hears of the first."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.page import FormFields
from fairlead.errors import Conflict

SEEN = "seen"
REVISION = "settingsRevision"
CHANGED = (
    "Somebody has changed this in the meantime. What you typed is still here: save "
    "again to overwrite their change, or go back to see it."
)
# More digits than any revision has.
_DIGITS_MAX = 15


def check_unchanged(record: dict[str, Any], fields: FormFields, stamp: str = "updatedAt") -> None:
    """`Refused` when the record is not the one that the form was made of."""
    if fields.pop(SEEN, "") != str(record[stamp]):
        raise Refused(Conflict.status, CHANGED)


async def change_settings(api: Api, changed: Mapping[str, Any], fields: FormFields) -> None:
    """Changes settings over the revision that the form was made of; `Refused` when they are at another."""
    try:
        await api.send("PATCH", "/api/settings", {**changed, REVISION: revision_of(fields)})
    except Refused as refusal:
        if refusal.param == REVISION:
            raise Refused(refusal.status, CHANGED) from None
        raise


def revision_of(fields: FormFields) -> int:
    """The revision of the settings that the form was made of, 0 where it names none."""
    text = fields.get(REVISION, "")
    return int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else 0


def fingerprint(*records: Any) -> str:
    """A version for records without one: it differs when one of the records does."""
    text = orjson.dumps(records, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:32]
