"""Whether the stand-in provider can be started: its server is an extra of the package."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from fairlead.errors import Refusal

NEEDS_ROBYN: Final = (
    "the stand-in provider needs Robyn: install it with `pip install 'fairlead[standin]'`."
)


def check_standin() -> None:
    """`Refusal` where the extra is not installed."""
    if find_spec("robyn") is None:
        raise Refusal(NEEDS_ROBYN)
