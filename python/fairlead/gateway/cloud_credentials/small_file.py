"""Files of a few kilobytes that the environment or the machine's own configuration names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from fairlead.gateway.cloud_credentials.obtained import NotObtained

MAX_BYTES: Final = 1024 * 1024


class FileMissing(NotObtained):
    """There is no such file."""


async def read_small(path: str, name: str) -> str:
    """The text of a file; `NotObtained` names the source of its path, never its content."""

    def read() -> bytes:
        with Path(path).expanduser().open("rb") as file:
            return file.read(MAX_BYTES + 1)

    try:
        content = await asyncio.to_thread(read)
        if len(content) > MAX_BYTES:
            raise NotObtained(f"The file of {name} is too large.")
        return content.decode()
    except FileNotFoundError:
        raise FileMissing(f"The file of {name} does not exist.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise NotObtained(f"The file of {name} cannot be read: {reason}.") from None
    except UnicodeDecodeError:
        raise NotObtained(f"The file of {name} is not text.") from None
