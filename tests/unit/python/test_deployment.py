"""What `deploy/` and the page about production say is one thing, and the gateway starts with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from dotenv import dotenv_values

from fairlead.settings.serve import ServeSettings

ROOT = Path(__file__).resolve().parents[3]
UNIT = ROOT / "deploy" / "fairlead.service"
PAGE = ROOT / "docs" / "how-to" / "run-in-production.md"


def test_the_unit_on_the_page_is_the_unit_that_is_shipped() -> None:
    page = PAGE.read_text()
    shown = page[page.index("    [Unit]") : page.index("`deploy/fairlead.service` is this unit")]
    lines = {line.strip() for line in shown.splitlines() if line.strip()}
    assert len(lines) > 15
    assert lines <= set(UNIT.read_text().splitlines())


def test_a_single_node_starts_with_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = dotenv_values(ROOT / "deploy" / "fairlead-single.env")
    assert set(values) == {"FAIRLEAD_HOST", "REQUIRE_API_KEY", "INITIAL_PASSWORD"}
    for name, value in values.items():
        monkeypatch.setenv(name, value or "")
    monkeypatch.setenv("INITIAL_PASSWORD", "a long password of somebody")
    settings = ServeSettings.load(data_dir=tmp_path)
    assert (settings.host, settings.require_api_key) == ("0.0.0.0", True)
    settings.check(password_stored=False)
