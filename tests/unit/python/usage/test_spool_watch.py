"""Waiting for segments: a folder that is made later is watched too, not looked at again and again."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from fairlead.store import spool_watch
from fairlead.store.spool_watch import SpoolWatch

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of changes"),
]


async def test_a_folder_that_is_made_later_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_watch, "POLL_S", 0.01)
    spool = tmp_path / "spool"
    with SpoolWatch(spool) as watch:
        await watch.wait()
        spool.mkdir()
        # Within this look the folder is there: from now on nothing but a change or the long wait ends a wait.
        await watch.wait()
        watch.begin_look()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await watch.wait()
        (spool / "segment").write_bytes(b"x")
        begun = time.monotonic()
        await watch.wait()
        assert time.monotonic() - begun < spool_watch.LOOK_EVERY_S / 2
