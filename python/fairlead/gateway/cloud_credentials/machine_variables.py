"""The variables of AWS's, Google's and Azure's SDKs in the environment of the control plane."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

_PREFIXES: Final = ("AWS_", "GCE_METADATA_", "AZURE_AUTHORITY_")


def machine_variables() -> Mapping[str, str]:
    """The variables by name, without any other of the environment."""
    return {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
