"""The owner of gateways that several test files share."""

from __future__ import annotations

from typing import Final

OWNER_PASSWORD: Final = "correct horse battery staple"
