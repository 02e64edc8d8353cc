"""Control starts soon: what is heavy and rarely used is imported when it is used.

How long a start takes is for a bench to say.
"""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys
import fairlead.control.app
heavy = ("authlib", "numpy", "opentelemetry.sdk", "pandas", "playwright", "typer", "wordllama")
print(",".join(name for name in heavy if name in sys.modules))
"""


def test_control_imports_nothing_heavy_that_it_may_never_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""
