"""Checks that the configured key is the one that sealed the secrets in the state database."""

from __future__ import annotations

from fairlead.errors import Internal, Refusal
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta, write_meta
from fairlead.store.sealer import Sealer

KEY_CHECK = "key_check"


def check_key(con: Connection, sealer: Sealer) -> None:
    """Raises `Refusal` when the stored secrets were sealed with another key; in the writer, at start."""
    stored = read_meta(con, KEY_CHECK)
    if stored is None:
        write_meta(con, KEY_CHECK, sealer.seal(KEY_CHECK, b"fairlead").hex())
        return
    try:
        sealer.unseal(KEY_CHECK, bytes.fromhex(stored))
    except Internal:
        raise Refusal(
            "The secrets in the state database were sealed with another key: put the old secret.key "
            "back, or set FAIRLEAD_SECRET_KEY to the old key. To exchange it, name the old one "
            "with FAIRLEAD_OTHER_SECRET_KEY until all secrets are sealed with the new one."
        ) from None
