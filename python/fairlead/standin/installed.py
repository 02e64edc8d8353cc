"""Whether the stand-in provider can be started: its server is an extra of the package."""

from __future__ import annotations

from fairlead.errors import Refusal
from fairlead.process.extra import install_command, is_installed


def check_standin() -> None:
    """`Refusal` where the extra is not installed."""
    if not is_installed("standin"):
        raise Refusal(
            f"the stand-in provider needs Robyn: install it with `{install_command('standin')}`."
        )
