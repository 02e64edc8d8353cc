from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.management import Management, run_management


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def management(tmp_path: Path) -> AsyncIterator[Management]:
    async with run_management(tmp_path / "data") as running:
        yield running
