"""The page that says which test holds which promise names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "identity-checks.md"


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text("utf-8"))

    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file()
        or re.search(rf"^(?:async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)
        is None
    ]

    assert len(named) > 100
    assert not missing


def test_every_row_names_one() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.endswith("| test |") or line.startswith("| ---")]

    assert [line for line in rows if line not in heads and "::test_" not in line] == []
