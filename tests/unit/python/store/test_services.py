"""The process's only instances: one of each class, whoever asks for it first."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

from fairlead.settings import ControlConfig
from fairlead.store.database import Database
from fairlead.store.services import Services
from fairlead.store.state import State


class Writer:
    """Only one may be made: two would write over each other."""


def test_threads_that_ask_at_once_get_the_same_instance(tmp_path: Path) -> None:
    nothing = object()
    services = Services(
        cast("ControlConfig", nothing),
        tmp_path,
        cast("State", nothing),
        cast("Database", nothing),
    )
    begin, made = threading.Barrier(8), []

    def make() -> Writer:
        writer = Writer()
        made.append(writer)
        # As long as an import takes.
        time.sleep(0.05)
        return writer

    def ask() -> Writer:
        begin.wait()
        return services.singleton(Writer, make)

    with ThreadPoolExecutor(8) as threads:
        found = {id(asked.result()) for asked in [threads.submit(ask) for _ in range(8)]}
    assert len(found) == len(made) == 1


def test_one_instance_may_ask_for_another_while_it_is_made(tmp_path: Path) -> None:
    nothing = object()
    services = Services(
        cast("ControlConfig", nothing),
        tmp_path,
        cast("State", nothing),
        cast("Database", nothing),
    )

    class Outer:
        def __init__(self) -> None:
            self.inner = services.singleton(Writer, Writer)

    assert services.singleton(Outer, Outer).inner is services.existing(Writer)
