"""The optional parts of the package, as pyproject.toml names them: whether each is installed, and what installs it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "standin": "robyn",
    "browser": "playwright",
    "vectors": "wordllama",
    "postgresql": "psycopg_pool",
    "telemetry": "opentelemetry.exporter.otlp.proto.http",
}
"""The module that comes with each."""


def is_installed(extra: str) -> bool:
    """Whether the part can be used; its module is found, and not imported."""
    try:
        return find_spec(EXTRAS[extra]) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def install_command(extra: str) -> str:
    """The command that installs the part."""
    return f"pip install 'fairlead[{extra}]'"
