"""The optional parts of the package, as pyproject.toml names them: whether each is installed, and what installs it."""

from __future__ import annotations

import re
import shlex
import sys
from importlib import metadata
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

_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([A-Za-z0-9._-]+)["']""")


def is_installed(extra: str) -> bool:
    """Whether the part can be used; its module is found, and not imported."""
    return _is_found(EXTRAS[extra])


def requirements_of(extra: str) -> list[str]:
    """The packages that the part needs, as the installed package's metadata states them."""
    found = []
    for line in metadata.requires("fairlead") or []:
        requirement, _, marker = line.partition(";")
        if (named := _EXTRA.search(marker)) is not None and named[1] == extra:
            found.append(requirement.strip())
    return found


def install_command(extra: str) -> str:
    """The command that installs the part for the Python that runs this, in a shell.

    It names the packages themselves: `fairlead[...]` would ask a registry for fairlead, which a checkout or a wheel
    from elsewhere does not come from.
    """
    try:
        requirements = requirements_of(extra)
    except metadata.PackageNotFoundError:
        # The source folder is used without being installed.
        return "make develop"
    installer = (
        [sys.executable, "-m", "pip", "install"]
        if _is_found("pip")
        else ["uv", "pip", "install", "--python", sys.executable]
    )
    return shlex.join([*installer, *requirements])


def _is_found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False
