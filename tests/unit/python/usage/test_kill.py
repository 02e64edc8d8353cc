"""kill -9 of an ingesting process, again and again: every line of the spool is counted once, in the
table and in each rollup.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fairlead.store.file import open_file
from fairlead.store.prepare import MIGRATIONS
from tests.support.rollups import assert_levels_agree

SEGMENTS = 45
LINES = 3

INGEST = """
import asyncio, sys
from pathlib import Path
from fairlead.store.database import Database
from fairlead.store.prepare import MIGRATIONS
from fairlead.store import segment
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.segment_store import SegmentStore

segment.ROUND_SEGMENTS = 3
folder = Path(sys.argv[1])
usage = Database.open(folder / "usage.duckdb", MIGRATIONS / "usage")
print("opened", flush=True)
asyncio.run(Ingest(SegmentStore(usage, folder / "spool"), folder / "spool").run())
"""


def test_every_line_is_counted_once(tmp_path: Path, spool: Path, record: Any) -> None:
    for number in range(SEGMENTS):
        ids = [f"r{number}-{line}" for line in range(LINES)]
        data = "".join(json.dumps(record(each)) + "\n" for each in ids)
        (spool / f"w-{number:08}.ndjson").write_text(data)
    moments = random.Random(7)
    kills = 0
    while any(spool.glob("*.ndjson")):
        process = subprocess.Popen(
            [sys.executable, "-c", INGEST, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        with process.stdout as output:
            assert output.readline() == "opened\n"
        # The moment is the test's input: it must not depend on what the process does.
        time.sleep(moments.uniform(0.01, 0.25 + kills * 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        assert kills < 60

    connection = open_file(tmp_path / "usage.duckdb", MIGRATIONS / "usage")
    try:
        counts = connection.execute("SELECT count(*), count(DISTINCT request_id) FROM requests")
        assert counts.fetchone() == (SEGMENTS * LINES, SEGMENTS * LINES)
        assert_levels_agree(connection)
    finally:
        connection.close()
    assert kills > 2
