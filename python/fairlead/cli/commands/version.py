"""`fairlead version`: the installed version."""

from __future__ import annotations

from fairlead import __version__


def version() -> None:
    """Print the version."""
    print(__version__)
