"""The environment of the supervisor's children."""

from __future__ import annotations

import os

_SETTINGS = ("FAIRLEAD_", "SERVICE_", "AUTH__", "ISSUER__")
_NOT_HANDED_ON = frozenset({"INITIAL_PASSWORD", "REQUIRE_API_KEY"})


def child_environment(**configs: str) -> dict[str, str]:
    """The supervisor's environment without fairlead's settings, plus the child's configuration.

    Secrets travel here and never on a command line, which every user of the machine can read.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_SETTINGS) and name not in _NOT_HANDED_ON
    }
    return inherited | configs
