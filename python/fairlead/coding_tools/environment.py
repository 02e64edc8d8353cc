"""Parts of this process's environment that are passed on to tools, and that show a container."""

from __future__ import annotations

import os
from typing import Final

WORKSPACES: Final = ("CODESPACES", "REMOTE_CONTAINERS", "GITPOD_WORKSPACE_ID")
"""What GitHub Codespaces, dev containers of editors and Gitpod set: containers in which people work."""


def container_marks() -> dict[str, str]:
    """The variables that container runtimes and workspaces set."""
    names = ("container", "KUBERNETES_SERVICE_HOST", *WORKSPACES)
    return {name: os.environ[name] for name in names if name in os.environ}


def inherited_environment() -> dict[str, str]:
    """All variables, as a command passes them on to the program that the user asked it to start."""
    return dict(os.environ)
