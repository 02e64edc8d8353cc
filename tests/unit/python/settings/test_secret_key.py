"""The key of stored secrets: given, from a file, or from a command; and what is wrong is told without the key."""

from __future__ import annotations

import base64
import shlex
import sys
from pathlib import Path

import pytest

from fairlead.errors import Refusal
from fairlead.settings.secret_key import with_secret_key
from fairlead.settings.serve import ServeSettings

KEY = base64.b64encode(bytes(range(32))).decode()


def read(**given: object) -> str | None:
    secret = with_secret_key(ServeSettings.load(**given)).secret_key
    return secret.get_secret_value() if secret else None


def printing(text: str, code: int = 0) -> str:
    return shlex.join([sys.executable, "-c", f"import sys; print({text!r}); sys.exit({code})"])


def test_each_source_gives_the_key(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    assert read() is None
    assert read(secret_key=KEY) == KEY
    assert read(secret_key_file=file) == KEY
    assert read(secret_key_command=printing(KEY)) == KEY


def test_what_is_wrong_is_told_without_what_was_read(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("c2hvcnQtY2FuYXJ5")
    for given, words in (
        ({"secret_key": KEY, "secret_key_file": wrong}, "leave one"),
        ({"secret_key_file": wrong}, "base64 of 32 bytes"),
        ({"secret_key_file": tmp_path / "none"}, "cannot be read"),
        ({"secret_key_command": printing("c2hvcnQtY2FuYXJ5")}, "base64 of 32 bytes"),
        ({"secret_key_command": printing(KEY, 3)}, "ended with 3"),
        ({"secret_key_command": "/no/such/command"}, "cannot be run"),
        ({"secret_key_command": "kms 'open"}, "quote"),
    ):
        with pytest.raises(Refusal) as refused:
            read(**given)
        assert words in refused.value.sentence
        assert "c2hvcnQtY2FuYXJ5" not in refused.value.sentence
        assert KEY not in refused.value.sentence
