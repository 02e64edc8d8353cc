"""Control starts soon: what it imports is bounded."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys, time
started = time.process_time()
import fairlead.control.app
print(time.process_time() - started)
print(",".join(m for m in ("pandas", "polars", "numpy", "rich", "typer") if m in sys.modules))
"""


def test_control_is_imported_within_one_and_a_half_seconds_of_processor_time() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=60
    )
    seconds, heavy = done.stdout.split("\n")[:2]
    assert float(seconds) < 1.5, heavy
