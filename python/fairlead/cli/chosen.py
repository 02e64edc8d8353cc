"""The context that the command line was started with: `fairlead --context <name> ...`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

CONTEXT: Final[ContextVar[str | None]] = ContextVar("context", default=None)
LOCAL: Final = "local"
"""The name of this machine's own instance, which no context may have."""
