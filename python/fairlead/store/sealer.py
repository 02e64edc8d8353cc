"""The data directory's key, and secrets sealed with it (AES-256-GCM, the record's id as associated data)."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
from pathlib import Path

from fairlead import _core
from fairlead.errors import Internal, Refusal

KEY_BYTES = 32


class Sealer:
    """Seals and unseals secrets. While keys are exchanged, what is sealed with the other one is unsealed too. Its repr
    does not show the keys.
    """

    def __init__(self, key: bytes, other: bytes | None = None) -> None:
        self._key = key
        self._other = other

    def __repr__(self) -> str:
        return "Sealer(***)"

    def seal(self, record_id: str, plaintext: bytes) -> bytes:
        """Encrypts a secret of the record with this id."""
        return _core.seal(self._key, record_id, plaintext)

    def unseal(self, record_id: str, sealed: bytes) -> bytes:
        """Decrypts the result of `seal` for the same record; `Internal` if the key or the record is another."""
        for key in (self._key, self._other):
            if key is not None and (plain := _opened(key, record_id, sealed)) is not None:
                return plain
        raise Internal("A stored secret cannot be decrypted with this data directory's key.")

    def is_current(self, record_id: str, sealed: bytes) -> bool:
        """Whether it is sealed with the key that seals now, and not with the other one."""
        return _opened(self._key, record_id, sealed) is not None

    @property
    def key_name(self) -> str:
        """A name of the key that seals, which tells nothing about it: nodes compare theirs."""
        return hmac.digest(self._key, b"fairlead name of a sealing key", "sha256").hex()[:16]


def _opened(key: bytes, record_id: str, sealed: bytes) -> bytes | None:
    try:
        return _core.unseal(key, record_id, sealed)
    except ValueError:
        return None


def decode_key(text: str) -> bytes:
    """Decodes 32 bytes from base64; `ValueError` for anything else."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        raise ValueError("is not base64") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"is {len(key)} bytes long, not {KEY_BYTES}")
    return key


def load_key(data_dir: Path, given: str | None = None) -> bytes:
    """The given key, else the one in `<data_dir>/secret.key`, which is created at the first start."""
    if given is not None:
        return decode_key(given)
    path = data_dir / "secret.key"
    text = make_secret_file(path, base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode())
    try:
        return decode_key(text)
    except ValueError as error:
        raise Refusal(
            f"{path} {error}: put the key back that sealed this data directory's secrets."
        ) from None


def load_sealer(data_dir: Path, given: str | None, other: str | None) -> Sealer:
    """The sealer of the key of `load_key`, and of the other key, if there is one while keys are exchanged."""
    return Sealer(load_key(data_dir, given), None if other is None else decode_key(other))


def make_secret_file(path: Path, content: str) -> str:
    """The text of a file (0600), created with `content` if it is missing. Concurrent creators agree on one
    content.
    """
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'not text'}."
        ) from None
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(content + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(new, path)
        except FileExistsError:
            return path.read_text(encoding="ascii").strip()
        finally:
            new.unlink()
    except OSError as error:
        raise Refusal(f"{path} cannot be made: {error.strerror}.") from None
    return content
