"""Whether an instance runs on a data directory of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from fairlead.cli.failure import CommandFailed


def is_in_use(folder: Path) -> bool:
    """Whether an instance holds the directory's lock; one that was killed holds nothing."""
    import fcntl

    try:
        lock_fd = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CommandFailed(
            f"{folder / 'lock'} cannot be opened ({error.strerror}): "
            "run the command as the user that fairlead runs as."
        ) from None
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock_fd)
    return False
