"""How many threads control computes with."""

from __future__ import annotations

import os

# Half of the cores, because the relay needs the others; measured on two, a second thread made taking
# in usage dearer by half and no faster.
CONTROL_THREADS = max(1, min(4, (os.cpu_count() or 1) // 2))
