"""The files for Prometheus and Grafana name metrics that the gateway has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "deploy" / "prometheus" / "fairlead.rules.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "fairlead.json"


def known_metrics() -> dict[str, set[str]]:
    """The labels of each metric, from the reference page, which a test compares with `GET /metrics`."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| `(fairlead_\w+)` \| \w+ \| ([^|]+) \|", page, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def expressions() -> list[tuple[str, str]]:
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    found = [(rule["alert"], rule["expr"]) for group in rules["groups"] for rule in group["rules"]]
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        found += [(panel["title"], target["expr"]) for target in panel["targets"]]
    return found


@pytest.mark.parametrize(("where", "expression"), expressions(), ids=lambda value: str(value)[:40])
def test_every_metric_and_label_exists(where: str, expression: str) -> None:
    known = known_metrics()
    names = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for name in re.findall(r"fairlead_\w+", expression)
    }
    assert names <= known.keys(), where
    labels = set().union(*(known[name] for name in names)) | {"instance", "job", "le"}
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    matched = re.findall(r'(\w+)(?:=~|!=|=)"', expression)
    assert {label.strip() for group in grouped for label in group.split(",")} <= labels, where
    assert set(matched) <= labels, where


def test_the_page_lists_every_alert() -> None:
    page = (ROOT / "docs" / "how-to" / "monitor-with-grafana.md").read_text("utf-8")
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert f"| `{rule['alert']}` |" in page


def test_panels_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        at = panel["gridPos"]
        mine = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not mine & cells, panel["title"]
        cells |= mine
