"""What is written is read back, whatever the fields hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.gateway.keys.fields import NewKey
from fairlead.gateway.keys.snapshot import compile_keys
from fairlead.gateway.keys.table import StoredKey, find_key, insert_key, update_key
from fairlead.store.file import Connection, open_file
from fairlead.store.prepare import MIGRATIONS

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=200
)
# Hypothesis wants bounds without a zone.
MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000).isoformat()
)
MONEY = st.integers(0, 10**15).map(lambda micros: micros / 1_000_000)
RULE = st.fixed_dictionaries({"limit": st.integers(1, 2**53 - 1), "window": st.integers(1, 10**6)})

BODIES = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "isActive": st.booleans(),
        "noLog": st.booleans(),
        "captureBodies": st.booleans(),
        "expiresAt": st.none() | MOMENTS,
        "blockedModels": st.lists(st.from_regex(r"[!-~]{1,30}", fullmatch=True), max_size=5),
        "allowedCombos": st.lists(NAMES, max_size=5),
        "forcedModel": st.none() | NAMES,
        "throttleDelayMs": st.integers(0, 300_000),
        "rateLimits": st.none() | st.lists(RULE, max_size=5),
        "accessSchedule": st.none()
        | st.just(
            {"enabled": True, "from": "08:00", "until": "17:00", "days": [1, 5], "tz": "UTC"}
        ),
        "dailyUsageLimitUsd": st.none() | MONEY,
    },
)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("keys") / "state.duckdb"
    connection = open_file(path, MIGRATIONS / "state")
    yield connection
    connection.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(first=BODIES, second=BODIES)
def test_a_record_comes_back_as_it_went_in(con: Connection, first: dict, second: dict) -> None:
    con.execute("DELETE FROM keys")
    key = StoredKey("k", "h" * 64, "sk-fl-x...y", 1, 1, NewKey.model_validate(first))
    insert_key(con, key)
    assert find_key(con, "k") == key
    changed = StoredKey("k", key.hash, key.preview, 1, 2, NewKey.model_validate(second))
    update_key(con, changed)
    assert find_key(con, "k") == changed
    [compiled] = compile_keys(con)
    assert compiled["name"] == second["name"]
    assert compiled["blocked_models"] == second.get("blockedModels", [])


def test_a_key_is_shown_though_its_time_zone_is_unknown_here(con: Connection) -> None:
    con.execute("DELETE FROM keys")
    schedule = {"enabled": True, "from": "08:00", "until": "17:00", "days": [1], "tz": "UTC"}
    fields = NewKey.model_validate({"name": "k", "accessSchedule": schedule})
    insert_key(con, StoredKey("k", "h" * 64, "sk-fl-x...y", 1, 1, fields))
    con.execute("UPDATE keys SET access_schedule = replace(access_schedule, 'UTC', 'Mars/Base')")

    found = find_key(con, "k")

    assert found is not None
    assert found.fields.model_dump(by_alias=True)["accessSchedule"] == schedule | {
        "tz": "Mars/Base"
    }
