"""How far back a command looks: `--since 7d`."""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from fairlead.cli.failure import CommandFailed

_UNITS_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DAYS_MAX: Final = 3650

Since = Annotated[str, typer.Option(help="How far back: 30m, 24h, 7d, 4w, or an ISO 8601 moment.")]


def since_parameter(text: str) -> str:
    """The API's `from`: UTC milliseconds, or the moment as it was written. Raises `CommandFailed`."""
    from fairlead.moment import now_ms

    found = re.fullmatch(r"([0-9]{1,6})([mhdw])", text)
    if found is None:
        if re.match(r"[0-9]{4}-", text):
            return text
        raise CommandFailed("--since must be like 30m, 24h, 7d or 4w, or an ISO 8601 moment.")
    span_ms = int(found[1]) * _UNITS_MS[found[2]]
    if not 0 < span_ms <= _DAYS_MAX * _UNITS_MS["d"]:
        raise CommandFailed(f"--since must be more than nothing and at most {_DAYS_MAX} days.")
    return str(now_ms() - span_ms)
