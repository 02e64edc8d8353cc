"""Which tests need the system's Chromium."""

from __future__ import annotations

import shutil
from typing import Final

import pytest

needs_chromium: Final = pytest.mark.skipif(
    not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    reason="there is no Chromium on this machine",
)
