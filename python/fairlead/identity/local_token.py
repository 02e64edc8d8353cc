"""The local command-line token: whoever can read `<data-dir>/cli-token` is an operator."""

from __future__ import annotations

import secrets
from pathlib import Path

from fairlead import _core
from fairlead.store.sealer import make_secret_file

FILE = "cli-token"


def make_local_token(data_dir: Path) -> str:
    """The token's text, from its file (0600), which is made at first start."""
    return make_secret_file(data_dir / FILE, f"fl-cli-{secrets.token_urlsafe(32)}")


def local_token_hash(data_dir: Path) -> str:
    """Hex SHA-256 of the token, for the snapshot."""
    return _core.hash_secret(make_local_token(data_dir))
