"""The demo's made-up traffic: records that control takes in, believable and always marked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from fairlead.serve.demo_traffic import (
    APPLICATIONS,
    COMBO,
    DAYS,
    INCIDENT,
    INCIDENT_AT,
    INCIDENT_BEGAN,
    INCIDENT_LASTED,
    MODELS,
    NOBODY,
    DemoTarget,
    Owners,
    demo_records,
    monthly_limits,
    write_traffic,
)
from fairlead.usage.ingestion.record import parse_lines

NOW = datetime(2027, 3, 12, 15, 0, tzinfo=UTC)


def test_every_line_is_a_record_of_the_last_days_and_marked(tmp_path: Path) -> None:
    keys = {app.name: f"key-{app.name}" for app in APPLICATIONS}
    targets = {each.provider: DemoTarget(f"node-{each.provider}", "c") for each in MODELS.values()}
    many = write_traffic(tmp_path, Owners(keys, targets), NOW)
    segments = sorted((tmp_path / "spool").iterdir())
    for segment in segments:
        assert segment.suffix == ".ndjson"
        assert segment.stat().st_mode & 0o077 == 0
    parsed = parse_lines(b"".join(segment.read_bytes() for segment in segments))
    assert parsed.rejected == []
    assert len(parsed.rows) == many > 5_000
    first, last = parsed.rows["ts_ms"].min(), parsed.rows["ts_ms"].max()
    assert NOW - timedelta(days=DAYS) <= datetime.fromtimestamp(first / 1000, UTC)
    assert datetime.fromtimestamp(last / 1000, UTC) < NOW
    assert set(parsed.rows["session_tag"]) == {app.tag for app in APPLICATIONS}
    assert all(tag.startswith("demo/") for tag in parsed.rows["session_tag"])
    assert set(parsed.rows["key_id"]) == set(keys.values())
    assert set(parsed.rows["provider"]) == {place.node_id for place in targets.values()}
    assert set(parsed.rows["connection_id"]) == {"c"}


def test_the_dice_fall_the_same_and_nothing_is_out_of_order_with_itself() -> None:
    records = list(demo_records(NOBODY, NOW))
    assert records == list(demo_records(NOBODY, NOW))
    for record in records:
        assert record["latency_ms"] >= (record["ttft_ms"] or 0)
        assert record["tokens_cached"] <= record["tokens_input"]
        assert (record["outcome"] == "completed") == (record["status"] == 200)
        assert record["cost_usd_micros"] >= 0
    failed = sum(record["outcome"] != "completed" for record in records) / len(records)
    assert 0.003 < failed < 0.08


def test_the_traffic_tells_a_story() -> None:
    records = list(demo_records(NOBODY, NOW))
    began_ms = (NOW - INCIDENT_BEGAN).timestamp() * 1000
    ended_ms = began_ms + INCIDENT_LASTED.total_seconds() * 1000
    incident = [
        each
        for each in records
        if began_ms <= each["ts_ms"] < ended_ms and each["provider"] == INCIDENT_AT
    ]
    failed = [each for each in incident if each["error_kind"] == INCIDENT.kind]
    assert len(failed) > len(incident) / 2 > 3
    assert failed[0]["error_message"] == INCIDENT.words
    assert INCIDENT.provider_message in failed[0]["failed_attempts"]
    assert any(each["cache"] == "hit" for each in records)
    assert {each["combo"] for each in records} == {COMBO, None}
    sessions: dict[str, int] = {}
    for each in records:
        if each["session_id"]:
            sessions[each["session_id"]] = sessions.get(each["session_id"], 0) + 1
    assert max(sessions.values()) >= 3
    thirds = [
        sum(each["ts_ms"] < (NOW - timedelta(days=days)).timestamp() * 1000 for each in records)
        for days in (21, 14, 7)
    ]
    assert all(many > 500 for many in thirds), "a week is compared with the one before"


def test_one_key_is_near_its_limit() -> None:
    limits = monthly_limits(NOW)
    month_ms = NOW.replace(day=1, hour=0).timestamp() * 1000
    for app in APPLICATIONS:
        if app.spent_part:
            spent = sum(
                each["cost_usd_micros"]
                for each in demo_records(NOBODY, NOW)
                if each["session_tag"] == app.tag and each["ts_ms"] >= month_ms
            )
            assert abs(spent / 1_000_000 / limits[app.name] - app.spent_part) < 0.01
    assert max(app.spent_part or 0 for app in APPLICATIONS) > 0.9
