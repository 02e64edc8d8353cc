"""What a browser loads for the console is small and ours: nothing is vendored, nothing comes from elsewhere."""

from __future__ import annotations

import gzip
import re

from fairlead.dashboard.render import HERE, ICON, SCRIPT, STYLE

COMPRESSED_MAX = 250 * 1024


def test_all_assets_together_are_small() -> None:
    sizes = [len(gzip.compress(each, mtime=0)) for each in (STYLE, SCRIPT, ICON)]
    assert 1_000 < sum(sizes) <= COMPRESSED_MAX


def test_no_asset_is_of_somebody_else_or_from_elsewhere() -> None:
    """A library that is taken in needs its licence beside it, and a check of its sum against the published package."""
    names = sorted(each.name for each in (HERE / "static").iterdir())
    assert not [name for name in names if re.search(r"\.min\.|vendor|-\d+\.\d+", name)], names
    text = (STYLE + SCRIPT).decode()
    assert re.findall(r"sourceMappingURL|@license|Copyright", text) == []
    assert re.findall(r"(?:url\(|import\s*\(?|src=)\s*['\"]?(?:https?:)?//[^\s'\")]+", text) == []
