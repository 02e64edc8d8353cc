"""The key of stored secrets from where the settings say that it is: given, in a file, or printed by a command."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Final, TypeVar

from pydantic import SecretStr

from fairlead.errors import Refusal
from fairlead.settings.access import AccessFields

SettingsT = TypeVar("SettingsT", bound=AccessFields)

COMMAND_WITHIN_S: Final = 30
KEY_TEXT_MAX: Final = 4096
_SOURCES: Final = {
    "secret_key": "FAIRLEAD_SECRET_KEY",
    "secret_key_file": "FAIRLEAD_SECRET_KEY_FILE",
    "secret_key_command": "FAIRLEAD_SECRET_KEY_COMMAND",
}


def with_secret_key(settings: SettingsT) -> SettingsT:
    """The settings with `secret_key` filled in from its file or command; as they are where neither is set.
    `Refusal` says what is wrong, and never what was read.
    """
    given = [name for name in _SOURCES if getattr(settings, name) is not None]
    if len(given) > 1:
        names = " and ".join(_SOURCES[name] for name in given)
        raise Refusal(f"{names} are set together: leave one of them.")
    if settings.secret_key_file is not None:
        text, source = _from_file(settings.secret_key_file), "FAIRLEAD_SECRET_KEY_FILE"
    elif settings.secret_key_command is not None:
        text, source = _from_command(settings.secret_key_command), "FAIRLEAD_SECRET_KEY_COMMAND"
    else:
        return settings
    try:
        AccessFields.model_validate({"secret_key": text.strip()})
    except ValueError:
        raise Refusal(f"{source} gives no key: it must be base64 of 32 bytes.") from None
    return settings.model_copy(update={"secret_key": SecretStr(text.strip())})


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(KEY_TEXT_MAX).decode("ascii", "replace")
    except OSError as error:
        raise Refusal(
            f"FAIRLEAD_SECRET_KEY_FILE: {path} cannot be read: {error.strerror}."
        ) from None


def _from_command(command: str) -> str:
    try:
        arguments = shlex.split(command)
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_WITHIN_S,
            check=False,
        )
    except ValueError:
        raise Refusal("FAIRLEAD_SECRET_KEY_COMMAND has a quote that does not end.") from None
    except (OSError, IndexError) as error:
        reason = getattr(error, "strerror", None) or "it is empty"
        raise Refusal(f"FAIRLEAD_SECRET_KEY_COMMAND cannot be run: {reason}.") from None
    except subprocess.TimeoutExpired:
        raise Refusal(
            f"FAIRLEAD_SECRET_KEY_COMMAND did not end within {COMMAND_WITHIN_S} s."
        ) from None
    if done.returncode != 0:
        raise Refusal(
            f"FAIRLEAD_SECRET_KEY_COMMAND ended with {done.returncode}: run it by hand to see why."
        )
    return done.stdout[:KEY_TEXT_MAX].decode("ascii", "replace")
