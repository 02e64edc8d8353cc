"""Hours and addresses of keys are judged as the relay judges them (`rust/core/src/schedule.rs`, `policy.rs`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from fairlead.records.key_access import is_listed, is_open

OFFICE = {
    "enabled": True,
    "from": "09:00",
    "until": "17:00",
    "days": [1, 2, 3, 4, 5],
    "tz": "Europe/Vienna",
}
NIGHT = {"enabled": True, "from": "22:00", "until": "06:00", "days": [5], "tz": "UTC"}


@pytest.mark.parametrize(
    ("schedule", "moment", "wanted"),
    [
        (OFFICE, "2026-01-05T07:59:59Z", False),  # Monday 08:59 in winter
        (OFFICE, "2026-01-05T08:00:00Z", True),
        (OFFICE, "2026-01-05T15:59:59Z", True),
        (OFFICE, "2026-01-05T16:00:00Z", False),
        (OFFICE, "2026-07-06T07:00:00Z", True),  # Monday 09:00 in summer
        (OFFICE, "2026-07-06T15:00:00Z", False),
        (OFFICE, "2026-01-04T10:00:00Z", False),  # Sunday
        (NIGHT, "2026-01-02T21:59:00Z", False),
        (NIGHT, "2026-01-02T22:00:00Z", True),  # Friday
        (NIGHT, "2026-01-03T05:59:00Z", True),  # Saturday morning
        (NIGHT, "2026-01-03T06:00:00Z", False),
        (NIGHT, "2026-01-03T22:30:00Z", False),  # Saturday night
        (NIGHT, "2026-01-02T03:00:00Z", False),  # Friday morning is Thursday's night
        (OFFICE | {"tz": "Mars/Olympus"}, "2026-01-05T08:00:00Z", False),
        (OFFICE | {"enabled": False}, "2026-01-04T10:00:00Z", True),
        (None, "2026-01-04T10:00:00Z", True),
    ],
)
def test_hours_are_those_of_the_zone(schedule: Any, moment: str, wanted: bool) -> None:
    assert is_open(schedule, datetime.fromisoformat(moment)) is wanted


@pytest.mark.parametrize(
    ("allowlist", "address", "wanted"),
    [
        ([], "203.0.113.5", True),
        (["10.1.0.0/16"], "10.1.2.3", True),
        (["10.1.0.0/16"], "::ffff:10.1.2.3", True),
        (["::ffff:10.1.0.0/112"], "10.1.2.3", True),
        (["10.1.0.0/16"], "10.2.2.3", False),
        (["203.0.113.5"], "203.0.113.5", True),
        (["203.0.113.5"], "203.0.113.6", False),
        (["2001:db8::/32", "10.0.0.0/8"], "2001:db8::1", True),
        (["2001:db8::/32"], "10.0.0.1", False),
        (["127.0.0.1"], "::1", True),
        (["::1"], "127.0.0.1", True),
        (["::1"], "127.9.9.9", True),
        (["10.0.0.0/8"], "127.0.0.1", False),
        (["127.0.0.0/8"], "unknown", True),
        (["10.0.0.0/8"], "unknown", False),
    ],
)
def test_a_list_admits_its_addresses_alone(
    allowlist: list[str], address: str, wanted: bool
) -> None:
    assert is_listed(allowlist, address) is wanted
