"""One JSON object per line on stderr, the same keys everywhere, never a secret."""

from __future__ import annotations

import logging
import sys
import traceback

import structlog


def configure_logs() -> None:
    """Configures the process's log; once, at start."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def where(error: BaseException) -> list[str]:
    """The stack of an error, innermost last: file, line and function.

    The message is left out, because a library's error may quote its input, which can be a secret.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return [
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-8:]
    ]
