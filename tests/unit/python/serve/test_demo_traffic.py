"""The demo's made-up traffic: records that control takes in, believable and always marked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from fairlead.serve.demo_traffic import APPLICATIONS, DAYS, demo_records, write_traffic
from fairlead.usage.record import parse_lines

NOW = datetime(2027, 3, 12, 15, 0, tzinfo=UTC)


def test_every_line_is_a_record_of_the_last_days_and_marked(tmp_path: Path) -> None:
    keys = {app.name: f"key-{app.name}" for app in APPLICATIONS}
    many = write_traffic(tmp_path, keys, NOW)
    (segment,) = (tmp_path / "spool").iterdir()
    assert segment.suffix == ".ndjson"
    assert segment.stat().st_mode & 0o077 == 0
    parsed = parse_lines(segment.read_bytes())
    assert parsed.rejected == []
    assert len(parsed.rows) == many > 5_000
    first, last = parsed.rows["ts_ms"].min(), parsed.rows["ts_ms"].max()
    assert NOW - timedelta(days=DAYS) <= datetime.fromtimestamp(first / 1000, UTC)
    assert datetime.fromtimestamp(last / 1000, UTC) < NOW
    assert set(parsed.rows["session_tag"]) == {app.tag for app in APPLICATIONS}
    assert all(tag.startswith("demo/") for tag in parsed.rows["session_tag"])
    assert set(parsed.rows["key_id"]) == set(keys.values())


def test_the_dice_fall_the_same_and_nothing_is_out_of_order_with_itself() -> None:
    records = list(demo_records({}, NOW))
    assert records == list(demo_records({}, NOW))
    for record in records:
        assert record["latency_ms"] >= (record["ttft_ms"] or 0)
        assert record["tokens_cached"] <= record["tokens_input"]
        assert (record["outcome"] == "completed") == (record["status"] == 200)
        assert record["cost_usd_micros"] >= 0
    failed = sum(record["outcome"] != "completed" for record in records) / len(records)
    assert 0.003 < failed < 0.08
