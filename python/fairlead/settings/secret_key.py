"""The key of stored secrets from where the settings say that it is: given, in a file, or printed by a command."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Final, TypeVar

from pydantic import SecretStr

from fairlead.errors import Refusal
from fairlead.process.setting_names import variable_of
from fairlead.settings.access import AccessFields

SettingsT = TypeVar("SettingsT", bound=AccessFields)

COMMAND_WITHIN_S: Final = 30
KEY_TEXT_MAX: Final = 4096
_SOURCES: Final = ("", "_file", "_command")


def with_secret_key(settings: SettingsT) -> SettingsT:
    """The settings with `secret_key` and `other_secret_key` filled in from their files or commands; as they are where
    none is set. `Refusal` says what is wrong, and never what was read.
    """
    return _with_key(_with_key(settings, "secret_key"), "other_secret_key")


def _with_key(settings: SettingsT, name: str) -> SettingsT:
    given = [name + each for each in _SOURCES if getattr(settings, name + each) is not None]
    if len(given) > 1:
        names = " and ".join(variable_of(each) for each in given)
        raise Refusal(f"{names} are set together: leave one of them.")
    if not given or given[0] == name:
        return settings
    source, value = variable_of(given[0]), getattr(settings, given[0])
    text = (
        read_secret_file(value, source) if isinstance(value, Path) else _from_command(value, source)
    )
    try:
        AccessFields.model_validate({name: text.strip()})
    except ValueError:
        raise Refusal(f"{source} gives no key: it must be base64 of 32 bytes.") from None
    return settings.model_copy(update={name: SecretStr(text.strip())})


def read_secret_file(path: Path, source: str) -> str:
    """The text of a file that a setting names. `Refusal` where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(KEY_TEXT_MAX).decode("ascii", "replace")
    except OSError as error:
        raise Refusal(f"{source}: {path} cannot be read: {error.strerror}.") from None


def _from_command(command: str, source: str) -> str:
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
        raise Refusal(f"{source} has a quote that does not end.") from None
    except (OSError, IndexError) as error:
        reason = getattr(error, "strerror", None) or "it is empty"
        raise Refusal(f"{source} cannot be run: {reason}.") from None
    except subprocess.TimeoutExpired:
        raise Refusal(f"{source} did not end within {COMMAND_WITHIN_S} s.") from None
    if done.returncode != 0:
        raise Refusal(f"{source} ended with {done.returncode}: run it by hand to see why.")
    return done.stdout[:KEY_TEXT_MAX].decode("ascii", "replace")
