"""The size of control's compute pools."""

from __future__ import annotations

import os

# Half of the cores, since the relay needs the others. Measured on two cores, a second thread made ingestion
# cost half as much again without being faster.
CONTROL_THREADS = max(1, min(4, (os.cpu_count() or 1) // 2))
