from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """A folder with one migration: a table of numbers."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_numbers.sql").write_text("CREATE TABLE numbers (n BIGINT NOT NULL);")
    return folder
